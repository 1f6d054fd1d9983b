"""The drivers of stores, without the parts that the service never uses: they would take a third of its start."""

from __future__ import annotations

from contextlib import suppress

from mintage.errors import ConfigError
from mintage.protocol.url import StoreUrl
from mintage.server.fronts import late_names, without, without_front
from mintage.store import STORE_KINDS, load_driver


def import_drivers(store: str) -> None:
    """Import the drivers of the store that a URL names, and of its cache. Opening the store says what is missing.

    Call this only in a process of the service: a program that uses the drivers itself would miss those parts.
    """
    url = StoreUrl.parse(store)
    for scheme in (url.scheme, url.options.get("cache", "").partition(":")[0]):
        module, _, extra = STORE_KINDS.get(scheme, ("", "", None))
        with suppress(ConfigError):
            if module == "mintage.store.mysql":
                with late_names("pymysql.optionfile"):
                    load_driver(module, extra).import_reduced()
            elif module == "mintage.store.redis":
                _import_redis(module, extra)


def _import_redis(module: str, extra: str | None) -> None:
    """Import redis-py without its client for asyncio, and without a telemetry that nothing here switches on."""
    # The late ones are for locks and caches of answers.
    with (
        without("opentelemetry"),
        without_front("redis"),
        without_front("redis.asyncio"),
        late_names("redis.cache", "redis.lock"),
    ):
        load_driver(module, extra)
