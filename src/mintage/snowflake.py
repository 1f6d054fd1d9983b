"""snowflake: 64-bit integers of time, node and sequence number, in any layout.

>>> from mintage import snowflake
>>> generator = snowflake.Generator(node=786)
>>> snowflake.DEFAULT.parse(generator.new()).node
786
"""

from __future__ import annotations

from mintage._core import as_function
from mintage._core.snowflake import (
    DEFAULT,
    DISCORD,
    INSTAGRAM,
    JS_SAFE,
    SONYFLAKE,
    TWITTER,
    Advice,
    Generator,
    Layout,
    Parts,
    node_from_macs,
    to_lines,
)

__all__ = [
    "DEFAULT",
    "DISCORD",
    "INSTAGRAM",
    "JS_SAFE",
    "SONYFLAKE",
    "TWITTER",
    "Advice",
    "Generator",
    "Layout",
    "Parts",
    "new",
    "node_from_macs",
    "to_lines",
]

# Not a Python function around the method: the call is the hot path.
_default = Generator()
new = as_function(_default.new, __name__)
