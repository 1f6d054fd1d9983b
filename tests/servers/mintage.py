"""The service as a store: `mintage serve` in front of an SQLite file that the tests empty."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from mintage.rules import MAX_COUNT
from tests.helpers.stores import LIMIT_MS
from tests.servers import KINDS
from tests.servers.server import HOST
from tests.service.running import key_toml
from tests.service.serving import Serving

if TYPE_CHECKING:
    from pathlib import Path

KEY: Final = "mint_of-the-contract-suite"


class Http(Serving):
    """The service with a key that has every right, and with limits as wide as those of a store in tests."""

    name = "http"

    def __init__(self, directory: Path) -> None:
        file, config = directory / "ids.db", directory / "mintage.toml"
        wide = {"max_reserve": MAX_COUNT, "max_namespaces": 1_000_000, "max_wait_ms": 10_000}
        super().__init__(directory, f"sqlite:///{file}", config=config, **wide)
        self.patch(f"from mintage.store import Store; Store.clock_limit_ms = {LIMIT_MS}")
        self.file = file
        self.config = config

    @property
    def url(self) -> str:
        return f"http://:{KEY}@{HOST}:{self.port}"

    def create(self) -> None:
        super().create()
        toml = f"auto_create = true\n{key_toml('tests', KEY, {'*': ['admin']})}"
        self.config.write_text(toml, encoding="utf-8")

    def reset(self) -> None:
        with closing(sqlite3.connect(self.file, timeout=30)) as database, database:
            tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            # The first has the id of the file; a trigger keeps the second.
            for table in set(tables) - {"mintage_life", "mintage_count"}:
                database.execute(f"DELETE FROM {table}")


KINDS[Http.name] = Http
