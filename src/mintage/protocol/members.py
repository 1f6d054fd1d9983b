"""The members of the JSON objects that a service answers with, each read with its type and limits."""

from __future__ import annotations

import re
from typing import Final

from mintage.protocol.records import R, name_of, read
from mintage.rules import MAX_INTEGER

_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")


class AnswerError(ValueError):
    """An answer has the wrong form. The message completes the sentence "the answer …"."""


class Members:
    """The members of a JSON object, each read with its type and limits.

    Every method raises :class:`AnswerError` if the member is missing, of another type or outside its limits.
    """

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise AnswerError("is not a JSON object")
        self._members: dict[str, object] = value

    def number(self, name: str, least: int, most: int) -> int:
        """Return a number of JSON that is an integer from ``least`` to ``most``."""
        return self._within(name, self._members.get(name), least, most)

    def integer(self, name: str, least: int = 0) -> int:
        """Return a 64-bit integer, which is a string in JSON."""
        return self._integer(name, self._members.get(name), least)

    def integers(self, name: str, count: int) -> list[int]:
        """Return a list of ``count`` 64-bit integers."""
        return [self._integer(name, each, 0) for each in self.all(name, count)]

    def text(self, name: str, form: str = r"[^\0]{0,4096}") -> str:
        """Return a string that matches the regular expression ``form``."""
        value = self._members.get(name)
        if not isinstance(value, str) or not re.fullmatch(form, value, re.DOTALL):
            raise AnswerError(f"has no good {name}")
        return value

    def texts(self, name: str, count: int | None = None) -> list[str]:
        """Return a list of strings; of ``count`` of them, if given."""
        values = self.all(name, count)
        if not all(isinstance(each, str) for each in values):
            raise AnswerError(f"has {name} that are not text")
        return [str(each) for each in values]

    def flag(self, name: str) -> bool:
        """Return a boolean."""
        value = self._members.get(name)
        if not isinstance(value, bool):
            raise AnswerError(f"has no good {name}")
        return value

    def __contains__(self, name: str) -> bool:
        """Return True if the member is present and not null."""
        return self._members.get(name) is not None

    def all(self, name: str, count: int | None = None) -> list[object]:
        """Return a list; of ``count`` elements, if given."""
        value = self._members.get(name)
        if not isinstance(value, list):
            raise AnswerError(f"has no list {name}")
        if count is not None and len(value) != count:
            raise AnswerError(f"has {len(value)} {name}, not {count}")
        return value

    def record(self, kind: type[R], **others: object) -> R:
        """Return a record whose fields are these members and ``others``."""
        try:
            return read(kind, {**self._members, **others})
        except ValueError as error:
            raise AnswerError(f"is no {name_of(kind)}: {error}") from None

    def _integer(self, name: str, value: object, least: int) -> int:
        if not isinstance(value, str) or not _INTEGER.fullmatch(value):
            raise AnswerError(f"has no good {name}")
        return self._within(name, int(value), least, MAX_INTEGER)

    def _within(self, name: str, value: object, least: int, most: int) -> int:
        if type(value) is not int or not least <= value <= most:
            raise AnswerError(f"has no {name} in {least}..{most}")
        return value
