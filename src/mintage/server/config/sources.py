"""The sources of settings: the command line, the environment and a TOML file."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import dataclass
from errno import EINVAL
from functools import partial
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, NoReturn

from mintage.server.config.values import headings, shown, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mintage.errors import ConfigError
    from mintage.server.config.values import Setting

OTHER_VARIABLES: Final = (
    "MINTAGE_HOME",
    "MINTAGE_INSTALL_SERVERS",
    "MINTAGE_REQUIRE_SERVERS",
    "MINTAGE_CONTRACT_TURNS",
    "MINTAGE_INTERRUPT_EVERY",
    "MINTAGE_DEBUG_BUILD",
    "MINTAGE_FREE_THREADED",
    "MINTAGE_SPARK_ROWS",
)
"""Variables that are not settings: of the registry, and of the project's tests, which a developer may have exported."""
_SERVICE_LINK: Final = r"MINTAGE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_\w+)?)"


def flag(name: str) -> str:
    """Return the option of a setting on the command line."""
    return f"--{name.replace('_', '-')}"


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"MINTAGE_{name.upper()}"


def tables_of(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """Return the names of the settings that only the file can set."""
    return tuple(name for name, each in settings.items() if each.syntax.is_table)


def words_of(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """Return the names of the settings that the command line and the environment can set, too."""
    return tuple(name for name, each in settings.items() if not each.syntax.is_table)


# --- reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """The settings of one source, and the way in which it writes a setting."""

    values: dict[str, Any]
    write: Callable[[str, str], str]
    """Returns the text of a setting, given its name and the text of its value."""


_Formatter: Final = partial(argparse.RawDescriptionHelpFormatter, max_help_position=29)


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors do not repeat a value, which may be the URL of a mistyped ``--store``."""

    names: tuple[str, ...] = ()
    """The names of the settings that it knows."""

    def format_help(self) -> str:
        """Return the help, as wide as the screen."""
        from shutil import get_terminal_size

        self.formatter_class = partial(_Formatter, width=get_terminal_size().columns - 2)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Raise an error for argparse's message."""
        raise wrong(f"{message}; see '{self.prog} --help'")

    def parse_all(self, words: list[str]) -> argparse.Namespace:
        """Parse all words of the command line."""
        found, others = self.parse_known_args(words)
        if others and others[0].startswith("-"):
            raise unknown(others[0].partition("=")[0], map(flag, self.names))
        if others:
            self.error("unexpected argument: write --NAME VALUE, or --NAME alone where it is yes or no")
        return found


def read_command_line(
    settings: Mapping[str, Setting], argv: Sequence[str], description: str | None, epilog: str | None
) -> dict[str, Any]:
    """Return the settings of a command line, by name.

    :raises ConfigError: ``config.setting``.
    """
    parser = _Parser(
        prog="mintage serve",
        usage="mintage serve [--SETTING VALUE]...",
        description=description,
        epilog=epilog,
        # With a width: argparse makes a formatter for each argument, which would import shutil to look the width up.
        formatter_class=partial(_Formatter, width=80),
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.names = words_of(settings)
    for title, names in headings(settings).items():
        group = parser.add_argument_group(title)
        for name in names:
            _add_option(group, name, settings[name])
    return vars(parser.parse_all(list(argv)))


def _add_option(group: argparse._ArgumentGroup, name: str, setting: Setting) -> None:
    syntax = setting.syntax
    if syntax.is_table:
        return
    if syntax.metavar:
        group.add_argument(flag(name), dest=name, metavar=syntax.metavar, help=_help(setting))
        return
    group.add_argument(flag(name), dest=name, action="store_true", help=_help(setting))
    if setting.default is None:  # true, false, or left to other settings
        opposite = f"--no-{flag(name)[2:]}"
        group.add_argument(opposite, dest=name, action="store_false", help=argparse.SUPPRESS)


def _help(setting: Setting) -> str:
    syntax = setting.syntax
    limits = [syntax.text] if syntax.is_listed else []
    default = [] if setting.default is False else [f"default: {syntax.unset or setting.default}"]
    return f"{setting.description} ({'; '.join(limits + default)})" if limits or default else setting.description


def read_environment(settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Return the settings in the environment, by name. An empty variable counts as none.

    :raises ConfigError: ``config.setting``: a variable of mintage that is not a setting.
    """
    known = {variable(name): name for name in words_of(settings)}
    tables = [variable(name) for name in tables_of(settings)]
    found: dict[str, Any] = {}
    for written, value in os.environ.items():
        name = written.upper()
        if name in known:
            if value:
                found[known[name]] = value
            continue
        if not name.startswith("MINTAGE_") or name in OTHER_VARIABLES or _is_service_link(name, value):
            continue
        if name in tables:
            raise wrong(f"{written} belongs in the configuration file, as a table")
        raise unknown(name, known)
    return found


def _is_service_link(name: str, value: str) -> bool:
    """Return True for a variable that Kubernetes sets in pods beside a service named mintage or mintage-something."""
    return bool(re.fullmatch(_SERVICE_LINK, name)) or (
        name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://"))
    )


def _check_file(path: str) -> None:
    """Check that a path names a file.

    :raises OSError: it does not, or this user may not know.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, "there is no such file") from None
    if not S_ISREG(mode):
        raise OSError(EINVAL, "it is no file")


def read_file(settings: Mapping[str, Setting], path: str, written: str) -> dict[str, Any]:
    """Return the settings in a TOML file, by name.

    :param written: the setting that names the file, for messages.
    :raises ConfigError: ``config.setting``.
    """
    try:
        _check_file(path)
        import tomllib  # which a service without a file does not need

        with open(path, "rb") as file:
            found = tomllib.load(file)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise wrong(f"{written} cannot be read: {reason}") from error
    for name in found:
        if name == "config":
            raise wrong(f"config is set in {place(path)} itself: a file cannot name another")
        if name not in settings:
            raise unknown(name, settings, f" in {place(path)}")
    return found


# --- messages -----------------------------------------------------------------------------------------------------


def part(name: int | str) -> str:
    """Return the name of a setting or a key for a message; a key in the place of its name is masked."""
    return "mint_***" if str(name).startswith("mint_") else shown(str(name))[1:-1]


def place(path: object) -> str:
    """Return the path of a file for a message, unshortened: its end tells most."""
    return shown(path, 4096)


def unknown(name: str, known: Iterable[str], place: str = "") -> ConfigError:
    """Return the error for an unknown setting, with the most similar name among those that are known."""
    import difflib

    alike = {_stem(each): each for each in known}
    found = difflib.get_close_matches(_stem(name[:80]), alike, n=1)
    hint = f"did you mean {alike[found[0]]}?" if found else "see 'mintage serve --help'"
    return wrong(f"there is no setting {part(name)}{place}: {hint}")


def _stem(name: str) -> str:
    return name.removeprefix("MINTAGE_").lstrip("-")
