"""What adapters ask of a scheme: its class of IDs, their forms, their bounds in time. No framework is imported here."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from mintage import snowflake
from mintage.casting import type_name
from mintage.errors import ArgumentError, FieldError, ParseError
from mintage.formats import Format, of_layout, of_scheme
from mintage.schemes import SCHEMES, Scheme

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

__all__ = ["KINDS", "Kind", "kind_of"]


class Kind(NamedTuple):
    """The IDs of one scheme, as something that is stored, read and written; a snowflake's also of one layout."""

    scheme: Scheme
    layout: snowflake.Layout | None = None
    """Of snowflake, and ``None`` for all others."""

    @property
    def name(self) -> str:
        """The scheme's."""
        return self.scheme.name

    @property
    def title(self) -> str:
        """How class names begin."""
        return self.scheme.title

    @property
    def format(self) -> Format:
        """What the core declares of it."""
        return of_scheme(self.name) if self.layout is None else of_layout(self.layout, self.name)

    @property
    def python(self) -> type[Any]:
        """What an ID of it is in Python: the scheme's ``ID``, ``int`` for snowflake, ``str`` where IDs are text."""
        if self.layout is not None:
            return int
        return str if self.scheme.is_text else self.scheme.module.ID

    @property
    def size(self) -> int | None:
        """Bytes of an ID; ``None`` where IDs are text."""
        if self.layout is not None:
            return 8
        return None if self.scheme.is_text else self.format.bits // 8

    @property
    def length(self) -> int:
        """Characters of its usual text; the most that an integer has."""
        return self.format.lengths[0] if self.format.lengths else len(str(self.max))

    @property
    def max(self) -> int:
        """The largest number that an ID can be, of those that are numbers."""
        return (1 << (self.layout.bits if self.layout else self.format.bits)) - 1

    @property
    def has_time(self) -> bool:
        """Whether IDs sort by time, so that an instant has a smallest and a largest one: see :meth:`min_at`."""
        if self.layout is not None:
            return self.layout.fields[0][0] == "time"
        return hasattr(self.scheme.module, "min_at")

    @property
    def mint(self) -> Callable[[], Any]:
        """The scheme's own ``new``: a function of a module, which can be imported by its name."""
        return self.scheme.module.new  # type: ignore[no-any-return]

    def read(self, value: object) -> Any:
        """An ID of whatever may stand for one: an ID, its text, its bytes, its UUID; of snowflake an int or its digits.

        :raises ArgumentError: ``argument.type``: it is nothing of these.
        :raises ParseError: it is of the right type, and no ID.
        :raises FieldError: an integer outside the layout.
        """
        if self.layout is not None:
            return self._read_integer(value)
        if isinstance(value, self.python) and not self.scheme.is_text:
            return value
        if isinstance(value, str):
            return self.scheme.parse(value)
        if not self.scheme.is_text:
            if isinstance(value, (bytes, bytearray, memoryview)):
                return self.python.from_bytes(bytes(value))
            if isinstance(value, UUID) and hasattr(self.python, "from_uuid"):
                return self.python.from_uuid(value)
        wanted = "text" if self.scheme.is_text else f"{type_name(self.python)}, text or bytes"
        message = f"{self.name} must be {wanted}, not {type_name(type(value))}"
        raise ArgumentError(message, code="argument.type")

    def _read_integer(self, value: object) -> int:
        if isinstance(value, str):
            if not (value.isascii() and value.isdigit() and len(value) <= len(str(self.max))):
                raise ParseError(f"{value[:40]!a} is no {self.name}: digits of an integer", code="parse.unknown")
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            message = f"{self.name} must be int or its digits, not {type_name(type(value))}"
            raise ArgumentError(message, code="argument.type")
        if not 0 <= value <= self.max:
            raise FieldError(f"{self.name} {value:.6g} is outside 0..{self.max} of its layout", code="field.range")
        return value

    def write(self, id: Any) -> str:
        """Its usual text."""
        return str(id)

    def min_at(self, time: datetime | int) -> Any:
        """The smallest ID of the tick that an instant lies in, where :attr:`has_time`.

        :raises FieldError: ``time.order``: these IDs do not sort by time; ``time.naive``, ``time.range``.
        """
        return self._bounds.min_at(time)

    def max_at(self, time: datetime | int) -> Any:
        """The largest ID of that tick.

        :raises FieldError: as :meth:`min_at`.
        """
        return self._bounds.max_at(time)

    @property
    def _bounds(self) -> Any:
        if not self.has_time:
            layout = f" of the layout {self.layout!r}" if self.layout else ""
            message = f"{self.name} IDs{layout} do not sort by time, so no time has a smallest or largest one"
            raise FieldError(message, code="time.order")
        return self.layout or self.scheme.module


KINDS: Final = {
    name: Kind(scheme, snowflake.DEFAULT if scheme.has_layouts else None) for name, scheme in SCHEMES.items()
}
"""Of each scheme, in the order of :data:`mintage.schemes.SCHEMES`; snowflake in its default layout."""


@cache
def kind_of(python: type) -> Kind | None:
    """The kind that a class of IDs is of, or ``None``: ``int`` and ``str`` are of no single one."""
    return next((each for each in KINDS.values() if each.python is python and each.size and not each.layout), None)
