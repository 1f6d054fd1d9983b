"""UUIDs of every version, and all names of the standard module, which ``import mintage.uuid as uuid`` replaces.

``ID``, ``Array``, ``Generator``, ``new``, ``min_at`` and ``max_at`` are mintage's own. All other functions return
``UUID`` objects of the standard module.

>>> from mintage import uuid
>>> uuid.ID.parse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").time.isoformat()
'2022-02-22T19:22:22+00:00'
>>> uuid.uuid5(uuid.NAMESPACE_DNS, "python.org")
UUID('886313e1-3b8a-5372-9b90-0c9aee199e5d')

:func:`new` mints one ID of version 7; a :class:`Generator` mints many at once, of any version, as an :class:`Array`.
:func:`min_at` and :func:`max_at` return the first and the last UUID of version 7 of an instant.

The other names are functions and constants of the standard module:

>>> [each().version for each in (uuid.uuid1, uuid.uuid4, uuid.uuid6, uuid.uuid7, uuid.uuid8)]
[1, 4, 6, 7, 8]
>>> uuid.uuid3(uuid.NAMESPACE_URL, "https://example.org/").version
3
>>> uuid.UUID(int=0) == uuid.NIL, uuid.UUID(int=2**128 - 1) == uuid.MAX, uuid.NIL.is_safe is uuid.SafeUUID.unknown
(True, True, True)
>>> uuid.UUID("886313e1-3b8a-5372-9b90-0c9aee199e5d").variant == uuid.RFC_4122
True
>>> uuid.uuid5(uuid.NAMESPACE_OID, "1.3.6.1.4.1"), uuid.uuid5(uuid.NAMESPACE_X500, "CN=web-1,O=Example")
(UUID('106dd502-8b3e-50db-80ed-1134f5c18eae'), UUID('3bd8d07a-f3f6-5e8c-85e0-12594ce0ef14'))
>>> uuid.UUID("00000000-0000-0000-c000-000000000046").variant == uuid.RESERVED_MICROSOFT
True
>>> uuid.NIL.variant == uuid.RESERVED_NCS, uuid.MAX.variant == uuid.RESERVED_FUTURE
(True, True)
>>> uuid.uuid1(node=uuid.getnode()).node == uuid.getnode()
True
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

new = as_function(Generator().new, __name__)
_v1, _v4, _v6 = Generator(version=1), Generator(version=4), Generator(version=6)


def uuid1(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """Return a UUID of version 1: the time since 1582 in units of 100 ns, a clock sequence and a node.

    By default mintage draws the clock sequence and the node at random, once a process; the node has the multicast bit.

    If you pass either, the time is the clock's, and later than the time of the last such UUID of this process and of
    all processes that were forked, after mintage was imported, from it or from its parents. Two unrelated processes
    that pass the same node and the same clock sequence return the same UUID if they do so in the same 100 ns.

    >>> from mintage import uuid
    >>> uuid.uuid1(node=0x0A1B2C3D4E5F, clock_seq=7).node == 0x0A1B2C3D4E5F
    True

    :param node: 48 bits; ``getnode()`` returns the address of this machine.
    :param clock_seq: a number, of which the lower 14 bits count.
    :raises FieldError: ``field.range``: the node has more bits.
    """
    return _of_node(_v1, node, clock_seq)


def uuid6(node: int | None = None, clock_seq: int | None = None) -> UUID:
    """Return a UUID of version 6: the fields of :func:`uuid1` in an order that sorts by time.

    >>> from mintage import uuid
    >>> uuid.uuid6() < uuid.uuid6()
    True

    :param node: a number, of which the lower 48 bits count.
    :param clock_seq: a number, of which the lower 14 bits count.
    """
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
    """Return a UUID of version 8, with 48, 12 and 62 bits of your own.

    The operating system's generator fills the numbers that you leave out, as in version 4. (The standard module uses a
    weaker one.)

    >>> from mintage import uuid
    >>> str(uuid.uuid8(0x0123456789AB, 0xCDE))[:19]
    '01234567-89ab-8cde-'

    :param a: a number, of which the lower 48 bits count.
    :param b: a number, of which the lower 12 bits count.
    :param c: a number, of which the lower 62 bits count.
    """
    drawn = int(_v4.new())
    return ID.from_parts(
        version=8,
        custom_a=(drawn >> 80 if a is None else a) & 0xFFFF_FFFF_FFFF,
        custom_b=(drawn >> 64 if b is None else b) & 0xFFF,
        custom_c=(drawn if c is None else c) & 0x3FFF_FFFF_FFFF_FFFF,
    ).as_uuid()
