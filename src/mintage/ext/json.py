"""IDs in the standard library's ``json``, and in libraries with the same ``default``, such as orjson."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mintage.formats.annotations import find_kind

__all__ = ["default"]


def default(value: object, otherwise: Callable[[Any], Any] | None = None) -> Any:
    """Return the text of an ID, or the result of ``otherwise`` for any other value.

    ``json`` calls it for objects only. A snowflake is an ``int``, which ``json`` writes as a number. Convert the keys
    of a dict to ``str`` yourself.

    >>> import json
    >>> from datetime import date
    >>> from functools import partial
    >>> from mintage import sno
    >>> from mintage.ext.json import default
    >>> both = partial(default, otherwise=date.isoformat)
    >>> json.dumps([sno.ID.parse("brpk4q72xwf2m63l"), date(2031, 5, 8)], default=both)
    '["brpk4q72xwf2m63l", "2031-05-08"]'

    :param value: a value that ``json`` cannot write.
    :param otherwise: a ``default`` of your own; ``functools.partial(default, otherwise=mine)`` uses both.
    :raises TypeError: the value is no ID, and there is no ``otherwise``.
    """
    if find_kind(type(value)) is not None:
        return str(value)
    if otherwise is not None:
        return otherwise(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
