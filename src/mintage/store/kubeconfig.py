"""Where the API of a Kubernetes cluster is, and how to show who asks: by a pod's service account, or by a kubeconfig.

https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ describes the files of people.
"""

from __future__ import annotations

import os
import re
import ssl
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from mintage.errors import ConfigError, StoreError
from mintage.store import load_driver

if TYPE_CHECKING:
    from mintage.protocol.url import StoreUrl

_NAMESPACE: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_VISIBLE: Final = r"[\x21-\x7e]+"
_BESIDE: Final = "/"
"""The folder of an entry's file, beside what the entry has in the file."""


@dataclass(frozen=True, slots=True)
class Access:
    """The URL of a cluster's API, and what requests show it. Without a certificate, they show the current token."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    read_token: Callable[[], str] = field(repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(_NAMESPACE, self.namespace):
            raise _wrong(f"{self.namespace!r:.80} is no name of a namespace of Kubernetes")
        if not self.server.startswith("https://"):
            raise _wrong(f"the API's address {self.server!r:.80} does not begin with https://")


def access_of(url: StoreUrl, account: Path, kubeconfig: str | None) -> Access:
    """Return how to reach the cluster of a URL, by the files of a pod's service account or a kubeconfig.

    :raises ConfigError: ``config.store``: a file or a variable is missing or malformed; ``config.driver``.
    """
    if not url.hosts:
        return _of_pod(url.path, account)
    context = url.hosts[0][0] if url.user is None else f"{url.user}@{url.hosts[0][0]}"
    paths = (os.environ.get("KUBECONFIG", "") if kubeconfig is None else kubeconfig).split(os.pathsep)
    return _of_context(context, url.path, [Path(path) for path in paths if path] or [Path.home() / ".kube/config"])


def _of_pod(namespace: str, account: Path) -> Access:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{what}", "") for what in ("HOST", "PORT"))
    if not host:
        raise _wrong(
            "KUBERNETES_SERVICE_HOST is not set, as this is no pod: name a context of your kubeconfig, as in "
            "kubernetes://CONTEXT/NAMESPACE"
        )
    return Access(
        f"https://{f'[{host}]' if ':' in host else host}:{port or 443}",
        namespace or _text(account / "namespace").strip(),
        _tls(_text(account / "ca.crt"), None, None, f"{account}"),
        lambda: _token(account / "token"),
    )


def _of_context(context: str, namespace: str, paths: list[Path]) -> Access:
    """Return the access of a context in kubeconfigs, of which the first entry with a name counts."""
    entries: dict[tuple[str, str], dict[str, Any]] = {}
    yaml, where = load_driver("yaml", "kubernetes"), os.pathsep.join(map(str, paths))
    for path in paths:
        text = _text(path)
        try:
            found = yaml.safe_load(text) or {}
            for kind in ("cluster", "user", "context"):
                for each in found.get(f"{kind}s") or ():
                    entries.setdefault((kind, str(each["name"])), {**(each[kind] or {}), _BESIDE: path.parent})
        except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
            # The reason would show a part of the file, which holds secrets.
            raise _wrong(f"{path} is no kubeconfig") from None

    def entry(kind: str, name: str) -> dict[str, Any]:
        if (kind, name) not in entries:
            names = ", ".join(sorted(name for each, name in entries if each == kind))
            raise _wrong(f"{where} has no {kind} {name!r:.80}: it has {names[:200] or 'none'}")
        return entries[kind, name]

    chosen = entry("context", context)
    cluster, user = (entry(kind, str(chosen.get(kind))) for kind in ("cluster", "user"))
    who = f"user {chosen.get('user')!r:.80} of {where}"
    for refused in ("exec", "auth-provider"):
        if refused in user:
            raise _wrong(
                f"{who} has {refused}, and mintage starts no program to get a token: give the user a token, a "
                "tokenFile or a client-certificate"
            )
    certificate = _content(user, "client-certificate")
    tls = _tls(_content(cluster, "certificate-authority"), certificate, _content(user, "client-key"), who)
    token, file = str(user.get("token") or ""), user.get("tokenFile")
    if not file and not re.fullmatch(_VISIBLE, token) and (token or certificate is None):
        raise _wrong(f"{who} has neither a token, a tokenFile nor a client-certificate")
    return Access(
        str(cluster.get("server", "")).rstrip("/"),
        namespace or str(chosen.get("namespace") or "default"),
        tls,
        (lambda: _token(user[_BESIDE] / str(file))) if file else (lambda: token),
    )


def _content(entry: dict[str, Any], name: str) -> str | None:
    """Return what an entry holds in itself, or in a file, whose relative path begins at the kubeconfig's folder."""
    if inline := entry.get(f"{name}-data"):
        try:
            return b64decode(str(inline), validate=True).decode()
        except ValueError:
            raise _wrong(f"{name}-data of a kubeconfig is not text in base64") from None
    return _text(entry[_BESIDE] / str(entry[name])) if entry.get(name) else None


def _tls(authority: str | None, certificate: str | None, key: str | None, whose: str) -> ssl.SSLContext:
    """Return the context for connections, which trusts an authority and presents a certificate, both as texts."""
    try:
        tls = ssl.create_default_context(cadata=authority)
        if certificate is not None:
            # The interpreter reads certificates from files alone.
            with TemporaryDirectory(prefix="mintage-") as place:
                file = Path(place) / "pem"
                file.touch(mode=0o600)
                file.write_text(f"{certificate}\n{key or ''}")
                # A key with a password is refused, as nobody can type the password.
                tls.load_cert_chain(file, password=str)
    except (OSError, ValueError):
        raise _wrong(f"{whose} has an authority or a certificate that is none, or not with its key") from None
    return tls


def _token(path: Path) -> str:
    """Return the token in a file, which the kubelet replaces before it expires.

    :raises StoreError: ``store.unavailable``: there is none now.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        token = ""
    if not re.fullmatch(_VISIBLE, token):
        raise StoreError(
            f"{path} holds no token: check that the pod has a service account, and that its token is mounted",
            code="store.unavailable",
        )
    return token


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _wrong(f"{path} cannot be read: {error if isinstance(error, OSError) else 'it is not text'}") from None


def _wrong(why: str) -> ConfigError:
    return ConfigError(f"the store's URL leads to no cluster of Kubernetes: {why}", code="config.store")
