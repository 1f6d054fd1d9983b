"""The command ``mintage``: mint IDs, take them apart, and administer stores.

The parser is argparse of the standard library, so that the base install depends on nothing. rich draws colours, tables
and the progress bar if it is installed (``mintage[cli]``); without it they are plain ASCII.

A command is one function under :func:`mintage.cli.command.command`. This module lists the commands, runs one for a
command line, and returns the exit code. It imports a command only to run it, or for the help of all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, NoReturn

from mintage import __version__
from mintage.cli.command import Command, UsageError
from mintage.cli.screen import complain
from mintage.errors import CATALOGUE, MintError
from mintage.tables import InputError

COMMANDS: Final = {
    "new": "new",
    "inspect": "inspect",
    "who": "who",
    "schemes": "schemes",
    "next": "namespaces",
    "reserve": "namespaces",
    "namespaces": "namespaces",
    "pools": "pools",
    "leases": "pools",
    "copy": "copy",
    "doctor": "doctor",
    "prove": "prove",
    "serve": "serve",
    "keys": "keys",
    "backfill": "backfill",
    "verify": "verify",
}
"""The modules of the commands, below this one."""

EXIT_USAGE: Final = 2
EXIT_INPUT_OUTPUT: Final = 74
EXIT_INTERRUPTED: Final = 130
EXIT_CLOSED_PIPE: Final = 141  # the exit code of a program that SIGPIPE ends

DESCRIPTION: Final = "Mint unique IDs, take any ID apart, and administer the stores that keep IDs unique."
EXAMPLES: Final = """
  mintage new sno -n 3
  mintage inspect 01ARZ3NDEKTSV4RRFFQ69G5FAV
  mintage next orders -n 3
  mintage doctor"""

_LONG: Final = re.compile(r"\S{100,}")


class _Parser(argparse.ArgumentParser):
    """An argument parser whose error is one sentence, with a suggestion if there is one."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.suggest_on_error = False  # CPython 3.15 suggests by default, and takes "snow" for "sno"

    def error(self, message: str) -> NoReturn:
        message += _suggestion(message)
        # A long argument would fill the screen.
        message = _LONG.sub(lambda long: f"{long[0][:40]}\u2026", message)
        if "arguments: -" in message or "explicit argument" in message:
            message += "; a value that begins with - comes after --"
        raise UsageError(f"{message}; see '{self.prog} --help'")


def _suggestion(message: str) -> str:
    """Return a suggestion for an invalid choice that argparse reports, or an empty text."""
    from difflib import get_close_matches

    if (found := re.search(r"invalid choice: '([^']{1,40})' \(choose from (.*)\)", message)) is None:
        return ""
    choices = re.findall(r"[\w.-]+", found[2])
    near = [each for each in choices if each.startswith(found[1])] or get_close_matches(found[1], choices, 1)
    return f"; did you mean {near[0]}?" if near else ""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """The formatter of argparse, with room for a summary on the line of a long command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 15


_SETTINGS: Final[dict[str, Any]] = {"formatter_class": _Formatter, "allow_abbrev": False}


def _parser(commands: Iterable[Command]) -> argparse.ArgumentParser:
    parser = _Parser("mintage", description=DESCRIPTION, epilog=f"examples:{EXAMPLES}", **_SETTINGS)
    parser.add_argument("--version", action="version", version=f"mintage {__version__}")
    _add(parser, commands)
    return parser


def _add(parser: argparse.ArgumentParser, commands: Iterable[Command]) -> None:
    def show_help(_: argparse.Namespace) -> int:
        parser.print_help()
        return 0

    parser.set_defaults(run=show_help)
    words = parser.add_subparsers(title="commands", metavar="COMMAND")
    for each in commands:
        summary = each.about.partition("\n")[0].rstrip(".")
        examples = f"examples:{each.examples}"
        word = words.add_parser(each.name, help=summary, description=each.about, epilog=examples, **_SETTINGS)
        groups: dict[str | None, Any] = {None: word}
        for option in each.options:
            if option.heading not in groups:
                groups[option.heading] = word.add_argument_group(option.heading)
            groups[option.heading].add_argument(*option.flags, **option.settings)
        if each.commands:
            _add(word, each.commands)
        else:
            word.set_defaults(run=each.run)


def load(name: str) -> Command:
    """Import a command."""
    module = vars(import_module(f"{__name__}.{COMMANDS[name]}"))
    found: Command = module["next_integers" if name == "next" else name]  # `next` is a builtin
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (``sys.argv`` by default) and return its exit code.

    An error is one sentence on standard error, and its exit code is that of ``errors.CATALOGUE``. If a store takes part
    in the command, a second line names the remedy.
    """
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed")
        if isinstance(sys.stdout, TextIOWrapper):  # escapes what its encoding lacks, as standard error does
            sys.stdout.reconfigure(errors="backslashreplace")
        status = _run(argv)
        sys.stdout.flush()
        return status
    except (UsageError, InputError) as error:
        return complain(str(error), EXIT_USAGE)
    except MintError as error:
        return complain(str(error), CATALOGUE[error.code].exit, *getattr(error, "__notes__", ()))
    except BrokenPipeError:
        _drop_output()
        return EXIT_CLOSED_PIPE
    except KeyboardInterrupt:
        _drop_output()
        return EXIT_INTERRUPTED
    except OSError as error:
        _drop_output()
        return complain(error.strerror or str(error), EXIT_INPUT_OUTPUT)


def _run(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    first = load(words[0]) if words and words[0] in COMMANDS else None
    try:
        if first is not None and first.reads_words:
            args = argparse.Namespace(run=first.run, words=words[1:])
        else:
            args = _parser(map(load, COMMANDS) if first is None else [first]).parse_args(words)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            status: int = args.run(args)
    except SystemExit as done:  # of --help and --version
        return int(done.code or 0)
    return status


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    complain(f"warning: {message}", 0)


def _drop_output() -> None:
    """Discard the buffered output, which the interpreter would otherwise fail to write when it exits."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
