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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, NoReturn, Protocol

from mintmark import __version__, anatomy, formats, locality, sno, snowflake
from mintmark.anatomy import Anatomy, Field
from mintmark.errors import CATALOGUE, MintError

if TYPE_CHECKING:
    from rich.console import Console


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


class Mint(NamedTuple):
    """An open generator, as ``new`` needs it."""

    format: formats.Format
    lines: Callable[[int], bytes]
    """So many new IDs as text, one a line."""
    numbers: Callable[[int], Iterable[int]]
    """So many new IDs as integers."""
    batch: int = BATCH
    """How many to ask for at a time: few enough that a batch takes a fraction of a second."""


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
            max(1, min(BATCH, layout.ids_per_second // 10)),
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


SCHEMES: Final[dict[str, Callable[[argparse.Namespace], AbstractContextManager[Mint]]]] = {
    "sno": _open_sno,
    "snowflake": _open_snowflake,
    "locality": _open_locality,
}

SCHEME_OPTIONS: Final = {
    "sno": (
        option("--meta", type=_whole, metavar="0..255", help="the metabyte"),
        option("--partition", type=_whole, metavar="0..65535", help="where they are minted"),
    ),
    "snowflake": (
        option("--node", type=_whole, metavar="N", help="the node number"),
        option("--layout", metavar="LAYOUT", help="a name from 'mintmark schemes', or name:bits pairs, high to low"),
        option("--epoch-ms", type=_whole, metavar="MS", help="of a declared layout: Unix time at which it starts"),
        option("--unit-ms", type=_whole, metavar="MS", help="of a declared layout: length of a tick (default: 1)"),
    ),
    "locality": (
        option("--mode", choices=("variable", "sequential"), help="how counters are written (default: variable)"),
    ),
}


@command(
    option("scheme", metavar="SCHEME", choices=tuple(SCHEMES), help="sno, snowflake or locality"),
    option("-n", "--count", type=_count, default=1, metavar="N", help="how many (default: 1)"),
    *(each._replace(heading=scheme) for scheme, options in SCHEME_OPTIONS.items() for each in options),
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
    for scheme, options in SCHEME_OPTIONS.items():
        for each in options:
            flag = each.flags[0]
            if scheme != args.scheme and getattr(args, flag.removeprefix("--").replace("-", "_")) is not None:
                raise UsageError(f"{flag} belongs to {scheme}, not to {args.scheme}")
    with SCHEMES[args.scheme](args) as mint, _Progress(args.count) as progress:
        out = sys.stdout.buffer
        done = 0
        while done < args.count:
            size = min(mint.batch, args.count - done)
            out.write(_json_lines(mint, size) if args.json else mint.lines(size))
            done += size
            progress.update(done)
    return 0


def _json_lines(mint: Mint, size: int) -> bytes:
    return "".join(_minted(anatomy.dissect(mint.format, number)) for number in mint.numbers(size)).encode()


def _minted(minted: Anatomy) -> str:
    facts = minted.as_dict()
    fields = {field.name: field.as_dict()["value"] for field in minted.fields if field.role != "fixed"}
    head = {"id": minted.text, "scheme": minted.scheme, "layout": minted.layout, "time": facts["time"]}
    return json.dumps({**head, "fields": fields}) + "\n"


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
    shown = 0
    for text in args.ids or _lines(sys.stdin.buffer):
        now_ns = time.time_ns()
        try:
            found = anatomy.inspect(text, now_ns=now_ns)
        except MintError as error:
            if screen is None:
                print(
                    json.dumps({"input": text, "anatomies": [], "error": {"code": error.code, "message": str(error)}})
                )
            sys.stdout.flush()
            _complain(str(error))
            status = CATALOGUE[error.code].exit
            continue
        found = found[:1] if args.best else found
        if screen is None:
            print(json.dumps({"input": text, "anatomies": [each.as_dict() for each in found]}))
        else:
            if shown:
                screen.line()
            _draw_all(screen, text, found, now_ns, unlikely=args.all)
            shown += 1
        sys.stdout.flush()
    return status


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Every line that is not blank, without the space around it; of a line too long for any ID, the start."""
    while line := stream.readline(LONGEST_LINE):
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(LONGEST_LINE)):
            pass
        if text := line.decode("utf-8", "surrogateescape").strip():
            yield text


# --- drawing an ID ------------------------------------------------------------------------------------------------


def _draw_all(screen: Screen, text: str, found: list[Anatomy], now_ns: int, *, unlikely: bool) -> None:
    """Every reading of a text; those that are unlikely in one line each, unless ``unlikely``."""
    screen.line((text, "title"))
    hints: list[list[Span]] = []
    for each in found:
        if unlikely or each is found[0] or each.likelihood >= POSSIBLE:
            screen.line()
            _draw(screen, text, each, now_ns, alone=len(found) == 1)
        else:
            hints.append([("  unlikely", "quiet"), (each.name, "quiet"), (_when(each, now_ns), "quiet")])
    if hints:
        screen.line()
        screen.table(hints)


def _draw(screen: Screen, text: str, each: Anatomy, now_ns: int, *, alone: bool) -> None:
    # An ID without a binary form is its ASCII text: its characters say more than their bits.
    written = each.bytes == each.text.encode()
    cells, unit = (each.text, 8) if written else (f"{each.int:0{8 * len(each.bytes)}b}", 1)
    styles = _styles(each.fields)
    word = "likely" if each.likelihood >= LIKELY else "possible" if each.likelihood >= POSSIBLE else "unlikely"
    word = "the only match" if alone else word
    screen.line(("  " + each.name, "name"), ("  " + _when(each, now_ns), "time"), ("  " + word, word))
    screen.line(("  " + each.why, "quiet"))
    if each.text != text:
        screen.line(("  canonical text ", "quiet"), (each.text, ""))
    if not written:
        screen.line((f"  hex {each.bytes.hex()}", "quiet"))
    screen.line()
    owner = [index for index, field in enumerate(each.fields) for _ in range(field.width // unit)]
    for row in _rows(len(cells), unit, screen.columns - 2):
        picture = [_segment(cells, owner, each.fields, list(held), unit, screen.glyphs) for held in _runs(row, owner)]
        screen.line(("  ", ""), *((bits, styles[index]) for index, bits, _ in picture))
        screen.line(("  ", ""), *((label, styles[index]) for index, _, label in picture))
    screen.line()
    screen.table(
        [
            [(heading, "quiet") for heading in ("  field", "chars" if written else "bits", "value", "meaning")],
            *(
                [
                    ("  " + field.name, style),
                    (_place(field, each, unit), "quiet"),
                    (str(field.value), style),
                    (field.meaning, ""),
                ]
                for field, style in zip(each.fields, styles, strict=True)
            ),
        ]
    )


def _styles(parts: Iterable[Field | formats.Part]) -> list[str]:
    """A style for each field: its role, in two shades where neighbours have the same role."""
    styles: list[str] = []
    for part in parts:
        styles.append(f"{part.role} 2" if styles and styles[-1] == part.role else part.role)
    return styles


def _rows(cells: int, unit: int, columns: int) -> list[range]:
    """Cells cut into rows of equal length that fit: bits in groups of 8, characters all in one row."""
    if unit > 1:
        return [range(cells)]
    groups = cells // 8
    most = max(1, min(8, (columns + 1) // 9))
    rows = -(-groups // most)
    length = 8 * -(-groups // rows)
    return [range(start, min(start + length, cells)) for start in range(0, cells, length)]


def _runs(row: range, owner: list[int]) -> Iterator[Iterable[int]]:
    return (held for _, held in groupby(row, owner.__getitem__))


def _segment(
    cells: str, owner: list[int], fields: Sequence[Field], held: list[int], unit: int, glyphs: Glyphs
) -> tuple[int, str, str]:
    """The part of a field in one row: the field's index, its cells, and a bracket with its name to go below them."""
    index = owner[held[0]]
    begins = owner.index(index) == held[0]
    ends = held[-1] == len(owner) - 1 or owner[held[-1] + 1] != index
    text = "".join(cells[at] + (" " if unit == 1 and at % 8 == 7 else "") for at in held)
    text += " " if unit > 1 else ""
    width = len(text.rstrip())
    inner = width - 2
    if inner < 0:
        label = glyphs.alone if begins and ends else glyphs.line
    else:
        name = fields[index].name
        spaced = f" {name} " if len(name) + 2 <= inner else name if len(name) <= inner else ""
        label = (glyphs.left if begins else glyphs.line) + spaced.center(inner, glyphs.line)
        label += glyphs.right if ends else glyphs.line
    return index, text, label.ljust(len(text))


def _place(field: Field, each: Anatomy, unit: int) -> str:
    """Bits as in ``79-41``, counted from the least significant; characters from the first."""
    first, last = field.bits
    if unit > 1:
        first, last = (len(each.bytes) - bit // 8 for bit in field.bits)
    return f"{first}-{last}" if first != last else f"{first}"


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
    known: dict[str, formats.Format] = {}
    for each in (*formats.FORMATS, *formats.LAST_RESORTS):
        known.setdefault(each.name, each)  # of the widths of a cuid, today's is the first
    if args.json:
        for each in known.values():
            print(json.dumps(_facts(each)))
        return 0
    screen = _screen(args.color)
    minted = [each for each in known.values() if each.scheme in SCHEMES]
    explained: dict[str, list[str]] = {}
    for each in known.values():
        if each not in minted:
            explained.setdefault(each.scheme, []).append(each.layout or "")
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
        screen.line(("  " + scheme, ""), (f" {' '.join(layouts)}", "quiet"))
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

    def _text(self, *spans: Span) -> Any:
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


class _Progress:
    """How far minting has come, on standard error: once it has taken a second, and only where somebody sees it."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._seen = sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()
        self._next = time.monotonic() + 1
        self._bar: Any = None
        self._drawn = False

    def __enter__(self) -> _Progress:
        return self

    def update(self, done: int) -> None:
        now = time.monotonic()
        if not self._seen or now < self._next:
            return
        self._next = now + 0.1
        if not self._drawn:
            self._drawn = True
            self._bar = _rich_bar(self._total)
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=done)
        else:
            sys.stderr.write(f"\r{done:,} of {self._total:,} IDs")
            sys.stderr.flush()

    def __exit__(self, *exc: object) -> None:
        if self._bar:
            self._bar.stop()
        elif self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _rich_bar(total: int) -> Any:
    """A running bar, or ``None`` without rich."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        return None
    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed:,} of {task.total:,} IDs"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task("", total=total)
    bar.start()
    return bar


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
                groups[heading] = word.add_argument_group(f"{heading} only")
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
        print(f"mintmark: {line}", file=sys.stderr)
    return status


def _drop_output() -> None:
    """What is still buffered goes nowhere, so that the interpreter does not fail to write it when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
