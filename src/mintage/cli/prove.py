"""``mintage prove``: test uniqueness on the user's store."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, TextIO

from mintage.cli.command import COLOR, UsageError, command, option, within
from mintage.cli.screen import Span, open_screen
from mintage.cli.stores import REGISTRY, advised, source
from mintage.errors import MintError
from mintage.prove import FAULTS

if TYPE_CHECKING:
    import argparse

    from mintage.prove.faults import Run
    from mintage.prove.report import Row

EXIT_NOT_UNIQUE: Final = 1
EXIT_TERMINATED: Final = 128 + signal.SIGTERM
WIDTHS: Final = (2, 28, 8, 9, 10, 12)
"""The columns of the table, which fits 80."""


@command(
    "prove",
    option(
        "--store",
        metavar="URL",
        help="the store to test (default: MINTAGE_STORE, which hides a password from 'ps')",
    ),
    option(
        "--seconds",
        metavar="N",
        type=within(1, 86_400),
        default=60,
        help="the time for all faults together (default: 60)",
    ),
    option(
        "--processes", metavar="N", type=within(2, 64), default=8, help="how many mint at a time, 2 to 64 (default: 8)"
    ),
    option(
        "--rate",
        metavar="N",
        type=within(10, 10_000),
        default=200,
        help="the most verbs of the store a second, by all processes (default: 200); they mint 100 IDs for each",
    ),
    option(
        "--fault", action="append", choices=[*FAULTS], metavar="NAME", help="only this fault; repeat it for several"
    ),
    option("--report", metavar="FILE", help="write a report in Markdown, without secrets, to attach to an issue"),
    option("--clean", action="store_true", help="retire the namespaces that killed runs left in the store, and end"),
    COLOR,
    option("--json", action="store_true", help="print one JSON object at the end"),
    examples="""
  mintage prove --store sqlite:///ids.db --fault verbs --fault clock --seconds 2 --report report.md
  mintage prove --clean""",
)
def prove(args: argparse.Namespace) -> int:
    """Test that IDs stay unique on your store while processes, clocks and connections fail.

    The command mints with several processes in pools and a namespace of its own, causes one fault after another, and
    compares every ID: 'verbs', 'holders', 'crowd', 'kill', 'stop', 'fork', 'clock', 'cut'. It fails only its own
    processes and connections, and touches nothing that it did not create. The exit code is 0 if no ID came twice, and
    each fault came to its end or cannot be caused here.
    """
    from mintage.prove.faults import IDS_A_VERB, MOST_IDS, Run, clean
    from mintage.prove.report import Settings

    url, place = source(args)
    if place == REGISTRY:
        raise UsageError("name the store to test: --store URL, or MINTAGE_STORE")
    if args.clean:
        with advised(MintError):
            retired = clean(url)
        open_screen(args.color).line(f"retired: {', '.join(retired) or 'nothing'}")
        return 0
    if (ids := args.seconds * args.rate * IDS_A_VERB) > MOST_IDS:
        raise UsageError(
            f"--seconds {args.seconds} and --rate {args.rate} are {ids:,} IDs; a run compares at most {MOST_IDS:,}: "
            "lower one of them"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    run = Run(Settings(url, args.seconds, args.processes, args.rate, tuple(args.fault or ())))
    report = run.report
    try:
        with advised(MintError):
            run.create()
        with _opened(args.report) as file:
            _show(run, args)
            if file is not None:
                file.write(report.as_markdown())
    finally:
        run.clean()
    if args.json:
        print(json.dumps(report.as_json()))
    else:
        screen = open_screen(args.color)
        for row in report.rows:
            if why := row.failed or row.not_run:
                screen.line((f"{row.name} {'failed' if row.failed else 'was not run'}: {why}", "attention"))
        screen.line((report.verdict, "ok" if report.is_good else "unusable"))
        screen.line((f"left in the store, as no verb removes records: {run.name}*", "quiet"))
    return 0 if report.is_good else EXIT_NOT_UNIQUE


def _opened(name: str | None) -> AbstractContextManager[TextIO | None]:
    try:
        return nullcontext() if name is None else open(name, "w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--report {name!a} cannot be written: {error.strerror}") from None


def _show(run: Run, args: argparse.Namespace) -> None:
    """Run all faults, and show what came of each: on a terminal while they run, elsewhere at their end."""
    if args.json:
        run.run(lambda _: None)
        return
    screen = open_screen(args.color)
    screen.line((run.report.store, "name"), (f"  {run.report.server}", "quiet"))

    def line(cells: Iterable[str], styles: Sequence[str]) -> list[Span]:
        return [
            (f"{text:{'<' if at < 2 else '>'}{WIDTHS[at]}}  ", style)
            for at, (text, style) in enumerate(zip(cells, styles, strict=True))
        ]

    def line_of(row: Row) -> list[Span]:
        style = "unusable" if row.duplicates else "attention" if row.failed or row.not_run else "ok"
        mark = "-" if row.not_run else screen.glyphs.marks[style] if row.is_done else ""
        counts = [f"{row.attempts:,}", f"{row.ids:,}", f"{row.duplicates:,}", f"{row.waited_ms:,} ms"]
        if row.not_run or not (row.is_done or row is run.row):
            counts = ["-"] * 4
        return line([mark, row.fault, *counts], [style, "", "", "", style if row.is_done else "", ""])

    head = line(["", "fault", "attempts", "IDs", "duplicates", "longest wait"], ["quiet"] * 6)
    with screen.live(lambda: [head, *map(line_of, run.report.rows)]) as is_live:

        def show(row: Row) -> None:
            screen.line(*line_of(row))
            sys.stdout.flush()

        if not is_live:
            screen.line(*head)
        run.run((lambda _: None) if is_live else show)
