"""locality: UUIDs of "version b", whose first digits scatter over shards or cluster in a range.

>>> from mintage import locality
>>> locality.new().version
'b'
"""

from __future__ import annotations

from mintage._core.locality import ID, Array, Generator

__all__ = ["ID", "Array", "Generator", "new", "use_sequential_ids", "use_variable_ids"]

# A bound method, not a function around it: the call is the hot path.
_default = Generator()
new = _default.new


def use_sequential_ids() -> None:
    """Let :func:`new` mint IDs whose first digits cluster; does nothing where it already does."""
    _default.use_mode("sequential")


def use_variable_ids() -> None:
    """Let :func:`new` mint IDs whose first digits scatter, as it does at first; does nothing where it already does."""
    _default.use_mode("variable")
