"""The advisor: a layout and the formats that meet a need, and the IDs of a period as SQL."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from mintage.errors import MintError
from mintage.formats import times
from mintage.formats.anatomy import dissect
from mintage.formats.bits import kind_of_column
from mintage.formats.catalogue import LAYOUTS, MINTED, Format, of_layout, read_layout, write_layout
from mintage.formats.kinds import KINDS
from mintage.formats.sql import DIALECTS, Dialect, sql_minted_between
from mintage.rules import MAX_INTEGER
from mintage.server.config.values import shown
from mintage.server.console.bit_picture import bit_picture
from mintage.server.console.frame import PageRequest
from mintage.server.console.query import malformed
from mintage.server.console.table import Column, Table
from mintage.server.console.text import visible
from mintage.snowflake import Layout

_JS_BITS: Final = 53
_EPOCH: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""The epoch of the layouts that the page advises, whenever it is opened."""
_YEAR: Final = timedelta(days=365.2425)


class Need(NamedTuple):
    """The numbers that somebody asks for."""

    ids_per_second: int = 1_000
    """The most IDs that one node mints in a second."""
    nodes: int = 100
    """The most nodes that mint at the same time."""
    years: int = 30
    """The years from now for which the format must last."""
    js_safe: bool = False
    """True if JavaScript's numbers must hold the IDs."""


class Fit(NamedTuple):
    """A format, and the reasons why it does not meet a need."""

    format: Format
    lacks: str
    """The reasons; empty if it meets the need."""


def fits(need: Need, now: datetime) -> list[Fit]:
    """Return the formats that mintage mints, those that meet the need first."""
    found = [Fit(each, "; ".join(_lacks(each, need, now))) for each in MINTED]
    return sorted(found, key=lambda each: bool(each.lacks))


def _lacks(each: Format, need: Need, now: datetime) -> Iterator[str]:
    if each.nodes is not None and each.nodes < need.nodes:
        yield f"{each.nodes:,} nodes"
    if each.ids_per_second is not None and each.ids_per_second < need.ids_per_second:
        yield f"{each.ids_per_second:,} IDs a second and node"
    if each.ends is not None and (left := (each.ends - now) / _YEAR) < need.years:
        yield f"ends in {left:,.0f} years"
    if need.js_safe and not (each.integer and sum(p.bits for p in each.parts if p.name != "unused") <= _JS_BITS):
        yield "no number of at most 53 bits"


class Bounds(NamedTuple):
    """The smallest and the largest ID of a moment in one format, and the SQL condition of a period."""

    name: str
    low: str = ""
    high: str = ""
    sql: str = ""
    why: str = ""
    """The reason why the format has none of them; empty if it has."""


def bounds_of(name: str, scheme: str | Layout, start: datetime, end: datetime, column: str, dialect: Dialect) -> Bounds:
    """Return the smallest and the largest ID of the tick of ``start``, and the condition from there to ``end``."""
    try:
        kind = kind_of_column(scheme)
        low, high = str(kind.min_at(start)), str(kind.max_at(start))
        return Bounds(name, low, high, sql_minted_between(scheme, column, start, end, dialect))
    except MintError as error:
        return Bounds(name, why=str(error))


def _schemes(layout: str) -> dict[str, str | Layout]:
    """Return the kinds and layouts of IDs that sort by time, and the layout that a form declares or names.

    :raises RequestError: ``request.malformed``: there is no such layout.
    :raises ConfigError: ``config.layout``: its fields do not fit.
    """
    found: dict[str, str | Layout] = {name: name for name, kind in KINDS.items() if kind.has_time}
    found |= {f"snowflake {name}": name for name in LAYOUTS if name != "default"}
    if not layout:
        return found
    if (declared := read_layout(layout)) is None:
        raise malformed(f"layout {layout!a:.80} is none: write one as time:41 node:10 sequence:12 @1735689600000 1ms")
    return {layout: declared, **found}


_FITS: Final = (
    Column("format", "Format", lambda each: each.format.name),
    Column("meets", "Meets it", lambda each: "no" if each.lacks else "yes"),
    Column("lacks", "Because", lambda each: each.lacks or None),
    Column("nodes", "Nodes", lambda each: each.format.nodes, "number"),
    Column("rate", "IDs a second and node", lambda each: each.format.ids_per_second, "number"),
    Column("bits", "Bits", lambda each: each.format.bits, "number"),
    Column("ends", "Ends", lambda each: each.format.ends, "time"),
)
_BOUNDS: Final = (
    Column("format", "Format", lambda each: each.name),
    Column("smallest", "Smallest ID", lambda each: each.low or None, "code"),
    Column("largest", "Largest ID", lambda each: each.high or None, "code"),
    Column(
        "condition",
        "Condition in SQL",
        lambda each: each.sql or each.why,
        show=lambda each: Markup('<code class="copy">{}</code>').format(each.sql) if each.sql else each.why,
    ),
)


async def choose(request: PageRequest) -> Response:
    """Answer with a layout for a need, the formats that meet it, and the bounds of a period."""
    query, now = request.query, datetime.now(UTC)
    need, advice, example, problem, wrong = Need(), None, 0, None, None
    given = {name: query.text(name) for name in Need._fields}
    try:
        need = Need(
            query.integer("ids_per_second", need.ids_per_second, 1, MAX_INTEGER),
            query.integer("nodes", need.nodes, 1, MAX_INTEGER),
            query.integer("years", need.years, 1, 10_000),
            bool(given["js_safe"]),
        )
        # The years of a layout count from its epoch.
        years = min(need.years + math.ceil((now - _EPOCH) / _YEAR), 10_000)
        advice = Layout.advise(**need._replace(years=years)._asdict(), epoch_ms=int(_EPOCH.timestamp() * 1000))
        last = advice.layout.nodes - 1
        example = advice.layout.compose(timestamp_ms=int(now.timestamp() * 1000), node=last, sequence=0)
    except MintError as error:
        problem = error
    tables = [Table(query, "Formats of mintage and this need", _FITS, fits(need, now), name="formats")]
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    period: dict[str, Any] = {
        "from": query.text("from") or times.stamp(today),
        "to": query.text("to") or times.stamp(today + timedelta(days=1)),
        "column": query.text("column") or "id",
        "dialect": query.one_of("dialect", DIALECTS, DIALECTS[0]),
        "layout": query.text("layout"),
    }
    try:
        if visible(period["column"]) != period["column"]:
            raise malformed(f"column {shown(period['column'], 60)} has characters that cannot be seen: type its name")
        start, end = query.time("from", today), query.time("to", today + timedelta(days=1))
        rest = (start, end, period["column"], period["dialect"])
        bounds = [bounds_of(name, scheme, *rest) for name, scheme in _schemes(period["layout"]).items()]
        tables.append(Table(query, f"IDs from {times.stamp(start)} on", _BOUNDS, bounds, name="bounds"))
    except MintError as error:
        wrong = error
    return await request.page(
        "choose.html",
        title="What should I choose?",
        tables=tables,
        need=need,
        advice=advice,
        declared=advice and write_layout(advice.layout),
        example=example,
        picture=advice and bit_picture(dissect(of_layout(advice.layout), example)),
        problem=problem,
        period=period,
        dialects=DIALECTS,
        wrong=wrong,
    )
