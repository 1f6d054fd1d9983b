"""Hooks for snapshots of this process, and the release of all its leases.

>>> from mintage import clones
>>> clones.before_snapshot()  # ... the platform takes a snapshot, and restores it
>>> clones.after_restore()  # doctest: +SKIP
"""

from mintage.lease.snapshots import after_restore, before_snapshot, release_all

__all__ = ["after_restore", "before_snapshot", "release_all"]
