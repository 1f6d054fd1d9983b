"""Tests of the example of backfill: an old table gets IDs while its shop stays open, on real databases."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from sqlalchemy import create_engine, make_url, text

from mintage import ulid
from tests.helpers.databases import url_of

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "backfill"
ORDERS: Final = 2_000


@pytest.fixture(params=["sqlite", "postgresql+psycopg"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    url = url_of(request.param, request, tmp_path)
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    store = f"sqlite:{tmp_path / 'ids.db'}" if request.param == "sqlite" else plain
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "DATABASE_URL": url, "MINTAGE_STORE": store}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a command in a copy of the example."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))

    def call(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    return call


def said(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    return out


def test_old_orders_get_ids_of_their_time_during_new_inserts(
    run: Callable[..., subprocess.Popen[str]], environment: dict[str, str]
) -> None:
    said(run("python", "shop.py", "old", str(ORDERS)))
    said(run("python", "shop.py", "prepare"))
    new = [said(run("python", "shop.py", "order", "Barbara")).strip()]
    with run("./migrate.sh") as killed:
        assert killed.stdout
        killed.stdout.readline()
        os.killpg(killed.pid, signal.SIGKILL)
    new.append(said(run("python", "shop.py", "order", "Barbara")).strip())
    assert said(run("./migrate.sh")).endswith(f"done: {ORDERS + 2:,} rows; nothing is wrong\n")
    engine = create_engine(environment["DATABASE_URL"])
    with engine.connect() as connection:
        rows = list(connection.execute(text("SELECT number, customer, id, invoice FROM orders ORDER BY number")))
    engine.dispose()
    assert [row.id for row in rows[ORDERS:]] == new
    assert len({row.id for row in rows}) == len({row.invoice for row in rows}) == ORDERS + 2
    assert [row.invoice for row in rows[:ORDERS]] == sorted(row.invoice for row in rows[:ORDERS])
    begin = datetime(2019, 3, 1, 9, tzinfo=UTC)
    for at, row in enumerate(rows[:ORDERS]):
        assert ulid.ID.parse(row.id).time == begin + timedelta(hours=at * 3 // 7)
    report = said(run("python", "shop.py", "report", "2019-03-01", "2019-03-02")).splitlines()
    assert [line.split()[0] for line in report] == [row.id for row in rows[:35]]
    assert report[0].endswith(f" 2019-03-01 09:00 invoice {rows[0].invoice}: Ada")
