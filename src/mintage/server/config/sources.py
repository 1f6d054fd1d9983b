"""The sources of settings: the command line, the environment and a TOML file."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from stat import S_ISREG
from typing import Any, Final, NoReturn

from mintage.errors import ConfigError
from mintage.server.config.values import Place, Setting, shown, shown_name, wrong

Found = dict[str, tuple[Any, Place]]
"""The values of a source, by setting, each with its place."""

OTHER_VARIABLES: Final = (
    "MINTAGE_HOME", "MINTAGE_INSTALL_SERVERS", "MINTAGE_REQUIRE_SERVERS", "MINTAGE_MORE_STORES", "MINTAGE_CLUSTERS",
    "MINTAGE_CONTRACT_TURNS", "MINTAGE_INTERRUPT_EVERY", "MINTAGE_PROVE_SECONDS", "MINTAGE_PROVE_STORES",
    "MINTAGE_WHO_STORES", "MINTAGE_SPARK_ROWS", "MINTAGE_DEBUG_BUILD", "MINTAGE_FREE_THREADED",
)  # fmt: skip
"""Variables that are not settings: of the registry, and of the project's tests, which a developer may have exported."""
_SERVICE_LINK: Final = r"MINTAGE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_\w+)?)"


def flag(name: str) -> str:
    """Return the option of a setting on the command line."""
    return f"--{name.replace('_', '-')}"


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"MINTAGE_{name.upper()}"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise an error. Its values are texts to argparse, so no message repeats the one of an option."""
        raise wrong(f"{message}; see '{self.prog} --help'")


def read_command_line(
    settings: Mapping[str, Setting], argv: Sequence[str], description: str | None, epilog: str | None
) -> Found:
    """Return the settings of a command line.

    :raises ConfigError: ``config.setting``.
    """
    parser = _Parser(
        prog="mintage serve",
        usage="mintage serve [--SETTING VALUE]...",
        description=description,
        epilog=epilog,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=29),
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    group: argparse._ActionsContainer = parser
    flags = []
    for name, each in settings.items():
        if each.heading:
            group = parser.add_argument_group(each.heading)
        if each.is_table:
            continue
        flags.append(flag(name))
        if each.values.metavar:
            group.add_argument(flag(name), dest=name, metavar=each.values.metavar, help=_help(each))
            continue
        group.add_argument(flag(name), dest=name, action="store_true", help=_help(each))
        if each.default is None:  # true, false, or left to other settings
            opposite = f"--no-{flag(name)[2:]}"
            group.add_argument(opposite, dest=name, action="store_false", help=argparse.SUPPRESS)
    found, others = parser.parse_known_args(argv)
    if others and others[0].startswith("-"):
        raise unknown(others[0].partition("=")[0], flags)
    if others:
        parser.error("unexpected argument: write --NAME VALUE, or --NAME alone where it is yes or no")
    return {name: (value, Place(flag(name), " ")) for name, value in vars(found).items()}


def _help(setting: Setting) -> str:
    if setting.default is False:
        return setting.description
    limits = f"{setting.values.limits}; " if setting.values.limits else ""
    return f"{setting.description} ({limits}default: {setting.values.unset or setting.default})"


def read_environment(settings: Mapping[str, Setting]) -> Found:
    """Return the settings in the environment. An empty variable counts as none.

    :raises ConfigError: ``config.setting``: a variable of mintage that is not a setting.
    """
    known = {variable(name): name for name, each in settings.items() if not each.is_table}
    found: Found = {}
    for written, value in os.environ.items():
        name = written.upper()
        if name in known:
            if value:
                found[known[name]] = (value, Place(name, "="))
            continue
        if not name.startswith("MINTAGE_") or name in OTHER_VARIABLES or _is_service_link(name, value):
            continue
        if name in map(variable, settings):
            raise wrong(f"{written} belongs in the configuration file, as a table")
        raise unknown(name, known)
    return found


def _is_service_link(name: str, value: str) -> bool:
    """Return True for a variable that Kubernetes sets in pods beside a service named mintage or mintage-something."""
    return bool(re.fullmatch(_SERVICE_LINK, name)) or (
        name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://"))
    )


def read_file(settings: Mapping[str, Setting], path: str, named: Place) -> Found:
    """Return the settings in a TOML file.

    :param named: the place of the setting that names the file.
    :raises ConfigError: ``config.setting``.
    """
    # Unshortened: the end of a path tells most.
    text = shown(path, 4096)
    try:
        if not S_ISREG(os.stat(path).st_mode):
            raise ValueError("it is no file")
        with open(path, "rb") as file:
            # Some editors begin a file with the mark U+FEFF, which nobody sees.
            values = tomllib.loads(file.read().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if is_missing else getattr(error, "strerror", None) or error
        raise wrong(f"{named.write(text)} cannot be read: {reason}") from error
    for name in values:
        if name == "config":
            raise wrong(f"config is set in {text} itself: a file cannot name another")
        if name not in settings:
            raise unknown(name, settings, f" in {text}")
    return {name: (value, Place(name, " = ", f" in {text}")) for name, value in values.items()}


def unknown(name: str, known: Iterable[str], place: str = "") -> ConfigError:
    """Return the error for an unknown setting, with the most similar name among those that are known."""
    alike = {_stem(each): each for each in known}
    found = difflib.get_close_matches(_stem(name[:80]), alike, n=1)
    hint = f"did you mean {alike[found[0]]}?" if found else "see 'mintage serve --help'"
    return wrong(f"there is no setting {shown_name(name)}{place}: {hint}")


def _stem(name: str) -> str:
    return name.removeprefix("MINTAGE_").lstrip("-")
