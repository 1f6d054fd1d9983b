"""The hooks for snapshots of processes, and the release of all leases.

A process that is restored twice from one snapshot is two processes with one lease. Call :func:`before_snapshot` before
the platform takes a snapshot, and :func:`after_restore` in each process that was restored from it.

>>> from mintage import clones
>>> clones.before_snapshot()
"""

from mintage.lease.snapshots import after_restore, before_snapshot, release_all

__all__ = ["after_restore", "before_snapshot", "release_all"]
