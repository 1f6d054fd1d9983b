"""The terminal: colours, tables and progress on a terminal, and ASCII elsewhere."""

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
from mintage.tables.display import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from mintage.formats.anatomy import Field

Span = tuple[str, str]
"""Text and the name of its style."""


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
"""Styles of rich by our names; the 16 colours follow the theme of the terminal."""


class Screen(Protocol):
    """The output of a command for people."""

    glyphs: Glyphs
    columns: int
    limit: int | None
    """The most columns of a table, or ``None`` for a file, which has no limit."""

    def line(self, *spans: Span) -> None:
        """Print a line."""

    def table(self, rows: Sequence[Sequence[Span]]) -> None:
        """Print rows in columns."""


class _Plain:
    """A screen of ASCII without colour, for files, pipes and terminals without rich."""

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
    """A screen with colours."""

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

    def live(self, lines: Callable[[], Iterable[Sequence[Span]]]) -> Live:
        from rich.live import Live
        from rich.text import Text

        return Live(
            get_renderable=lambda: Text("\n").join(self._text(*spans) for spans in lines()), console=self._console
        )

    def _text(self, *spans: Span) -> Text:
        from rich.text import Text

        return Text.assemble(*((printable(text), STYLES.get(style, "")) for text, style in spans))


def _limit() -> int | None:
    sized = os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty()
    return shutil.get_terminal_size().columns if sized else None


def open_screen(color: str) -> Screen:
    """Return a screen, with colours if ``color`` asks for them.

    :param color: ``always``, ``never``, or ``auto``: on a terminal, unless ``NO_COLOR`` is set (https://no-color.org).
    :raises UsageError: ``always``, and rich is not installed.
    """
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
    """A progress bar on standard error."""

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
            bar = bar or _bar(total)
            bar.update(done, f"{done:,}{f' of {total:,}' if total else ''} {noun}, {done / (now - began):,.0f}/s")

    try:
        yield report
    finally:
        if bar:
            bar.stop()


@contextmanager
def live(screen: Screen, lines: Callable[[], Iterable[Sequence[Span]]]) -> Iterator[bool]:
    """Draw lines again and again until the block ends, on a terminal with rich; yield False elsewhere."""
    if isinstance(screen, _Colored) and sys.stdout.isatty():
        with screen.live(lines):
            yield True
    else:
        yield False


# --- text ---------------------------------------------------------------------------------------------------------


def show_rows(screen: Screen, rows: Sequence[Sequence[Span]], right: Container[int] = ()) -> None:
    """Print rows in columns that are as wide as their widest cell; the columns in ``right`` are flush right.

    If the columns do not fit, each row is a list, which names a cell by the first row.
    """
    widths = [max(len(printable(text)) for text, _ in column) for column in zip(*rows, strict=True)]
    if screen.limit is not None and len(widths) > 2 and sum(widths) + 2 * len(widths) - 2 > screen.limit:
        (_, *words), *others = rows
        longest = max(len(word) for word, _ in words)
        for name, *cells in others:
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


_PASSWORD: Final = re.compile(r"://([^\s:/@]*):\S*@")


def complain(message: str, status: int, *notes: str) -> int:
    """Print an error and its notes to standard error, a line each, and return the exit code.

    Passwords in URLs are replaced.
    """
    # argparse quotes what it does not understand, which may be a URL after a mistyped --store.
    message = _PASSWORD.sub(r"://\1:***@", message)
    with suppress(OSError):
        if sys.stderr:
            print(f"mintage: {printable(message)}", file=sys.stderr)
            for note in notes:
                print(f"  {printable(note)}", file=sys.stderr)
    return status


def write(lines: bytes) -> None:
    """Write all lines to standard output, which may take only a part at a time if Python does not buffer it."""
    pending = memoryview(lines)
    while pending:
        pending = pending[sys.stdout.buffer.write(pending) :]
