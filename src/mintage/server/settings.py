"""What the service can be told: one class, the same names on the command line, in the environment and in a TOML file.

The first of these that says a setting counts: the command line (``--max-wait-ms 500``), the environment
(``MINTAGE_MAX_WAIT_MS=500``), the file that ``--config`` or ``MINTAGE_CONFIG`` names (``max_wait_ms = 500``), the
default. Keys and the rates of single namespaces are tables, and only of the file.
"""

from __future__ import annotations

import argparse
import difflib
import ipaddress
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, NoReturn, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    CliSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from mintage import rules
from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.protocol.url import StoreUrl
from mintage.server.keys import check_key_name, check_rights
from mintage.store import STORE_KINDS, kinds_like, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from mintage import snowflake
    from mintage.store import Store

__all__ = ["GROUPS", "OTHER_VARIABLES", "TABLES", "Form", "KeySettings", "Settings", "flag", "form", "variable"]

OFF: Final = "off"
DAY_MS: Final = 86_400_000


# --- how values are written ---------------------------------------------------------------------------------------


class Form(NamedTuple):
    """How a setting's value is written."""

    metavar: str = ""
    """What stands for it in the help; empty for yes or no."""
    text: str = "true or false"
    """What it must be."""
    unset: str = ""
    """What leaving it out means, where the default does not tell."""

    @property
    def is_listed(self) -> bool:
        """True if the help must tell ``text``: ``metavar`` does not."""
        return self.metavar in _SENTENCES

    @property
    def sentence(self) -> str:
        """What it must be, after "is not"."""
        return _SENTENCES.get(self.metavar, "") + self.text


_SENTENCES: Final = {
    "N": "a whole number in ",
    "MS": "a whole number of milliseconds in ",
    "BYTES": "a whole number of bytes in ",
    "WORD": "one of ",
}


def form(info: FieldInfo) -> Form:
    """Return how a field's value is written."""
    how = next(each for each in info.metadata if isinstance(each, Form))
    if how.metavar == "WORD":
        return how._replace(text=", ".join(get_args(info.annotation)))
    if how.is_listed:
        least, most = (next(getattr(each, at) for each in info.metadata if hasattr(each, at)) for at in ("ge", "le"))
        return how._replace(text=f"{least}..{most}")
    return how


def _check_int(value: object) -> int:
    """Python's own reading of numbers takes more than a setting should: ``1_000``, ``5.0``, ``True``."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if type(value) is not int:
        raise ValueError
    return value


def _yes_or_no(value: object) -> object:
    """pydantic's own reading takes a dozen words more, among them ``t``, ``1`` and ``off``."""
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if value is not None and type(value) is not bool:
        raise ValueError
    return value


def _address(value: str) -> str:
    if value != OFF:
        _host_and_port(value)
    return value


def _host_and_port(address: str) -> tuple[str, int]:
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", address)
    if match is None or int(match[3]) > 65_535:
        raise ValueError
    if match[1]:
        ipaddress.IPv6Address(match[1])
    return match[1] or match[2], int(match[3])


def is_loopback(host: str) -> bool:
    """Return whether only this machine is at that address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _file(value: str) -> str:
    if not (os.path.isfile(value) and os.access(value, os.R_OK)):
        raise ValueError
    return value


def _store(value: SecretStr) -> SecretStr:
    if (scheme := StoreUrl.parse(value.get_secret_value()).scheme) not in STORE_KINDS:
        # What stands before the first colon may be a user, or worse.
        raise _wrong(f"there is no such kind of store: {kinds_like(scheme)}")
    return value


_RESERVED_HEADERS: Final = re.compile(
    "allow|authorization|cache-control|connection|content-(length|type)|cookie|date|expect|host|keep-alive|lease-token"
    "|origin|proxy-authorization|retry-after|te|trailer|transfer-encoding|upgrade|www-authenticate|x-mintage-fallback",
    re.IGNORECASE,
)
"""Headers that a trace id must not stand in: requests or answers have them for something else, some of it secret."""


def _trace_header(value: str) -> str:
    if _RESERVED_HEADERS.fullmatch(value):
        raise _wrong(f"trace_header is {value}, which has another meaning: use a name such as X-Request-Id")
    return value


def _layout(value: str) -> str:
    if catalogue.read_layout(value) is None:
        raise ValueError
    return value


def _nodes(value: str) -> str:
    match = re.fullmatch(r"([0-9]{1,19})\.\.([0-9]{1,19})", value)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError
    return value


def _named_keys(value: dict[str, KeySettings]) -> dict[str, KeySettings]:
    owners: dict[str, str] = {}
    for name, key in value.items():
        check_key_name(name)
        if (other := owners.setdefault(key.hash, name)) != name:
            raise _wrong(f"the keys {other!a} and {name!a} have the same hash")
    return value


def _rights(value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for pattern, rights in value.items():
        check_rights(pattern, rights)
    return value


def _namespaces(value: dict[str, int]) -> dict[str, int]:
    for name in value:
        rules.check_name(name, "namespace")
    return value


Integer = Annotated[int, BeforeValidator(_check_int)]
YesOrNo = Annotated[bool, BeforeValidator(_yes_or_no)]
Count = Annotated[Integer, Form("N")]
Milliseconds = Annotated[Integer, Form("MS")]
Bytes = Annotated[Integer, Form("BYTES")]
Rate = Annotated[Integer, Field(ge=0, le=10**9), Form("N")]
Burst = Annotated[Integer, Field(ge=0, le=10**9), Form("N", unset="the rate")]
Address = Annotated[str, AfterValidator(_address), Form("HOST:PORT", "HOST:PORT, or off")]
File = Annotated[str | None, AfterValidator(_file), Form("FILE", "a file that can be read", unset="none")]


# --- the settings -------------------------------------------------------------------------------------------------


class KeySettings(BaseModel):
    """A key as the file has it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    hash: Annotated[
        str,
        Field(pattern=r"^sha256:[0-9a-f]{64}$", repr=False, description="what 'mintage keys new' printed"),
        Form(text="sha256: and 64 hexadecimal digits"),
    ]
    rights: Annotated[
        dict[str, tuple[str, ...]],
        AfterValidator(_rights),
        Field(default={}, description="what it may do, with the names of which pattern"),
        Form(text='a table such as { "orders" = ["next"] }'),
    ]
    rate: Rate = Field(0, description="requests a second with this key; 0: any")
    burst: Burst = Field(0, description="of these at once; 0: as the rate")


class Settings(BaseSettings):
    """The settings of a service. :meth:`load` reads them; the constructor takes nothing but its arguments.

    Immutable, and picklable for the workers. Neither its repr nor any error shows the store's URL or a key.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", validate_default=False, hide_input_in_errors=True, env_prefix="MINTAGE_"
    )

    config: File = Field(None, description="a TOML file with more settings")
    store: Annotated[
        SecretStr, AfterValidator(_store), Form("URL", "a store's URL", unset="this machine's registry")
    ] = Field(SecretStr(""), description="where IDs are reserved")
    http: Address = Field("127.0.0.1:8080", description="HTTP, or off; port 0: a free one")
    redis: Address = Field("127.0.0.1:6380", description="the Redis protocol, or off")
    workers: Count = Field(1, ge=1, le=64, description="processes that share the ports")

    insecure: Annotated[YesOrNo, Form()] = Field(False, description="listen beyond this machine without keys")
    tls_cert: File = Field(None, description="certificates of the service, PEM")
    tls_key: File = Field(None, description="its private key, PEM")
    tls_client_ca: File = Field(None, description="whose certificates clients must bring, PEM")
    keys: Annotated[dict[str, KeySettings], AfterValidator(_named_keys), Form(text="a table of keys")] = Field(
        {}, description="API keys by name; without any, everybody may do everything but what needs admin"
    )

    auto_create: Annotated[YesOrNo | None, Form(unset="without keys")] = Field(
        None, description="make missing namespaces, or --no-auto-create"
    )
    max_namespaces: Count = Field(1000, ge=0, le=1_000_000, description="most namespaces to make")
    max_count: Count = Field(10_000, ge=1, le=1_000_000, description="most integers or IDs of one request")
    max_reserve: Count = Field(1_000_000, ge=1, le=rules.MAX_COUNT, description="most integers of one :reserve")
    min_step: Count = Field(1000, ge=1, le=rules.MAX_COUNT, description="smallest segment to fetch")
    max_step: Count = Field(1_000_000, ge=1, le=rules.MAX_COUNT, description="largest segment to fetch")
    target_ms: Milliseconds = Field(10_000, ge=1, le=DAY_MS, description="how long a segment should last")
    span_ms: Milliseconds = Field(
        10000, ge=rules.MIN_SPAN_MS, le=rules.MAX_SPAN_MS, description="how far ahead leases reach"
    )
    snowflake_layout: Annotated[
        str,
        AfterValidator(_layout),
        Form("LAYOUT", f"{', '.join(catalogue.LAYOUTS)}, or such as 'time:41 node:10 sequence:12 @1735689600000 1ms'"),
    ] = Field("default", description="layout of the snowflakes that it mints")
    snowflake_nodes: Annotated[
        str | None, AfterValidator(_nodes), Form("RANGE", "FIRST..LAST, such as 512..1023", unset="all")
    ] = Field(None, description="node numbers that snowflakes may have")
    fallback: Annotated[Literal["none", "random"], Form("WORD")] = Field(
        "none", description="last resort, without the guarantee"
    )

    rate: Rate = Field(0, description="requests a second of a namespace; 0: any")
    burst: Burst = Field(0, description="of these at once; 0: as the rate")
    rates: Annotated[
        dict[str, Annotated[Integer, Field(ge=0, le=10**9)]],
        AfterValidator(_namespaces),
        Form(text="a table of namespaces and their rates"),
    ] = Field({}, description="rates of single namespaces, instead of `rate`")
    max_wait_ms: Milliseconds = Field(1000, ge=0, le=600_000, description="longest wait for the store")
    max_connections: Count = Field(10_000, ge=1, le=1_000_000, description="of each interface")
    max_request_bytes: Bytes = Field(65_536, ge=4096, le=2**24, description="of a head, body or command")
    request_timeout_ms: Milliseconds = Field(10_000, ge=1, le=DAY_MS, description="until a request is whole")
    idle_timeout_ms: Milliseconds = Field(
        300_000, ge=0, le=DAY_MS, description="until a silent client is cut; 0: never"
    )
    grace_ms: Milliseconds = Field(10_000, ge=0, le=DAY_MS, description="to finish requests after SIGTERM")

    log_format: Annotated[Literal["auto", "console", "json"], Form("WORD")] = Field(
        "auto", description="auto: console on a terminal"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Form("WORD")] = Field(
        "info", description="least to log"
    )
    access_log: Annotated[Literal["off", "errors", "all"], Form("WORD")] = Field(
        "errors", description="requests to log; all is slower"
    )
    trace_header: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9-]{1,64}$"),
        AfterValidator(_trace_header),
        Form("NAME", "1 to 64 letters, digits and -"),
    ] = Field("X-Trace-Id", description="HTTP header that names a request in the log")

    if TYPE_CHECKING:  # a str is a SecretStr too

        def __init__(self, **values: Any) -> None: ...

    @classmethod
    def load(cls, argv: Sequence[str], *, description: str | None = None, epilog: str | None = None) -> Self:
        """Read the command line ``argv``, the environment and the file; ``--help`` prints and raises SystemExit.

        :param description: what the help begins with.
        :param epilog: what it ends with.
        :raises ConfigError: ``config.setting``: there is no such setting, or not with such a value;
            ``config.insecure``: it would listen beyond this machine without keys.
        """
        line = _Source(_read_line(cls, argv, description, epilog), lambda name, value: f"{flag(name)} {value}")
        environment = _Source(_read_environment(cls), lambda name, value: f"{variable(name)}={value}")
        sources = [line, environment]
        for source in sources:
            if path := source.values.get("config"):
                found = _read_file(cls, path, source.write("config", _place(path)))
                sources.append(_Source(found, lambda name, value: f"{name} = {value} in {_place(path)}"))
                break
        values: dict[str, Any] = {}
        for source in reversed(sources):
            values |= source.values
        try:
            return cls(**values)
        except ValidationError as error:
            raise _explained(error.errors(include_url=False)[0], sources) from None

    @classmethod
    def settings_customise_sources(cls, *_: Any, **sources: Any) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the constructor's arguments alone: what :meth:`load` read, it knows the source of."""
        return (sources["init_settings"],)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.http == OFF and self.redis == OFF:
            raise _wrong("http and redis are both off: nothing would be served")
        if (self.tls_cert is None) != (self.tls_key is None):
            given, missing = ("tls_cert", "tls_key") if self.tls_cert else ("tls_key", "tls_cert")
            raise _wrong(f"{given} is set without {missing}: TLS needs both")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise _wrong("tls_client_ca is set without tls_cert and tls_key")
        if self.min_step > self.max_step:
            raise _wrong(f"min_step {self.min_step} is above max_step {self.max_step}")
        if self.workers > 1 and self.store.get_secret_value().lower().startswith("memory:"):
            raise _wrong(
                f"workers is {self.workers}, and each would have a memory: store of its own, with the same IDs"
            )
        if self.nodes is not None and self.nodes[-1] >= self.layout.nodes:
            raise _wrong(
                f"snowflake_nodes {self.snowflake_nodes} is outside 0..{self.layout.nodes - 1}, the node numbers of "
                f"the layout {self.snowflake_layout!a}"
            )
        for name, address in (("http", self.http_address), ("redis", self.redis_address)):
            if address and not is_loopback(address[0]) and not self.keys and not self.insecure:
                raise ConfigError(
                    f"{name} {getattr(self, name)} can be reached from beyond this machine, and no keys are "
                    "configured: configure keys, or say --insecure",
                    code="config.insecure",
                )
        return self

    @property
    def http_address(self) -> tuple[str, int] | None:
        """Host and port; ``None`` if it is off."""
        return None if self.http == OFF else _host_and_port(self.http)

    @property
    def redis_address(self) -> tuple[str, int] | None:
        """Host and port; ``None`` if it is off."""
        return None if self.redis == OFF else _host_and_port(self.redis)

    @property
    def layout(self) -> snowflake.Layout:
        """The layout of the snowflakes that it mints."""
        layout = catalogue.read_layout(self.snowflake_layout)
        assert layout is not None  # noqa: S101 - or it would have been refused
        return layout

    @property
    def nodes(self) -> range | None:
        """The node numbers that it may lease for snowflakes; ``None`` for all of the layout."""
        if self.snowflake_nodes is None:
            return None
        first, last = map(int, self.snowflake_nodes.split(".."))
        return range(first, last + 1)

    @property
    def has_keys(self) -> bool:
        """True if a caller needs a key."""
        return bool(self.keys)

    @property
    def creates(self) -> bool:
        """True if a namespace is made at first use."""
        return not self.keys if self.auto_create is None else self.auto_create

    @property
    def store_url(self) -> str:
        """The store's URL, with its password; that of this machine's registry where none is set."""
        if url := self.store.get_secret_value():
            return url
        from mintage.lease import registry

        return registry.url()

    def open_store(self) -> Store:
        """Return the store, which connects at first use. The directory of this machine's registry is made.

        :raises StoreError: ``store.refused``: there is no place for a registry.
        :raises ConfigError: ``config.driver``, ``config.store``.
        """
        if url := self.store.get_secret_value():
            return open_store(url)
        from mintage.lease.request import registry_store

        return registry_store()


GROUPS: Final = {
    "store and listeners": ("config", "store", "http", "redis", "workers"),
    "security": ("insecure", "tls_cert", "tls_key", "tls_client_ca", "keys"),
    "IDs": (
        "auto_create",
        "max_namespaces",
        "max_count",
        "max_reserve",
        "min_step",
        "max_step",
        "target_ms",
        "span_ms",
        "snowflake_layout",
        "snowflake_nodes",
        "fallback",
    ),
    "limits": (
        "rate",
        "burst",
        "rates",
        "max_wait_ms",
        "max_connections",
        "max_request_bytes",
        "request_timeout_ms",
        "idle_timeout_ms",
        "grace_ms",
    ),
    "log": ("log_format", "log_level", "access_log", "trace_header"),
}
"""All settings, under the headings of the help."""
TABLES: Final = ("keys", "rates")
"""Settings that only the file can say."""
_WORDS: Final = tuple(name for name in Settings.model_fields if name not in TABLES)
OTHER_VARIABLES: Final = (
    "MINTAGE_HOME",
    "MINTAGE_INSTALL_SERVERS",
    "MINTAGE_REQUIRE_SERVERS",
    "MINTAGE_CONTRACT_TURNS",
    "MINTAGE_DEBUG_BUILD",
    "MINTAGE_SPARK_ROWS",
)
"""What mintage reads from the environment besides settings."""
_SERVICE_LINK: Final = re.compile(
    r"MINTAGE_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_\w+)?)"
)


def flag(name: str) -> str:
    """Return a setting on the command line."""
    return f"--{name.replace('_', '-')}"


def variable(name: str) -> str:
    """Return a setting in the environment."""
    return f"MINTAGE_{name.upper()}"


# --- where they are read ------------------------------------------------------------------------------------------


class _Source(NamedTuple):
    """What was said in one place, and how a setting and its value are written there."""

    values: dict[str, Any]
    write: Callable[[str, str], str]


class _Parser(argparse.ArgumentParser):
    """argparse, but for its errors: they do not repeat what may be the URL of a mistyped --store."""

    def error(self, message: str) -> NoReturn:
        raise _wrong(f"{message}; see '{self.prog} --help'")

    def parse_all(self, words: list[str]) -> argparse.Namespace:
        found, unknown = self.parse_known_args(words)
        if unknown and unknown[0].startswith("-"):
            raise _unknown(unknown[0].partition("=")[0], map(flag, _WORDS))
        if unknown:
            self.error("a word belongs to no setting: write --NAME VALUE, or --NAME alone where it is yes or no")
        return found


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=29)


def _read_line(cls: type[Settings], argv: Sequence[str], description: str | None, epilog: str | None) -> dict[str, Any]:
    parser = _Parser(
        prog="mintage serve",
        usage="mintage serve [--SETTING VALUE]...",
        description=description,
        epilog=epilog,
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    headings = {title: parser.add_argument_group(title) for title in GROUPS}
    groups = {name: headings[title] for title, names in GROUPS.items() for name in names}

    def add(_: argparse.ArgumentParser, *flags: str, dest: str, **__: object) -> None:
        if dest in TABLES:
            return
        info = cls.model_fields[dest]
        settings: dict[str, Any] = {"dest": dest, "default": argparse.SUPPRESS}
        if metavar := form(info).metavar:
            groups[dest].add_argument(*flags, metavar=metavar, help=_help(info), **settings)
            return
        groups[dest].add_argument(*flags, action="store_true", help=_help(info), **settings)
        if info.default is None:  # yes, no, or as it comes
            opposites = (word.replace("--", "--no-", 1) for word in flags)
            groups[dest].add_argument(*opposites, **(settings | {"action": "store_false", "help": argparse.SUPPRESS}))

    source: CliSettingsSource[_Parser] = CliSettingsSource(
        cls,
        root_parser=parser,
        add_argument_method=add,
        parse_args_method=_Parser.parse_all,
        cli_kebab_case=True,
        cli_parse_none_str="\0",  # no word stands for "none"
    )
    return source(args=list(argv))()


def _help(info: FieldInfo) -> str:
    how = form(info)
    limits = [how.text] if how.is_listed else []
    default = [] if info.default is False else [f"default: {how.unset or info.default}"]
    return f"{info.description} ({'; '.join(limits + default)})" if limits or default else str(info.description)


def _read_environment(cls: type[Settings]) -> dict[str, Any]:
    known = [variable(name) for name in _WORDS]
    for said, value in os.environ.items():
        name = said.upper()
        if not name.startswith("MINTAGE_") or name in known or name in OTHER_VARIABLES or _is_service_link(name, value):
            continue
        if name in map(variable, TABLES):
            raise _wrong(f"{said} belongs in the configuration file, as a table")
        raise _unknown(name, known)
    return EnvSettingsSource(cls, env_ignore_empty=True)()


def _is_service_link(name: str, value: str) -> bool:
    """Kubernetes tells the pods beside a service called mintage, or mintage-something, of it by such variables."""
    return bool(_SERVICE_LINK.fullmatch(name)) or (
        name.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://"))
    )


def _read_file(cls: type[Settings], path: str, written: str) -> dict[str, Any]:
    try:
        file = Path(path).absolute()
        if not file.is_file():  # pydantic-settings would take it for an empty one
            raise FileNotFoundError(2, "it is no file" if file.exists() else "there is no such file")
        found = TomlConfigSettingsSource(cls, file)()
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise _wrong(f"{written} cannot be read: {reason}") from error
    for name in found:
        if name == "config":
            raise _wrong(f"config is set in {_place(path)} itself: a file cannot name another")
        if name not in cls.model_fields:
            raise _unknown(name, cls.model_fields, f" in {_place(path)}")
    return found


# --- what was wrong -----------------------------------------------------------------------------------------------


def _explained(fault: ErrorDetails, sources: list[_Source]) -> ConfigError:
    """Return the first fault as one sentence: the setting as it was written, and what it must be."""
    cause = fault.get("ctx", {}).get("error")
    where = fault["loc"]
    if not where:  # the settings do not agree with one another
        return cause if isinstance(cause, ConfigError) else _wrong(fault["msg"])
    source = next(each for each in sources if where[0] in each.values)
    value = "***" if _is_secret(where) else _shown(fault["input"])
    written = source.write(".".join(map(_part, where)), value)
    if isinstance(cause, ConfigError):
        return _wrong(f"{written}: {cause}")
    if fault["type"] == "extra_forbidden":
        return _unknown(
            str(where[-1]), KeySettings.model_fields, f" in {written.partition(' = ')[0].rpartition('.')[0]}"
        )
    if fault["type"] == "missing":
        written = f"{written.partition(' = ')[0]}, which is missing,"
    return _wrong(f"{written} is not {form(_field(where)).sentence}")


def _field(where: tuple[int | str, ...]) -> FieldInfo:
    match where:
        case ("keys", _, str(name), *_):
            return KeySettings.model_fields[name]
        case ("rates", _, *_):
            return Settings.model_fields["rate"]
    return Settings.model_fields[str(where[0])]


def _is_secret(where: tuple[int | str, ...]) -> bool:
    return where[0] == "store" or (where[0] == "keys" and where[2:3] not in {("rights",), ("rate",), ("burst",)})


def _part(name: int | str) -> str:
    # Who takes a key for its name must not find it in the log.
    return "mint_***" if str(name).startswith("mint_") else _shown(str(name))[1:-1]


def _place(path: object) -> str:
    """Return the file that a fault is in: whole, as its end says most."""
    return _shown(path, 4096)


def _shown(value: object, longest: int = 80) -> str:
    try:
        text = ascii(value)
    except ValueError:  # of Python's limit on the digits of a number
        return "a number of thousands of digits"
    return text if len(text) <= longest else f"{text[:longest]}..."


def _unknown(name: str, known: Iterable[str], place: str = "") -> ConfigError:
    """Names the setting that was meant, if any is like it."""
    alike = {_stem(each): each for each in known}
    found = difflib.get_close_matches(_stem(name[:80]), alike, n=1)
    hint = f"did you mean {alike[found[0]]}?" if found else "see 'mintage serve --help'"
    return _wrong(f"there is no setting {_part(name)}{place}: {hint}")


def _stem(name: str) -> str:
    return name.removeprefix("MINTAGE_").lstrip("-")


def _wrong(message: str) -> ConfigError:
    return ConfigError(message, code="config.setting")
