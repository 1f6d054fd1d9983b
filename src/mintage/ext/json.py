"""IDs in the standard library's ``json``, and whatever takes a ``default`` as it does, such as orjson.

>>> import json
>>> from mintage import sno
>>> from mintage.ext.json import default
>>> json.dumps({"id": sno.ID.parse("brpk4q72xwf2m63l")}, default=default)
'{"id": "brpk4q72xwf2m63l"}'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mintage.formats.kinds import find_kind

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["default"]


def default(value: object, otherwise: Callable[[Any], Any] | None = None) -> Any:
    """Return the text of an ID; what ``otherwise`` says of anything else.

    It is asked for objects alone: a snowflake is an ``int``, which ``json`` writes as a number. Nor is it asked for the
    keys of a dict, which are to be ``str`` before.

    :param value: what ``json`` cannot write.
    :param otherwise: a ``default`` of your own; ``functools.partial(default, otherwise=mine)`` has both.
    :raises TypeError: it is no ID, and ``otherwise`` is not there.
    """
    if find_kind(type(value)) is not None:
        return str(value)
    if otherwise is not None:
        return otherwise(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
