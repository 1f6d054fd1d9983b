"""Tests of the example of frames by its README: every order has an ID and keeps it in every file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pytest

from mintage import sno
from tests.examples.readme import Example

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def example(tmp_path: Path) -> Example:
    return Example("frames", tmp_path, {"PYTHONWARNINGS": "error"})


def test_commands_of_the_readme_give_every_order_an_id(example: Example) -> None:
    example.check_installs()
    wrote, reported, verified = map(example.run, example.lines)
    assert "24 orders since " in wrote
    assert "0 on the day before" in wrote
    assert "24 orders, 18 of them with an invoice" in reported
    assert "numbered.csv has the same IDs" in reported
    assert "24 rows" in verified

    files = sorted(example.folder.glob("*.parquet"))
    assert [each.stem for each in files] == ["DuckDB", "Polars", "pandas"]
    columns = [pl.read_parquet(each)["id"] for each in files]
    assert {each.dtype for each in columns} == {pl.Binary}
    ids = {each for column in columns for each in column}
    assert len(ids) == 24

    # Each file has the same IDs, in the type of its engine.
    feather = pd.read_feather(example.folder / "numbered.feather")
    assert feather["id"].dtype == "binary[pyarrow]"
    assert set(feather["id"]) == ids
    text = pd.read_csv(example.folder / "numbered.csv", dtype={"id": "str", "invoice": "Int64"})
    assert {bytes(sno.ID.parse(each)) for each in text["id"]} == ids
    assert sorted(text["invoice"].dropna()) == list(range(1, 19))
    assert feather["invoice"].dtype == "Int64"


def test_second_day_gets_its_own_ids_and_invoices(example: Example) -> None:
    seen: set[str] = set()
    invoices: list[int] = []
    for _ in range(2):
        for line in example.lines:
            example.run(line)
        orders = pd.read_csv(example.folder / "numbered.csv", dtype={"id": "str", "invoice": "Int64"})
        assert not seen & set(orders["id"])
        seen |= set(orders["id"])
        invoices += orders["invoice"].dropna().tolist()
    assert len(set(invoices)) == len(invoices) == 36


def test_ids_changed_by_csv_are_found(example: Example) -> None:
    for line in example.lines[:2]:
        example.run(line)
    path = example.folder / "numbered.csv"
    text = path.read_text(encoding="utf-8")
    first = text.splitlines()[1].split(",")[0]
    # As pandas writes bytes, and as a spreadsheet that shows fewer digits.
    for changed in (f"b'{first}'", first[:-1]):
        path.write_text(text.replace(first, changed), encoding="utf-8")
        said = example.run(example.lines[2], check=False)
        assert "no ID" in said or "text has" in said, said
