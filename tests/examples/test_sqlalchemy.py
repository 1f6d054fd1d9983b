"""The example of SQLAlchemy: used by the lines of its README, migrated twice, its store in the database of the shop."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from sqlalchemy import make_url

from mintage import sno

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import PostgreSQL

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "sqlalchemy"
TODAY: Final = datetime.now(UTC).date()
PERIOD: Final = [str(TODAY - timedelta(days=1)), str(TODAY + timedelta(days=2))]


class Shop:
    """A copy of the example, in a folder without anything else."""

    def __init__(self, folder: Path, database: str, store: str) -> None:
        self.folder = folder / "example"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        home = {"MINTAGE_HOME": str(folder / "home")}
        self.environment = {**os.environ, **home, "DATABASE_URL": database, "MINTAGE_STORE": store}

    def run(self, *words: str) -> str:
        """What a command prints: ``alembic``, or ``python`` and a script."""
        module = ["-m", "alembic"] if words[0] == "alembic" else []
        done = subprocess.run(
            [sys.executable, *module, *words[1:]],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def order(self, name: str, *things: str) -> tuple[int, sno.ID]:
        """The number and the key of an order."""
        number, key = self.run("python", "shop.py", "order", name, *things).split()
        return int(number), sno.ID.parse(key)


@pytest.fixture(params=["schema", "among the others", "sqlite"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "sqlite":
        yield Shop(tmp_path, "sqlite:///shop.db", "sqlite:///ids.db")
        return
    server: PostgreSQL = request.getfixturevalue("postgresql")
    database = make_url(server.url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    yield Shop(tmp_path, database, server.url + ("?schema=mintage" if request.param == "schema" else ""))
    server.sql("DROP SCHEMA IF EXISTS mintage CASCADE")


def test_the_shop_is_migrated_and_used_and_nothing_is_left_to_migrate(shop: Shop) -> None:
    shop.run("alembic", "upgrade", "head")
    made = [shop.order(name, "tea:2", "cups:4") for name in ("Ada", "Grace", "Ada")]
    assert [number for number, _ in made] == [1, 2, 3]
    lines = shop.run("python", "shop.py", "report", *PERIOD).splitlines()
    assert [line.split()[0] for line in lines] == [str(one) for one in sorted(key for _, key in made)]
    assert lines[1].endswith(" Grace: 2 tea, 4 cups")
    assert shop.run("python", "shop.py", "report", "2020-01-01", "2021-01-01") == ""
    assert "No new upgrade operations detected" in shop.run("alembic", "check")
    shop.run("alembic", "downgrade", "base")
    assert "BYTEA CHECK (octet_length(id) = 10)" in shop.run("alembic", "upgrade", "head", "--sql")


def readme() -> list[list[str]]:
    """The commands of the README, each as its words."""
    blocks = re.findall(
        r"^```\n(.*?)^```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_numbers_go_on_after_each_migration_by_the_lines_of_the_readme(shop: Shop) -> None:
    lines = [words for words in readme() if words[0] not in {"pip", "export"}]
    again = lines[[words[:2] for words in lines].index(["alembic", "revision"]) :]
    numbers = []
    for words in [*lines, *again]:
        said = shop.run(*words)
        if words[:3] == ["python", "shop.py", "order"]:
            numbers.append(int(said.split()[0]))
        if words[1] == "revision":
            [*_, written] = sorted(
                (shop.folder / "migrations/versions").glob("*.py"), key=lambda path: path.stat().st_mtime
            )
            assert "drop" not in written.read_text(encoding="utf-8")
    assert numbers == [1, 2, 3]
