"""Build the release extension for each supported CPython and run the quick suite on it: ``make pythons``.

An interpreter comes from the PATH, or else ``unpack.sh`` unpacks one beside the system. 3.14t, which has no GIL, comes
from the PATH, from ``MINTAGE_FREE_THREADED``, the path of one, or from ``build.sh``, which builds it from its source.
Each has an environment of its own in ``.cache/pythons/<version>``, with the available wheels, and builds in
``target/pythons``. A version that is not available is a row that says so. The exit code is 1 if a build or a test
failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.wheel import BuildError, build_wheel

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "pythons"
SUITES = ["tests/unit", "tests/contract", "tests/integration"]
"""The arguments of ``make test-quick``."""
REQUIREMENTS = [ROOT / "tests" / "requirements.txt", ROOT / "deploy" / "requirements.txt"]
UNUSED = {"delta-spark", "pyspark"}
"""Packages of 400 MB that no test of the quick suite imports."""
PIP = "pip==26.3"
"""The installer of the environments, which supports newer Pythons than our pip."""
SECONDS = 3600
"""The default timeout of the tests of one version."""
FREE_THREADED = ["3.14t"]
"""The versions without the GIL."""


EXPIRED = 124
"""The exit code of ``timeout``."""


@dataclass
class Row:
    """The result of a version."""

    version: str
    found: str
    built: str = "-"
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: int = 0
    is_wrong: bool = False

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        counts = [self.passed, self.failed, self.skipped, self.seconds] if self.built == "yes" else ["-"] * 4
        return [self.version, self.built, *map(str, counts), self.found]


def say(what: str) -> None:
    """Print a line of progress."""
    print(what, file=sys.stderr, flush=True)


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the source tree, and return what it printed."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def check(done: subprocess.CompletedProcess[str]) -> None:
    """Exit here if a step of the preparation failed."""
    if done.returncode:
        raise RuntimeError(f"{' '.join(done.args)}\n{done.stdout}")


def supported() -> list[str]:
    """Return the versions of the classifiers, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = re.findall(r"Python :: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    return [*sorted(found, key=lambda version: int(version[2:])), *FREE_THREADED]


def find(version: str) -> tuple[str | None, str]:
    """Return the path of an interpreter of this version, or None, and where it was found, or why it was not."""
    question = (
        "import sys, sysconfig, venv; t = 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else '';"
        "print('%d.%d' % sys.version_info[:2] + t, '%d.%d.%d' % sys.version_info[:3], sys.executable)"
    )
    is_free_threaded = version.endswith("t")
    given = os.environ.get("MINTAGE_FREE_THREADED", "") if is_free_threaded else ""
    built = CACHE / "built" / ("free" if is_free_threaded else "gil") / "bin" / f"python{version}"
    for name in (given, str(built), sys.executable, f"python{version}", "python3"):
        # A program of that name may be a shim of a version manager without an interpreter.
        path = shutil.which(name) if name else None
        words = run(path, "-c", question).stdout.split() if path else []
        if words[:1] == [version]:
            return words[2], f"{words[1]}, this machine's"
    if is_free_threaded:
        return None, "not found: run tests/pythons/build.sh, or set MINTAGE_FREE_THREADED to the path of one"
    done = run(ROOT / "tests" / "pythons" / "unpack.sh", version)
    last = (done.stdout.splitlines() or [""])[-1]
    if done.returncode:
        return None, f"not found: {last}"
    return last, f"{run(last, '-c', question).stdout.split()[1]}, unpacked from Debian"


def wanted() -> list[str]:
    """Return the pinned packages of the tests and the service."""
    lines = [line.strip() for path in REQUIREMENTS for line in path.read_text("utf-8").splitlines()]
    pins = [line for line in lines if line and not line.startswith(("#", "-r"))]
    return [pin for pin in pins if re.split(r"[=\[]", pin)[0] not in UNUSED]


def environment(interpreter: str, version: str) -> Path:
    """Make the environment of an interpreter with the available wheels, once; return its Python."""
    folder = CACHE / version / "venv"
    python, made_of = folder / "bin" / "python", folder / "made-of"
    pins = wanted()
    key = hashlib.sha256("\n".join([interpreter, PIP, *pins]).encode()).hexdigest()
    if made_of.exists() and made_of.read_text("utf-8") == key:
        return python
    say(f"{version}: installing what its tests need")
    shutil.rmtree(folder, ignore_errors=True)
    check(run(interpreter, "-m", "venv", "--without-pip", folder))
    check(run(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", CACHE, PIP))
    (wheel,) = CACHE.glob(f"{PIP.replace('==', '-')}-*.whl")
    check(run(python, wheel / "pip", "install", "--quiet", "--no-index", wheel))
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    if run(*install, *pins).returncode:
        # Some packages have no wheel for this version: install all the others.
        missing = [pin for pin in pins if run(*install, pin).returncode]
        say(f"{version}: not to be had, so that their tests skip: {', '.join(missing)}")
    made_of.write_text(key, "utf-8")
    return python


def build(python: Path, version: str) -> subprocess.CompletedProcess[str]:
    """Build the release wheel, and install it.

    :raises BuildError: it does not compile.
    """
    wheels = CACHE / version / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    wheel = build_wheel(ROOT, python, wheels, target=ROOT / "target" / "pythons" / version)
    return run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall", wheel)


def suite(python: Path, version: str, log: Path, tests: list[str], marks: str, seconds: int) -> int:
    """Run the quick suite by an interpreter, and return its exit code; its output goes to a file."""
    variables = {"PATH": f"{python.parent}:{os.environ['PATH']}", "VIRTUAL_ENV": str(python.parents[1])}
    options = ["-p", "no:cacheprovider", "--numprocesses=2", "--dist=worksteal", "--hypothesis-profile=quick"]
    command = [python, "-m", "pytest", *options, "-m", marks, *(tests or SUITES)]
    bounded = ["timeout", "--kill-after=30", str(seconds), *map(str, command)]
    with log.open("w", encoding="utf-8") as file:
        # Or else a package that needs the GIL, as pyinstrument, would turn it on.
        environment = {**os.environ, **variables, **({"PYTHON_GIL": "0"} if version in FREE_THREADED else {})}
        return subprocess.run(bounded, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False).returncode


def tested(version: str, tests: list[str], marks: str, seconds: int) -> Row:
    """Find, build and test a version."""
    interpreter, found = find(version)
    if interpreter is None:
        return Row(version, found)
    row = Row(version, found, is_wrong=True)
    python = environment(interpreter, version)
    say(f"{version}: building the extension")
    try:
        check(build(python, version))
    except (BuildError, RuntimeError) as error:
        print(error)
        row.built = "no"
        return row
    row.built = "yes"
    log = CACHE / version / "tests.log"
    say(f"{version}: running the quick suite into {log.relative_to(ROOT)}")
    start = time.monotonic()
    code = suite(python, version, log, tests, marks, seconds)
    row.seconds = round(time.monotonic() - start)
    said = log.read_text("utf-8")
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", (said.splitlines() or [""])[-1])}
    row.passed, row.skipped = counts.get("passed", 0), counts.get("skipped", 0)
    row.failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    row.is_wrong = code != 0
    if row.is_wrong:
        print(said if code != EXPIRED else f"{version}: its tests took more than {seconds} s")
    return row


def table(rows: list[Row]) -> str:
    """Return the rows in columns."""
    head = ["python", "built", "passed", "failed", "skipped", "seconds", "found"]
    lines = [head, *[row.cells() for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main() -> int:
    """Test the versions that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", help="as 3.13; all supported ones by default")
    parser.add_argument(
        "--newest", action="store_true", help="the newest one that is not this, by the tests of make test"
    )
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="in place of the quick suite")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the longest that the tests of one may take")
    given = parser.parse_args()
    here = "{}.{}".format(*sys.version_info)
    others = [version for version in supported() if version != here and version not in FREE_THREADED]
    versions = others[-1:] if given.newest else given.versions
    marks = "not servers and not rest" if given.newest else "not servers"
    rows = [tested(version, given.tests, marks, given.seconds) for version in versions or supported()]
    print(table(rows))
    return int(any(row.is_wrong for row in rows))


if __name__ == "__main__":
    sys.exit(main())
