"""snowflake: 64-bit integers of time, node and sequence number, in any layout.

>>> from mintage import snowflake
>>> generator = snowflake.Generator(node=786)
>>> snowflake.DEFAULT.parse(generator.new()).node
786
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.snowflake import (
    DEFAULT,
    DISCORD,
    INSTAGRAM,
    JS_SAFE,
    SONYFLAKE,
    TWITTER,
    Advice,
    Array,
    Generator,
    Layout,
    Parts,
    node_from_macs,
    to_lines,
)
from mintage.annotation import Annotation
from mintage.errors import ArgumentError

__all__ = [
    "DEFAULT",
    "DISCORD",
    "INSTAGRAM",
    "JS_SAFE",
    "SONYFLAKE",
    "TWITTER",
    "Advice",
    "Array",
    "Generator",
    "Layout",
    "Parts",
    "Str",
    "new",
    "node_from_macs",
    "to_lines",
]

# Type checkers take this for true; importing the real one from typing would cost more than all of mintage.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Str(Annotation):
    """Says of an ``int`` that it is an ID of a layout, and **text in JSON**, as JavaScript would round the number.

    Str(layout=DEFAULT)

    For Pydantic, and what is built on it: ``Annotated[int, Str()]`` takes an int or its digits, checks it against the
    layout, is an int in Python and its digits in JSON. bool and float are refused.

    :param layout: the layout whose integers it takes.
    :raises ArgumentError: ``layout`` is not a Layout.
    """

    __slots__ = ("_layout",)

    def __init__(self, layout: Layout = DEFAULT) -> None:
        if not isinstance(layout, Layout):
            message = f"layout must be a Layout, not {type(layout).__name__}"
            raise ArgumentError(message, code="argument.type")
        self._layout = layout

    @property
    def layout(self) -> Layout:
        """The layout whose integers it takes."""
        return self._layout

    def __eq__(self, other: object) -> bool:
        return self._layout == other._layout if isinstance(other, Str) else NotImplemented

    def __hash__(self) -> int:
        return hash((Str, self._layout))

    def __reduce__(self) -> tuple[type[Self], tuple[Layout]]:
        return type(self), (self._layout,)

    def __repr__(self) -> str:
        return f"snowflake.Str({self._layout!r})"


# Not a Python function around the method: the call is the hot path.
_default = Generator()
new = as_function(_default.new, __name__)
