"""The table of formats, in Markdown: what IDs of each format contain and what one costs."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from itertools import chain
from statistics import median

from benchmarks.record import Record
from mintage._core.formats import AMBIGUOUS_FORMATS, FORMATS, Format, read_pool_layout

HEADINGS = ("", "bytes", "characters", "sorts", "time, until", "node bits", "it tells", "store", "`new()`")

SHOWN = {"snowflake": ("default",), "uuid": ("v7", "v4", "v6", "v1")}
"""Of schemes with several layouts, those that have a row."""

LEASING = ("sno", "snowflake", "locality")
"""The schemes that lease a node number by default, as IDs of two hosts would not differ by chance."""

TICKS = {"milliseconds": "1 ms", "seconds": "1 s"}
KEPT = "\u00a0"
"""A non-breaking space."""


def formats() -> Iterator[Format]:
    """Return the formats that mintage mints, one for each row."""
    seen = set()
    for each in chain(FORMATS, AMBIGUOUS_FORMATS):
        is_shown = each.layout in SHOWN[each.scheme] if each.scheme in SHOWN else each.scheme not in seen
        if is_shown and find_spec(f"mintage.{each.scheme}"):
            seen.add(each.scheme)
            yield each


def _characters(each: Format) -> str:
    if each.lengths:
        return str(each.lengths[0])
    top, *_ = each.parts
    return f"up to {len(str(2 ** (each.bits - (top.bits if top.role == 'fixed' else 0)) - 1))}"


def sorts_by_time(each: Format) -> bool:
    """Return True if an ID with a greater first field always has a later time."""
    zero = int.from_bytes(b"0" * (each.bits // 8), "big") if not each.raw else 0
    low = each.bits
    ticks = []
    for part in each.parts:
        low -= part.bits
        if part.role == "time":
            ticks.append((each.time_ns(zero + (1 << low)) or 0) - (each.time_ns(zero) or 0))
    leading = next((part.role for part in each.parts if part.role != "fixed"), None)
    return leading == "time" and ticks == sorted(ticks, reverse=True)


def _time(each: Format) -> str:
    if each.clock is None:
        return "–"
    words = each.clock.partition(" since ")[0]
    unit = TICKS.get(words, words.removeprefix("ticks of ")).replace(" ", KEPT)
    return f"{unit}, {each.ends:%Y}" if each.ends else unit


def _node(each: Format) -> str:
    if each.nodes:
        return str(each.nodes.bit_length() - 1)
    leased = read_pool_layout(each.name.replace(" ", "."))
    return f"{leased[1].bit_length() - 1} if leased" if leased else "–"


def _tells(each: Format) -> str:
    """Return the names of the fields that are neither random nor constant."""
    told = dict.fromkeys(
        "time" if part.role == "time" else part.name for part in each.parts if _says_something(part.role)
    )
    return ", ".join(told) or "nothing"


def _says_something(role: str) -> bool:
    return role not in ("random", "fixed")


def _store(each: Format) -> str:
    if each.scheme in LEASING:
        return "needed"
    generator = getattr(import_module(f"mintage.{each.scheme}"), "Generator", None)
    takes_one = generator is not None and "store" in signature(generator).parameters
    return "optional" if takes_one and each.clock else "–"


def _cost(each: Format, record: Record | None) -> str:
    """Return the recorded median in nanoseconds."""
    names = [f"{each.scheme}.new()", f"{each.scheme}.Generator.new()"]
    if each.layout and each.layout.startswith("v"):
        version = each.layout[1:]
        names = [f"{each.scheme}.new(), version {version}", f"{each.scheme}.Generator(version={version}).new()"]
    results = record.results if record else []
    measured = {result.what: result.figures for result in reversed(results) if result.unit == "ns" and result.figures}
    return next((f"{median(measured[name]):.0f}{KEPT}ns" for name in names if name in measured), "–")


def table(pages: str, record: Record | None) -> str:
    """Return the table.

    :param pages: the address of the page of a scheme, with ``{}`` for its name
    """
    rows = [HEADINGS, ("---",) * len(HEADINGS)]
    for each in formats():
        name = each.scheme if each.layout == "default" else each.name
        rows.append(
            (
                f"[{name}]({pages.format(each.scheme)})",
                str(each.bits // 8) if each.raw else "–",
                _characters(each),
                "yes" if sorts_by_time(each) else "no",
                _time(each),
                _node(each),
                _tells(each),
                _store(each),
                _cost(each, record),
            )
        )
    return "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows)
