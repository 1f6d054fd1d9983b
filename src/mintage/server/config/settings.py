"""The settings of the service: one class, for the command line, the environment and a TOML file.

For each setting, the first of these sources that has it counts: the command line (``--max-wait-ms 500``), the
environment (``MINTAGE_MAX_WAIT_MS=500``), the file that ``--config`` or ``MINTAGE_CONFIG`` names (``max_wait_ms =
500``), the default. Keys and the rates of single namespaces are tables, which only the file can set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal, Self

from mintage import rules, snowflake
from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.lease import registry
from mintage.lease.request import registry_store
from mintage.server.config import values
from mintage.server.config.keys import KEYS, KeySettings
from mintage.server.config.sources import read_command_line, read_environment, read_file
from mintage.server.config.values import (
    host_and_port,
    integers,
    is_loopback,
    one_of,
    read_nodes,
    settings_of,
    table,
    wrong,
)
from mintage.store import Store, open_store

DAY_MS: Final = 86_400_000

Fallback = Literal["none", "random"]
LogFormat = Literal["auto", "console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
AccessLog = Literal["off", "errors", "all"]
Switch = Literal["on", "off"]


def _check_rates(rates: dict[str, int]) -> None:
    for name in rates:
        rules.check_name(name, "namespace")


_RATES: Final = table("a table of namespaces and their rates", values.RATE, _check_rates)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a service. :meth:`load` reads them; the constructor takes values that are already checked.

    An annotation has the type of a setting, the values that it accepts, its description in the help, and the heading
    there if it is the first one below it. Settings are immutable, and picklable for the workers. Neither the repr nor
    any error shows the store's URL or a key.
    """

    config: Annotated[str | None, values.FILE, "a TOML file with more settings", "store and listeners"] = None
    store: Annotated[str | None, values.STORE, "where IDs are reserved"] = field(default=None, repr=False)
    http: Annotated[str, values.ADDRESS, "HTTP, or off; port 0: a free one"] = "127.0.0.1:8080"
    redis: Annotated[str, values.ADDRESS, "the Redis protocol, or off"] = "127.0.0.1:6380"
    workers: Annotated[int, integers(1, 64), "processes that share the ports"] = 1
    console: Annotated[Switch, one_of(Switch), "pages for operators at /console/"] = "on"

    insecure: Annotated[bool, values.YES_OR_NO, "listen beyond this machine without keys", "security"] = False
    tls_cert: Annotated[str | None, values.FILE, "certificates of the service, PEM"] = None
    tls_key: Annotated[str | None, values.FILE, "its private key, PEM"] = None
    tls_client_ca: Annotated[str | None, values.FILE, "whose certificates clients must bring, PEM"] = None
    keys: Annotated[dict[str, KeySettings], KEYS, "API keys by name"] = field(default_factory=dict)

    auto_create: Annotated[
        bool | None,
        replace(values.YES_OR_NO, unset="without keys"),
        "make missing namespaces, or --no-auto-create",
        "IDs",
    ] = None
    max_namespaces: Annotated[int, integers(0, 1_000_000), "most namespaces to make"] = 1000
    max_count: Annotated[int, integers(1, 1_000_000), "most integers or IDs of one request"] = 10_000
    max_reserve: Annotated[int, integers(1, rules.MAX_COUNT), "most integers of one :reserve"] = 1_000_000
    min_step: Annotated[int, integers(1, rules.MAX_COUNT), "smallest segment to fetch"] = 1000
    max_step: Annotated[int, integers(1, rules.MAX_COUNT), "largest segment to fetch"] = 1_000_000
    target_ms: Annotated[int, integers(1, DAY_MS, "MS"), "how long a segment should last"] = 10_000
    span_ms: Annotated[int, integers(rules.MIN_SPAN_MS, rules.MAX_SPAN_MS, "MS"), "how far ahead leases reach"] = 10_000
    snowflake_layout: Annotated[str, values.LAYOUT, "layout of the snowflakes that it mints"] = "default"
    snowflake_nodes: Annotated[str | None, values.NODES, "node numbers that snowflakes may have"] = None
    fallback: Annotated[Fallback, one_of(Fallback), "last resort, without the guarantee"] = "none"

    rate: Annotated[int, values.RATE, "requests a second of a namespace; 0: any", "limits"] = 0
    burst: Annotated[int, values.BURST, "burst; 0: same as rate"] = 0
    rates: Annotated[dict[str, int], _RATES, "rates of single namespaces"] = field(default_factory=dict)
    max_wait_ms: Annotated[int, integers(0, 600_000, "MS"), "longest wait for the store"] = 1000
    max_connections: Annotated[int, integers(1, 1_000_000), "of each interface"] = 10_000
    max_request_bytes: Annotated[int, integers(4096, 2**24, "BYTES"), "of a head, body or command"] = 65_536
    request_timeout_ms: Annotated[int, integers(1, DAY_MS, "MS"), "time limit of a request"] = 10_000
    idle_timeout_ms: Annotated[int, integers(0, DAY_MS, "MS"), "until a silent client is cut; 0: never"] = 300_000
    grace_ms: Annotated[int, integers(0, DAY_MS, "MS"), "to finish requests after SIGTERM"] = 10_000

    log_format: Annotated[LogFormat, one_of(LogFormat), "auto: console on a terminal", "log"] = "auto"
    log_level: Annotated[LogLevel, one_of(LogLevel), "minimum level"] = "info"
    access_log: Annotated[AccessLog, one_of(AccessLog), "requests to log; all is slower"] = "errors"
    trace_header: Annotated[str, values.TRACE_HEADER, "HTTP header that names a request in the log"] = "X-Trace-Id"

    @classmethod
    def load(cls, argv: Sequence[str], *, description: str | None = None, epilog: str | None = None) -> Self:
        """Read the command line ``argv``, the environment and the file; ``--help`` prints and raises SystemExit.

        :param description: the text at the beginning of the help.
        :param epilog: the text at the end of the help.
        :raises ConfigError: ``config.setting``: an unknown setting or a wrong value; ``config.insecure``: the service
            would listen beyond this machine without keys.
        """
        settings = settings_of(Settings)
        line = read_command_line(settings, argv, description, epilog)
        found = read_environment(settings) | line
        if "config" in found and found["config"][0]:
            found = read_file(settings, *found["config"]) | found
        return cls(**{name: each.values.parse(*found[name]) for name, each in settings.items() if name in found})

    def __post_init__(self) -> None:
        if not self.addresses:
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
        if self.nodes is not None and self.nodes[-1].stop > self.layout.nodes:
            raise wrong(
                f"snowflake_nodes {self.snowflake_nodes} is outside 0..{self.layout.nodes - 1}, the node numbers of "
                f"the layout {self.snowflake_layout!a}"
            )
        for name, (host, _) in self.addresses.items():
            if not is_loopback(host) and not self.keys and not self.insecure:
                raise ConfigError(
                    f"{name} {getattr(self, name)} can be reached from beyond this machine, and no keys are "
                    "configured: configure keys, or pass --insecure",
                    code="config.insecure",
                )

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """The host and port of each interface that is on, ``http`` and ``redis``."""
        found = {"http": self.http, "redis": self.redis}
        return {name: host_and_port(address) for name, address in found.items() if address != values.OFF}

    @property
    def layout(self) -> snowflake.Layout:
        """The layout of the snowflakes that the service mints."""
        layout = catalogue.read_layout(self.snowflake_layout)
        assert layout is not None  # noqa: S101 - or it would have been refused
        return layout

    @property
    def nodes(self) -> list[range] | None:
        """The node numbers that the service may lease for snowflakes; ``None`` for all of the layout."""
        return None if self.snowflake_nodes is None else read_nodes(self.snowflake_nodes)

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
        return self.store or registry.url()

    def open_store(self) -> Store:
        """Return the store, which connects at first use. By default, create the directory of this machine's registry.

        :raises StoreError: ``store.refused``: there is no directory for the registry.
        :raises ConfigError: ``config.driver``, ``config.store``.
        """
        return open_store(self.store) if self.store else registry_store()
