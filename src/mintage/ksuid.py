"""KSUIDs: 20 bytes and 27 characters, which sort by second.

>>> from mintage import ksuid
>>> ksuid.ID.parse("0ujtsYcgvSTl8PAuAdqWYSMnLOv").time.isoformat()
'2017-10-10T04:00:47+00:00'
>>> ksuid.new() < ksuid.new()
True

:func:`new` mints one ID; a :class:`Generator` mints many at once, as an :class:`Array`. :func:`min_at` and
:func:`max_at` return the first and the last ID of an instant, for a range of IDs.
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.ksuid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new", "sequence"]

new = as_function(Generator().new, __name__)


def sequence(seed: ID) -> Array:
    r"""Return the 65,536 IDs that begin with the bytes of a seed and end in 0 to 65,535, in that order.

    It is the ``Sequence`` of the reference implementation. Draw a new seed for each call: two sequences of one seed are
    equal.

    >>> from mintage import ksuid
    >>> invoice_lines = ksuid.sequence(ksuid.new())
    >>> len(invoice_lines), bytes(invoice_lines[7])[-2:]
    (65536, b'\x00\x07')

    :param seed: an ID, of which the first 18 bytes count.
    :raises ArgumentError: ``seed`` is no ID.
    """
    if not isinstance(seed, ID):
        from mintage.errors import ArgumentError

        raise ArgumentError(f"seed must be a ksuid.ID, not {type(seed).__name__}", code="argument.type")
    head = bytes(seed)[:-2]
    return Array(b"".join(head + n.to_bytes(2, "big") for n in range(65_536)))
