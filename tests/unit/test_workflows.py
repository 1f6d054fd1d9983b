"""The audit of `make check`: what it reads from requirements, and what it counts as a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checks import audit

if TYPE_CHECKING:
    from pathlib import Path


def test_a_package_without_an_answer_is_a_fault() -> None:
    assert audit.faults([{"name": "rich", "skip_reason": "not found"}]) == ["rich: not found"]
    assert audit.faults([{"name": "mintage", "skip_reason": "not found"}]) == []


def test_a_known_vulnerability_is_a_fault() -> None:
    known = {"id": "PYSEC-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}
    assert audit.faults([{"name": "rich", "version": "2.0", "vulns": [known]}]) == [
        "rich 2.0 has PYSEC-1: fixed in 2.1"
    ]
    assert audit.faults([{"name": "rich", "version": "2.1", "vulns": []}]) == []


def test_pins_are_read_once_and_without_conditions(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('# a\n-r b.txt\nx[y]==1.0; python_version > "3"\nz-a==2\n', "utf-8")
    (tmp_path / "b.txt").write_text("z-a==2\n", "utf-8")
    assert audit.pins([tmp_path / "a.txt", tmp_path / "b.txt"]) == ["x[y]==1.0", "z-a==2"]


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["--require"], 1)])
def test_a_part_that_cannot_run_fails_where_it_is_required(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent() -> bool:
        raise audit.UnavailableError("No data.")

    for part in ("check_syntax", "check_rights", "check_crates", "check_advisories", "check_packages"):
        monkeypatch.setattr(audit, part, absent)
    assert audit.main(arguments) == code
    assert capsys.readouterr().err == "No data.\n" * 5
