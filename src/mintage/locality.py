"""locality: UUIDs of "version b", whose first digits scatter over shards or cluster in a range.

>>> from mintage import locality
>>> locality.new().version
'b'
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.locality import ID, Array, Generator

__all__ = ["ID", "Array", "Generator", "new", "use_sequential_ids", "use_variable_ids"]

# Not a Python function around the method: the call is the hot path.
_default = Generator()
new = as_function(_default.new, __name__)


def use_sequential_ids() -> None:
    """Let :func:`new` mint IDs whose first digits cluster; does nothing where it already does."""
    _default.use_mode("sequential")


def use_variable_ids() -> None:
    """Let :func:`new` mint IDs whose first digits scatter, as it does at first; does nothing where it already does."""
    _default.use_mode("variable")
