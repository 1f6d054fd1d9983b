"""What a command is: a function whose docstring is its help, and whose return value is its exit code."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["COLOR", "JSON", "Command", "Option", "UsageError", "command", "count", "group", "option", "parse_int"]


class UsageError(Exception):
    """The command line itself is wrong."""


class Option(NamedTuple):
    """What ``ArgumentParser.add_argument`` takes, and the heading to list it under."""

    flags: tuple[str, ...]
    settings: dict[str, Any]
    heading: str | None = None


class Command(NamedTuple):
    """One word after ``mintage``; a group of commands has more words below it, and nothing to run."""

    name: str
    about: str
    examples: str
    run: Callable[[argparse.Namespace], int] | None = None
    options: tuple[Option, ...] = ()
    commands: tuple[Command, ...] = ()
    reads_words: bool = False
    """True if it takes what follows it apart by itself, from ``args.words``; ``--help`` too."""


def command(
    name: str, *options: Option, examples: str, reads_words: bool = False
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Make a function a command."""

    def make(run: Callable[[argparse.Namespace], int]) -> Command:
        about = (run.__doc__ or "").replace("\n    ", "\n").strip()
        return Command(name, about, examples, run, options, reads_words=reads_words)

    return make


def group(name: str, about: str, *commands: Command) -> Command:
    """Return a word with commands below it; it has the examples of all of them."""
    return Command(name, about, "".join(each.examples for each in commands), commands=commands)


def option(*flags: str, **settings: Any) -> Option:
    """One option or argument of a command."""
    return Option(flags, settings)


def parse_int(text: str) -> int:
    """Return an argument that is a whole number, in decimal digits or after ``0x`` in hexadecimal ones."""
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,99}|0x[0-9A-Fa-f]{1,99})", text):
        raise argparse.ArgumentTypeError(f"{text!a} is not a whole number")
    return int(text, 0)


def count(text: str) -> int:
    """Return an argument that says how many: no more than a generator mints, or a store reserves, at once."""
    from mintage.rules import MAX_COUNT

    number = parse_int(text)
    if not 1 <= number <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"{text!a} is outside 1..{MAX_COUNT}")
    return number


JSON: Final = option("--json", action="store_true", help="print JSON, one object a line")
COLOR: Final = option(
    "--color", choices=("auto", "always", "never"), default="auto", help="when to use colours (default: auto)"
)
