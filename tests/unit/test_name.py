"""Tests of the name of the project, which is used alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FORMER = "mint" + "mark"


def test_former_name_occurs_only_in_one_line_of_the_changelog() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [path for path in tracked.decode().split("\0") if (ROOT / path).is_file()]
    assert "CHANGELOG.md" in paths
    named = [path for path in paths if FORMER in path.lower()]
    lines = [
        f"{path}: {line}"
        for path in paths
        for line in (ROOT / path).read_bytes().decode(errors="replace").splitlines()
        if FORMER in line.lower()
    ]
    assert named == []
    assert len(lines) == 1
    assert lines[0].startswith("CHANGELOG.md: ")
