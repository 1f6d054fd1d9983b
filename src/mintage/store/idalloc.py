"""Takes over the counters of an idalloc service, so that no integer that it handed out is handed out again.

idalloc (https://github.com/daemon-coder/idalloc, read at commit 5895afc) keeps one counter for each service, twice:

- Redis, from which it hands out: a hash ``idalloc:alloc_info_<service>`` with the fields ``lastAllocValue`` and
  ``dataVersion``; the prefix ``idalloc:`` is its setting ``RedisKeyPrefix`` (``repository/redis.go``).
- MySQL: ``tbl_alloc_info (service_name VARCHAR(64) PRIMARY KEY, last_alloc_value BIGINT UNSIGNED, data_version BIGINT
  UNSIGNED)`` (``resource/tables.sql``).

Each time a server needs integers it adds ``RedisBatchAllocNum`` (10,000) to the hash, and hands them out at once. MySQL
hears of it afterwards, only every ``WriteDBEveryNVersion`` (10) times, and a write that fails is not repeated. So the
table is up to 90,000 behind as a rule, and further once a write was lost. The hash is never behind, unless Redis lost
it: then it begins at the table's value, or at 0. Hence the larger of both, and a margin beyond it.

Stop every idalloc server before reading: what one hands out afterwards nobody here can know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mintage.errors import ConfigError, FieldError, StoreError
from mintage.protocol.url import StoreUrl
from mintage.store import Store, load_driver

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MARGIN", "Import", "import_idalloc", "read_idalloc_hashes", "read_idalloc_table"]

MARGIN: Final = 100_000
"""How far a floor is beyond the last integer on record: idalloc's defaults, ``RedisBatchAllocNum`` times
``WriteDBEveryNVersion``. A user who changed those gives their product."""

_MYSQL: Final = ("mintage.store.mysql", "mysql")
_REDIS: Final = ("mintage.store.redis", "redis")


@dataclass(frozen=True, slots=True)
class Import:
    """What became of the services of an idalloc."""

    floors: dict[str, int]
    """By namespace, its service's name: below this no integer will be reserved."""
    refused: dict[str, str]
    """Services that mintage has no namespace for, and why: a name or a value outside its limits. Nothing was done."""


def read_idalloc_table(url: str) -> dict[str, int]:
    """The last integer of each service, from idalloc's MySQL or MariaDB; ``mysql://user:password@host/database``.

    :raises ConfigError: ``config.store``, ``config.driver``.
    :raises StoreError: ``store.unavailable``; ``store.refused``, also where there is no such table.
    """
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in {"mysql", "mariadb"}:
        raise ConfigError(f"idalloc keeps its table in mysql:, not in {parsed.scheme}:", code="config.store")
    load_driver(*_MYSQL)
    from mintage.store.database import MissingTableError
    from mintage.store.mysql import MySqlStore

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

    :raises ConfigError: ``config.store``, ``config.driver``.
    :raises StoreError: ``store.unavailable``; ``store.refused``, also where a hash holds no whole number.
    """
    parsed = StoreUrl.parse(url)
    if parsed.scheme not in {"redis", "rediss", "redis+sentinel", "redis+cluster", "valkey"}:
        raise ConfigError(f"idalloc keeps its hashes in redis:, not in {parsed.scheme}:", code="config.store")
    if re.search(r"[*?\[\]\\]", prefix):
        raise ConfigError(f"prefix {prefix!r} has one of the signs * ? [ ] \\", code="config.name")
    load_driver(*_REDIS)
    from mintage.store.redis import Scripts

    class Hashes(Scripts):
        def key(self, kind: str, name: str, part: str = "") -> str:
            return f"{prefix}{kind}_{name}{part}"

    hashes = Hashes(parsed)
    try:
        return {
            service: _last(parsed, service, hashes.hash(hashes.key("alloc_info", service)).get("lastAllocValue", ""))
            for service in hashes.scan("alloc_info")
        }
    finally:
        hashes.close()


def import_idalloc(store: Store, *found: Mapping[str, int], margin: int = MARGIN) -> Import:
    """Raise the floor of a namespace for each service above all that ``found`` says it handed out, plus ``margin``.

    ``found`` is what :func:`read_idalloc_table` and :func:`read_idalloc_hashes` return; give both. A floor only ever
    rises, so that an import may be repeated.

    :raises FieldError: ``field.range``: ``margin`` is negative.
    :raises StoreError: as the verbs of a store; what was raised until then stays raised.
    """
    if margin < 0:
        raise FieldError(f"margin {margin} is below 0", code="field.range")
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
