"""Tests of PyInstaller: a bundled application mints on a machine without Python. Part of ``make deep``.

python -m pytest tests/deep/bundles.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

APPLICATION = """
import pickle
import mintage
from mintage import ulid, uuid
ids = [mintage.sno.new() for _ in range(1000)]
print(len(set(ids)), ids[0].time.year > 2000, pickle.loads(pickle.dumps(ids)) == ids)
print(len({ulid.new(), uuid.uuid7(), mintage.locality.new(), mintage.snowflake.new()}))
print(mintage.inspect(ids[0])[0].scheme)
with mintage.Sequence("orders", store="sqlite:///" + __import__("sys").argv[1]) as orders:
    print(orders.next(), orders.next())
"""


def test_bundled_application_mints(tmp_path: Path) -> None:
    script = tmp_path / "application.py"
    script.write_text(APPLICATION, "utf-8")
    # Not in the source tree, where PyInstaller would find the package without its metadata.
    build = [sys.executable, "-m", "PyInstaller", "--log-level=ERROR", "--exclude-module=numpy", script.name]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=1200)
    environment = {"MINTAGE_HOME": str(tmp_path / "home"), "PATH": os.defpath}
    done = subprocess.run(
        [tmp_path / "dist" / "application" / "application", tmp_path / "ids.db"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["1000 True True", "4", "sno", "1 2"]
