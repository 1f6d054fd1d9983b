"""The settings of the service: one class, for the command line, the environment and a TOML file.

For each setting, the first of these sources that has it counts: the command line (``--max-wait-ms 500``), the
environment (``MINTAGE_MAX_WAIT_MS=500``), the file that ``--config`` or ``MINTAGE_CONFIG`` names (``max_wait_ms =
500``), the default. Keys and the rates of single namespaces are tables, which only the file can set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from mintage import rules
from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.server.keys import check_key_name, check_rights
from mintage.server.sources import (
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
from mintage.server.values import (
    OFF,
    Address,
    Burst,
    Bytes,
    Count,
    File,
    Heading,
    Integer,
    Milliseconds,
    Rate,
    ValueSyntax,
    YesOrNo,
    check_layout,
    check_nodes,
    check_store,
    check_trace_header,
    headings,
    host_and_port,
    is_loopback,
    shown,
    syntax_of,
    wrong,
)
from mintage.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

    from mintage import snowflake
    from mintage.store import Store

DAY_MS: Final = 86_400_000


def _named_keys(value: dict[str, KeySettings]) -> dict[str, KeySettings]:
    owners: dict[str, str] = {}
    for name, key in value.items():
        check_key_name(name)
        if (other := owners.setdefault(key.hash, name)) != name:
            raise wrong(f"the keys {other!a} and {name!a} have the same hash")
    return value


def _rights(value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for pattern, rights in value.items():
        check_rights(pattern, rights)
    return value


def _namespaces(value: dict[str, int]) -> dict[str, int]:
    for name in value:
        rules.check_name(name, "namespace")
    return value


class KeySettings(BaseModel):
    """A key in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    hash: Annotated[
        str,
        Field(pattern=r"^sha256:[0-9a-f]{64}$", repr=False, description="what 'mintage keys new' printed"),
        ValueSyntax(text="sha256: and 64 hexadecimal digits"),
    ]
    rights: Annotated[
        dict[str, tuple[str, ...]],
        AfterValidator(_rights),
        Field(default={}, description="what it may do, with the names of which pattern"),
        ValueSyntax(text='a table such as { "orders" = ["next"] }'),
    ]
    rate: Rate = Field(0, description="requests a second with this key; 0: any")
    burst: Burst = Field(0, description="of these at once; 0: as the rate")


# It has 34 attributes: one a setting.
class Settings(BaseSettings):
    """The settings of a service. :meth:`load` reads them; the constructor uses its arguments alone.

    They are immutable, and picklable for the workers. Neither the repr nor any error shows the store's URL or a key.
    """

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", validate_default=False, hide_input_in_errors=True, env_prefix="MINTAGE_"
    )

    config: Annotated[File, Heading("store and listeners")] = Field(None, description="a TOML file with more settings")
    store: Annotated[
        SecretStr, AfterValidator(check_store), ValueSyntax("URL", "a store's URL", unset="this machine's registry")
    ] = Field(SecretStr(""), description="where IDs are reserved")
    http: Address = Field("127.0.0.1:8080", description="HTTP, or off; port 0: a free one")
    redis: Address = Field("127.0.0.1:6380", description="the Redis protocol, or off")
    workers: Count = Field(1, ge=1, le=64, description="processes that share the ports")

    insecure: Annotated[YesOrNo, Heading("security"), ValueSyntax()] = Field(
        False, description="listen beyond this machine without keys"
    )
    tls_cert: File = Field(None, description="certificates of the service, PEM")
    tls_key: File = Field(None, description="its private key, PEM")
    tls_client_ca: File = Field(None, description="whose certificates clients must bring, PEM")
    keys: Annotated[
        dict[str, KeySettings], AfterValidator(_named_keys), ValueSyntax(text="a table of keys", is_table=True)
    ] = Field({}, description="API keys by name; without any, everybody may do everything but what needs admin")

    auto_create: Annotated[YesOrNo | None, Heading("IDs"), ValueSyntax(unset="without keys")] = Field(
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
        AfterValidator(check_layout),
        ValueSyntax(
            "LAYOUT", f"{', '.join(catalogue.LAYOUTS)}, or such as 'time:41 node:10 sequence:12 @1735689600000 1ms'"
        ),
    ] = Field("default", description="layout of the snowflakes that it mints")
    snowflake_nodes: Annotated[
        str | None, AfterValidator(check_nodes), ValueSyntax("RANGE", "FIRST..LAST, such as 512..1023", unset="all")
    ] = Field(None, description="node numbers that snowflakes may have")
    fallback: Annotated[Literal["none", "random"], ValueSyntax("WORD")] = Field(
        "none", description="last resort, without the guarantee"
    )

    rate: Annotated[Rate, Heading("limits")] = Field(0, description="requests a second of a namespace; 0: any")
    burst: Burst = Field(0, description="of these at once; 0: as the rate")
    rates: Annotated[
        dict[str, Annotated[Integer, Field(ge=0, le=10**9)]],
        AfterValidator(_namespaces),
        ValueSyntax(text="a table of namespaces and their rates", is_table=True),
    ] = Field({}, description="rates of single namespaces, instead of `rate`")
    max_wait_ms: Milliseconds = Field(1000, ge=0, le=600_000, description="longest wait for the store")
    max_connections: Count = Field(10_000, ge=1, le=1_000_000, description="of each interface")
    max_request_bytes: Bytes = Field(65_536, ge=4096, le=2**24, description="of a head, body or command")
    request_timeout_ms: Milliseconds = Field(10_000, ge=1, le=DAY_MS, description="until a request is whole")
    idle_timeout_ms: Milliseconds = Field(
        300_000, ge=0, le=DAY_MS, description="until a silent client is cut; 0: never"
    )
    grace_ms: Milliseconds = Field(10_000, ge=0, le=DAY_MS, description="to finish requests after SIGTERM")

    log_format: Annotated[Literal["auto", "console", "json"], Heading("log"), ValueSyntax("WORD")] = Field(
        "auto", description="auto: console on a terminal"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], ValueSyntax("WORD")] = Field(
        "info", description="least to log"
    )
    access_log: Annotated[Literal["off", "errors", "all"], ValueSyntax("WORD")] = Field(
        "errors", description="requests to log; all is slower"
    )
    trace_header: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9-]{1,64}$"),
        AfterValidator(check_trace_header),
        ValueSyntax("NAME", "1 to 64 letters, digits and -"),
    ] = Field("X-Trace-Id", description="HTTP header that names a request in the log")

    if TYPE_CHECKING:  # a str is a SecretStr too

        def __init__(self, **values: Any) -> None: ...

    @classmethod
    def load(cls, argv: Sequence[str], *, description: str | None = None, epilog: str | None = None) -> Self:
        """Read the command line ``argv``, the environment and the file; ``--help`` prints and raises SystemExit.

        :param description: the text at the beginning of the help.
        :param epilog: the text at the end of the help.
        :raises ConfigError: ``config.setting``: an unknown setting or a wrong value; ``config.insecure``: the service
            would listen beyond this machine without keys.
        """
        line = Source(read_command_line(cls, argv, description, epilog), lambda name, value: f"{flag(name)} {value}")
        environment = Source(read_environment(cls), lambda name, value: f"{variable(name)}={value}")
        sources = [line, environment]
        for source in sources:
            if path := source.values.get("config"):
                found = read_file(cls, path, source.write("config", place(path)))
                sources.append(Source(found, lambda name, value: f"{name} = {value} in {place(path)}"))
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
        """Return the constructor's arguments as the only source; :meth:`load` reads the others itself."""
        return (sources["init_settings"],)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.http == OFF and self.redis == OFF:
            raise wrong("http and redis are both off: nothing would be served")
        if (self.tls_cert is None) != (self.tls_key is None):
            given, missing = ("tls_cert", "tls_key") if self.tls_cert else ("tls_key", "tls_cert")
            raise wrong(f"{given} is set without {missing}: TLS needs both")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise wrong("tls_client_ca is set without tls_cert and tls_key")
        if self.min_step > self.max_step:
            raise wrong(f"min_step {self.min_step} is above max_step {self.max_step}")
        if self.workers > 1 and self.store.get_secret_value().lower().startswith("memory:"):
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
                    "configured: configure keys, or say --insecure",
                    code="config.insecure",
                )
        return self

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
        if url := self.store.get_secret_value():
            return url
        from mintage.lease import registry

        return registry.url()

    def open_store(self) -> Store:
        """Return the store, which connects at first use. By default, create the directory of this machine's registry.

        :raises StoreError: ``store.refused``: there is no directory for the registry.
        :raises ConfigError: ``config.driver``, ``config.store``.
        """
        if url := self.store.get_secret_value():
            return open_store(url)
        from mintage.lease.request import registry_store

        return registry_store()


GROUPS: Final = headings(Settings.model_fields)
"""The names of all settings, by the headings of the help."""
TABLES: Final = tables_of(Settings.model_fields)
"""The names of the settings that only the file can set."""


# --- explanations -------------------------------------------------------------------------------------------------


def _explained(fault: ErrorDetails, sources: list[Source]) -> ConfigError:
    """Return the first fault as one sentence: the setting as its source writes it, and the accepted values."""
    cause = fault.get("ctx", {}).get("error")
    where = fault["loc"]
    if not where:  # two settings that do not fit together
        return cause if isinstance(cause, ConfigError) else wrong(fault["msg"])
    source = next(each for each in sources if where[0] in each.values)
    value = "***" if _is_secret(where) else shown(fault["input"])
    written = source.write(".".join(map(part, where)), value)
    if isinstance(cause, ConfigError):
        return wrong(f"{written}: {cause}")
    if fault["type"] == "extra_forbidden":
        return unknown(
            str(where[-1]), KeySettings.model_fields, f" in {written.partition(' = ')[0].rpartition('.')[0]}"
        )
    if fault["type"] == "missing":
        written = f"{written.partition(' = ')[0]}, which is missing,"
    return wrong(f"{written} is not {syntax_of(_field(where)).sentence}")


def _field(where: tuple[int | str, ...]) -> FieldInfo:
    match where:
        case ("keys", _, str(name), *_):
            return KeySettings.model_fields[name]
        case ("rates", _, *_):
            return Settings.model_fields["rate"]
    return Settings.model_fields[str(where[0])]


def _is_secret(where: tuple[int | str, ...]) -> bool:
    return where[0] == "store" or (where[0] == "keys" and where[2:3] not in {("rights",), ("rate",), ("burst",)})
