"""Import of the counters of an idalloc service, so that mintage hands out none of its integers again.

idalloc (https://github.com/daemon-coder/idalloc, read at commit 5895afc) keeps one counter for each service, twice:

- Redis, from which it hands out: a hash ``idalloc:alloc_info_<service>`` with the fields ``lastAllocValue`` and
  ``dataVersion``; the prefix ``idalloc:`` is its setting ``RedisKeyPrefix`` (``repository/redis.go``).
- MySQL: ``tbl_alloc_info (service_name VARCHAR(64) PRIMARY KEY, last_alloc_value BIGINT UNSIGNED, data_version BIGINT
  UNSIGNED)`` (``resource/tables.sql``).

Each time a server needs integers, it adds ``RedisBatchAllocNum`` (10,000) to the hash and hands them out at once. The
server updates MySQL afterwards, only every ``WriteDBEveryNVersion`` (10) times, and does not repeat a write that fails.
So the table is as a rule up to 90,000 behind, and more after a lost write. The hash is never behind unless Redis lost
it; then it begins at the table's value, or at 0. So the import uses the larger value, plus a margin.

Stop every idalloc server before you read its counters: the import cannot see integers that a server hands out later.

If the servers updated MySQL 10 times as seldom as by default, the margin is 10 times :data:`MARGIN`:

>>> from mintage import open_store
>>> from mintage.store.idalloc import MARGIN, import_idalloc
>>> import_idalloc(open_store("memory:MARGIN"), {"orders": 40_000}, margin=10 * MARGIN).floors
{'orders': 1040001}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mintage.errors import ConfigError, FieldError, StoreError
from mintage.protocol.url import StoreUrl
from mintage.store import Store, load_driver

__all__ = ["MARGIN", "Import", "import_idalloc", "read_idalloc_hashes", "read_idalloc_table"]

MARGIN: Final = 100_000
"""The distance from the last integer on record to the new floor: the product of idalloc's defaults of
``RedisBatchAllocNum`` and ``WriteDBEveryNVersion``. If you changed these settings, pass their product."""

_FIELD: Final = "lastAllocValue"


@dataclass(frozen=True, slots=True)
class Import:
    """The result of an import.

    >>> from mintage import open_store
    >>> result = import_idalloc(open_store("memory:Import"), {"orders": 40_000, "old orders": 500})
    >>> result.floors, list(result.refused)
    ({'orders': 140001}, ['old orders'])
    """

    floors: dict[str, int]
    """The new floor of each namespace, by the name of its service: no integer below it will be reserved."""
    refused: dict[str, str]
    """The services that were not imported, with the reason: a name or a value outside the limits of mintage."""


def read_idalloc_table(url: str) -> dict[str, int]:
    """Return the last integer of each service, from idalloc's table in MySQL or MariaDB.

    ``url`` is ``mysql://user:password@host/database``. This needs the extra ``mysql``.

    :raises ConfigError: ``config.store``, ``config.driver``.
    :raises StoreError: ``store.unavailable``; ``store.refused``, also if the table is missing.

    >>> from mintage import open_store
    >>> def move(mysql_url: str, redis_url: str, store_url: str) -> Import:
    ...     found = read_idalloc_table(mysql_url), read_idalloc_hashes(redis_url)
    ...     with open_store(store_url) as store:
    ...         return import_idalloc(store, *found)

    Only idalloc's own kind of database is read:

    >>> move("redis://127.0.0.1", "mysql://127.0.0.1/idalloc", "memory:read_idalloc_table")
    Traceback (most recent call last):
    mintage.errors.ConfigError: idalloc keeps its table in mysql:, not in redis:
    """
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in {"mysql", "mariadb"}:
        raise ConfigError(f"idalloc keeps its table in mysql:, not in {parsed.scheme}:", code="config.store")
    load_driver("mintage.store.sql.mysql", "mysql")
    from mintage.store.sql.base import MissingTableError
    from mintage.store.sql.mysql import MySqlStore

    with MySqlStore(parsed) as store:
        try:
            with store.transaction("SELECT service_name, last_alloc_value FROM tbl_alloc_info") as (_, rows, _):
                return {service: int(value) for service, value in rows}
        except MissingTableError as error:
            raise StoreError(
                f"{parsed}: {error}: name the database of idalloc in the URL", code="store.refused"
            ) from error


def read_idalloc_hashes(url: str, *, prefix: str = "idalloc:") -> dict[str, int]:
    """Return the last integer of each service, from idalloc's Redis; ``redis://user:password@host/0``.

    ``prefix`` is idalloc's setting ``RedisKeyPrefix``. This needs the extra ``redis``.

    :raises ConfigError: ``config.store``, ``config.driver``; ``config.name``: ``prefix`` is a pattern.
    :raises StoreError: ``store.unavailable``; ``store.refused``, also if the value of a hash is not an integer.

    >>> def largest(redis_url: str) -> int:
    ...     return max(read_idalloc_hashes(redis_url, prefix="shop:").values(), default=0)

    Only idalloc's own kind of database is read, and ``prefix`` is no pattern:

    >>> largest("mysql://127.0.0.1/idalloc")
    Traceback (most recent call last):
    mintage.errors.ConfigError: idalloc keeps its hashes in redis:, not in mysql:
    >>> read_idalloc_hashes("redis://127.0.0.1", prefix="*")
    Traceback (most recent call last):
    mintage.errors.ConfigError: prefix '*' has one of the signs * ? [ ] ...
    """
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in {"redis", "rediss", "redis+sentinel", "redis+cluster", "valkey"}:
        raise ConfigError(f"idalloc keeps its hashes in redis:, not in {parsed.scheme}:", code="config.store")
    if re.search(r"[*?\[\]\\]", prefix):
        raise ConfigError(f"prefix {prefix!r} has one of the signs * ? [ ] \\", code="config.name")
    load_driver("mintage.store.redis", "redis")
    from mintage.store.redis import Scripts

    class Hashes(Scripts):
        def key(self, kind: str, name: str, part: str = "") -> str:
            """Return the key of a counter of idalloc."""
            return f"{prefix}{kind}_{name}{part}"

    hashes = Hashes(parsed)
    try:
        return {
            service: _last(parsed, service, hashes.ask(("HGET", hashes.key("alloc_info", service), _FIELD))[0] or "")
            for service in sorted(set(hashes.names("alloc_info")))
        }
    finally:
        hashes.close()


def import_idalloc(store: Store, *found: Mapping[str, int], margin: int = MARGIN) -> Import:
    """Raise the floor of each service's namespace above the integers in ``found``, plus ``margin``.

    ``found`` are the results of :func:`read_idalloc_table` and :func:`read_idalloc_hashes`; pass both. A floor never
    moves back, so you may repeat an import.

    :raises FieldError: ``field.range``: ``margin`` is negative.
    :raises StoreError: as the verbs of a store. Floors that were raised before the error stay raised.

    >>> from mintage.store import open_store
    >>> import_idalloc(open_store("memory:idalloc"), {"orders": 10_000}, {"orders": 40_000}).floors
    {'orders': 140001}
    """
    if margin < 0:
        raise FieldError(f"margin {margin} is below 0; use 0 or more", code="field.range")
    floors, refused = {}, {}
    for service in sorted({service for services in found for service in services}):
        floor = max(services.get(service, 0) for services in found) + margin + 1
        try:
            store.raise_floor(service, floor)
            floors[service] = floor
        except (ConfigError, FieldError) as error:
            refused[service] = str(error)
    return Import(floors, refused)


def _last(url: StoreUrl, service: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise StoreError(
            f"{url}: lastAllocValue of service {service!r} is no whole number: {text!r:.60}", code="store.refused"
        )
    return int(text)
