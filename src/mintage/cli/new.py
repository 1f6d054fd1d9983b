"""``mintage new``."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from mintage import anatomy, formats, locality, sno, snowflake
from mintage.cli.command import JSON, Option, UsageError, command, count, option, whole
from mintage.cli.screen import progress, write
from mintage.cli.stores import STORE, advised
from mintage.errors import LeaseError, StoreError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["SCHEMES", "new"]

BATCH: Final = 65_536
JSON_BATCH: Final = 1_024  # so that the first lines come at once, although each costs more


class Mint(NamedTuple):
    """An open generator, as ``new`` needs it."""

    format: formats.Format
    lines: Callable[[int], bytes]
    """So many new IDs as text, one a line."""
    numbers: Callable[[int], Iterable[int]]
    """So many new IDs as integers."""
    batch: int = BATCH
    """How many it can mint without waiting for long."""


@contextmanager
def _open_sno(args: argparse.Namespace) -> Iterator[Mint]:
    meta = args.meta or 0
    with sno.Generator(args.partition, store=args.store) as generator:
        yield Mint(
            formats.SNO,
            lambda n: generator.batch(n, meta).to_lines(),
            lambda n: map(int, generator.batch(n, meta)),
        )


@contextmanager
def _open_snowflake(args: argparse.Namespace) -> Iterator[Mint]:
    name, layout = _layout(args)
    # One batch may have to wait for the next tick, however long a tick is.
    patience_ms = max(1000, 2 * layout.unit_ms)
    with snowflake.Generator(args.node, layout=layout, store=args.store, max_wait_ms=patience_ms) as generator:
        yield Mint(
            formats.of_layout(layout, name),
            lambda n: snowflake.to_lines(generator.batch(n)),
            generator.batch,
            max(1, layout.ids_per_second // 10),
        )


@contextmanager
def _open_locality(args: argparse.Namespace) -> Iterator[Mint]:
    with locality.Generator(args.mode or "variable", store=args.store) as generator:
        yield Mint(
            formats.LOCALITY,
            lambda n: generator.batch(n).to_lines(),
            lambda n: map(int, generator.batch(n)),
        )


def _layout(args: argparse.Namespace) -> tuple[str, snowflake.Layout]:
    """The layout that ``--layout`` names or declares."""
    text: str = "default" if args.layout is None else args.layout
    if ":" in text:
        if args.epoch_ms is None:
            raise UsageError("a declared layout needs --epoch-ms, the Unix time in milliseconds at which it starts")
        unit_ms = 1 if args.unit_ms is None else args.unit_ms
        return text, snowflake.Layout(text, epoch_ms=args.epoch_ms, unit_ms=unit_ms)
    if args.epoch_ms is not None or args.unit_ms is not None:
        raise UsageError("--epoch-ms and --unit-ms belong to a declared layout, such as 'time:41 node:10 sequence:12'")
    if text not in formats.LAYOUTS:
        raise UsageError(f"{text!a} is no layout: use {', '.join(formats.LAYOUTS)}, or declare one as name:bits pairs")
    return text, formats.LAYOUTS[text]


class Scheme(NamedTuple):
    """What ``new`` can mint, and the options that only this scheme has."""

    open: Callable[[argparse.Namespace], AbstractContextManager[Mint]]
    options: tuple[Option, ...]


SCHEMES: Final = {
    "sno": Scheme(
        _open_sno,
        (
            option("--meta", type=whole, metavar="0..255", help="the metabyte"),
            option("--partition", type=whole, metavar="0..65535", help="where they are minted"),
        ),
    ),
    "snowflake": Scheme(
        _open_snowflake,
        (
            option("--node", type=whole, metavar="N", help="the node number"),
            option("--layout", metavar="LAYOUT", help="one of 'mintage schemes', or name:bits pairs, high to low"),
            option("--epoch-ms", type=whole, metavar="MS", help="of a declared layout: Unix time of its start"),
            option("--unit-ms", type=whole, metavar="MS", help="of a declared layout: length of a tick (default: 1)"),
        ),
    ),
    "locality": Scheme(
        _open_locality,
        (option("--mode", choices=("variable", "sequential"), help="how counters are written (default: variable)"),),
    ),
}


@command(
    "new",
    option("scheme", metavar="SCHEME", choices=tuple(SCHEMES), help="sno, snowflake or locality"),
    option("-n", "--count", type=count, default=1, metavar="N", help="how many (default: 1)"),
    *(each._replace(heading=f"{name} only") for name, scheme in SCHEMES.items() for each in scheme.options),
    STORE,
    JSON,
    examples="""
  mintage new sno
  mintage new sno -n 1000000 --meta 7 > ids.txt
  mintage new snowflake --node 12 --layout twitter
  mintage new snowflake --layout "time:41 node:10 sequence:12" --epoch-ms 1735689600000
  mintage new locality --mode sequential --json""",
)
def new(args: argparse.Namespace) -> int:
    """Mint IDs, one a line."""
    for name, scheme in SCHEMES.items():
        for (flag, *_), _, _ in scheme.options:
            if name != args.scheme and getattr(args, flag.removeprefix("--").replace("-", "_")) is not None:
                raise UsageError(f"{flag} belongs to {name}, not to {args.scheme}")
    import logging

    # What the keeper logs of a store that fails, the error says.
    logging.getLogger("mintage").addHandler(logging.NullHandler())
    advice = advised(StoreError, LeaseError)
    with advice, SCHEMES[args.scheme].open(args) as mint, progress(args.count) as report:
        batch = min(mint.batch, JSON_BATCH if args.json else BATCH)
        done = 0
        while done < args.count:
            size = min(batch, args.count - done)
            write(_json_lines(mint.numbers(size), mint.format) if args.json else mint.lines(size))
            done += size
            report(done)
    return 0


def _json_lines(numbers: Iterable[int], fmt: formats.Format) -> bytes:
    lines = []
    for number in numbers:
        minted = anatomy.dissect(fmt, number)
        when = formats.stamp(minted.time) if minted.time else None
        fields = {field.name: field.as_dict()["value"] for field in minted.fields if field.role != "fixed"}
        head = {"id": minted.text, "scheme": minted.scheme, "layout": minted.layout, "time": when}
        lines.append(json.dumps({**head, "fields": fields}) + "\n")
    return "".join(lines).encode()
