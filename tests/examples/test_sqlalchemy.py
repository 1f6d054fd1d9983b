"""The example of SQLAlchemy: migrated on a real PostgreSQL, used, and found as its models say."""

from __future__ import annotations

import os
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
    from collections.abc import Callable

    from tests.servers import PostgreSQL

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "sqlalchemy"


@pytest.fixture
def run(postgresql: PostgreSQL, tmp_path: Path) -> Callable[..., str]:
    """Runs a command in a copy of the example."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    url = make_url(postgresql.url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    environment = {**os.environ, "DATABASE_URL": url, "MINTAGE_HOME": str(tmp_path / "home")}

    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def test_the_shop_is_migrated_and_used_and_nothing_is_left_to_migrate(run: Callable[..., str]) -> None:
    run("-m", "alembic", "upgrade", "head")
    made = [run("shop.py", "order", name, "tea:2", "cups:4").strip() for name in ("Ada", "Grace", "Ada")]
    today = datetime.now(UTC).date()
    lines = run("shop.py", "report", str(today - timedelta(days=1)), str(today + timedelta(days=2))).splitlines()
    assert [line.split()[0] for line in lines] == [str(one) for one in sorted(map(sno.ID.parse, made))]
    assert lines[1].endswith(" Grace: 2 tea, 4 cups")
    assert run("shop.py", "report", "2020-01-01", "2021-01-01") == ""
    assert "No new upgrade operations detected" in run("-m", "alembic", "check")
    run("-m", "alembic", "downgrade", "base")
    assert "BYTEA CHECK (octet_length(id) = 10)" in run("-m", "alembic", "upgrade", "head", "--sql")
