"""The formats that the core declares: the fields, texts and times of IDs.

>>> from mintage.formats.kinds import KINDS
>>> ulid = KINDS["ulid"].format
>>> isinstance(ulid, Format) and ulid in FORMATS and ulid in MINTED and ulid not in AMBIGUOUS_FORMATS
True
>>> [part.name for part in ulid.parts if isinstance(part, Part)]
['time', 'random']
>>> twitter = LAYOUTS["twitter"]
>>> write_layout(twitter)
'time:41 datacenter:5 worker:5 sequence:12 @1288834974657 1ms'
>>> read_layout("twitter") == read_layout(write_layout(twitter)) == twitter
True
>>> pool_layout("sno").text, pool_layout("twitter") == read_pool_layout("twitter")
('sno/1', True)
>>> of_layout(twitter, "my layout").name
'snowflake my layout'
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from mintage._core.formats import (
    AMBIGUOUS_FORMATS,
    FORMATS,
    MAX_SHARDS,
    Format,
    Part,
    of_layout,
    read_layout,
    read_pool_layout,
    write_layout,
)
from mintage._core.snowflake import Layout
from mintage.errors import ConfigError
from mintage.formats.kinds import KINDS
from mintage.rules import ALL_NODES, PoolRecord, is_number

__all__ = [
    "AMBIGUOUS_FORMATS",
    "FORMATS",
    "LAYOUTS",
    "MINTED",
    "Format",
    "Part",
    "check_share",
    "known_pool_layout",
    "of_layout",
    "pool_layout",
    "pool_layouts",
    "read_layout",
    "read_pool_layout",
    "read_share",
    "share_text",
    "write_layout",
]

MINTED: Final = tuple(
    {
        each.name: each
        for each in (*FORMATS, *AMBIGUOUS_FORMATS)
        if (kind := KINDS.get(each.scheme)) and (not kind.versions or each.layout in kind.versions)
    }.values()
)
"""The formats of the IDs that mintage mints. A cuid has two widths, as its time grows: this has the last."""

LAYOUTS: Final[dict[str, Layout]] = {
    each.layout: layout
    for each in FORMATS
    if each.scheme == "snowflake" and each.layout and (layout := read_layout(each.layout))
}
"""The named layouts of 64-bit integers."""


class PoolLayout(NamedTuple):
    """The layout of a pool: its text as generators write it, the number of node numbers, and the date of its end."""

    text: str
    nodes: int
    ends: datetime | None


def pool_layout(text: str) -> PoolLayout:
    """Return the layout of a new pool by its text or its name.

    :raises ConfigError: ``config.layout``: there is no such layout, or its fields do not fit.
    """
    if found := read_pool_layout(text):
        return PoolLayout(*found)
    raise ConfigError(
        f"{text[:80]!a} is not a layout; use {', '.join(pool_layouts())}, sno/N with a power of two N up to "
        f"{MAX_SHARDS}, or 'snowflake time:41 node:10 sequence:12 @1735689600000 1ms'",
        code="config.layout",
    )


def known_pool_layout(text: str) -> PoolLayout | None:
    """Return what :func:`read_pool_layout` does for a pool's record; ``None`` if this version does not know its layout.

    >>> known_pool_layout("sno/1").nodes, known_pool_layout("of a later version")
    (65536, None)
    """
    try:
        found = read_pool_layout(text)
    except ConfigError:
        return None
    return found and PoolLayout(*found)


def pool_layouts() -> list[str]:
    """Return the names of the layouts that a pool may have.

    >>> "uuid.v7" in pool_layouts(), "uuid" in pool_layouts()
    (True, False)
    """
    names = (each.name.removeprefix("snowflake ").replace(" ", ".") for each in MINTED)
    return [name for name in names if read_pool_layout(name)]


def check_share(layout: str, nodes: range) -> None:
    """Check that the share of a pool is within its layout, if this version knows that.

    :raises ConfigError: ``config.node``: it is not.

    >>> check_share("snowflake time:41 node:10 sequence:12 @0 1ms", range(1023, 1025))
    Traceback (most recent call last):
    mintage.errors.ConfigError: nodes 1023..1024 are outside 0..1023, the node numbers of the layout: choose less
    """
    known = known_pool_layout(layout)
    if known is not None and nodes.stop > known.nodes:
        raise ConfigError(
            f"nodes {nodes.start}..{nodes.stop - 1} are outside 0..{known.nodes - 1}, the node numbers of the layout: "
            "choose less",
            code="config.node",
        )


def read_share(layout: str, text: str) -> range:
    """Return the node numbers of a pool's share that a text spells, within the pool's layout.

    :raises ConfigError: ``config.node``: it spells none, or some that the layout lacks.

    >>> read_share("sno/1", "0-511")
    range(0, 512)
    """
    first, _, last = text.strip().partition("-")
    if not (is_number(first, 14) and is_number(last, 14) and int(first) <= int(last)):
        raise ConfigError(
            f"nodes {text[:40]!a} are no range: write the first and the last number, such as 0-511", code="config.node"
        )
    nodes = range(int(first), int(last) + 1)
    check_share(layout, nodes)
    return nodes


def share_text(pool: PoolRecord) -> str | None:
    """Return the share of a pool, as :func:`read_share` reads it; ``None`` if it has all numbers of its layout.

    >>> from mintage.rules import create_pool, set_share
    >>> pool = create_pool("sno", "sno/1", 30_000, "server")
    >>> share_text(pool), share_text(set_share(pool, range(512), 0))
    (None, '0-511')
    """
    known = known_pool_layout(pool.layout)
    last = (known.nodes if known else len(ALL_NODES)) - 1
    return None if pool.first_node == 0 and pool.last_node >= last else f"{pool.first_node}-{min(pool.last_node, last)}"
