"""Commands: a command is a function whose docstring is its help, and whose return value is its exit code."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mintage.rules import MAX_COUNT

if TYPE_CHECKING:
    from datetime import datetime


class UsageError(Exception):
    """An error in the command line itself; the exit code is 2."""


@dataclass(frozen=True, slots=True)
class Option:
    """The arguments of ``ArgumentParser.add_argument``, and the heading in the help."""

    flags: tuple[str, ...]
    settings: dict[str, Any]
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A word after ``mintage``. A group of commands has no function to run, and commands below it."""

    name: str
    about: str
    examples: str
    run: Callable[[argparse.Namespace], int] | None = None
    options: tuple[Option, ...] = ()
    commands: tuple[Command, ...] = ()
    reads_words: bool = False
    """True if the function parses the words after the command itself, from ``args.words``, and ``--help`` with them."""


def command(
    name: str, *options: Option, examples: str, reads_words: bool = False
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Return a decorator that makes a function a command."""

    def make(run: Callable[[argparse.Namespace], int]) -> Command:
        about = (run.__doc__ or "").replace("\n    ", "\n").strip()
        return Command(name, about, examples, run, options, reads_words=reads_words)

    return make


def group(name: str, about: str, *commands: Command) -> Command:
    """Return a group of commands; its help has the examples of all of them."""
    return Command(name, about, "".join(each.examples for each in commands), commands=commands)


def option(*flags: str, **settings: Any) -> Option:
    """Return an option or argument of a command, from the arguments of ``ArgumentParser.add_argument``."""
    return Option(flags, settings)


def parse_int(text: str) -> int:
    """Return the integer that an argument spells, in decimal digits or after ``0x`` in hexadecimal ones."""
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,99}|0x[0-9A-Fa-f]{1,99})", text):
        raise argparse.ArgumentTypeError(f"{text!a} is not a whole number")
    return int(text, 0)


def within(least: int, most: int) -> Callable[[str], int]:
    """Return the function that parses an integer from ``least`` to ``most``."""

    def parse(text: str) -> int:
        number = parse_int(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!a} is outside {least}..{most}")
        return number

    return parse


count: Final = within(1, MAX_COUNT)
"""Parses a count: 1 to the most that a generator mints, or a store reserves, at once."""


_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> int:
    """Return the milliseconds that an argument spells, as ``30d``, ``12h``, ``90m`` or ``10s``; 0 for ``off``."""
    if text == "off":
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,14})([smhd])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!a} is no duration: write 30d, 12h, 90m, 10s, or off")
    return int(found[1]) * _UNITS_MS[found[2]]


def parse_time(text: str) -> datetime:
    """Return the time in UTC that an argument spells."""
    from datetime import UTC, datetime

    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!a} is not a time such as 2026-01-31 or 2026-01-31T12:00:00Z") from None


JSON: Final = option("--json", action="store_true", help="print JSON, one object a line")
COLOR: Final = option(
    "--color", choices=("auto", "always", "never"), default="auto", help="when to use colours (default: auto)"
)
