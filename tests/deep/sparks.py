"""Run the tests of Spark on the oldest and the newest version that the extra allows: ``python -m tests.deep.sparks``.

Each version is installed into ``.cache/sparks`` once, 450 MB, and precedes the environment on the path of the tests.
Each accepted plan has more rows than in ``make test``. The exit code is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "sparks"
TESTS = ("tests/ext/test_spark.py", "tests/examples/test_spark.py")
NEWEST = "4.3.0"


def oldest() -> str:
    """Return the lowest version that the extra allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (found,) = re.findall(r"pyspark>=(\d+\.\d+)", " ".join(project["optional-dependencies"]["spark"]))
    return f"{found}.0"


def installed(version: str) -> Path:
    """Return the folder of a version, installing it if it is missing."""
    folder, made = CACHE / version, CACHE / f"{version}.made"
    if not made.exists():
        shutil.rmtree(folder, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", str(folder), f"pyspark=={version}"], check=True)
        made.touch()
    return folder


def tested(version: str, rows: int, words: list[str]) -> bool:
    """Run the tests on a version; return True if all passed."""
    paths = [str(installed(version)), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "MINTAGE_SPARK_ROWS": str(rows)}
    check = f"import pyspark; assert pyspark.__version__ == {version!r}, pyspark.__version__"
    subprocess.run([sys.executable, "-c", check], check=True, env=environment)
    print(f"Spark {version}:", flush=True)
    tests = [sys.executable, "-m", "pytest", "-q", "--timeout=3600", *TESTS, *words]
    return subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> int:
    """Test the versions that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.deep.sparks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", help="as 4.1.4; the oldest and the newest by default")
    parser.add_argument("--rows", type=int, default=20_000, help="of each plan that is accepted")
    parser.add_argument("--only", default="", metavar="WORDS", help="tests whose names have these, as for pytest -k")
    given = parser.parse_args()
    words = ["-k", given.only] if given.only else []
    passed = [tested(each, given.rows, words) for each in given.versions or (oldest(), NEWEST)]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
