"""The machine-local registry, by which the processes of a host agree on node numbers if no store is named.

A new process tries the first number of its block, then the rest of the block, then all numbers that are leased.

>>> len(blocks(1024)[1]) == BLOCK
True
>>> MACHINE
'/var/lib/mintage-registry'
"""

from mintage.lease.registry.numbers import (
    BLOCK,
    all_fragments,
    blocks,
    fragments,
    host_id,
    leased,
    locked,
    locked_fragments,
    unlocked,
    unlocked_fragments,
)
from mintage.lease.registry.place import (
    MACHINE,
    can_be_made,
    home,
    is_outsider,
    is_registry,
    is_writable,
    prepare,
    reader,
    url,
    warn_outsider,
)

__all__ = [
    "BLOCK",
    "MACHINE",
    "all_fragments",
    "blocks",
    "can_be_made",
    "fragments",
    "home",
    "host_id",
    "is_outsider",
    "is_registry",
    "is_writable",
    "leased",
    "locked",
    "locked_fragments",
    "prepare",
    "reader",
    "unlocked",
    "unlocked_fragments",
    "url",
    "warn_outsider",
]
