"""``mintage doctor``: what keeps IDs unique here, and what to repair."""

from __future__ import annotations

import json
import os
import platform
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage import __version__, rules
from mintage._core import build_profile
from mintage.cli.command import COLOR, JSON, command, option
from mintage.cli.namespaces import used
from mintage.cli.screen import Screen, Span, ago, open_screen
from mintage.cli.stores import NOT_MADE, REGISTRY, STORE, advice, advised, opened, source
from mintage.errors import ConfigError, LeaseError, MintError
from mintage.formats import catalogue, times
from mintage.installation import install_line
from mintage.lease.holder import Holder
from mintage.lease.registry import ADVICE, can_be_made, numbers, shown_home
from mintage.lease.registry.locks import BY_FILE, may_lock_files
from mintage.platform.limits import limits
from mintage.platform.machine import host_name
from mintage.protocol.url import StoreUrl
from mintage.server.core.findings import Finding, clock_of, promise_of, warnings_of
from mintage.tables.display import printable

if TYPE_CHECKING:
    import argparse

    from mintage.rules import NamespaceRecord, NodeRecord, PoolRecord
    from mintage.store import Description, Store

MOST_NAMESPACES: Final = 1_000
"""The most namespaces that are examined."""
SHORT_OF: Final = 9
"""Tenths of a pool's node numbers or a namespace's integers; if more are used, the finding needs attention."""
AT_LENGTH: Final = frozenset({"store", "clock"})
"""Topics whose findings are all shown, also without ``--verbose``."""
LONGEST_ABOUT: Final = 24
LEAST_TEXT: Final = 40
"""The fewest columns for the text of a finding beside its subject; with fewer, the text goes below."""
SOON_DAYS: Final = 2 * 365
"""A layout that runs out in fewer days needs attention."""


@command(
    "doctor",
    STORE,
    option("-v", "--verbose", action="store_true", help="show every finding, not only those that need attention"),
    COLOR,
    JSON,
    examples="""
  mintage doctor
  mintage doctor -v
  mintage doctor --json | jq -r 'select(.level != "ok") | .todo'""",
)
def doctor(args: argparse.Namespace) -> int:
    """Show what keeps IDs unique here, and what to repair.

    The command examines the store, its clock, pools and namespaces, the ends of layouts, the environment and the
    installation. It creates and changes nothing. It first shows what needs attention, and then, of the rest, only the
    store and its clock in full. The exit code is 0 if nothing needs attention, 1 if something does, and that of the
    error if the store cannot be used.
    """
    found: list[Finding] = []
    trouble: MintError | None = None
    try:
        if locks := _locks(args):
            found += locks
        else:
            with opened(args, reads=True) as store:
                found += _examine(args, store)
    except MintError as error:
        trouble = error
        found.append(Finding("store", "url", str(error), "unusable", advice(error.code), {"code": error.code}))
    found += [_end("layouts", each.name, each.ends) for each in catalogue.MINTED if each.ends is not None]
    found += [*_environment(), *_installation()]
    # A promise that is weaker on this system is nobody's mistake, so it needs no attention.
    found += [Finding("platform", about, f"{instead}: {weaker}") for about, instead, weaker in limits()]
    if args.json:
        for each in found:
            print(json.dumps(each.as_dict()))
    else:
        _draw(open_screen(args.color), found, every=args.verbose)
    if trouble is not None:
        raise trouble
    return int(any(each.level != "ok" for each in found))


def _examine(args: argparse.Namespace, store: Store) -> list[Finding]:
    # Read everything first: a store that fails half-way has one finding, its error.
    description = store.describe()
    before = time.time_ns()
    store_now_ms = store.now_ms()
    after = time.time_ns()
    pools = [(pool, list(store.each_lease(pool.name))) for pool in store.each_pool()]
    namespaces = store.list_namespaces("", MOST_NAMESPACES + 1)
    now_ms = (before + after) // 2_000_000
    _, place = source(args)
    blocks = numbers.blocks if place == REGISTRY else lambda size: [range(size)]
    return [
        *_store(place, store, description),
        clock_of(store, now_ms - store_now_ms, (after - before) // 2_000_000),
        *_pools(Moment(description.identity, now_ms, store_now_ms, blocks), pools),
        *_namespaces(namespaces, description.identity),
    ]


# --- the store ----------------------------------------------------------------------------------------------------


def _locks(args: argparse.Namespace) -> list[Finding]:
    """Return the findings where locks hold the node numbers, as the registry cannot be written; else none."""
    with advised(MintError):
        if args.store is not None or os.environ.get("MINTAGE_STORE") or can_be_made():
            return []
    why = f"mintage cannot write its registry in {shown_home()}"
    if may_lock_files():
        why += f": node numbers are {BY_FILE}"
        promise = "IDs are unique only among the processes that share these locks"
    else:
        why += ", nor a file to lock: node numbers are held by a lock that keeps no time, or drawn at random"
        promise = "IDs are unique in this process only, others may repeat them"
    promise += "; 'Sequence' needs a registry or a store"
    todo = f"{ADVICE[0].upper()}{ADVICE[1:]}."
    return [
        Finding("store", "url", why, "attention", todo, {"from": REGISTRY}),
        Finding("store", "promise", promise, "attention", todo, {"promise": "locks"}),
    ]


def _store(place: str, store: Store, description: Description) -> Iterator[Finding]:
    yield Finding("store", "url", f"{description.url}, from {place}", facts={"url": description.url, "from": place})
    if place == "--store" and store.url.password is not None:
        text = "the password is on the command line, where 'ps' shows it to others"
        yield Finding("store", "password", text, "attention", "Set MINTAGE_STORE instead of using --store.")
    server, identity = description.server, description.identity
    facts = {"server": server, "identity": identity}
    yield Finding("store", "server", f"{server}, identity {identity}", facts=facts)
    if description.is_new and description.promise == "shared":
        todo = "The first verb that writes creates them, as of a generator, a sequence or a service."
        yield Finding("store", "tables", f"it {NOT_MADE}", "attention", todo)
    yield promise_of(description, is_registry=place == REGISTRY)
    yield from warnings_of(description)


# --- node numbers -------------------------------------------------------------------------------------------------


class Moment(NamedTuple):
    """The state of the store and this host for a generator that starts here now."""

    server_id: str
    now_ms: int
    store_now_ms: int
    blocks: Callable[[int], Sequence[range]]
    """Return the node numbers of a pool of a size, in the order in which a generator tries them."""


def _pools(moment: Moment, pools: Sequence[tuple[PoolRecord, Sequence[NodeRecord]]]) -> Iterator[Finding]:
    if not pools:
        yield Finding("pools", "none", "no pools yet: the first generator creates one")
    for pool, nodes in pools:
        yield _pool(moment, pool, nodes)
        layout = catalogue.known_pool_layout(pool.layout)
        if layout is not None and layout.ends is not None:
            end = _end("pools", pool.name, layout.ends)
            if end.level != "ok":
                yield end


def _pool(moment: Moment, pool: PoolRecord, nodes: Sequence[NodeRecord]) -> Finding:
    host = host_name()
    held = [each for each in nodes if each.until_ms > moment.store_now_ms]
    here = [each.node for each in held if Holder.parse(each.holder or "").is_on(host)]
    cloned = [each for each in nodes if each.cloned_ms]
    layout = catalogue.known_pool_layout(pool.layout)
    share = catalogue.share_text(pool)
    facts: dict[str, object] = {
        "layout": pool.layout,
        "nodes": str(layout.nodes) if layout else None,
        "share": share,
        "granted": len(nodes),
        "held": len(held),
        "held_here": [str(each) for each in here],
        "next_here": None,
        "cloned": [str(each.node) for each in cloned],
    }
    if layout is None:
        text = f"its layout {pool.layout!r} is unknown to this version"
        return Finding("pools", pool.name, text, "attention", "Upgrade mintage.", facts)
    size = layout.nodes if layout.text == "locality" else moment.blocks(layout.nodes)[-1].stop
    granted = pool.share_of(size)
    count, taken = len(granted), sum(each.node in granted for each in held)
    own = "" if share is None else f", its share {share},"
    text = f"{taken:,} of {count:,} node numbers{own} held; this host holds {_few(here)}"
    if outside := [each for each in held if each.node not in pool.share]:
        last_ms = max(each.until_ms for each in outside)
        ends = ago((moment.store_now_ms - last_ms) / 1000)
        text += f"; {_few([each.node for each in outside])} outside the share, whose last window ends {ends}"
    todo = "Stop holders, or use a layout with more nodes." if taken * 10 > count * SHORT_OF else ""
    try:
        node = _next(moment, pool, nodes, layout.nodes)
    except (ConfigError, LeaseError) as refusal:
        return Finding("pools", pool.name, f"{text}; {refusal}", "attention", advice(refusal.code), facts)
    if layout.text == "locality":
        text += "; a generator here first tries the number of its pid and MAC address"
    else:
        facts["next_here"] = str(node)
        text += f"; the next generator here gets {node:,}"
    if cloned:
        last = max(cloned, key=lambda each: each.cloned_ms)
        holder = Holder.parse(last.holder).words if last.holder else "its holder"
        text += (
            f"; a copy of a holder lost its lease, of node number {_few([each.node for each in cloned])}; the last one "
            f"was a copy of {holder}, {ago((moment.store_now_ms - last.cloned_ms) / 1000)}"
        )
        todo = "Call mintage.before_snapshot() and mintage.after_restore() where processes or machines are copied."
    return Finding("pools", pool.name, text, "attention" if todo else "ok", todo, facts)


def _next(moment: Moment, pool: PoolRecord, nodes: Sequence[NodeRecord], size: int) -> int:
    """Return the node number that a generator would get, by the rules that stores use.

    :raises LeaseError: ``lease.none_free``.
    :raises ConfigError: ``config.node``: its share has none of the numbers that a generator here asks for.
    """
    pool = rules.note_server(pool, moment.server_id, moment.store_now_ms)
    rules.check_quarantine(pool, moment.store_now_ms, never_used=False)
    *first, last = moment.blocks(size)
    for block in first:
        with suppress(ConfigError, LeaseError):
            return _choice(pool, nodes, block, moment.now_ms)
    return _choice(pool, nodes, last, moment.now_ms)


def _choice(pool: PoolRecord, nodes: Sequence[NodeRecord], block: range, now_ms: int) -> int:
    block = rules.share_of(pool, block)
    granted = {each.node: each for each in nodes if each.node in block}
    oldest = min(granted.values(), key=lambda each: (each.until_ms, each.node), default=None)
    unused = next((each for each in block[: len(granted) + 1] if each not in granted), None)
    return rules.choose(pool, block, oldest, unused, now_ms, never_used=False)


def _few(numbers: Sequence[int]) -> str:
    shown = ", ".join(f"{each:,}" for each in numbers[:5])
    return f"{shown} and {len(numbers) - 5:,} more" if len(numbers) > 5 else shown or "none"


# --- namespaces ---------------------------------------------------------------------------------------------------


def _namespaces(records: Sequence[NamespaceRecord], server_id: str) -> Iterator[Finding]:
    if not records:
        yield Finding("namespaces", "none", "no namespaces yet: the first integer creates one")
    if len(records) > MOST_NAMESPACES:
        text = f"there are more than {MOST_NAMESPACES:,}; only the first by name were examined"
        yield Finding("namespaces", "more", f"{text}; 'mintage namespaces list' shows all")
    for each in records[:MOST_NAMESPACES]:
        integers = each.left
        facts: dict[str, object] = {"maximum": str(each.maximum), "left": str(integers), "used": used(each)}
        if each.retired:
            text, level = "retired for good: it hands out no integers", "ok"
        elif not integers:
            text, level = f"all reserved up to its maximum, {each.maximum:,}; processes may have some left", "attention"
        else:
            text, level = f"{used(each)} of its maximum used, {integers:,} integers left", "ok"
            if each.high_water * 10 > each.maximum * SHORT_OF:
                level = "attention"
        if each.identity != server_id and not each.retired:
            text += "; the server changed, so the next reservation skips some"
        todo = "" if level == "ok" else "Create another namespace with a greater maximum, and move to it."
        yield Finding("namespaces", each.name, text, level, todo, facts)
    if records:
        yield Finding("namespaces", "rate", "stores record no rate, so how long the integers last depends on your use")


# --- layouts, environment, installation ---------------------------------------------------------------------------


def _end(topic: str, about: str, end: datetime) -> Finding:
    now = datetime.now(UTC)
    text = f"runs out {end:%Y-%m-%d}, {ago((now - end).total_seconds())}"
    soon = (end - now).days < SOON_DAYS
    todo = "Choose a layout that lasts longer; see 'mintage schemes'." if soon else ""
    return Finding(topic, about, text, "attention" if soon else "ok", todo, {"expires": times.stamp(end)})


def _environment() -> Iterator[Finding]:
    url, home = os.environ.get("MINTAGE_STORE"), os.environ.get("MINTAGE_HOME")
    if url:
        try:
            yield Finding("environment", "MINTAGE_STORE", str(StoreUrl.parse(url)))
        except ConfigError as error:
            yield Finding("environment", "MINTAGE_STORE", f"malformed: {error}", "attention", advice(error.code))
    else:
        yield Finding("environment", "MINTAGE_STORE", "not set: this machine's registry is the store")
    yield Finding("environment", "MINTAGE_HOME", home or "not set: the registry is that of all users, or the user's")


def _installation() -> Iterator[Finding]:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield Finding("installation", "mintage", f"{__version__}, {python}, {platform.system()} {platform.machine()}")
    debug = build_profile != "release"
    todo = "Build it with --release: a debug build is many times slower." if debug else ""
    yield Finding("installation", "build", build_profile, "attention" if debug else "ok", todo)
    for extra, packages in _extras().items():
        missing = [name for name, version in packages.items() if version is None]
        if missing:
            text, todo = f"{', '.join(missing)} not installed", f"To use it: {install_line(extra)}."
        else:
            text, todo = ", ".join(f"{name} {version}" for name, version in packages.items()), ""
        yield Finding("installation", f"[{extra}]", text, todo=todo, facts=dict(packages))


def _extras() -> dict[str, dict[str, str | None]]:
    """Return the packages of each extra, with their versions, or ``None`` for those that are not installed."""

    def version(name: str) -> str | None:
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
        return None

    found: dict[str, dict[str, str | None]] = {}
    required: list[str] | None = None
    with suppress(metadata.PackageNotFoundError):  # run from its sources
        required = metadata.requires("mintage")
    for line in required or ():
        if match := re.fullmatch(r"([A-Za-z0-9._-]+).*extra == ['\"]([a-z0-9-]+)['\"].*", line):
            found.setdefault(match[2], {})[match[1]] = version(match[1])
    return found


# --- output -------------------------------------------------------------------------------------------------------


def _ordered(found: Sequence[Finding], *, every: bool) -> list[Finding]:
    """Return the findings that need attention, then the others: all of them, or one line for most topics."""
    wrong = [each for each in found if each.level != "ok"]
    fine = [each for each in found if each.level == "ok"]
    if every:
        return wrong + fine
    at_length = [each for each in fine if each.topic in AT_LENGTH]
    topics = dict.fromkeys(each.topic for each in fine if each.topic not in AT_LENGTH)
    return wrong + at_length + [_brief(topic, [each for each in fine if each.topic == topic]) for topic in topics]


def _brief(topic: str, fine: Sequence[Finding]) -> Finding:
    """Return one finding that sums up the findings of a topic that are fine."""
    if topic == "installation":
        absent = [each.about for each in fine if each.todo]
        text = f"{fine[0].text}; without {' '.join(absent)}" if absent else fine[0].text
    else:
        text = fine[0].text if len(fine) == 1 else f"{len(fine)} are fine"
    return Finding("rest (doctor -v shows it in full)", topic, text)


def _draw(screen: Screen, all_found: Sequence[Finding], *, every: bool) -> None:
    found = _ordered(all_found, every=every)
    # A longer subject has a line of its own. On a narrow terminal, every subject has one.
    width = min(LONGEST_ABOUT, max(len(printable(each.about)) for each in found))
    margin = max(map(len, screen.glyphs.marks.values())) + 4
    if screen.columns - margin - width < LEAST_TEXT:
        width = 0
    indent = " " * (margin + width + 2 * (width > 0))
    columns = max(screen.columns - len(indent), 20)
    wrap = textwrap.TextWrapper(columns, break_long_words=False, break_on_hyphens=False).wrap
    topic = ""
    for each in found:
        if each.topic != topic:
            if topic and every:
                screen.line()
            topic = each.topic
            screen.line((topic, "title"))
        # A finding may be fine and have a remedy, such as to install an extra.
        mark = "-" if each.level == "ok" and each.todo else screen.glyphs.marks[each.level]
        mark = f"{mark:<{len(screen.glyphs.marks['ok'])}}"
        texts, advice = wrap(printable(each.text)), wrap(printable(each.todo))
        about = printable(each.about)
        begun: list[Span] = ["  ", (mark, each.level), (f"  {about:<{width}}  ", "name")]
        if len(about) <= width:
            begun += texts[:1]
            del texts[:1]
        screen.line(*begun)
        for line in texts:
            screen.line(indent + line)
        for line in advice:
            screen.line((indent + line, "quiet" if each.level == "ok" else each.level))
    wrong = sum(each.level != "ok" for each in found)
    screen.line()
    if wrong:
        screen.line((f"{wrong} {'thing needs' if wrong == 1 else 'things need'} attention", "attention"))
    else:
        screen.line(("nothing needs attention", "ok"))
