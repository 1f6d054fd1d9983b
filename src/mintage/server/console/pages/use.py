"""The page "Who uses how much?": namespaces, schemes and keys by the last hour and day; and the page of a namespace."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup
from starlette.routing import Route

from mintage.errors import RequestError
from mintage.rules import check_name
from mintage.server.console.frame import caller, page, read, service_of, store_of
from mintage.server.console.pages.ends import amount, days_in_words, namespace_ends, namespace_url
from mintage.server.console.pictures import sparkline
from mintage.server.console.query import Query
from mintage.server.console.table import Column, Table
from mintage.server.core.usage import Used

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response


TITLE: Final = "Use"
PATH: Final = "/use"
OTHERS: Final = "all others"
"""The name of the series that had no room of their own."""
_NOTHING: Final = Used()


@dataclass(frozen=True, slots=True)
class Row:
    """A user of integers and IDs: a namespace, a scheme, or a key."""

    name: str
    integers: Used
    ids: Used

    @property
    def hour(self) -> int:
        """The integers and IDs of the last hour."""
        return sum(self.integers.hour) + sum(self.ids.hour)

    @property
    def day(self) -> int:
        """The integers and IDs of the last day."""
        return sum(self.integers.day) + sum(self.ids.day)


def by_name(counts: Mapping[tuple[str, str], Used]) -> dict[str, Used]:
    """Return the counts of all keys together, by namespace or scheme."""
    return _added((name, used) for (name, _), used in counts.items())


def by_key(counts: Mapping[tuple[str, str], Used]) -> dict[str, Used]:
    """Return the counts of all namespaces or schemes together, by key."""
    return _added((key, used) for (_, key), used in counts.items())


def of_name(counts: Mapping[tuple[str, str], Used], wanted: str) -> dict[str, Used]:
    """Return the counts of one namespace, by key."""
    return {key: used for (name, key), used in counts.items() if name == wanted}


def rows(integers: Mapping[str, Used], ids: Mapping[str, Used]) -> list[Row]:
    """Return the rows of a table, the largest use of the last hour first, and then of the last day."""
    names = integers.keys() | ids.keys()
    found = [Row(name, integers.get(name, _NOTHING), ids.get(name, _NOTHING)) for name in names]
    return sorted(found, key=lambda each: (-each.hour, -each.day, each.name))


def _added(counts: Iterable[tuple[str, Used]]) -> dict[str, Used]:
    found: defaultdict[str, Used] = defaultdict(Used)
    for name, used in counts:
        found[name] += used
    return dict(found)


# --- the pages ----------------------------------------------------------------------------------------------------


def _drawn(points: Callable[[Row], tuple[int, ...]], period: str) -> Callable[[Row], Markup]:
    def show(row: Row) -> Markup:
        values = points(row)
        name = row.name or OTHERS
        return Markup('<span class="use">{:,} {}</span>').format(
            sum(values), sparkline(values, f"{name}, {period}, the oldest first: {', '.join(map(str, values))}")
        )

    return show


_HOUR: Final = "last hour in steps of five minutes"
_DAY: Final = "last day in steps of an hour"


def _columns(what: str, title: str, *, link: bool = False, kinds: tuple[str, ...]) -> tuple[Column, ...]:
    name = Column(
        what,
        title,
        lambda each: each.name or OTHERS,
        link=(lambda each: namespace_url(each.name) if each.name else None) if link else None,
    )
    found = [name]
    if "integers" in kinds:
        found += [
            Column(
                "integers_hour",
                "Integers, last hour",
                lambda each: sum(each.integers.hour),
                "number",
                show=_drawn(lambda each: each.integers.hour, f"integers of the {_HOUR}"),
            ),
            Column(
                "integers_day",
                "Integers, last day",
                lambda each: sum(each.integers.day),
                "number",
                show=_drawn(lambda each: each.integers.day, f"integers of the {_DAY}"),
            ),
        ]
    if "ids" in kinds:
        found += [
            Column(
                "ids_hour",
                "IDs, last hour",
                lambda each: sum(each.ids.hour),
                "number",
                show=_drawn(lambda each: each.ids.hour, f"IDs of the {_HOUR}"),
            ),
            Column(
                "ids_day",
                "IDs, last day",
                lambda each: sum(each.ids.day),
                "number",
                show=_drawn(lambda each: each.ids.day, f"IDs of the {_DAY}"),
            ),
        ]
    return tuple(found)


NAMESPACES: Final = _columns("namespace", "Namespace", link=True, kinds=("integers",))
SCHEMES: Final = _columns("scheme", "Scheme", kinds=("ids",))
KEYS: Final = _columns("key", "Key", kinds=("integers", "ids"))


async def use(request: Request) -> Response:
    """Return the page."""
    service, query = service_of(request), Query.of(request)
    who = caller(request)
    who.check("describe", "")
    integers, ids = service.metrics.usage.read("integers"), service.metrics.usage.read("ids")
    tables = [
        Table(
            query,
            "Namespaces by integers",
            NAMESPACES,
            rows(by_name(integers), {}),
            name="namespaces",
            empty="This service has handed out no integers in the last day.",
        ),
        Table(
            query,
            "Schemes by IDs",
            SCHEMES,
            rows({}, by_name(ids)),
            name="schemes",
            empty="This service has minted no IDs in the last day.",
        ),
    ]
    # The names of keys are otherwise in the metrics only.
    if service.settings.has_keys and who.may("metrics", ""):
        keys = rows(by_key(integers), by_key(ids))
        tables.append(Table(query, "Keys by integers and IDs", KEYS, keys, name="keys"))
    return await page(request, "use.html", title="Who uses how much?", tables=tables, live=True)


async def namespace(request: Request) -> Response:
    """Return the page of a namespace."""
    service, store, name = service_of(request), store_of(request), request.path_params["name"]
    check_name(name, "namespace")
    record = await read(request, "describe", name, store.get_namespace, name)
    if record is None:
        raise RequestError(f"there is no namespace {name!r}", code="request.namespace")
    usage, who = service.metrics.usage, caller(request)
    [end] = namespace_ends([record], usage)
    counts = of_name(usage.read("integers"), name)
    total = by_name({(name, key): used for key, used in counts.items()}).get(name, _NOTHING)
    tables = []
    if service.settings.has_keys and who.may("metrics", ""):
        keys = _columns("key", "Key", kinds=("integers",))
        tables.append(Table(Query.of(request), f"Keys that used {name}", keys, rows(counts, {}), name="keys"))
    return await page(
        request,
        "one-namespace.html",
        title=name,
        end=end,
        left_in_words=days_in_words(end.days),
        amount=amount,
        hour=_drawn(lambda each: each.integers.hour, f"integers of the {_HOUR}")(Row(name, total, _NOTHING)),
        day=_drawn(lambda each: each.integers.day, f"integers of the {_DAY}")(Row(name, total, _NOTHING)),
        may_change=who.may("create", name) and not record.retired,
        tables=tables,
        live=True,
    )


ROUTES: Final = (Route(PATH, use), Route("/namespaces/{name}", namespace))
