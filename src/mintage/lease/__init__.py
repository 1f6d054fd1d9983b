"""The lease of a generator and the segments of a sequence: the right to mint, and its limits.

The records and the rules behind them are in :mod:`mintage.rules`, which stores run. This package acquires, extends and
releases leases for this process.
"""

from mintage.lease.holder import Holder
from mintage.rules import GrantRecord, Lease, NamespaceRecord, NodeRecord, PoolRecord, RunRecord, Segment

__all__ = ["GrantRecord", "Holder", "Lease", "NamespaceRecord", "NodeRecord", "PoolRecord", "RunRecord", "Segment"]
