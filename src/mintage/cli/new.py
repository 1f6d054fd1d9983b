"""``mintage new``: mint IDs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mintage import snowflake
from mintage._core import typeid
from mintage.cli.command import JSON, Option, UsageError, command, count, option, parse_int
from mintage.cli.screen import progress, write
from mintage.cli.stores import STORE, leasing
from mintage.formats import anatomy, catalogue, kinds, times
from mintage.formats.kinds import KINDS, NAMES, listed

if TYPE_CHECKING:
    import argparse

BATCH: Final = 65_536
JSON_BATCH: Final = 1_024  # small, so that the first lines are printed soon, although a line costs more

TYPEID: Final = "typeid"
"""A view over UUIDs of version 7. It is not a scheme, but this command mints it like one."""
_PREFIX: Final = kinds.Option("prefix", "the prefix of the TypeIDs, such as user; it may be empty", "PREFIX", ())
_OWNERS: Final = {
    option: [kind.name for kind in KINDS.values() if option in kind.options]
    for kind in KINDS.values()
    for option in kind.options
} | {_PREFIX: [TYPEID]}
"""The schemes that have an option, by the option."""


class Mint(NamedTuple):
    """An open generator, and the functions with which ``new`` prints its IDs."""

    scheme: str
    lines: Callable[[int], bytes]
    """Mint a number of IDs, and return their text, one a line."""
    texts: Callable[[int], Iterable[str]]
    """Mint a number of IDs, and return the text of each."""
    read: Callable[[str], anatomy.Anatomy | None]
    """Return the anatomy of an ID just minted, or ``None`` if its size or alphabet is that of no format."""
    batch: int = BATCH
    """The number of IDs that the generator can mint without a long wait."""


@contextmanager
def _opened(args: argparse.Namespace) -> Iterator[Mint]:
    if args.scheme == TYPEID:
        from mintage import uuid

        with closing(typeid.Generator(args.prefix, uuid.Generator(store=args.store))) as typeids:
            yield Mint(
                TYPEID,
                lambda n: "".join(f"{each}\n" for each in typeids.batch(n)).encode(),
                lambda n: map(str, typeids.batch(n)),
                lambda text: anatomy.dissect(KINDS["uuid"].format, int(typeid.ID.parse(text))),
            )
        return
    kind = KINDS[args.scheme]
    options = {each.name: getattr(args, each.name) for each in kind.options}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    meta, batch = given.pop("meta", 0), BATCH
    minted = kind.format
    if kind.layout is not None:
        name, layout = _layout(given)
        batch = max(1, layout.ids_per_second // 10)
        # One batch may have to wait for the next tick, however long a tick is.
        given |= {"layout": layout, "max_wait_ms": max(1000, 2 * layout.unit_ms)}
        minted = catalogue.of_layout(layout, name)
    with closing(kind.generator({"store": args.store}, **given)) as generator:
        yield Mint(
            kind.name,
            lambda n: kind.lines(kind.mint(generator, n, meta)),
            lambda n: map(str, kind.mint(generator, n, meta)),
            partial(_read, minted),
            batch,
        )


def _layout(given: dict[str, Any]) -> tuple[str, snowflake.Layout]:
    """Return the name and the layout of ``--layout``, and remove it from the given options."""
    text: str = given.pop("layout", "default")
    epoch_ms, unit_ms = given.pop("epoch_ms", None), given.pop("unit_ms", None)
    if ":" in text:
        if epoch_ms is None:
            raise UsageError("a declared layout needs --epoch-ms, the Unix time in milliseconds at which it starts")
        return text, snowflake.Layout(text, epoch_ms=epoch_ms, unit_ms=1 if unit_ms is None else unit_ms)
    if epoch_ms is not None or unit_ms is not None:
        raise UsageError("--epoch-ms and --unit-ms belong to a declared layout, such as 'time:41 node:10 sequence:12'")
    if text not in catalogue.LAYOUTS:
        raise UsageError(
            f"{text!a} is not a layout; use {', '.join(catalogue.LAYOUTS)}, or declare one as name:bits pairs"
        )
    return text, catalogue.LAYOUTS[text]


def _flag(each: kinds.Option) -> str:
    return f"--{each.name.replace('_', '-')}"


def _options() -> Iterator[Option]:
    """Yield the options of all schemes, each under a heading that lists its schemes."""
    for each, names in _OWNERS.items():
        kind = {"type": parse_int} if each.choices is None else {"choices": each.choices} if each.choices else {}
        flag = option(_flag(each), metavar=each.metavar, help=each.help, **kind)
        yield replace(flag, heading=f"{listed(names, 'and')} only")


@command(
    "new",
    option("scheme", metavar="SCHEME", choices=(*NAMES, TYPEID), help=listed((*NAMES, TYPEID), "or")),
    option("-n", "--count", type=count, default=1, metavar="N", help="the number of IDs (default: 1)"),
    *_options(),
    STORE,
    JSON,
    examples="""
  mintage new sno
  mintage new sno -n 1000000 --meta 7 > ids.txt
  mintage new snowflake --node 12 --layout twitter
  mintage new snowflake --layout "time:41 node:10 sequence:12" --epoch-ms 1735689600000
  mintage new locality --mode sequential --json
  mintage new ulid -n 3 --store sqlite:ids.db
  mintage new typeid --prefix user""",
)
def new(args: argparse.Namespace) -> int:
    """Mint IDs, one a line."""
    for each, names in _OWNERS.items():
        if args.scheme not in names and getattr(args, each.name) is not None:
            raise UsageError(f"{_flag(each)} belongs to {listed(names, 'and')}, not to {args.scheme}")
    if args.scheme == TYPEID and args.prefix is None:
        raise UsageError('typeid needs --prefix, such as --prefix user; --prefix "" is the empty one')
    with leasing(), _opened(args) as mint, progress(args.count) as report:
        batch = min(mint.batch, JSON_BATCH if args.json else BATCH)
        done = 0
        while done < args.count:
            size = min(batch, args.count - done)
            write(_json_lines(mint.texts(size), mint) if args.json else mint.lines(size))
            done += size
            report(done)
    return 0


def _read(fmt: catalogue.Format, text: str) -> anatomy.Anatomy | None:
    # The width of a cuid depends on its time, so several formats are tried.
    if not fmt.lengths:
        return anatomy.dissect(fmt, int(text))
    formats = KINDS[fmt.scheme].formats
    return next((anatomy.dissect(each, found[0]) for each in formats if (found := each.read(text))), None)


def _json_lines(texts: Iterable[str], mint: Mint) -> bytes:
    lines = []
    for text in texts:
        minted = mint.read(text)
        when = times.stamp(minted.time) if minted and minted.time else None
        parts = minted.fields if minted else ()
        fields = {field.name: field.as_dict()["value"] for field in parts if field.role != "fixed"}
        head = {"id": text, "scheme": mint.scheme, "layout": minted.layout if minted else None, "time": when}
        lines.append(json.dumps({**head, "fields": fields}) + "\n")
    return "".join(lines).encode()
