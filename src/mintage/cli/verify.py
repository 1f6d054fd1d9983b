"""``mintage verify``: find what is wrong with a column of IDs."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from mintage.cli.command import UsageError, command, option, parse_time
from mintage.cli.schemes import LAYOUT, layout_of
from mintage.cli.screen import is_watched, progress, say, standard_input
from mintage.formats.kinds import NAMES, listed
from mintage.tables import sources
from mintage.tables.display import printable
from mintage.tables.verify import MIN_MEMORY_BYTES, Check, Report

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

EXIT_FOUND: Final = 1


def _memory_bytes(text: str) -> int:
    sizes = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
    found = re.fullmatch(r"([1-9][0-9]{0,8})(KB|MB|GB)", text)
    size = int(found[1]) * sizes[found[2]] if found else 0
    if size < MIN_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(f"{text!a} is not a size such as 256MB or 2GB, and at least 128MB")
    return size


def _source(args: argparse.Namespace) -> AbstractContextManager[sources.Source]:
    """Return the column that the arguments name."""
    form: str = args.format or ("table" if "://" in args.source else args.source.rpartition(".")[2].lower())
    if form != "table" and (args.table or args.order_by or args.schema):
        raise UsageError("--table, --schema and --order-by belong to a database")
    if form not in {"table", "csv", "parquet"}:
        if args.column:
            raise UsageError("--column belongs to CSV, Parquet and databases; a text has one ID a line")
        return sources.open_text(_file(args.source))
    if form == "table" and not args.table:
        raise UsageError("a database needs --table and --column")
    if not args.column:
        raise UsageError("name the column of IDs with --column")
    if form == "csv":
        return sources.open_csv(_file(args.source), args.column)
    if form == "parquet":
        if args.source == "-":
            raise UsageError("Parquet is read from a file, not from standard input: its contents are listed at its end")
        return sources.open_parquet(args.source, args.column)
    return sources.open_table(
        args.source,
        args.table,
        args.column,
        schema=args.schema,
        order_by=args.order_by and args.order_by.split(","),
        is_counted=is_watched(),
    )


def _file(source: str) -> str | BinaryIO:
    return standard_input() if source == "-" else source


@command(
    "verify",
    option(
        "source", metavar="SOURCE", help="a file of text, CSV or Parquet, - for standard input, or a database's URL"
    ),
    option("--scheme", required=True, choices=NAMES, metavar="SCHEME", help=listed(NAMES, "or")),
    LAYOUT,
    option("--format", choices=("text", "csv", "parquet"), help="of a file (default: by its suffix, or text)"),
    option("--column", metavar="NAME", help="the column of IDs; a text has none"),
    option("--table", metavar="NAME", help="the table of a database"),
    option("--schema", metavar="NAME", help="the schema of the table"),
    option(
        "--order-by",
        metavar="NAMES",
        help="the columns of a database by which the rows are sorted, such as made,number (then: the primary key)",
    ),
    option("--sorted", action="store_true", help="report an ID that is smaller than the one before as a mistake"),
    option("--from", type=parse_time, metavar="TIME", help="the earliest time that an ID may have"),
    option(
        "--until",
        type=parse_time,
        metavar="TIME",
        help="the latest time that an ID may have (default: a minute from now)",
    ),
    option(
        "--memory", type=_memory_bytes, default="256MB", metavar="SIZE", help="the most memory to use (default: 256MB)"
    ),
    option("--directory", metavar="PATH", help="the directory of temporary files (default: the system's)"),
    option("--json", action="store_true", help="print JSON, one object"),
    examples="""
  mintage verify snos.txt --scheme sno
  mintage verify orders.parquet --column id --scheme snowflake --layout twitter --sorted
  mintage verify postgresql://me@db/shop --table orders --column id --scheme ulid
  mintage new sno -n 1000 | mintage verify - --scheme sno""",
)
def verify(args: argparse.Namespace) -> int:
    """Find what is wrong with a column of IDs.

    The command reads the column once. It finds duplicates, values that are no IDs of the scheme or its layout, times
    outside a window, and IDs that are smaller than the one before. It finds duplicates exactly, however many rows there
    are: IDs that do not fit into memory go to temporary files, which have no names and disappear when the command ends.
    The exit code is 0 if nothing is wrong, and 1 if something is.
    """
    from tempfile import gettempdir

    check = Check(
        args.scheme,
        layout=layout_of(args),
        earliest=getattr(args, "from"),
        latest=args.until,
        is_sorted=args.sorted,
        memory_bytes=args.memory,
        directory=args.directory,
    )
    with check, _source(args) as source:
        place = printable(args.directory or gettempdir())
        say(f"uses at most {args.memory >> 20:,} MB of memory, and {check.row_bytes} bytes a row in {place}")
        with progress(source.total, source.unit, on_output=False) as report:
            for values in source.batches:
                check.add(values)
                report(source.position() if source.position else check.report.rows)
        with progress(check.report.ids, "IDs compared", on_output=False) as report:
            found = check.finish(report)
    if args.json:
        import json

        print(json.dumps(found.as_dict()))
    else:
        _print(found)
    return EXIT_FOUND if found.is_wrong else 0


def _print(found: Report) -> None:
    for each in found.findings:
        if each.is_checked:
            note = " (a mistake only with --sorted)" if each.count and not each.is_mistake else ""
            print(f"{each.name}: {each.count:,}{note}" if each.count else f"{each.name}: none")
            for example in each.examples:
                print(f"  {_line(example)}")
            if each.count > len(each.examples):
                print("  ...")
    empty = f", {found.empty:,} without one" if found.empty else ""
    print(f"done: {found.rows:,} rows{empty}; {'something is wrong' if found.is_wrong else 'nothing is wrong'}")


def _line(example: dict[str, Any]) -> str:
    match example:
        case {"id": id, "rows": rows, "times": times}:
            more = ", ..." if times > len(rows) else ""
            return f"rows {', '.join(map(str, rows))}{more}: {id}"
        case {"row": row, "id": id, "after": after}:
            return f"row {row}: {id} comes after {after}"
        case {"row": row, "value": value, "error": error}:
            return f"row {row}: {value} ({printable(error)})"
        case _:
            return f"row {example['row']}: {example['id']}"
