"""The terminal: colours, tables and progress where they can be seen, ASCII where they cannot."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from mintage.cli.command import UsageError
from mintage.formats import catalogue, times
from mintage.tables.excerpts import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from mintage.formats.anatomy import Field

__all__ = [
    "Glyphs",
    "Screen",
    "Span",
    "ago",
    "complain",
    "is_watched",
    "moment",
    "open_screen",
    "printable",
    "progress",
    "show_rows",
    "styles_of",
    "write",
]

Span = tuple[str, str]
"""Text and the name of its style."""


class Glyphs(NamedTuple):
    """What brackets are drawn with."""

    left: str
    right: str
    line: str
    alone: str
    marks: dict[str, str]
    """Before a finding of each level."""


ASCII: Final = Glyphs("[", "]", "-", "|", {"ok": "ok", "attention": "!!", "unusable": "XX"})
BOXES: Final = Glyphs("\u2570", "\u256f", "\u2500", "\u2575", {"ok": "\u2713", "attention": "!", "unusable": "\u2717"})

STYLES: Final = {
    "time": "cyan",
    "time 2": "bright_cyan",
    "node": "yellow",
    "node 2": "bright_yellow",
    "sequence": "green",
    "sequence 2": "bright_green",
    "meta": "magenta",
    "meta 2": "bright_magenta",
    "random": "blue",
    "random 2": "bright_blue",
    "fixed": "bright_black",
    "fixed 2": "bright_black",
    "title": "bold",
    "name": "bold",
    "quiet": "bright_black",
    "likely": "green",
    "possible": "yellow",
    "unlikely": "bright_black",
    "ok": "green",
    "attention": "yellow",
    "unusable": "red",
}
"""What rich calls them: the 16 colours that follow the terminal's own theme."""


class Screen(Protocol):
    """Where a command prints for people."""

    glyphs: Glyphs
    columns: int
    limit: int | None
    """Columns that a table may have; a file has no end of them."""

    def line(self, *spans: Span) -> None: ...

    def table(self, rows: Sequence[Sequence[Span]]) -> None: ...


class _Plain:
    """ASCII without colour, for files, pipes and terminals without rich."""

    glyphs = ASCII

    def __init__(self) -> None:
        self.limit = _limit()
        self.columns = self.limit or 80

    def line(self, *spans: Span) -> None:
        print("".join(printable(text) for text, _ in spans).rstrip())

    def table(self, rows: Sequence[Sequence[Span]]) -> None:
        widths = [max(len(text) for text, _ in column) for column in zip(*rows, strict=True)]
        for row in rows:
            self.line(*((f"{text:<{width + 2}}", style) for (text, style), width in zip(row, widths, strict=True)))


class _Colored:
    """A terminal with colours."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.glyphs = BOXES if console.encoding.lower().startswith("utf") else ASCII
        self.columns = console.width
        self.limit = _limit()

    def line(self, *spans: Span) -> None:
        self._console.print(self._text(*spans), soft_wrap=True)

    def table(self, rows: Sequence[Sequence[Span]]) -> None:
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(*(self._text(span) for span in row))
        self._console.print(table)

    def _text(self, *spans: Span) -> Text:
        from rich.text import Text

        return Text.assemble(*((printable(text), STYLES.get(style, "")) for text, style in spans))


def _limit() -> int | None:
    sized = os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty()
    return shutil.get_terminal_size().columns if sized else None


def open_screen(color: str) -> Screen:
    """Colours if they are wanted: ``auto`` means on a terminal, unless ``NO_COLOR`` is set (https://no-color.org)."""
    shows_colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if color == "never" or (color == "auto" and not shows_colors):
        return _Plain()
    try:
        from rich.console import Console
    except ImportError:
        if color == "always":
            from mintage.installation import install_line

            raise UsageError(f"colours need rich: {install_line('cli')}") from None
        return _Plain()
    return _Colored(Console(force_terminal=True, color_system="standard", no_color=False, highlight=False))


class _Bar(Protocol):
    """How far a command has come, on standard error."""

    def update(self, done: int, words: str, /) -> None: ...

    def stop(self) -> None: ...


class _PlainBar:
    _width = 0

    def update(self, _: int, words: str, /) -> None:
        self._width = max(self._width, len(words))
        print(f"\r{words:<{self._width}}", end="", file=sys.stderr, flush=True)

    def stop(self) -> None:
        print("\r" + " " * self._width, end="\r", file=sys.stderr, flush=True)


class _RichBar:
    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), TextColumn("{task.description}"), *([TimeRemainingColumn()] if total else []))
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=total or None)
        self._bar.start()

    def update(self, done: int, words: str, /) -> None:
        self._bar.update(self._task, completed=done, description=words)

    def stop(self) -> None:
        self._bar.stop()


def _bar(total: int) -> _Bar:
    try:
        return _RichBar(total)
    except ImportError:
        return _PlainBar()


def is_watched() -> bool:
    """Return whether somebody sees what is written to standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress(total: int, noun: str = "IDs", *, on_output: bool = True) -> Iterator[Callable[[int], None]]:
    """What to tell how many are done: shown with their rate once it has taken a second, and only where somebody sees.

    :param total: 0 where nobody knows.
    :param on_output: whether standard output has something to say meanwhile, which a terminal would show as well.
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
            bar = bar or _bar(total)
            bar.update(done, f"{done:,}{f' of {total:,}' if total else ''} {noun}, {done / (now - began):,.0f}/s")

    try:
        yield report
    finally:
        if bar:
            bar.stop()


# --- words and lines ----------------------------------------------------------------------------------------------


def show_rows(screen: Screen, rows: Sequence[Sequence[Span]], right: Container[int] = ()) -> None:
    """Rows in columns that are as wide as their widest cell, those in ``right`` flush right.

    Where there is no room for that, each row is a list of its own, of what the first row calls its cells.
    """
    widths = [max(len(printable(text)) for text, _ in column) for column in zip(*rows, strict=True)]
    if screen.limit is not None and len(widths) > 2 and sum(widths) + 2 * len(widths) - 2 > screen.limit:
        (_, *words), *rest = rows
        longest = max(len(word) for word, _ in words)
        for name, *cells in rest:
            screen.line(name)
            for (word, _), cell in zip(words, cells, strict=True):
                screen.line((f"  {word:<{longest}}  ", "quiet"), cell)
        return
    for row in rows:
        cells = [(printable(text), style) for text, style in row]
        screen.line(
            *(
                (f"{text:{'>' if at in right else '<'}{width}}" + "  " * (at < len(row) - 1), style)
                for at, ((text, style), width) in enumerate(zip(cells, widths, strict=True))
            )
        )


def styles_of(parts: Iterable[Field | catalogue.Part]) -> list[str]:
    """Return a style for each field: its role, in two shades where neighbours have the same role."""
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
    """Return how long ago, in the largest unit that fits: ``3 days ago``, ``in 5 years``."""
    for unit, length in _UNITS:
        count = int(abs(seconds) // length)
        if count:
            amount = f"{count:,} {unit}{'s' if count > 1 else ''}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return "just now"


def moment(ms: int) -> str:
    """A time in milliseconds since the Unix epoch, to the second; ``-`` for one that a calendar does not have."""
    time = times.utc(ms * times.MS)
    return f"{time:%Y-%m-%d %H:%M:%S}" if time else "-"


_PASSWORD: Final = re.compile(r"://([^\s:/@]*):\S*@")


def complain(message: str, status: int, *notes: str) -> int:
    """One line on standard error, whatever the message quotes, and one for each note."""
    # argparse quotes what it does not understand, which may be a URL behind a mistyped --store.
    message = _PASSWORD.sub(r"://\1:***@", message)
    with suppress(OSError):
        if sys.stderr:
            print(f"mintage: {printable(message)}", file=sys.stderr)
            for note in notes:
                print(f"  {printable(note)}", file=sys.stderr)
    return status


def write(lines: bytes) -> None:
    """All of it to standard output, which may take less at a time where Python does not buffer it."""
    rest = memoryview(lines)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]
