"""The settings of the service: one class, for the command line, the environment and a TOML file.

For each setting, the first of these sources that has it counts: the command line (``--max-wait-ms 500``), the
environment (``MINTAGE_MAX_WAIT_MS=500``), the file that ``--config`` or ``MINTAGE_CONFIG`` names (``max_wait_ms =
500``), the default. Keys and the rates of single namespaces are tables, which only the file can set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from mintage import rules
from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.server.config.keys import check_key_name, check_rights
from mintage.server.config.sources import (
    Source,
    flag,
    part,
    place,
    read_command_line,
    read_environment,
    read_file,
    tables_of,
    unknown,
    variable,
)
from mintage.server.config.values import (
    ADDRESS,
    FILE,
    OFF,
    RATE,
    REQUIRED,
    YES_OR_NO,
    Kind,
    ValueFault,
    ValueSyntax,
    check_hash,
    check_layout,
    check_nodes,
    check_store,
    check_text,
    check_trace_header,
    checked,
    headings,
    host_and_port,
    integer,
    is_loopback,
    setting,
    settings_of,
    shown,
    word,
    wrong,
)
from mintage.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mintage import snowflake
    from mintage.server.config.values import Setting
    from mintage.store import Store

DAY_MS: Final = 86_400_000

Fallback = Literal["none", "random"]
LogFormat = Literal["auto", "console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
AccessLog = Literal["off", "errors", "all"]


# --- tables -------------------------------------------------------------------------------------------------------


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError
    return {check_text(name): each for name, each in value.items()}


def _keys(value: object) -> dict[str, KeySettings]:
    keys = {name: checked(name, each, _KEY) for name, each in _table(value).items()}
    owners: dict[str, str] = {}
    for name, key in keys.items():
        check_key_name(name)
        if (other := owners.setdefault(key.hash, name)) != name:
            raise wrong(f"the keys {other!a} and {name!a} have the same hash")
    return keys


def _key(value: object) -> KeySettings:
    return value if isinstance(value, KeySettings) else KeySettings.read(_table(value))


def _rights(value: object) -> dict[str, tuple[str, ...]]:
    rights = {name: checked(name, each, _WORDS) for name, each in _table(value).items()}
    for pattern, granted in rights.items():
        check_rights(pattern, granted)
    return rights


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError
    return tuple(checked(str(at), each, _TEXT) for at, each in enumerate(value))


def _rates(value: object) -> dict[str, int]:
    rates = {name: checked(name, each, RATE) for name, each in _table(value).items()}
    for name in rates:
        rules.check_name(name, "namespace")
    return rates


_KEYS: Final = Kind(_keys, ValueSyntax(text="a table of keys", is_table=True))
_KEY: Final = Kind(_key, _KEYS.syntax)
_RIGHTS: Final = Kind(_rights, ValueSyntax(text='a table such as { "orders" = ["next"] }'))
_WORDS: Final = Kind(_words, _RIGHTS.syntax)
_TEXT: Final = Kind(check_text, _RIGHTS.syntax)
_RATES: Final = Kind(_rates, ValueSyntax(text="a table of namespaces and their rates", is_table=True))


class _Checked:
    """The base of dataclasses of settings: it checks and parses every value that is not a default."""

    SETTINGS: ClassVar[dict[str, Setting]]

    def __post_init__(self) -> None:
        for name, declared in self.SETTINGS.items():
            value = getattr(self, name)
            if value is not declared.default:
                object.__setattr__(self, name, checked(name, value, declared.kind))


@dataclass(frozen=True, kw_only=True)
class KeySettings(_Checked):
    """A key in the file."""

    hash: str = setting(
        REQUIRED,
        Kind(check_hash, ValueSyntax(text="sha256: and 64 hexadecimal digits")),
        "what 'mintage keys new' printed",
        is_shown=False,
    )
    rights: dict[str, tuple[str, ...]] = setting({}, _RIGHTS, "rights by name pattern")
    rate: int = setting(0, RATE, "requests a second with this key; 0: any")
    burst: int = setting(0, RATE, "burst; 0: same as rate", unset="the rate")

    @classmethod
    def read(cls, values: dict[str, Any]) -> Self:
        """Return the key of a table.

        :raises ValueFault: a value is wrong or missing, or its name unknown.
        """
        for name, declared in cls.SETTINGS.items():
            if declared.default is REQUIRED and name not in values:
                raise ValueFault((name,), REQUIRED, declared.syntax.sentence)
        key = cls(**{name: values[name] for name in cls.SETTINGS if name in values})
        for name, value in values.items():
            if name not in cls.SETTINGS:
                raise ValueFault((name,), value, "there is no such setting")
        return key


KeySettings.SETTINGS = settings_of(KeySettings)


# It has 34 attributes: one a setting.
@dataclass(frozen=True, kw_only=True)
class Settings(_Checked):
    """The settings of a service. :meth:`load` reads them; the constructor uses its arguments alone.

    They are immutable, and picklable for the workers. Neither the repr nor any error shows the store's URL or a key.
    """

    config: str | None = setting(None, FILE, "a TOML file with more settings", heading="store and listeners")
    store: str | None = setting(
        None,
        Kind(check_store, ValueSyntax("URL", "a store's URL")),
        "where IDs are reserved",
        unset="this machine's registry",
        is_shown=False,
    )
    http: str = setting("127.0.0.1:8080", ADDRESS, "HTTP, or off; port 0: a free one")
    redis: str = setting("127.0.0.1:6380", ADDRESS, "the Redis protocol, or off")
    workers: int = setting(1, integer(1, 64), "processes that share the ports")

    insecure: bool = setting(False, YES_OR_NO, "listen beyond this machine without keys", heading="security")
    tls_cert: str | None = setting(None, FILE, "certificates of the service, PEM")
    tls_key: str | None = setting(None, FILE, "its private key, PEM")
    tls_client_ca: str | None = setting(None, FILE, "whose certificates clients must bring, PEM")
    keys: dict[str, KeySettings] = setting(
        {}, _KEYS, "API keys by name; without any, everybody may do everything but what needs admin"
    )

    auto_create: bool | None = setting(
        None, YES_OR_NO, "make missing namespaces, or --no-auto-create", unset="without keys", heading="IDs"
    )
    max_namespaces: int = setting(1000, integer(0, 1_000_000), "most namespaces to make")
    max_count: int = setting(10_000, integer(1, 1_000_000), "most integers or IDs of one request")
    max_reserve: int = setting(1_000_000, integer(1, rules.MAX_COUNT), "most integers of one :reserve")
    min_step: int = setting(1000, integer(1, rules.MAX_COUNT), "smallest segment to fetch")
    max_step: int = setting(1_000_000, integer(1, rules.MAX_COUNT), "largest segment to fetch")
    target_ms: int = setting(10_000, integer(1, DAY_MS, "MS"), "how long a segment should last")
    span_ms: int = setting(10000, integer(rules.MIN_SPAN_MS, rules.MAX_SPAN_MS, "MS"), "how far ahead leases reach")
    snowflake_layout: str = setting(
        "default",
        Kind(
            check_layout,
            ValueSyntax(
                "LAYOUT", f"{', '.join(catalogue.LAYOUTS)}, or such as 'time:41 node:10 sequence:12 @1735689600000 1ms'"
            ),
        ),
        "layout of the snowflakes that it mints",
    )
    snowflake_nodes: str | None = setting(
        None,
        Kind(check_nodes, ValueSyntax("RANGE", "FIRST..LAST, such as 512..1023")),
        "node numbers that snowflakes may have",
        unset="all",
    )
    fallback: Fallback = setting("none", word(Fallback), "last resort, without the guarantee")

    rate: int = setting(0, RATE, "requests a second of a namespace; 0: any", heading="limits")
    burst: int = setting(0, RATE, "burst; 0: same as rate", unset="the rate")
    rates: dict[str, int] = setting({}, _RATES, "rates of single namespaces, instead of `rate`")
    max_wait_ms: int = setting(1000, integer(0, 600_000, "MS"), "longest wait for the store")
    max_connections: int = setting(10_000, integer(1, 1_000_000), "of each interface")
    max_request_bytes: int = setting(65_536, integer(4096, 2**24, "BYTES"), "of a head, body or command")
    request_timeout_ms: int = setting(10_000, integer(1, DAY_MS, "MS"), "time limit of a request")
    idle_timeout_ms: int = setting(300_000, integer(0, DAY_MS, "MS"), "until a silent client is cut; 0: never")
    grace_ms: int = setting(10_000, integer(0, DAY_MS, "MS"), "to finish requests after SIGTERM")

    log_format: LogFormat = setting("auto", word(LogFormat), "auto: console on a terminal", heading="log")
    log_level: LogLevel = setting("info", word(LogLevel), "minimum level")
    access_log: AccessLog = setting("errors", word(AccessLog), "requests to log; all is slower")
    trace_header: str = setting(
        "X-Trace-Id",
        Kind(check_trace_header, ValueSyntax("NAME", "1 to 64 letters, digits and -")),
        "HTTP header that names a request in the log",
    )

    @classmethod
    def load(cls, argv: Sequence[str], *, description: str | None = None, epilog: str | None = None) -> Self:
        """Read the command line ``argv``, the environment and the file; ``--help`` prints and raises SystemExit.

        :param description: the text at the beginning of the help.
        :param epilog: the text at the end of the help.
        :raises ConfigError: ``config.setting``: an unknown setting or a wrong value; ``config.insecure``: the service
            would listen beyond this machine without keys.
        """
        found = read_command_line(cls.SETTINGS, argv, description, epilog)
        line = Source(found, lambda name, value: f"{flag(name)} {value}")
        environment = Source(read_environment(cls.SETTINGS), lambda name, value: f"{variable(name)}={value}")
        sources = [line, environment]
        for source in sources:
            if path := source.values.get("config"):
                found = read_file(cls.SETTINGS, path, source.write("config", place(path)))
                sources.append(Source(found, lambda name, value: f"{name} = {value} in {place(path)}"))
                break
        values: dict[str, Any] = {}
        for source in reversed(sources):
            values |= source.values
        try:
            return cls(**values)
        except ValueFault as fault:
            raise _explained(fault, sources) from None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.http == OFF and self.redis == OFF:
            raise wrong("http and redis are both off: nothing would be served")
        if (self.tls_cert is None) != (self.tls_key is None):
            given, missing = ("tls_cert", "tls_key") if self.tls_cert else ("tls_key", "tls_cert")
            raise wrong(f"{given} is set without {missing}: TLS needs both")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise wrong("tls_client_ca is set without tls_cert and tls_key")
        if self.min_step > self.max_step:
            raise wrong(f"min_step {self.min_step} is above max_step {self.max_step}")
        if self.workers > 1 and (self.store or "").lower().startswith("memory:"):
            raise wrong(f"workers is {self.workers}, and each would have a memory: store of its own, with the same IDs")
        if self.nodes is not None and self.nodes[-1] >= self.layout.nodes:
            raise wrong(
                f"snowflake_nodes {self.snowflake_nodes} is outside 0..{self.layout.nodes - 1}, the node numbers of "
                f"the layout {self.snowflake_layout!a}"
            )
        for name, address in (("http", self.http_address), ("redis", self.redis_address)):
            if address and not is_loopback(address[0]) and not self.keys and not self.insecure:
                raise ConfigError(
                    f"{name} {getattr(self, name)} can be reached from beyond this machine, and no keys are "
                    "configured: configure keys, or pass --insecure",
                    code="config.insecure",
                )

    @property
    def http_address(self) -> tuple[str, int] | None:
        """The host and port of HTTP; ``None`` if it is off."""
        return None if self.http == OFF else host_and_port(self.http)

    @property
    def redis_address(self) -> tuple[str, int] | None:
        """The host and port of the Redis protocol; ``None`` if it is off."""
        return None if self.redis == OFF else host_and_port(self.redis)

    @property
    def layout(self) -> snowflake.Layout:
        """The layout of the snowflakes that the service mints."""
        layout = catalogue.read_layout(self.snowflake_layout)
        assert layout is not None  # noqa: S101 - or it would have been refused
        return layout

    @property
    def nodes(self) -> range | None:
        """The node numbers that the service may lease for snowflakes; ``None`` for all of the layout."""
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
        """True if the first use of a namespace creates it."""
        return not self.keys if self.auto_create is None else self.auto_create

    @property
    def store_url(self) -> str:
        """The store's URL, with its password; by default, the URL of this machine's registry."""
        if url := self.store:
            return url
        from mintage.lease import registry

        return registry.url()

    def open_store(self) -> Store:
        """Return the store, which connects at first use. By default, create the directory of this machine's registry.

        :raises StoreError: ``store.refused``: there is no directory for the registry.
        :raises ConfigError: ``config.driver``, ``config.store``.
        """
        if url := self.store:
            return open_store(url)
        from mintage.lease.request import registry_store

        return registry_store()


Settings.SETTINGS = settings_of(Settings)
GROUPS: Final = headings(Settings.SETTINGS)
"""The names of all settings, by the headings of the help."""
TABLES: Final = tables_of(Settings.SETTINGS)
"""The names of the settings that only the file can set."""


# --- explanations -------------------------------------------------------------------------------------------------


def _explained(fault: ValueFault, sources: list[Source]) -> ConfigError:
    """Return the fault as one sentence: the setting as its source writes it, and the accepted values."""
    where, cause = fault.path, fault.cause
    source = next(each for each in sources if where[0] in each.values)
    value = "***" if _is_secret(where) else shown(fault.value)
    written = source.write(".".join(map(part, where)), value)
    if isinstance(cause, ConfigError):
        return wrong(f"{written}: {cause}")
    if where[0] == "keys" and len(where) == 3 and where[2] not in KeySettings.SETTINGS:
        return unknown(where[2], KeySettings.SETTINGS, f" in {written.partition(' = ')[0].rpartition('.')[0]}")
    if fault.value is REQUIRED:
        written = f"{written.partition(' = ')[0]}, which is missing,"
    return wrong(f"{written} is not {cause}")


def _is_secret(where: tuple[str, ...]) -> bool:
    return where[0] == "store" or (where[0] == "keys" and where[2:3] not in {("rights",), ("rate",), ("burst",)})
