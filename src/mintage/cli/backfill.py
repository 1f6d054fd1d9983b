"""``mintage backfill``: give existing rows of a table IDs of their own time, or integers in the order of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mintage.cli.command import UsageError, command, count, option, parse_int
from mintage.cli.schemes import LAYOUT, layout_of
from mintage.cli.screen import is_watched, progress
from mintage.cli.stores import STORE, leasing, opened
from mintage.formats.kinds import listed
from mintage.tables.backfill import DATED_SCHEMES, NODE_SCHEMES, TIME_UNITS, Dated, Filled, SequenceIntegers, Table
from mintage.tables.backfill import backfill as fill
from mintage.tables.sources import connect

if TYPE_CHECKING:
    import argparse

_STORE_HELP: Final = (
    "the store that leases a node number which was never used, or that has the sequence (default: MINTAGE_STORE; "
    "of a sequence, else this machine's registry)"
)
_MAX_LINES: Final = 100
"""Lines of progress in a log: one for each percent."""


@command(
    "backfill",
    option("url", metavar="URL", help="the database: sqlite:///FILE, postgresql://…, mysql://… or mariadb://…"),
    option("--table", required=True, metavar="NAME", help="the table"),
    option("--schema", metavar="NAME", help="the schema of the table"),
    option("--time-column", required=True, metavar="NAME", help="the time of a row; without a time zone it is UTC"),
    option(
        "--time-unit",
        choices=tuple(TIME_UNITS),
        default="ms",
        help="the unit of a time column of numbers since 1970: s, ms, us or ns (default: ms)",
    ),
    option("--id-column", required=True, metavar="NAME", help="rows where it is NULL get an ID; it has a unique index"),
    option("--key", metavar="NAME", help="a unique column that identifies a row (default: the primary key)"),
    option("--scheme", choices=DATED_SCHEMES, metavar="SCHEME", help=listed(DATED_SCHEMES, "or")),
    LAYOUT,
    option(
        "--node",
        type=parse_int,
        metavar="N",
        help=f"a node number that nothing else mints with, before or after; of {listed(NODE_SCHEMES, 'or')}",
    ),
    option("--meta", type=parse_int, metavar="N", help="the metabyte of the IDs, 0 to 255; of sno"),
    option("--sequence", metavar="NAMESPACE", help="the namespace of integers to write in place of IDs of a scheme"),
    replace(STORE, settings=STORE.settings | {"help": _STORE_HELP}),
    option("--batch", type=count, default=1000, metavar="N", help="rows of a transaction (default: 1000)"),
    examples="""
  mintage backfill sqlite:///shop.db --table orders --time-column made --id-column id --scheme sno --node 9
  mintage backfill postgresql://me@db/shop --table o --time-column t --id-column id --scheme ulid --store redis://cache
  mintage backfill sqlite:///shop.db --table orders --time-column made --id-column bill --sequence bills""",
)
def backfill(args: argparse.Namespace) -> int:
    """Give the rows of a table that have no ID one of their own time.

    You can stop it at any moment, also with kill -9, and start it again with the same arguments: each batch is a
    transaction, and the table itself shows which rows are left. IDs are unique as long as nothing else mints with the
    node number, which a store leases for this run if you give none, and the column has a unique index. Rows that share
    a tick with more rows than it has numbers get IDs of the ticks after it.

    With --sequence, rows get the integers of one reservation, the earliest row the first. The store records them as
    spent before any is written, so no integer is given twice, and a run that is stopped leaves a gap.
    """
    import logging

    # It logs errors that follow from the one that ends the run, or that a batch is repeated for.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    with connect(args.url) as connection, ExitStack() as stack:
        table = Table(
            connection,
            args.table,
            time_column=args.time_column,
            id_column=args.id_column,
            schema=args.schema,
            key=args.key,
            time_unit=args.time_unit,
        )
        ids = _ids(args, table, stack)
        with ExitStack() as shown:
            filled = fill(ids, batch_rows=args.batch, report=_reporter(shown))
    print(f"done: {filled.rows:,} rows have an ID now{_remarks(filled)}")
    return 0


def _ids(args: argparse.Namespace, table: Table, stack: ExitStack) -> Dated | SequenceIntegers:
    """Return the IDs that the arguments name."""
    if args.sequence is not None:
        if args.scheme or args.layout or args.node is not None or args.meta is not None:
            raise UsageError("--sequence gives integers: --scheme, --layout, --node and --meta belong to IDs of a time")

        def on_reserve(reserved: range) -> None:
            print(f"reserved {reserved[0]}..{reserved[-1]} of {args.sequence}", flush=True)

        return SequenceIntegers(table, args.sequence, lambda: opened(args), on_reserve)
    if args.scheme is None:
        raise UsageError("name the IDs with --scheme, or with --sequence to write consecutive integers")
    layout = layout_of(args)
    if args.node is not None and args.store is not None:
        raise UsageError("--node is a number of your own, and --store leases one: give one of the two")
    if args.node is None and args.store is None and not os.environ.get("MINTAGE_STORE"):
        raise UsageError(
            "no node number is given: name one that nothing else mints with, with --node, or a store to lease one, "
            "with --store"
        )
    with leasing():
        ids = Dated.open(table, args.scheme, layout=layout, node=args.node, store=args.store, meta=args.meta)
        return stack.enter_context(ids)


def _reporter(stack: ExitStack) -> Callable[[int, int], None]:
    """Return a function that shows the progress: a bar on a terminal, lines elsewhere."""
    show: Callable[[int], None] | None = None
    due = 0

    def report(done: int, total: int) -> None:
        nonlocal show, due
        if show is None:  # before the first batch
            show = stack.enter_context(progress(total, "rows", on_output=False))
            return
        show(done)
        if not is_watched() and done >= due:
            print(f"{done:,} of {total:,} rows", flush=True)
            due = done + total // _MAX_LINES

    return report


def _remarks(filled: Filled) -> str:
    late = f"; {filled.late:,} IDs have a later tick, because the tick of their rows was full" if filled.late else ""
    return late + (
        f"; {filled.unused:,} integers are skipped, because others gave their rows an ID" if filled.unused else ""
    )
