"""Tests of the section on dbt in docs/how-to/libraries.md: its snippets in a project of dbt-duckdb, run twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from mintage import snowflake, ulid
from mintage.ext.columns import sql_time

ROOT = Path(__file__).parents[2]
DBT = ("dbt-core==1.10.23", "dbt-adapters==1.16.7", "dbt-duckdb==1.9.6")
"""In an environment of their own, as they need older versions of other packages than the tests do."""
PROJECT = "{name: shop, profile: shop, seeds: {+column_types: {receipt: varchar, customer: bigint}}}"
PROFILES = (
    "{shop: {target: dev, outputs: {dev: {type: duckdb, path: shop.db, module_paths: [.], plugins: [{module: ids}]}}}}"
)
TIMES = """{{ config(materialized="table") }}
SELECT o.id, {{ minted_at("o.id") }} AS minted, ulid_time(r.receipt) AS received, r.receipt, r.customer
FROM {{ ref("orders") }} o JOIN {{ ref("raw_orders") }} r USING (number) ORDER BY number
"""


def run(*words: object, **options: Any) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, timeout=250, **options)
    assert done.returncode == 0, done.stdout + done.stderr


class Shop:
    """A project of dbt with the snippets of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run(sys.executable, "-m", "venv", folder / "venv")
        [inside] = (folder / "venv").glob("lib/python*/site-packages")
        paths = [ROOT / "src", *(each for each in sys.path if each.endswith("site-packages"))]
        (inside / "tested.pth").write_text("\n".join(map(str, paths)), encoding="utf-8")
        run(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", *DBT)
        page = (ROOT / "docs/how-to/libraries.md").read_text(encoding="utf-8")
        model, plugin = re.findall(r"(?s)```python\n(.*?)```", page.partition("\n## dbt\n")[2].partition("\n## ")[0])
        time = sql_time("snowflake", "id", "duckdb").replace('"id"', "{{ column }}")
        for name, text in {
            "dbt_project.yml": PROJECT,
            "profiles.yml": PROFILES,
            "ids.py": plugin,
            "models/orders.py": model,
            "models/times.sql": TIMES,
            "macros/minted_at.sql": f"{{% macro minted_at(column) %}}{time}{{% endmacro %}}",
            "seeds/raw_orders.csv": "number,receipt,customer\n",
        }.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")

    def build(self, receipt: ulid.ID, customer: int) -> list[tuple[Any, ...]]:
        """Add an order, build all, and return the rows of the model of times."""
        seed = self.folder / "seeds/raw_orders.csv"
        text = seed.read_text(encoding="utf-8")
        seed.write_text(f"{text}{text.count(chr(10))},{receipt},{customer}\n", encoding="utf-8")
        quiet = {**os.environ, "DO_NOT_TRACK": "1", "DBT_PROFILES_DIR": str(self.folder)}
        run(self.folder / "venv/bin/dbt", "--no-use-colors", "build", cwd=self.folder, env=quiet)
        with duckdb.connect(str(self.folder / "shop.db"), read_only=True) as database:
            return database.execute("FROM times").fetchall()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this dbt has no release for it")
def test_incremental_model_keeps_the_ids_of_its_rows(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    given = [(ulid.new(), snowflake.new()) for _ in range(3)]
    built = [shop.build(*each) for each in given]
    assert built[2][:2] == built[1]
    assert built[1][:1] == built[0]
    rows = built[2]
    ids = [row[0] for row in rows]
    assert ids == sorted(set(ids))
    assert [(row[3], row[4]) for row in rows] == [(str(receipt), customer) for receipt, customer in given]
    assert [row[1] for row in rows] == [snowflake.DEFAULT.parse(each).time for each in ids]
    assert [row[2] for row in rows] == [receipt.time for receipt, _ in given]
