"""The sources of settings: the command line, the environment and a TOML file."""

from __future__ import annotations

import argparse
import difflib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from pydantic_settings import CliSettingsSource, EnvSettingsSource, TomlConfigSettingsSource

from mintage.server.values import headings, shown, syntax_of, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic.fields import FieldInfo
    from pydantic_settings import BaseSettings

    from mintage.errors import ConfigError

OTHER_VARIABLES: Final = (
    "MINTAGE_HOME",
    "MINTAGE_INSTALL_SERVERS",
    "MINTAGE_REQUIRE_SERVERS",
    "MINTAGE_CONTRACT_TURNS",
    "MINTAGE_DEBUG_BUILD",
    "MINTAGE_SPARK_ROWS",
)
"""Variables that are not settings: of the registry, and of the project's tests, which a developer may have exported."""
_SERVICE_LINK: Final = re.compile(
    r"MINTAGE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_\w+)?)"
)


def flag(name: str) -> str:
    """Return the option of a setting on the command line."""
    return f"--{name.replace('_', '-')}"


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"MINTAGE_{name.upper()}"


def tables_of(fields: Mapping[str, FieldInfo]) -> tuple[str, ...]:
    """Return the names of the settings that only the file can set."""
    return tuple(name for name, info in fields.items() if syntax_of(info).is_table)


def words_of(fields: Mapping[str, FieldInfo]) -> tuple[str, ...]:
    """Return the names of the settings that the command line and the environment can set, too."""
    return tuple(name for name, info in fields.items() if not syntax_of(info).is_table)


# --- reading ------------------------------------------------------------------------------------------------------


class Source(NamedTuple):
    """The settings of one source, and the way in which it writes a setting."""

    values: dict[str, Any]
    write: Callable[[str, str], str]
    """Returns the text of a setting, given its name and the text of its value."""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors do not repeat a value, which may be the URL of a mistyped ``--store``."""

    names: tuple[str, ...] = ()
    """The names of the settings that it knows."""

    def error(self, message: str) -> NoReturn:
        """Raise an error for argparse's message."""
        raise wrong(f"{message}; see '{self.prog} --help'")

    def parse_all(self, words: list[str]) -> argparse.Namespace:
        """Parse all words of the command line."""
        found, others = self.parse_known_args(words)
        if others and others[0].startswith("-"):
            raise unknown(others[0].partition("=")[0], map(flag, self.names))
        if others:
            self.error("a word belongs to no setting: write --NAME VALUE, or --NAME alone where it is yes or no")
        return found


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=29)


def read_command_line(
    cls: type[BaseSettings], argv: Sequence[str], description: str | None, epilog: str | None
) -> dict[str, Any]:
    """Return the settings of a command line, by name.

    :raises ConfigError: ``config.setting``.
    """
    fields = cls.model_fields
    parser = _Parser(
        prog="mintage serve",
        usage="mintage serve [--SETTING VALUE]...",
        description=description,
        epilog=epilog,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    parser.names = words_of(fields)
    groups: dict[str, argparse._ArgumentGroup] = {}
    for title, names in headings(fields).items():
        groups |= dict.fromkeys(names, parser.add_argument_group(title))

    def add(_: argparse.ArgumentParser, *flags: str, dest: str, **__: object) -> None:
        info = fields[dest]
        syntax = syntax_of(info)
        if syntax.is_table:
            return
        settings: dict[str, Any] = {"dest": dest, "default": argparse.SUPPRESS}
        if syntax.metavar:
            groups[dest].add_argument(*flags, metavar=syntax.metavar, help=_help(info), **settings)
            return
        groups[dest].add_argument(*flags, action="store_true", help=_help(info), **settings)
        if info.default is None:  # true, false, or left to other settings
            opposites = (word.replace("--", "--no-", 1) for word in flags)
            groups[dest].add_argument(*opposites, **(settings | {"action": "store_false", "help": argparse.SUPPRESS}))

    source: CliSettingsSource[_Parser] = CliSettingsSource(
        cls,
        root_parser=parser,
        add_argument_method=add,
        parse_args_method=_Parser.parse_all,
        cli_kebab_case=True,
        cli_parse_none_str="\0",  # no argument means None
    )
    return source(args=list(argv))()


def _help(info: FieldInfo) -> str:
    syntax = syntax_of(info)
    limits = [syntax.text] if syntax.is_listed else []
    default = [] if info.default is False else [f"default: {syntax.unset or info.default}"]
    return f"{info.description} ({'; '.join(limits + default)})" if limits or default else str(info.description)


def read_environment(cls: type[BaseSettings]) -> dict[str, Any]:
    """Return the settings in the environment, by name.

    :raises ConfigError: ``config.setting``: a variable of mintage that is not a setting.
    """
    known = [variable(name) for name in words_of(cls.model_fields)]
    tables = [variable(name) for name in tables_of(cls.model_fields)]
    for written, value in os.environ.items():
        name = written.upper()
        if not name.startswith("MINTAGE_") or name in known or name in OTHER_VARIABLES or _is_service_link(name, value):
            continue
        if name in tables:
            raise wrong(f"{written} belongs in the configuration file, as a table")
        raise unknown(name, known)
    return EnvSettingsSource(cls, env_ignore_empty=True)()


def _is_service_link(name: str, value: str) -> bool:
    """Return True for a variable that Kubernetes sets in pods beside a service named mintage or mintage-something."""
    return bool(_SERVICE_LINK.fullmatch(name)) or (
        name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://"))
    )


def read_file(cls: type[BaseSettings], path: str, written: str) -> dict[str, Any]:
    """Return the settings in a TOML file, by name.

    :param written: the setting that names the file, for messages.
    :raises ConfigError: ``config.setting``.
    """
    try:
        file = Path(path).absolute()
        if not file.is_file():  # pydantic-settings would read it as an empty file
            raise FileNotFoundError(2, "it is no file" if file.exists() else "there is no such file")
        found = TomlConfigSettingsSource(cls, file)()
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise wrong(f"{written} cannot be read: {reason}") from error
    for name in found:
        if name == "config":
            raise wrong(f"config is set in {place(path)} itself: a file cannot name another")
        if name not in cls.model_fields:
            raise unknown(name, cls.model_fields, f" in {place(path)}")
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
    alike = {_stem(each): each for each in known}
    found = difflib.get_close_matches(_stem(name[:80]), alike, n=1)
    hint = f"did you mean {alike[found[0]]}?" if found else "see 'mintage serve --help'"
    return wrong(f"there is no setting {part(name)}{place}: {hint}")


def _stem(name: str) -> str:
    return name.removeprefix("MINTAGE_").lstrip("-")
