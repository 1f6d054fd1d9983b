"""The terminal: colours, tables and progress on a terminal, and ASCII elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeVar

from mintage.cli.command import UsageError
from mintage.formats import catalogue, times
from mintage.tables.display import printable

if TYPE_CHECKING:
    import argparse
    from datetime import datetime

    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    from mintage.formats.anatomy import Field

T = TypeVar("T")
Span = str | tuple[str, str]
"""Text, plain or with the name of its style."""


class Glyphs(NamedTuple):
    """The characters of brackets and marks."""

    left: str
    right: str
    line: str
    alone: str
    marks: dict[str, str]
    """The mark of a finding, by its level."""


ASCII: Final = Glyphs("[", "]", "-", "|", {"ok": "ok", "attention": "!!", "unusable": "XX"})
BOXES: Final = Glyphs("\u2570", "\u256f", "\u2500", "\u2575", {"ok": "\u2713", "attention": "!", "unusable": "\u2717"})

_ROLES: Final = {"time": "cyan", "node": "yellow", "sequence": "green", "meta": "magenta", "random": "blue"}
STYLES: Final = {
    **_ROLES,
    **{f"{role} 2": f"bright_{color}" for role, color in _ROLES.items()},
    **dict.fromkeys(("fixed", "fixed 2", "quiet", "unlikely"), "bright_black"),
    **dict.fromkeys(("title", "name"), "bold"),
    **dict.fromkeys(("likely", "ok"), "green"),
    **dict.fromkeys(("possible", "attention"), "yellow"),
    "unusable": "red",
}
"""Styles of rich by our names; the 16 colours follow the theme of the terminal."""


class Screen:
    """The output of a command for people: in colours on a console of rich, and else in ASCII."""

    def __init__(self, console: Console | None = None) -> None:
        is_sized = os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty()
        self._console = console
        self.glyphs = BOXES if console and console.encoding.lower().startswith("utf") else ASCII
        self.limit = shutil.get_terminal_size().columns if is_sized else None
        """The most columns of a table, or ``None`` for a file, which has no limit."""
        self.columns = console.width if console else self.limit or 80

    def line(self, *spans: Span) -> None:
        """Print a line."""
        if self._console:
            self._console.print(_text(spans), soft_wrap=True)
        else:
            print("".join(text for text, _ in map(_styled, spans)).rstrip())

    def table(self, rows: Sequence[Sequence[Span]], right: Container[int] = ()) -> None:
        """Print rows in columns that are as wide as their widest cell; the columns in ``right`` are flush right."""
        for cells in in_columns(rows, right):
            self.line(*cells)

    def wrapped_table(self, rows: Sequence[Sequence[Span]]) -> None:
        """Print rows in columns; rich wraps the cells that do not fit."""
        if self._console is None:
            self.table(rows)
            return
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(_text([span]) for span in row))
        self._console.print(table)

    @contextmanager
    def live(self, lines: Callable[[], Iterable[Sequence[Span]]]) -> Iterator[bool]:
        """Draw lines again and again until the block ends, on a terminal with rich; yield False elsewhere."""
        if self._console is None or not sys.stdout.isatty():
            yield False
            return
        from rich.live import Live
        from rich.text import Text

        with Live(get_renderable=lambda: Text("\n").join(map(_text, lines())), console=self._console):
            yield True


def _styled(span: Span) -> tuple[str, str]:
    """Return the printable text of a span, and its style."""
    text, style = (span, "") if isinstance(span, str) else span
    return printable(text), style


def in_columns(rows: Sequence[Sequence[Span]], right: Container[int] = ()) -> Iterator[list[Span]]:
    """Yield rows whose cells are as wide as the widest of their column; those in ``right`` are flush right."""
    widths = _widths(rows)
    for row in rows:
        cells: list[Span] = []
        for at, ((text, style), width) in enumerate(zip(map(_styled, row), widths, strict=True)):
            gap = "  " if at < len(row) - 1 else ""
            cells.append((text.rjust(width) + gap if at in right else text.ljust(width if gap else 0) + gap, style))
        yield cells


def _widths(rows: Sequence[Sequence[Span]]) -> list[int]:
    return [max(len(text) for text, _ in map(_styled, column)) for column in zip(*rows, strict=True)]


def _text(spans: Iterable[Span]) -> Text:
    from rich.text import Text

    return Text.assemble(*((text, STYLES.get(style, "")) for text, style in map(_styled, spans)))


def open_screen(color: str) -> Screen:
    """Return a screen, with colours if ``color`` asks for them.

    :param color: ``always``, ``never``, or ``auto``: on a terminal, unless ``NO_COLOR`` is set (https://no-color.org).
    :raises UsageError: ``always``, and rich is not installed.
    """
    shows_colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if color == "never" or (color == "auto" and not shows_colors):
        return Screen()
    try:
        from rich.console import Console
    except ImportError:
        if color == "always":
            from mintage.installation import install_line

            raise UsageError(f"colours need rich: {install_line('cli')}") from None
        return Screen()
    return Screen(Console(force_terminal=True, color_system="standard", no_color=False, highlight=False))


class _Bar:
    """A progress bar of rich on standard error, with words; without rich, only the words."""

    def __init__(self, total: int) -> None:
        self._width = 0
        self._bar: Progress | None = None
        with suppress(ImportError):
            from rich import progress as rich
            from rich.console import Console

            columns = [rich.BarColumn(), rich.TextColumn("{task.description}")]
            columns += [rich.TimeRemainingColumn()] if total else []
            console = Console(stderr=True)
            # Rows that a command prints meanwhile go to standard output, which may be a file.
            self._bar = rich.Progress(*columns, console=console, transient=True, redirect_stdout=False)
            self._bar.add_task("", total=total or None)
            self._bar.start()

    def update(self, done: int, words: str) -> None:
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=done, description=words)
            return
        self._width = max(self._width, len(words))
        print(f"\r{words:<{self._width}}", end="", file=sys.stderr, flush=True)

    def stop(self) -> None:
        if self._bar:
            self._bar.stop()
        else:
            print("\r" + " " * self._width, end="\r", file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Return True if standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress(total: int, noun: str = "IDs", *, on_output: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of items that are done, and shows it with the rate.

    It shows nothing in the first second, and nothing if standard error is not a terminal.

    :param total: the number of all items, or 0 if it is not known.
    :param on_output: True if the command prints to standard output meanwhile; then no bar is shown on a terminal that
        shows this output.
    """
    is_seen = is_watched() and not (on_output and sys.stdout.isatty())
    began = time.monotonic()
    due = began + 1
    bar: _Bar | None = None

    def report(done: int) -> None:
        nonlocal due, bar
        now = time.monotonic()
        if is_seen and now >= due:
            due = now + 0.1
            bar = bar or _Bar(total)
            bar.update(done, f"{done:,}{f' of {total:,}' if total else ''} {noun}, {done / (now - began):,.0f}/s")

    try:
        yield report
    finally:
        if bar:
            bar.stop()


# --- text ---------------------------------------------------------------------------------------------------------


def show_rows(screen: Screen, rows: Sequence[Sequence[Span]], right: Container[int] = ()) -> None:
    """Print a table; if its columns do not fit, print each row as a list, which names a cell by the first row."""
    widths = _widths(rows)
    if screen.limit is None or len(widths) <= 2 or sum(widths) + 2 * len(widths) - 2 <= screen.limit:
        screen.table(rows, right)
        return
    (_, *words), *others = rows
    for name, *cells in others:
        screen.line(name)
        screen.table([((f"  {_styled(word)[0]}", "quiet"), cell) for word, cell in zip(words, cells, strict=True)])


def show_facts(screen: Screen, facts: Mapping[str, Span | int | None]) -> None:
    """Print facts, a line each, indented below what they are about; ``None`` is left out."""
    shown = {name: f"{fact}" if isinstance(fact, int) else fact for name, fact in facts.items()}
    screen.table([((f"  {name}", "quiet"), fact) for name, fact in shown.items() if fact is not None])


def show_records(
    args: argparse.Namespace,
    records: Sequence[T],
    *,
    facts: Callable[[T], object],
    head: Sequence[str],
    row: Callable[[T], Sequence[Span]],
    right: Container[int],
    none: str,
) -> None:
    """Print records as JSON, a line each, or as a table below the words of its head; ``none`` if there is no record."""
    if args.json:
        for each in records:
            print(json.dumps(facts(each)))
    elif records:
        words: Sequence[Span] = [(word, "quiet") for word in head]
        show_rows(open_screen(args.color), [words, *map(row, records)], right)
    else:
        open_screen(args.color).line((none, "quiet"))


def styles_of(parts: Iterable[Field | catalogue.Part]) -> list[str]:
    """Return a style for each field: its role, in another shade if the field before has the same role."""
    styles: list[str] = []
    for part in parts:
        styles.append(f"{part.role} 2" if styles and styles[-1] == part.role else part.role)
    return styles


_UNITS: Final = (
    ("year", 31_556_952),
    ("month", 2_629_746),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
    ("second", 1),
)


def ago(seconds: float) -> str:
    """Return the time since or until a moment, in the largest unit that fits: ``3 days ago``, ``in 5 years``."""
    for unit, length in _UNITS:
        count = int(abs(seconds) // length)
        if count:
            amount = f"{count:,} {unit}{'s' if count > 1 else ''}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return "just now"


def moment(ms: int) -> str:
    """Return the text of a time in milliseconds since the Unix epoch, to the second; ``-`` after the year 9999."""
    time = times.utc(ms * times.MS)
    return f"{time:%Y-%m-%d %H:%M:%S}" if time else "-"


def dated(time_of_id: datetime | None) -> str:
    """Return the text of the time of an ID, and how long ago it was; empty without a time."""
    if time_of_id is None:
        return ""
    shown = times.stamp(time_of_id).replace("T", " ").removesuffix("Z")
    return f"{shown} UTC, {ago(time.time() - time_of_id.timestamp())}"


_PASSWORD: Final = re.compile(r"(://[^\s:/@]*:)\S*(?=@)|(password=)[^\s&]+")


def complain(message: str, status: int, *notes: str) -> int:
    """Print an error and its notes to standard error, a line each, and return the exit code.

    Passwords in URLs are replaced.
    """
    # argparse quotes what it does not understand, which may be a URL after a mistyped --store.
    message = _PASSWORD.sub(r"\1\2***", message)
    say(f"mintage: {printable(message)}")
    for note in notes:
        say(f"  {printable(note)}")
    return status


def say(line: str) -> None:
    """Print a line to standard error, unless it is closed."""
    with suppress(OSError):
        if sys.stderr:
            print(line, file=sys.stderr, flush=True)


def standard_input() -> BinaryIO:
    """Return the bytes of standard input.

    :raises OSError: it is closed.
    """
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer


def write(lines: bytes) -> None:
    """Write all lines to standard output, which may take only a part at a time if Python does not buffer it."""
    pending = memoryview(lines)
    while pending:
        pending = pending[sys.stdout.buffer.write(pending) :]
