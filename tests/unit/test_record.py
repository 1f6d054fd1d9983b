"""Tests of the record file of ``make bench``. Covers benchmarks/record.py."""

from __future__ import annotations

import json

from benchmarks.record import DIRECTORY, Record


def test_record_has_one_line_for_each_fact_and_row() -> None:
    [path, *_] = DIRECTORY.glob("*.json")
    text, record = path.read_text(encoding="utf-8"), Record.load(path)
    assert record.as_json() == text
    assert set(json.loads(text)) == {"date", "facts", "results"}
    assert len(text.splitlines()) == 7 + len(record.facts) + len(record.results)
