"""UUIDs of every version, and the standard module's names, so that ``import mintage.uuid as uuid`` takes its place.

``ID``, ``Array``, ``Generator``, ``new``, ``min_at`` and ``max_at`` are mintage's own; all other functions return the
standard module's very own ``UUID`` objects.

>>> from mintage import uuid
>>> uuid.ID.parse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").time.isoformat()
'2022-02-22T19:22:22+00:00'
>>> uuid.uuid5(uuid.NAMESPACE_DNS, "python.org")
UUID('886313e1-3b8a-5372-9b90-0c9aee199e5d')
"""

from __future__ import annotations

import sys
from uuid import (
    NAMESPACE_DNS,
    NAMESPACE_OID,
    NAMESPACE_URL,
    NAMESPACE_X500,
    RESERVED_FUTURE,
    RESERVED_MICROSOFT,
    RESERVED_NCS,
    RFC_4122,
    UUID,
    SafeUUID,
    getnode,
)

from mintage._core import as_function
from mintage._core.uuid import ID, Array, Generator, max_at, min_at, uuid3, uuid4, uuid5, uuid7

if sys.version_info >= (3, 12):
    from uuid import main

    __all__ = ["main"]
else:
    __all__ = []

__all__ += [
    "ID",
    "MAX",
    "NAMESPACE_DNS",
    "NAMESPACE_OID",
    "NAMESPACE_URL",
    "NAMESPACE_X500",
    "NIL",
    "RESERVED_FUTURE",
    "RESERVED_MICROSOFT",
    "RESERVED_NCS",
    "RFC_4122",
    "UUID",
    "Array",
    "Generator",
    "SafeUUID",
    "getnode",
    "max_at",
    "min_at",
    "new",
    "uuid1",
    "uuid3",
    "uuid4",
    "uuid5",
    "uuid6",
    "uuid7",
    "uuid8",
]

NIL = ID.NIL.as_uuid()
MAX = ID.MAX.as_uuid()

# Not a Python function around the method: the call is the hot path.
new = as_function(Generator().new, __name__)
_v1, _v4, _v6 = Generator(version=1), Generator(version=4), Generator(version=6)


def uuid1(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """Return a UUID of version 1: the time since 1582, and a node.

    The node is random, with the multicast bit, and so is the clock sequence, each drawn once a process. For this
    machine's address pass ``node=getnode()``, 48 bits; of ``clock_seq`` the lower 14 bits count.

    Where either is given, the time is the clock's, in 100 ns, and later than that of the last such UUID: of this
    process, and of all processes that were forked from it, or from its own parents, after mintage was imported. Two
    other processes of one node and one clock sequence give the same UUID where both come to the same 100 ns.

    :raises FieldError: ``field.range``: the node has more bits.
    """
    return _of_node(_v1, node, clock_seq)


def uuid6(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """A UUID of version 6: as :func:`uuid1`, in an order that sorts by time; of ``node`` the lower 48 bits count."""
    return _of_node(_v6, None if node is None else node & 0xFFFF_FFFF_FFFF, clock_seq)


def _of_node(generator: Generator, node: int | None, clock_seq: int | None) -> UUID:
    if node is None and clock_seq is None:
        return generator.new().as_uuid()
    minted = generator._stamp()
    if node is not None:
        minted = minted.replace(node=node)
    if clock_seq is not None:
        minted = minted.replace(clock_seq=clock_seq & 0x3FFF)
    return minted.as_uuid()


def uuid8(a: int | None = None, b: int | None = None, c: int | None = None) -> UUID:
    """Return a UUID of version 8, of 48, 12 and 62 bits of your own; of each number the lower bits count.

    What is left out is random: as in version 4, and not merely as good as that as in the standard module.
    """
    drawn = int(_v4.new())
    return ID.from_parts(
        version=8,
        custom_a=(drawn >> 80 if a is None else a) & 0xFFFF_FFFF_FFFF,
        custom_b=(drawn >> 64 if b is None else b) & 0xFFF,
        custom_c=(drawn if c is None else c) & 0x3FFF_FFFF_FFFF_FFFF,
    ).as_uuid()
