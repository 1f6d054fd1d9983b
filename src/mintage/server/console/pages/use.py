"""The page "Who uses how much?": namespaces, schemes and keys by the last hour and day; and the page of a namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import Final, Literal, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from mintage.errors import RequestError
from mintage.lease.holder import Holder
from mintage.rules import check_name
from mintage.server.console.frame import PageRequest
from mintage.server.console.pages.ends import amount, days_in_words, ends_of
from mintage.server.console.query import namespace_url
from mintage.server.console.table import Column, Table
from mintage.server.core.usage import Used

OTHERS: Final = "all others"
"""The name of the series that had no room of their own."""
PERIODS: Final = {"hour": "last hour in steps of five minutes", "day": "last day in steps of an hour"}
_NOTHING: Final = Used()
_WIDTH, _HEIGHT = 120, 24
"""Of a sparkline, in pixels."""
_KINDS: Final = {"integers": "Integers", "ids": "IDs"}


class Row(NamedTuple):
    """A user: a namespace, a scheme or a key, with its counts by kind: ``integers``, ``ids``."""

    name: str
    counts: dict[str, Used]

    def points(self, kind: str, period: str) -> tuple[int, ...]:
        """Return the points of a period, ``hour`` or ``day``, the oldest first."""
        return self.counts[kind].hour if period == "hour" else self.counts[kind].day

    def total(self, period: str) -> int:
        """Return the integers and IDs of a period."""
        return sum(sum(self.points(kind, period)) for kind in self.counts)

    def drawn(self, kind: str, period: str) -> Markup:
        """Return the sum of a period and the line of its points."""
        points = self.points(kind, period)
        shown = f"{_KINDS[kind]} of {self.name or OTHERS}, {PERIODS[period]}, the oldest first: "
        return Markup("{:,} {}").format(sum(points), sparkline(points, shown + ", ".join(map(str, points))))


def rows(by: Literal[0, 1], **counts: Mapping[tuple[str, str], Used]) -> list[Row]:
    """Return a row for each name (0) or key (1) of the counts, by kind; the largest use of the last hour is first."""
    found: dict[str, dict[str, Used]] = {}
    for kind, each in counts.items():
        for series, used in each.items():
            row = found.setdefault(series[by], dict.fromkeys(counts, _NOTHING))
            row[kind] = row[kind].plus(used)
    return sorted(starmap(Row, found.items()), key=lambda row: (-row.total("hour"), -row.total("day"), row.name))


def sparkline(values: Sequence[int], label: str) -> Markup:
    """Return a line of at least two counts over time, from the oldest to the newest, that begins at zero.

    :param label: what the picture shows, for those who do not see it.
    """
    most, step = max(values) or 1, _WIDTH / (len(values) - 1)
    line = "L".join(f"{at * step:.1f},{_HEIGHT - 1 - n / most * (_HEIGHT - 2):.1f}" for at, n in enumerate(values))
    return Markup(
        '<svg class="sparkline" role="img" aria-label="{}" width="{w}" height="{h}" viewBox="0 0 {w} {h}" '
        'preserveAspectRatio="none"><path class="spark-area" d="M{d}L{w},{h}L0,{h}Z"/><path class="spark" d="M{d}"/>'
        "</svg>"
    ).format(label, w=_WIDTH, h=_HEIGHT, d=line)


def _column(kind: str, period: str) -> Column:
    return Column(
        f"{kind}_{period}",
        f"{_KINDS[kind]}, last {period}",
        lambda row: sum(row.points(kind, period)),
        "number",
        show=lambda row: row.drawn(kind, period),
    )


def _columns(name: str, *kinds: str, link: Callable[[Row], str | None] | None = None) -> tuple[Column, ...]:
    first = Column(name, name.capitalize(), lambda row: row.name or OTHERS, link=link)
    return first, *(_column(kind, period) for kind in kinds for period in PERIODS)


NAMESPACES: Final = _columns("namespace", "integers", link=lambda row: namespace_url(row.name) if row.name else None)
SCHEMES: Final = _columns("scheme", "ids")
KEYS: Final = _columns("key", "integers", "ids")
KEYS_OF_ONE: Final = _columns("key", "integers")


def _may_see_keys(request: PageRequest) -> bool:
    """Return True if the caller may read the metrics: the names of other keys are nowhere else."""
    return request.service.settings.has_keys and request.caller.may("metrics", "")


def _tables(request: PageRequest) -> list[Table]:
    """Return the tables of the page. Call it in a thread: it reads the counts of all workers."""
    query, usage = request.query, request.service.metrics.usage
    integers, ids = usage.read("integers"), usage.read("ids")
    namespaces, schemes, keys = rows(0, integers=integers), rows(0, ids=ids), rows(1, integers=integers, ids=ids)
    no_integers = "This service has handed out no integers in the last day."
    no_ids = "This service has minted no IDs in the last day."
    return [
        Table(query, "Namespaces by integers", NAMESPACES, namespaces, name="namespaces", empty=no_integers),
        Table(query, "Schemes by IDs", SCHEMES, schemes, name="schemes", empty=no_ids),
        *([Table(query, "Keys by integers and IDs", KEYS, keys, name="keys")] if _may_see_keys(request) else []),
    ]


async def use(request: PageRequest) -> Response:
    """Return the page."""
    request.caller.check("describe", "")
    tables = await asyncio.to_thread(_tables, request)
    return await request.page("use.html", title="Who uses how much?", tables=tables, live=True)


async def namespace(request: PageRequest) -> Response:
    """Return the page of a namespace."""
    usage, name = request.service.metrics.usage, request.path_params["name"]
    check_name(name, "namespace")
    record = await request.read(name, request.store.get_namespace, name)
    if record is None:
        raise RequestError(f"there is no namespace {name!r}", code="request.namespace")
    [end] = await ends_of([record], usage)
    counts = await asyncio.to_thread(usage.read, "integers", name)
    keys = Table(request.query, f"Keys that used {name}", KEYS_OF_ONE, rows(1, integers=counts), name="keys")
    return await request.page(
        "one-namespace.html",
        title=name,
        end=end,
        holder=Holder.parse(record.run_holder),
        left_in_words=days_in_words(end.days),
        amount=amount,
        use=next(iter(rows(0, integers=counts)), Row(name, {"integers": _NOTHING})),
        may_change=request.caller.may("create", name) and not record.retired,
        tables=[keys] if _may_see_keys(request) else [],
        live=True,
    )
