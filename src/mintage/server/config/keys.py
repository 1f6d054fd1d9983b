"""API keys and their rights.

A key is ``mint_`` and 43 characters, 256 random bits. The service knows only its SHA-256. Nobody can guess 256 bits, so
one fast hash is enough, and a reader of the configuration cannot use a key.

A **right** allows a key one kind of request, for the names that match a **pattern**: a name, the beginning of names and
``*``, or ``*`` for all. The name is the namespace, the scheme (``mint``) or the pool (``lease``).
"""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import b64decode
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Final

from mintage._core.lane import Bucket
from mintage.errors import RequestError
from mintage.server.config.sources import unknown
from mintage.server.config.values import BURST, HASH, RATE, Place, Values, settings_of, table, wrong

RIGHTS: Final = {
    "next": "integers of a namespace",
    "reserve": "whole segments of a namespace, and giving their tails back: what the http:// store does",
    "describe": "what a namespace, pool or lease is",
    "create": "make namespaces and pools, raise a namespace's floor, and retire a namespace for good",
    "mint": "IDs; the name is the scheme",
    "lease": "node numbers; the name is the pool",
    "metrics": "the metrics; only of *",
    "admin": "all of these for all names, revoking leases, and CPU profiles; only of *",
}
"""Every right, and the requests that it allows."""
_NAMELESS: Final = ("metrics", "admin")

_KEY_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}"
_PATTERN: Final = r"(?:[A-Za-z0-9][A-Za-z0-9._:@-]{0,127})?\*?"
_LONGEST_TOKEN: Final = 256


def new_key() -> str:
    """Return a new key: 256 bits of the operating system's randomness."""
    return f"mint_{secrets.token_urlsafe(32)}"


def digest(key: str | bytes) -> str:
    """Return the hash of a key for the configuration: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(key.encode() if isinstance(key, str) else key).hexdigest()}"


def check_key_name(name: str) -> None:
    """Refuse the name of a key unless it is 1 to 64 letters, digits and ``. _ : @ -``, with a letter or digit first.

    :raises ConfigError: ``config.setting``.
    """
    if name.startswith("mint_"):
        raise wrong("the name of a key begins with mint_, as keys do: name it after those who use it")
    if not re.fullmatch(_KEY_NAME, name):
        raise wrong(
            f"{name[:80]!a} is no name of a key: use 1 to 64 letters, digits and . _ : @ -, and begin with a letter or "
            "digit"
        )


def check_rights(pattern: str, rights: Iterable[str]) -> None:
    """Refuse a malformed pattern, an unknown right, and a right that does not belong to the pattern.

    :raises ConfigError: ``config.setting``.
    """
    if not pattern or not re.fullmatch(_PATTERN, pattern):
        raise wrong(f"{pattern[:160]!a} is no pattern of names: use a name, the beginning of names and *, or * for all")
    for right in rights:
        if right not in RIGHTS:
            raise wrong(f"{right[:40]!a} is no right: use one of {', '.join(RIGHTS)}")
        if right in _NAMELESS and pattern != "*":
            raise wrong(f"the right {right!r} belongs to '*', not to {pattern!r}")


# --- the table of keys ------------------------------------------------------------------------------------------------


def _check_all_rights(rights: dict[str, list[str]]) -> None:
    for pattern, granted in rights.items():
        check_rights(pattern, granted)


_WORDS: Final = Values(
    'a list such as ["next"]', lambda words: isinstance(words, list) and all(isinstance(each, str) for each in words)
)
_RIGHTS: Final = table('a table such as { "orders" = ["next"] }', _WORDS, _check_all_rights)


@dataclass(frozen=True, kw_only=True)
class KeySettings:
    """The settings of a key."""

    hash: Annotated[str, HASH, "what 'mintage keys new' printed"] = field(repr=False)
    rights: Annotated[dict[str, list[str]], _RIGHTS, "rights by name pattern"] = field(default_factory=dict)
    rate: Annotated[int, RATE, "requests a second with this key; 0: any"] = 0
    burst: Annotated[int, BURST, "burst; 0: same as rate"] = 0


def _read_key(value: object, place: Place) -> object:
    if not isinstance(value, dict):
        return value
    settings = settings_of(KeySettings)
    if "hash" not in value:
        raise wrong(f"{place.name}.hash, which is missing, is not {HASH.text}")
    found = {
        name: each.values.parse(value[name], place.below(name)) for name, each in settings.items() if name in value
    }
    for name in value:
        if name not in settings:
            raise unknown(name, settings, f" in {place.name}")
    return KeySettings(**found)


def _check_keys(keys: dict[str, KeySettings]) -> None:
    owners: dict[str, str] = {}
    for name, key in keys.items():
        check_key_name(name)
        if (other := owners.setdefault(key.hash, name)) != name:
            raise wrong(f"the keys {other!a} and {name!a} have the same hash")


_KEY: Final = Values("a table of keys", lambda value: isinstance(value, KeySettings), read=_read_key, is_secret=True)
KEYS: Final = table(_KEY.text, _KEY, _check_keys, is_secret=True)


# --- callers ----------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Caller:
    """The caller of a request: a key by its name, or ``""`` for anybody if no keys are configured."""

    name: str
    rights: Mapping[str, Collection[str]] = field(repr=False)
    """The rights by pattern."""
    bucket: Bucket | None = None
    """The bucket that limits the key's rate; ``None``: any rate."""

    def __post_init__(self) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._prefixes: dict[str, tuple[str, ...]] = {}
        for pattern, granted in self.rights.items():
            for right in RIGHTS if "admin" in granted else granted:
                if pattern.endswith("*"):
                    self._prefixes[right] = (*self._prefixes.get(right, ()), pattern[:-1])
                else:
                    self._names[right].add(pattern)

    @classmethod
    def anybody(cls) -> Caller:
        """Return the caller of a service without keys, which has every right but ``admin``."""
        return cls("", {"*": [right for right in RIGHTS if right != "admin"]})

    def may(self, right: str, name: str) -> bool:
        """Return True if the caller has a right for a name; ``""`` for a right that needs none."""
        return name.startswith(self._prefixes.get(right, ())) or name in self._names.get(right, ())

    def may_any(self, right: str) -> bool:
        """Return True if the caller has a right for at least one name."""
        return right in self._prefixes or right in self._names

    def check(self, right: str, name: str) -> None:
        """Refuse a caller that does not have a right for a name.

        :raises RequestError: ``request.rights``.
        """
        if not self.may(right, name):
            who = f"the key {self.name!a} has no" if self.name else "without keys, nobody has the"
            names = ascii(name[:128]) if name else "all names, '*'"
            raise RequestError(f"{who} right {right!r} for {names}", code="request.rights")


def bucket_of(rate: int, burst: int, workers: int) -> Bucket | None:
    """Return the bucket for one worker's share of a rate; ``None`` for a rate of 0, which is any."""
    share = rate / workers
    return Bucket(share, burst or max(1, round(share))) if rate else None


class Keys:
    """The keys of a service; each of its ``workers`` allows its share of a rate.

    Finding a key takes one hash and one look-up, regardless of the number of keys.
    """

    def __init__(self, keys: Mapping[str, KeySettings], workers: int) -> None:
        self._anybody = None if keys else Caller.anybody()
        self._callers = {
            key.hash: Caller(name, key.rights, bucket_of(key.rate, key.burst, workers)) for name, key in keys.items()
        }

    def find(self, token: str | bytes | None) -> Caller:
        """Return the caller of a key; anybody if no keys are configured.

        :raises RequestError: ``request.key``: the key is missing or unknown. The message does not repeat it.
        """
        if self._anybody is not None:
            return self._anybody
        if not token:
            raise RequestError(
                "this needs a key: send the header 'Authorization: Bearer KEY', or the command AUTH KEY",
                code="request.key",
            )
        if len(token) > _LONGEST_TOKEN or not token.isascii():
            raise RequestError(
                f"the key is malformed: it is longer than {_LONGEST_TOKEN} characters, or has some beyond ASCII",
                code="request.key",
            )
        caller = self._callers.get(digest(token))
        if caller is None:
            raise RequestError("the key is not known", code="request.key")
        return caller

    def named(self, name: str) -> Caller:
        """Return the caller of the key with this name.

        :raises RequestError: ``request.key``: there is none.
        """
        for caller in self._callers.values():
            if caller.name == name:
                return caller
        raise RequestError("this needs a key: sign in with one", code="request.key")


def token_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the key in the headers of a request: a bearer token, or the password of Basic (``http://:KEY@host``)."""
    found = [value for name, value in headers if name == b"authorization"]
    scheme, _, rest = found[0].decode("latin-1").partition(" ") if len(found) == 1 else ("", "", "")
    if scheme.lower() == "bearer":
        return rest.strip() or None
    if scheme.lower() == "basic":
        # Malformed Base64 counts as no key.
        with suppress(ValueError):
            return b64decode(rest, validate=True).decode().partition(":")[2] or None
    return None
