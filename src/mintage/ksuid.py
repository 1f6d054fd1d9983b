"""KSUIDs: 20 bytes and 27 characters, which sort by second.

>>> from mintage import ksuid
>>> ksuid.ID.parse("0ujtsYcgvSTl8PAuAdqWYSMnLOv").time.isoformat()
'2017-10-10T04:00:47+00:00'
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.ksuid import ID, Array, Generator, max_at, min_at

__all__ = ["ID", "Array", "Generator", "max_at", "min_at", "new", "sequence"]

# Not a Python function around the method: the call is the hot path.
new = as_function(Generator().new, __name__)


def sequence(seed: ID) -> Array:
    """The 65,536 IDs that begin as ``seed`` does and end in 0 to 65,535, as the reference's ``Sequence`` counts them.

    The caller has drawn the seed: two sequences of one seed are the same.

    :raises ArgumentError: ``seed`` is no ID.
    """
    if not isinstance(seed, ID):
        from mintage.errors import ArgumentError

        raise ArgumentError(f"seed must be a ksuid.ID, not {type(seed).__name__}", code="argument.type")
    head = bytes(seed)[:-2]
    return Array(b"".join(head + n.to_bytes(2, "big") for n in range(65_536)))
