"""Tests of examples/testing: its tests pass, and fail without the techniques that it shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "testing"


def outcome(project: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", "--rootdir", str(project), "."],
        cwd=project,
        # As in continuous integration, where Hypothesis sets no deadline: a busy machine is no reason to fail.
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"} | {"CI": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout


def test_every_test_of_the_example_passes_twice(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "shop")
    for _ in range(2):
        said = outcome(project)
        assert "4 passed" in said.splitlines()[-1], said


def test_example_fails_without_its_markers_and_its_bridge(tmp_path: Path) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "shop")
    tests = project / "test_shop.py"
    plain = [line for line in tests.read_text("utf-8").splitlines() if not line.startswith("@pytest.mark.mintage")]
    tests.write_text("\n".join(plain), "utf-8")
    said = outcome(project)
    assert "FAILED test_shop.py::test_a_receipt_names_the_order_and_a_voucher" in said
    assert "FAILED test_shop.py::test_ids_travel_with_time_machine" in said
