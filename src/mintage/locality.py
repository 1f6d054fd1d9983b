"""locality: UUIDs of "version b", whose first digits scatter over shards or cluster in a range.

>>> from mintage import locality
>>> locality.new().version
'b'
>>> locality.ID.parse("54321000-1092-ba1b-2c3d-019b76daa800").time.isoformat()
'2026-01-01T00:00:00+00:00'
>>> generator = locality.Generator(pid=7, mode="sequential")
>>> isinstance(generator.batch(2), locality.Array)
True
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.locality import ID, Array, Generator, sequential_seed

__all__ = [
    "ID",
    "Array",
    "Generator",
    "new",
    "sequential_seed",
    "splits",
    "use_sequential_ids",
    "use_variable_ids",
]

_default = Generator()
new = as_function(_default.new, __name__)


def use_sequential_ids() -> None:
    """Make :func:`new` mint IDs whose first digits cluster. A second call changes nothing.

    >>> from mintage import locality
    >>> locality.use_sequential_ids()
    >>> locality.use_variable_ids()
    """
    _default.use_mode("sequential")


def use_variable_ids() -> None:
    """Make :func:`new` mint IDs whose first digits scatter, which is the default. A second call changes nothing.

    >>> from mintage import locality
    >>> locality.use_variable_ids()
    """
    _default.use_mode("variable")


def splits(shards: int) -> list[ID]:
    """Return the IDs that divide all UUIDs into 1 to 65,536 equal ranges: the first of each range but the first.

    Use them as split points, so that a new table begins with many shards.

    >>> from mintage import locality
    >>> [str(each)[:8] for each in locality.splits(4)]
    ['40000000', '80000000', 'c0000000']

    :raises ArgumentError: ``shards`` is not an int.
    :raises FieldError: ``field.range``.
    """
    from mintage.rules import check_int  # which minting needs only for a lease

    check_int(shards, "shards", 1, 65_536)
    return [ID((2**32 * shard // shards).to_bytes(4, "big") + bytes(12)) for shard in range(1, shards)]
