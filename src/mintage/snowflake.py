"""snowflake: 64-bit integers of time, node and sequence number, in any layout.

>>> from mintage import snowflake
>>> generator = snowflake.Generator(node=786)
>>> snowflake.DEFAULT.parse(generator.new()).node
786

A :class:`Layout` says which bits are the time, the node number and the sequence number. It reads an ID as
:class:`Parts`. ``TWITTER``, ``DISCORD``, ``INSTAGRAM``, ``SONYFLAKE`` and ``JS_SAFE`` (53 bits, which JavaScript does
not round) are known; :meth:`Layout.advise` returns an :class:`Advice` for yours.

>>> snowflake.DISCORD.parse(175928847299117063).time.isoformat()
'2016-04-30T11:18:25.796000+00:00'
>>> [layout.bits for layout in (snowflake.TWITTER, snowflake.INSTAGRAM, snowflake.SONYFLAKE, snowflake.JS_SAFE)]
[63, 64, 63, 53]
>>> advice = snowflake.Layout.advise(ids_per_second=1000, nodes=64, years=50)
>>> isinstance(advice, snowflake.Advice), isinstance(advice.layout.parse(0), snowflake.Parts)
(True, True)

A batch is an :class:`Array`; :func:`to_lines` writes one ID a line. :func:`new` mints one ID, under a node number that
mintage leases. :func:`node_from_macs` computes a node number from MAC addresses, for fleets that use that rule already.
"""

from __future__ import annotations

from mintage._core import Annotation, as_function
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

# Type checkers read this as true. To import the one of typing would take longer than to import all of mintage.
TYPE_CHECKING = False
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Raise an error that says who reads a snowflake, as other formats have an ``ID`` or a ``parse`` here."""
        instead = ": a layout reads an int, as snowflake.DEFAULT.parse does" if name in ("ID", "parse") else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}", name=name)


class Str(Annotation):
    """An annotation: the ``int`` is an ID of a layout, and **text in JSON**, as JavaScript would round the number.

    Str(layout=DEFAULT)

    It is for Pydantic and the frameworks that use it. ``Annotated[int, Str()]`` accepts an int or its digits and checks
    it against the layout. The value is an int in Python and its digits in JSON. bool and float are refused.

    >>> from typing import Annotated
    >>> from mintage import snowflake
    >>> MessageID = Annotated[int, snowflake.Str(snowflake.DISCORD)]

    :param layout: the layout whose integers it accepts.
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
        """The layout whose integers it accepts."""
        return self._layout

    def __eq__(self, other: object) -> bool:
        return self._layout == other._layout if isinstance(other, Str) else NotImplemented

    def __hash__(self) -> int:
        return hash((Str, self._layout))

    def __repr__(self) -> str:
        return f"snowflake.Str({self._layout!r})"


_default = Generator()
new = as_function(_default.new, __name__)
