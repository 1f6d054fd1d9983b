"""The command ``mintmark``: mints IDs, takes them apart, and lists the layouts.

The interface is the standard library's argparse, so that the base install depends on nothing; colours, tables and the
progress bar are rich's where it is installed (``mintmark[cli]``), and plain ASCII where it is not.

A command is one function under :func:`command`: its docstring is its help, its return value the exit code.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, NoReturn, Protocol

from mintmark import __version__, anatomy, formats, locality, sno, snowflake
from mintmark.errors import CATALOGUE, MintError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console
    from rich.text import Text

    from mintmark.anatomy import Anatomy, Field

__all__ = ["main"]

EXIT_USAGE: Final = 2
EXIT_INPUT_OUTPUT: Final = 74
EXIT_INTERRUPTED: Final = 130
EXIT_CLOSED_PIPE: Final = 141  # as of a program that the signal SIGPIPE ended


class UsageError(Exception):
    """The command line itself is wrong."""


# --- commands -----------------------------------------------------------------------------------------------------


class Option(NamedTuple):
    """What ``ArgumentParser.add_argument`` takes, and the heading to list it under."""

    flags: tuple[str, ...]
    settings: dict[str, Any]
    heading: str | None = None


class Command(NamedTuple):
    """One word after ``mintmark``."""

    run: Callable[[argparse.Namespace], int]
    options: tuple[Option, ...]
    examples: str


COMMANDS: Final[dict[str, Command]] = {}


def command(
    *options: Option, examples: str
) -> Callable[[Callable[[argparse.Namespace], int]], Callable[[argparse.Namespace], int]]:
    """Makes a function a command of the same name."""

    def register(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
        COMMANDS[run.__name__] = Command(run, options, examples)
        return run

    return register


def option(*flags: str, **settings: Any) -> Option:
    """One option or argument of a command."""
    return Option(flags, settings)


def _whole(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!a} is not a whole number") from None


def _count(text: str) -> int:
    count = _whole(text)
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!a} is less than 1")
    return count


JSON: Final = option("--json", action="store_true", help="print JSON, one object a line")
COLOR: Final = option(
    "--color", choices=("auto", "always", "never"), default="auto", help="when to use colours (default: auto)"
)


# --- mintmark new -------------------------------------------------------------------------------------------------

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
    with sno.Generator(args.partition) as generator:
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
    with snowflake.Generator(args.node, layout=layout, max_wait_ms=patience_ms) as generator:
        yield Mint(
            formats.of_layout(layout, name),
            lambda n: snowflake.to_lines(generator.batch(n)),
            generator.batch,
            max(1, layout.ids_per_second // 10),
        )


@contextmanager
def _open_locality(args: argparse.Namespace) -> Iterator[Mint]:
    with locality.Generator(args.mode or "variable") as generator:
        yield Mint(
            formats.LOCALITY,
            lambda n: generator.batch(n).to_lines(),
            lambda n: map(int, generator.batch(n)),
        )


def _layout(args: argparse.Namespace) -> tuple[str, snowflake.Layout]:
    """The layout that ``--layout`` names or declares."""
    text: str = args.layout or "default"
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
            option("--meta", type=_whole, metavar="0..255", help="the metabyte"),
            option("--partition", type=_whole, metavar="0..65535", help="where they are minted"),
        ),
    ),
    "snowflake": Scheme(
        _open_snowflake,
        (
            option("--node", type=_whole, metavar="N", help="the node number"),
            option("--layout", metavar="LAYOUT", help="one of 'mintmark schemes', or name:bits pairs, high to low"),
            option("--epoch-ms", type=_whole, metavar="MS", help="of a declared layout: Unix time of its start"),
            option("--unit-ms", type=_whole, metavar="MS", help="of a declared layout: length of a tick (default: 1)"),
        ),
    ),
    "locality": Scheme(
        _open_locality,
        (option("--mode", choices=("variable", "sequential"), help="how counters are written (default: variable)"),),
    ),
}


@command(
    option("scheme", metavar="SCHEME", choices=tuple(SCHEMES), help="sno, snowflake or locality"),
    option("-n", "--count", type=_count, default=1, metavar="N", help="how many (default: 1)"),
    *(each._replace(heading=f"{name} only") for name, scheme in SCHEMES.items() for each in scheme.options),
    JSON,
    examples="""
  mintmark new sno
  mintmark new sno -n 1000000 --meta 7 > ids.txt
  mintmark new snowflake --node 12 --layout twitter
  mintmark new snowflake --layout "time:41 node:10 sequence:12" --epoch-ms 1735689600000
  mintmark new locality --mode sequential --json""",
)
def new(args: argparse.Namespace) -> int:
    """Mint IDs, one a line."""
    for name, scheme in SCHEMES.items():
        for (flag, *_), _, _ in scheme.options:
            if name != args.scheme and getattr(args, flag.removeprefix("--").replace("-", "_")) is not None:
                raise UsageError(f"{flag} belongs to {name}, not to {args.scheme}")
    with SCHEMES[args.scheme].open(args) as mint, _progress(args.count) as report:
        batch = min(mint.batch, JSON_BATCH if args.json else BATCH)
        done = 0
        while done < args.count:
            size = min(batch, args.count - done)
            _write(_json_lines(mint.numbers(size), mint.format) if args.json else mint.lines(size))
            done += size
            report(done)
    return 0


def _write(lines: bytes) -> None:
    """All of it to standard output, which may take less at a time where Python does not buffer it."""
    rest = memoryview(lines)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]


def _json_lines(numbers: Iterable[int], fmt: formats.Format) -> bytes:
    lines = []
    for number in numbers:
        minted = anatomy.dissect(fmt, number)
        when = formats.stamp(minted.time) if minted.time else None
        fields = {field.name: field.as_dict()["value"] for field in minted.fields if field.role != "fixed"}
        head = {"id": minted.text, "scheme": minted.scheme, "layout": minted.layout, "time": when}
        lines.append(json.dumps({**head, "fields": fields}) + "\n")
    return "".join(lines).encode()


# --- mintmark inspect ---------------------------------------------------------------------------------------------

LIKELY: Final = 0.5
POSSIBLE: Final = 0.1
LONGEST_LINE: Final = 4096


@command(
    option("ids", metavar="ID", nargs="*", help="without any, one a line from standard input"),
    option("-1", "--best", action="store_true", help="show the likeliest reading only"),
    option("-a", "--all", action="store_true", help="draw unlikely readings as well"),
    COLOR,
    JSON,
    examples="""
  mintmark inspect 01ARZ3NDEKTSV4RRFFQ69G5FAV
  mintmark inspect -1 175928847299117063 507f1f77bcf86cd799439011
  mintmark new sno -n 3 | mintmark inspect
  mintmark inspect --json < ids.txt | jq -r .anatomies[0].time
  mintmark inspect -- -dash-starts-this-one""",
)
def inspect(args: argparse.Namespace) -> int:
    """Take IDs apart: every scheme that each can be, likeliest first."""
    screen = None if args.json else _screen(args.color)
    status = 0
    drawn = False
    for text in args.ids or _lines(_standard_input()):
        now_ns = time.time_ns()
        found: list[Anatomy] = []
        report: dict[str, object] = {"input": text, "anatomies": []}
        try:
            found = anatomy.inspect(text, now_ns=now_ns)
        except MintError as error:
            report["error"] = {"code": error.code, "message": str(error)}
            status = _complain(str(error), CATALOGUE[error.code].exit)
        shown = found[:1] if args.best else found
        if screen is None:
            print(json.dumps({**report, "anatomies": [each.as_dict() for each in shown]}))
        elif found:
            if drawn:
                screen.line()
            _draw_all(screen, text, shown, now_ns, unlikely=args.all, alone=len(found) == 1)
            drawn = True
        sys.stdout.flush()
    return status


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Every line that is not blank, without the space around it; of a line too long for any ID, the start."""
    while line := stream.readline(LONGEST_LINE):
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(LONGEST_LINE)):
            pass
        if text := line.decode("utf-8", "surrogateescape").strip():
            yield text


# --- drawing an ID ------------------------------------------------------------------------------------------------


def _draw_all(screen: Screen, text: str, found: list[Anatomy], now_ns: int, *, unlikely: bool, alone: bool) -> None:
    """Readings of a text; those that are unlikely in one line each, unless ``unlikely``."""
    screen.line((text, "title"))
    hints: list[list[Span]] = []
    for each in found:
        word = "likely" if each.likelihood >= LIKELY else "possible" if each.likelihood >= POSSIBLE else "unlikely"
        if unlikely or each is found[0] or word != "unlikely":
            screen.line()
            when, verdict = _when(each, now_ns), ("the only match", "quiet") if alone else (word, word)
            screen.line(("  ", ""), (each.name, "name"), (when and f"  {when}", "time"), ("  ", ""), verdict)
            _draw(screen, text, each)
        else:
            hints.append([("  unlikely", "quiet"), (each.name, "quiet"), (_when(each, now_ns), "quiet")])
    if hints:
        screen.line()
        screen.table(hints)


def _draw(screen: Screen, text: str, each: Anatomy) -> None:
    """Why, the bits with their fields below them, and what each field holds."""
    screen.line(("  " + each.why, "quiet"))
    if each.text != text:
        screen.line(("  canonical text ", "quiet"), (each.text, ""))
    # An ID without a binary form is its ASCII text: its characters say more than their bits.
    as_text = each.bytes == each.text.encode()
    if not as_text:
        screen.line((f"  hex {each.bytes.hex()}", "quiet"))
    screen.line()
    styles = _styles(each.fields)
    spots, rows = _cells(each, as_text, screen.columns - 2)
    for cells in rows:
        segments = [
            (style, *_segment(field.name, spot, cells, screen.glyphs))
            for field, spot, style in zip(each.fields, spots, styles, strict=True)
        ]
        screen.line(("  ", ""), *((shown, style) for style, shown, _ in segments))
        screen.line(("  ", ""), *((label, style) for style, _, label in segments))
    screen.line()
    table: list[list[Span]] = [
        [("  field", "quiet"), ("chars" if as_text else "bits", "quiet"), ("value", "quiet"), ("meaning", "quiet")]
    ]
    for field, spot, style in zip(each.fields, spots, styles, strict=True):
        first, last = (spot.start + 1, spot.stop) if as_text else field.bits
        place = f"{first}-{last}" if first != last else f"{first}"
        table.append([("  " + field.name, style), (place, "quiet"), (str(field.value), style), (field.meaning, "")])
    screen.table(table)


def _styles(parts: Iterable[Field | formats.Part]) -> list[str]:
    """A style for each field: its role, in two shades where neighbours have the same role."""
    styles: list[str] = []
    for part in parts:
        styles.append(f"{part.role} 2" if styles and styles[-1] == part.role else part.role)
    return styles


def _cells(each: Anatomy, as_text: bool, columns: int) -> tuple[list[range], list[dict[int, str]]]:
    """What a picture is made of, bits or characters: the cells of every field, and rows of cells by their number.

    Bits stand in groups of 8, in rows of equal length that fit into ``columns``; characters in groups of a field, in
    one row. A cell that ends a group has a space after it.
    """
    unit = 8 if as_text else 1
    size = 8 * len(each.bytes)
    spots = [
        range((size - 1 - high) // unit, (size - low) // unit) for high, low in (field.bits for field in each.fields)
    ]
    if as_text:
        ends = {spot.stop for spot in spots}
        return spots, [{at: char + " " * (at + 1 in ends) for at, char in enumerate(each.text)}]
    cells = [bit + " " * (at % 8 == 7) for at, bit in enumerate(f"{each.int:0{size}b}")]
    rows = -(-len(each.bytes) // max(1, min(8, (columns + 1) // 9)))
    length = 8 * -(-len(each.bytes) // rows)
    return spots, [dict(enumerate(cells[start : start + length], start)) for start in range(0, size, length)]


def _segment(name: str, spot: range, cells: dict[int, str], glyphs: Glyphs) -> tuple[str, str]:
    """A field's cells in a row, and the bracket below them: with its name if there is room, open where it goes on."""
    shown = "".join(cells[at] for at in spot if at in cells)
    inner = len(shown.rstrip()) - 2
    begins, ends = spot.start in cells, spot.stop - 1 in cells
    if inner < 0:
        label = (glyphs.alone if begins and ends else glyphs.line) * len(shown.rstrip())
    else:
        spaced = f" {name} " if len(name) + 2 <= inner else name if len(name) <= inner else ""
        left, right = glyphs.left if begins else glyphs.line, glyphs.right if ends else glyphs.line
        label = left + spaced.center(inner, glyphs.line) + right
    return shown, label.ljust(len(shown))


def _when(each: Anatomy, now_ns: int) -> str:
    if each.time is None:
        return ""
    seconds = now_ns / formats.SECOND - each.time.timestamp()
    return f"{formats.stamp(each.time).replace('T', ' ').removesuffix('Z')} UTC, {_ago(seconds)}"


_UNITS: Final = (
    ("year", 31_556_952),
    ("month", 2_629_746),
    ("day", 86_400),
    ("hour", 3_600),
    ("minute", 60),
    ("second", 1),
)


def _ago(seconds: float) -> str:
    """How long ago, in the largest unit that fits: ``3 days ago``, ``in 5 years``."""
    for unit, length in _UNITS:
        count = int(abs(seconds) // length)
        if count:
            amount = f"{count:,} {unit}{'s' if count > 1 else ''}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return "just now"


# --- mintmark schemes ---------------------------------------------------------------------------------------------


@command(
    COLOR,
    JSON,
    examples="""
  mintmark schemes
  mintmark schemes --json | jq -r 'select(.mints) | .name'""",
)
def schemes(args: argparse.Namespace) -> int:
    """List the layouts: fields, nodes, IDs a second for each node, and when each runs out."""
    # A cuid grows with its time; the last of its widths is the one that tells when cuids run out.
    known = {each.name: each for each in (*formats.FORMATS, *formats.LAST_RESORTS)}
    if args.json:
        for each in known.values():
            print(json.dumps(_facts(each)))
        return 0
    screen = _screen(args.color)
    minted = [each for each in known.values() if each.scheme in SCHEMES]
    explained: dict[str, list[str]] = {}
    for each in known.values():
        if each not in minted:
            explained.setdefault(each.scheme, []).extend([each.layout] if each.layout else [])
    rows = [("scheme", "bits", "nodes", "IDs/s per node", "runs out")]
    for each in minted:
        nodes, rate = (_short(number) for number in (each.nodes, each.ids_per_second))
        rows.append((each.name, str(_used_bits(each)), nodes, rate, _until(each)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        (
            row[0].ljust(widths[0]),
            "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)),
        )
        for row in rows
    ]
    screen.line(*((text, "quiet") for text in lines[0]))
    for (name, numbers), each in zip(lines[1:], minted, strict=True):
        parts = [part for part in each.parts if part.name != "unused"]
        spans = zip(parts, _styles(parts), strict=True)
        screen.line((name, "name"), (numbers, ""))
        screen.line((" ", ""), *((f" {part.name}:{part.bits}", style) for part, style in spans))
    screen.line()
    screen.line(("'mintmark inspect' also explains", "quiet"))
    for scheme, layouts in explained.items():
        if layouts:
            screen.line(("  " + scheme, ""), (f" {' '.join(layouts)}", "quiet"))
    screen.line(("  " + ", ".join(scheme for scheme, layouts in explained.items() if not layouts), ""))
    return 0


def _used_bits(each: formats.Format) -> int:
    return sum(part.bits for part in each.parts if part.name != "unused")


def _short(number: int | None) -> str:
    if number is None:
        return "-"
    for word, size in (("trillion", 10**12), ("billion", 10**9)):
        if number >= size:
            return f"{number / size:.1f} {word}"
    return f"{number:,}"


def _until(each: formats.Format) -> str:
    return each.expires.date().isoformat() if each.expires else "after 9999" if each.clock else "never"


def _facts(each: formats.Format) -> dict[str, object]:
    parts = [part for part in each.parts if part.name != "unused"]
    return {
        "name": each.name,
        "scheme": each.scheme,
        "layout": each.layout,
        "mints": each.scheme in SCHEMES,
        "bits": _used_bits(each),
        "fields": [{"name": part.name, "bits": part.bits, "role": part.role} for part in parts],
        "nodes": _number(each.nodes),
        "ids_per_second_per_node": _number(each.ids_per_second),
        "expires": formats.stamp(each.expires) if each.expires else None,
        "source": each.source,
    }


def _number(number: int | None) -> str | None:
    """Integers that may exceed 32 bits are strings in JSON."""
    return None if number is None else str(number)


# --- the terminal -------------------------------------------------------------------------------------------------

Span = tuple[str, str]
"""Text and the name of its style."""


class Glyphs(NamedTuple):
    """What brackets are drawn with."""

    left: str
    right: str
    line: str
    alone: str


ASCII: Final = Glyphs("[", "]", "-", "|")
BOXES: Final = Glyphs("\u2570", "\u256f", "\u2500", "\u2575")

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
}
"""What rich calls them: the 16 colours that follow the terminal's own theme."""


class Screen(Protocol):
    """Where a command prints for people."""

    glyphs: Glyphs
    columns: int

    def line(self, *spans: Span) -> None: ...

    def table(self, rows: Sequence[Sequence[Span]]) -> None: ...


class _Plain:
    """ASCII without colour, for files, pipes and terminals without rich."""

    glyphs = ASCII
    columns = 80

    def line(self, *spans: Span) -> None:
        print("".join(text for text, _ in spans).rstrip())

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

        return Text.assemble(*((text, STYLES.get(style, "")) for text, style in spans))


def _screen(color: str) -> Screen:
    """Colours if they are wanted: ``auto`` means on a terminal, unless ``NO_COLOR`` is set (https://no-color.org)."""
    shows_colors = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if color == "never" or (color == "auto" and not shows_colors):
        return _Plain()
    try:
        from rich.console import Console
    except ImportError:
        if color == "always":
            raise UsageError("colours need rich: pip install 'mintmark[cli]'") from None
        return _Plain()
    return _Colored(Console(force_terminal=True, color_system="standard", no_color=False, highlight=False))


class _Bar(Protocol):
    """How far a command has come, on standard error."""

    def update(self, done: int) -> None: ...

    def stop(self) -> None: ...


class _PlainBar:
    def __init__(self, total: int) -> None:
        self._total = total

    def update(self, done: int) -> None:
        print(f"\r{done:,} of {self._total:,} IDs", end="", file=sys.stderr, flush=True)

    def stop(self) -> None:
        print("\r" + " " * len(f"{self._total:,} of {self._total:,} IDs"), end="\r", file=sys.stderr, flush=True)


class _RichBar:
    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        count = TextColumn("{task.completed:,} of {task.total:,} IDs")
        self._bar = Progress(BarColumn(), count, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=total)
        self._bar.start()

    def update(self, done: int) -> None:
        self._bar.update(self._task, completed=done)

    def stop(self) -> None:
        self._bar.stop()


def _bar(total: int) -> _Bar:
    try:
        return _RichBar(total)
    except ImportError:
        return _PlainBar(total)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """What to tell how many are done: shown once that has taken a second, and only where somebody sees it."""
    seen = sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()
    due = time.monotonic() + 1
    bar: _Bar | None = None

    def report(done: int) -> None:
        nonlocal due, bar
        if seen and time.monotonic() >= due:
            due = time.monotonic() + 0.1
            bar = bar or _bar(total)
            bar.update(done)

    try:
        yield report
    finally:
        if bar:
            bar.stop()


# --- from the command line to an exit code ------------------------------------------------------------------------

DESCRIPTION: Final = "Mint unique IDs, and take any ID apart."
EXAMPLES: Final = """
  mintmark new sno -n 3
  mintmark inspect 01ARZ3NDEKTSV4RRFFQ69G5FAV
  mintmark schemes"""


class _Parser(argparse.ArgumentParser):
    """argparse, but for its errors: they are one sentence like all others."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def _parser() -> argparse.ArgumentParser:
    settings: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    parser = _Parser("mintmark", description=DESCRIPTION, epilog=f"examples:{EXAMPLES}", **settings)
    parser.add_argument("--version", action="version", version=f"mintmark {__version__}")
    words = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name, each in COMMANDS.items():
        about = each.run.__doc__ or ""
        summary = about.partition("\n")[0].rstrip(".")
        word = words.add_parser(name, help=summary, description=about, epilog=f"examples:{each.examples}", **settings)
        groups: dict[str | None, Any] = {None: word}
        for flags, arguments, heading in each.options:
            if heading not in groups:
                groups[heading] = word.add_argument_group(heading)
            groups[heading].add_argument(*flags, **arguments)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line (``sys.argv`` by default) and returns its exit code.

    Wrong input is one sentence on standard error and the exit code that ``errors.CATALOGUE`` gives it.
    """
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        status = _run(argv)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _complain(str(error), EXIT_USAGE)
    except MintError as error:
        return _complain(str(error), CATALOGUE[error.code].exit)
    except BrokenPipeError:
        _drop_output()
        return EXIT_CLOSED_PIPE
    except KeyboardInterrupt:
        _drop_output()
        return EXIT_INTERRUPTED
    except OSError as error:
        _drop_output()
        return _complain(error.strerror or str(error), EXIT_INPUT_OUTPUT)


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    try:
        args = parser.parse_args(argv)
    except SystemExit as done:  # of --help and --version
        return int(done.code or 0)
    if args.command is None:
        parser.print_help()
        return 0
    return COMMANDS[args.command].run(args)


def _complain(message: str, status: int = 0) -> int:
    """One line on standard error, whatever the message quotes."""
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in message)
    with suppress(OSError):
        if sys.stderr:
            print(f"mintmark: {line}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter does not fail to write it when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
