"""Store URLs. Parsing is strict; ``str()`` leaves out passwords."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mintage.errors import ArgumentError, ConfigError
from mintage.rules import ALPHANUMERIC

if TYPE_CHECKING:
    import ssl

_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"
_DATABASE: Final = r"(mariadb|mysql|postgres(?:ql)?|sqlite)\+[a-z0-9_]+|postgres"
"""A kind of store with a driver's name, as SQLAlchemy or hosting platforms (in ``DATABASE_URL``) write it."""
_SOCKETS: Final = ("redis+unix", "redis+socket", "valkey+unix")
"""Other names of ``unix:``, Redis behind a Unix socket."""
_PLAIN: Final = ALPHANUMERIC | {*"_.-~/"}
"""The characters of a path that URLs do not quote."""


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A store's URL, taken apart. ``str()`` and ``repr()`` show neither its password nor the values of its options."""

    scheme: str
    hosts: tuple[tuple[str, int | None], ...] = ()
    """The host and the port of each server."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    path: str = ""
    """The part after the hosts, without the slash that ends them."""
    options: dict[str, str] = field(default_factory=dict, repr=False)
    cache: StoreUrl | None = None
    """The value of the option ``cache``, which is a URL itself."""

    @classmethod
    def parse(cls, url: str) -> StoreUrl:
        """Parse a URL and that of its cache, or a URL object of SQLAlchemy.

        :raises ArgumentError: it is not a str.
        :raises ConfigError: ``config.store``. The message does not repeat the URL, which may hold a password.
        """
        url = url_text(url)
        if not isinstance(url, str):
            raise ArgumentError(f"store must be a URL or a Store, not {type(url).__name__}", code="argument.type")
        path = url.removeprefix("sqlite:///")
        if path != url and _PLAIN.issuperset(path):
            # This is the registry's URL: the imports below would take a third of its first lease.
            return cls("sqlite", path=path)
        # The last option of some stores is a URL itself, without percent-encoding.
        url, cache = _split_cache(url)
        parsed = cls._parse(url)
        if cache is None:
            return parsed
        try:
            return replace(parsed, cache=cls._parse(cache))
        except ConfigError as error:
            raise ConfigError(f"option cache of the store's URL: {error}", code="config.store") from None

    @classmethod
    def _parse(cls, url: str) -> StoreUrl:
        import re
        from urllib.parse import parse_qsl, unquote, urlsplit

        if not re.match(_SCHEME, url):
            raise ConfigError("a store's URL begins with its kind, such as redis: or sqlite:", code="config.store")
        part = "host, in brackets,"
        try:
            parts = urlsplit(url)
            credentials, _, hosts = parts.netloc.rpartition("@")
            user, colon, password = credentials.partition(":")
            part = "query"
            pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
            options = dict(pairs)
            # The apparent host may be part of a password in which a / was not percent-encoded.
            part = "host or its port"
            found = tuple(_host(host) for host in hosts.split(",")) if hosts else ()
        except ValueError:
            raise ConfigError(
                f"the {part} of the store's URL is malformed: kind://user:password@host:port/path?option=value, with "
                "special characters of the password percent-encoded",
                code="config.store",
            ) from None
        if len(options) != len(pairs):
            raise ConfigError("the store's URL has an option twice: give each once", code="config.store")
        if "#" in url:
            raise ConfigError("the store's URL has a #: write it as %23", code="config.store")
        return cls(
            scheme=_kind(parts.scheme),
            hosts=found,
            user=unquote(user) or None,
            password=unquote(password) if colon else None,
            path=unquote(
                parts.path.removeprefix("/") if f"{parts.scheme}://" in url[:32].lower() else parts.path,
                errors="surrogateescape" if _kind(parts.scheme) == "sqlite" else "replace",
            ),
            options=options,
        )

    @property
    def host(self) -> str:
        """The first host; the loopback address if the URL names none."""
        return self.hosts[0][0] if self.hosts else "127.0.0.1"

    def port(self, default: int) -> int:
        """Return the first host's port."""
        return (self.hosts[0][1] if self.hosts else None) or default

    @property
    def socket(self) -> str | None:
        """The path of the server's Unix socket, or of its directory; ``None`` if the URL names none."""
        if self.scheme == "unix":
            return f"/{self.path}"
        return next((self.options[name] for name in ("host", "unix_socket") if self.options.get(name)), None)

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of all options."""
        return tuple(self.options) if self.cache is None else (*self.options, "cache")

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context for connections to the servers.

        It trusts the authorities in the file ``ca``, or the system's. It presents the certificate in the file ``cert``,
        if the URL has one; the private key is in that file too, or in ``cert_key``.

        :raises ConfigError: ``config.store``.
        """
        import ssl

        ca, cert, key = map(self.options.get, ("ca", "cert", "cert_key"))
        try:
            if ca == "":  # an unset variable, rather than a request for the system's authorities
                raise ValueError
            context = ssl.create_default_context(cafile=ca)
        except (OSError, ValueError):
            raise ConfigError(
                f"option ca of the store's URL is not a file of certificates: {ca!r}", code="config.store"
            ) from None
        if cert is None and key is not None:
            raise ConfigError("option cert_key of the store's URL is set without cert", code="config.store")
        if cert is not None:
            try:
                # A key with a password is refused, as nobody can type the password.
                context.load_cert_chain(cert, key, password=str)
            except (OSError, ValueError):
                files = f"cert {cert!r}, without cert_key," if key is None else f"cert {cert!r} with cert_key {key!r}"
                raise ConfigError(
                    f"option {files} of the store's URL is not a certificate and its private key, without a password",
                    code="config.store",
                ) from None
        return context

    def __str__(self) -> str:
        user = "" if self.user is None and self.password is None else quoted(self.user or "", safe="")
        user += ":***" if self.password is not None else ""
        hosts = ",".join(
            (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}") for host, port in self.hosts
        )
        authority = "" if self.scheme == "memory" and not hosts else f"//{user}{'@' if user else ''}{hosts}/"
        options = "".join(f"{'&' if at else '?'}{name}=…" for at, name in enumerate(self.option_names))
        return f"{self.scheme}:{authority}{self.path}{options}"


def quoted(text: str, safe: str = "/") -> str:
    """Return a text as a part of a URL; what UTF-8 cannot encode is the bytes of a path.

    >>> quoted("/var/lib/my ids.db")
    '/var/lib/my%20ids.db'
    """
    if _PLAIN.issuperset(text) and safe == "/":
        return text
    from os import fsencode
    from urllib.parse import quote

    return quote(fsencode(text), safe=safe)


def url_text(url: Any) -> Any:
    """Return the text of a URL object, such as SQLAlchemy's, with its password; anything else as it is."""
    render = None if isinstance(url, str) else getattr(url, "render_as_string", None)
    return url if render is None else render(hide_password=False)


def _kind(scheme: str) -> str:
    """Return the kind of store that a URL's scheme names, without the name of a driver: mintage chooses the driver."""
    import re

    if scheme in _SOCKETS:
        return "unix"
    if match := re.fullmatch(_DATABASE, scheme):
        scheme = match[1] or scheme
    return "postgresql" if scheme == "postgres" else scheme


def _split_cache(url: str) -> tuple[str, str | None]:
    from urllib.parse import unquote

    before, mark, cache = url.partition("?cache=")
    if not mark:
        before, mark, cache = url.partition("&cache=")
    return (before, unquote(cache) if "://" not in cache else cache) if mark else (url, None)


def _host(text: str) -> tuple[str, int | None]:
    import re
    from urllib.parse import unquote

    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^:\[\]/\s]+))(?::(\d{1,5}))?", text)
    if match is None:
        raise ValueError
    port = match[3]
    if port is not None and not 0 < int(port) < 65536:
        raise ValueError
    return match[1] or unquote(match[2]), int(port) if port is not None else None
