"""Build the source distribution and the wheels of a release from the last commit into ``dist``: ``make wheel``.

zig links all of them, so a machine builds for other C libraries and processors than its own. maturin knows the CPythons
that are not here. Each wheel is checked (``rules.py``). If this machine can run it, it is installed where there is no
compiler, and the quick suite runs on it. A wheel that could not be had or run is a row with the reason. The exit code
is 1 if a build, a check or a test failed; with ``--require``, also if a wheel is missing.
"""

from __future__ import annotations

import argparse
import getpass
import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.wheel import unpack_commit
from tests.pythons.__main__ import CACHE as PYTHONS
from tests.pythons.__main__ import EXPIRED, PIP, ROOT, SECONDS, SUITES, check, environment, find, say, suite, supported
from tests.wheels.page import index_page
from tests.wheels.rules import TARGETS, UNWINDER, Builder, Target, left_out, named, tag_in, without_directory, wrong

CACHE = ROOT / ".cache" / "wheels"
DIST = ROOT / "dist"
COMPILERS = re.compile(r"(cargo|rust|clang|zig|maturin).*|(.*-)?(cc|c\+\+|gcc|g\+\+|cpp|ld|as|c[89]9)(-[\d.]+)?")
"""The programs that are not on the PATH of what is installed and tested."""
SHORTEST_NAME = 4


@dataclass
class Row:
    """The result of a wheel."""

    python: str
    target: str
    size: str = "-"
    tag: str = "-"
    same: str = "-"
    passed: str = "-"
    failed: str = "-"
    skipped: str = "-"
    note: str = ""
    is_wrong: bool = False
    is_missing: bool = False
    """True if the wheel could not be built, or not be tested although this machine can run it."""

    def refuse(self, note: str) -> None:
        """Mark the row as wrong, for this reason."""
        self.note, self.is_wrong = note, True

    def cells(self) -> list[str]:
        """Return the cells of the table."""
        return [
            self.python,
            self.target,
            self.size,
            self.tag,
            self.same,
            self.passed,
            self.failed,
            self.skipped,
            self.note,
        ]


def run(*command: object, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command, and return what it printed."""
    environ = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "NO_COLOR": "1", **variables}
    words = [str(word) for word in command]
    return subprocess.run(
        words, cwd=cwd, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def output(*command: object) -> str:
    """Run a command that cannot fail here, and return its output."""
    done = run(*command)
    check(done)
    return done.stdout.strip()


def last_line(text: str) -> str:
    """Return the last line of an output."""
    return (text.strip().splitlines() or ["no output"])[-1]


def lacks(triple: str) -> str | None:
    """Return why Rust cannot build for a target, or None; add its standard library if rustup can."""
    libraries = Path(output("rustc", "--print", "sysroot")) / "lib" / "rustlib"
    if (libraries / triple / "lib").is_dir():
        return None
    if shutil.which("rustup") is None:
        return f"Rust has no standard library for {triple}, and no rustup is here to add it"
    done = run("rustup", "target", "add", triple)
    return f"rustup could not add {triple}: {last_line(done.stdout)}" if done.returncode else None


def linker(target: Target) -> Path:
    """Write a linker for glibc: zig, with the system's unwinder.

    A daemon thread ends inside Rust code when CPython before 3.14 exits: glibc unwinds it by libgcc_s, which calls the
    extension. maturin's ``--zig`` links another unwinder into the extension, which crashes on those structures.
    """
    folder = CACHE / "linkers" / target.name
    folder.mkdir(parents=True, exist_ok=True)
    processor = target.triple.partition("-")[0]
    zig = f"'{sys.executable}' -m ziglang cc -target {processor}-linux-gnu.{target.glibc}"
    source, library, program = folder / "unwind.c", folder / "libgcc_s.so.1", folder / "zig-cc"
    source.write_text("".join(f"void {name}(void) {{}}\n" for name in UNWINDER), "utf-8")
    # Only its names matter: the one of each machine is loaded.
    check(
        run(
            "sh",
            "-c",
            f"{zig} -shared -nostdlib -Wl,-soname,libgcc_s.so.1 -o '{library}' '{source}'",
            XDG_CACHE_HOME=str(CACHE),
        )
    )
    lines = ["#!/bin/sh", "for word; do", "    shift", f"    [ \"$word\" != -lgcc_s ] || word='{library}'"]
    program.write_text("\n".join([*lines, '    set -- "$@" "$word"', "done", f'exec {zig} "$@"', ""]), "utf-8")
    program.chmod(0o755)
    return program


class Tree:
    """The files of the last commit, in a directory of their own."""

    def __init__(self, directory: Path, epoch: int) -> None:
        self.root = directory.resolve()
        unpack_commit(ROOT, "HEAD", self.root)
        project = tomllib.loads((self.root / "pyproject.toml").read_text("utf-8"))["project"]
        readme = self.root / "README.md"
        readme.write_text(index_page(readme.read_text("utf-8"), project.get("urls", {}), project["version"]), "utf-8")
        sysroot = output("rustc", "--print", "sysroot")
        (commit,) = re.findall(r"commit-hash: (\w+)", output("rustc", "-vV"))
        # The library's sources, if they are installed, are named as those of a machine without them.
        library = f"--remap-path-prefix={sysroot}/lib/rustlib/src/rust=/rustc/{commit}"
        self._variables = {
            "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "wheels")),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # maturin looks for zig's package by python3
            "RUSTFLAGS": f"{output(sys.executable, 'crates/py/backend.py')} {library}",
            "SOURCE_DATE_EPOCH": str(epoch),
            "XDG_CACHE_HOME": str(CACHE),  # zig's
        }

    def build(self, python: str, target: Target, out: Path) -> tuple[Path | None, str]:
        """Build a wheel; return its path, or None with the output of the build."""
        words = ["--release", "--locked", "--quiet", "--strip", "--compatibility", target.compatibility]
        words += ["--target", target.triple, "--interpreter", f"python{python}", "--out", str(self.root / "out")]
        shutil.rmtree(self.root / "out", ignore_errors=True)
        variables = dict(self._variables)
        if target.glibc is None:
            words.append("--zig")
        else:
            variables[f"CARGO_TARGET_{target.triple.upper().replace('-', '_')}_LINKER"] = str(linker(target))
        done = run(sys.executable, "-m", "maturin", "build", *words, cwd=self.root, **variables)
        if done.returncode:
            return None, done.stdout
        (made,) = (self.root / "out").glob("*.whl")
        wheel = out / made.name
        wheel.write_bytes(without_directory(made.read_bytes(), str(self.root)))
        return wheel, ""

    def sdist(self, out: Path) -> Path:
        """Build the source distribution."""
        check(run(sys.executable, "-m", "maturin", "sdist", "--out", out, cwd=self.root, **self._variables))
        (made,) = out.glob("*.tar.gz")
        return made


def builder(*directories: Path) -> Builder:
    """Return what names this machine.

    A name that a tracked file has is an ordinary word, and machine code has short names by chance.
    """
    home = Path.home()
    tools = [Path(os.environ.get(f"{name}_HOME", home / f".{name.lower()}")) for name in ("CARGO", "RUSTUP")]
    names = {name for name in (getpass.getuser(), socket.gethostname()) if len(name) >= SHORTEST_NAME}
    words = [
        name for name in names if run("git", "grep", "--quiet", "--word-regexp", "--fixed-strings", name).returncode
    ]
    return Builder(tuple(str(each) for each in (*directories, ROOT, home, *tools)), tuple(words))


def tag_of(wheel: Path) -> str:
    """Return the tag that auditwheel gives the wheel."""
    done = run(sys.executable, "-m", "auditwheel", "show", "--json", wheel)
    start = done.stdout.find("{")
    if done.returncode or start < 0:
        return f"no tag ({last_line(done.stdout)})"
    return tag_in(json.JSONDecoder().raw_decode(done.stdout[start:])[0])  # a warning may stand around it


def twine_fault(made: Path) -> list[str]:
    """Return what twine says against a distribution."""
    done = run(sys.executable, "-m", "twine", "check", "--strict", made)
    return [f"twine refuses it: {' '.join(done.stdout.split())}"] if done.returncode else []


def bare_path() -> str:
    """Return a directory with the programs of the PATH except compilers."""
    folder = CACHE / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for directory in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in directory.iterdir() if directory.is_dir() else ():
            link = folder / program.name
            if not COMPILERS.fullmatch(program.name) and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def install_in_empty(wheel: Path, interpreter: str, python: str, path: str) -> str | None:
    """Install a wheel into an empty environment and mint; return what failed, or None."""
    folder = CACHE / python / "empty"
    shutil.rmtree(folder, ignore_errors=True)
    (pip,) = PYTHONS.glob(f"{PIP.replace('==', '-')}-*.whl")
    program = folder / "bin" / "python"
    mint = "import mintage; print(mintage.__file__, mintage.sno.new())"
    for command in (
        [interpreter, "-m", "venv", "--without-pip", folder],
        [program, pip / "pip", "install", "--quiet", "--no-index", wheel],
        [program, "-I", "-c", mint],
    ):
        done = run(*command, PATH=path)
        if done.returncode:
            return last_line(done.stdout)
    return None if done.stdout.startswith(str(folder)) else f"it imports {done.stdout}"


def test(row: Row, wheel: Path, words: list[str], seconds: int) -> None:
    """Run the quick suite on the wheel as it is installed, where no compiler is."""
    interpreter, row.note = find(row.python)
    if interpreter is None:
        row.is_missing = True
        return
    program = environment(interpreter, row.python)
    path = bare_path()
    if fault := install_in_empty(wheel, interpreter, row.python, path):
        row.refuse(f"it does not run in an empty environment: {fault}")
        return
    check(
        run(
            program, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall", wheel, PATH=path
        )
    )
    log = CACHE / row.python / "tests.log"
    say(f"{row.python}: running the quick suite into {log.relative_to(ROOT)}")
    before, os.environ["PATH"] = os.environ["PATH"], path
    try:
        code = suite(program, row.python, log, words or SUITES, "not servers", seconds)
    finally:
        os.environ["PATH"] = before
    said = log.read_text("utf-8")
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", last_line(said))}
    row.passed, row.skipped = str(counts.get("passed", 0)), str(counts.get("skipped", 0))
    row.failed = str(sum(counts.get(what, 0) for what in ("failed", "error", "errors")))
    if code:
        print(said if code != EXPIRED else f"{row.python}: its tests took more than {seconds} s")
        row.refuse(f"its tests failed, {row.note}")


def not_run(target: Target) -> str | None:
    """Return why this machine cannot run a wheel, or None."""
    processor, _, library = target.name.partition("-")
    if processor != platform.machine():
        return f"not run: this processor is {platform.machine()}"
    here = "manylinux" if platform.libc_ver()[0] == "glibc" else "musllinux"
    return f"not run: the C library here is that of {here}" if library != here else None


def digest(made: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(made.read_bytes()).hexdigest()


def built(python: str, target: Target, trees: list[Tree], epoch: int, given: argparse.Namespace) -> Row:
    """Build, check and test a wheel."""
    row = Row(python, target.name)
    say(f"{python}: building for {target.name}")
    wheel, said = trees[0].build(python, target, DIST)
    if wheel is None:
        print(said)
        row.refuse("not built; the reason is above")
        return row
    row.size, row.tag = f"{wheel.stat().st_size:,}", tag_of(wheel)
    nameable = builder(*(tree.root for tree in trees))
    sources = [path.relative_to(trees[0].root / "src") for path in (trees[0].root / "src" / "mintage").rglob("*.*")]
    faults = wrong(wheel.read_bytes(), target, row.tag, epoch, nameable) + twine_fault(wheel)
    faults += left_out(wheel.read_bytes(), [str(each) for each in sources if each.suffix not in {".pyc", ".so"}])
    if given.twice:
        again, said = trees[1].build(python, target, trees[1].root)
        row.same = "yes" if again is not None and digest(again) == digest(wheel) else "no"
        if row.same == "no":
            faults.append(f"a build from another directory differs: {said or 'compare the two with diffoscope'}")
    if faults:
        wheel.unlink()
        print(*(f"{wheel.name}: {fault}" for fault in faults), sep="\n")
        row.refuse("refused and removed; the reason is above")
    elif reason := "not run: --build-only" if given.build_only else not_run(target):
        row.note = reason
    else:
        test(row, wheel, given.tests, given.seconds)
        if row.is_wrong:
            wheel.unlink()
    return row


def source(trees: list[Tree]) -> Row:
    """Build and check the source distribution."""
    row = Row("any", "sdist")
    made = trees[0].sdist(DIST)
    row.size = f"{made.stat().st_size:,}"
    with tarfile.open(made) as archive:
        files = [(each.name, reader.read()) for each in archive if (reader := archive.extractfile(each))]
    faults = named(files, builder(*(tree.root for tree in trees))) + twine_fault(made)
    if len(trees) > 1:
        row.same = "yes" if digest(trees[1].sdist(trees[1].root)) == digest(made) else "no"
        if row.same == "no":
            faults.append("a build from another directory differs: compare the two with diffoscope")
    if faults:
        made.unlink()
        print(*(f"{made.name}: {fault}" for fault in faults), sep="\n")
        row.refuse("refused and removed; the reason is above")
    return row


def table(rows: list[Row]) -> str:
    """Return the rows in columns."""
    head = ["python", "target", "bytes", "tag", "same twice", "passed", "failed", "skipped", "note"]
    lines = [head, *[row.cells() for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def main() -> int:
    """Build what the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.wheels", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", nargs="+", default=supported(), metavar="3.N", choices=supported())
    parser.add_argument("--target", nargs="+", default=[each.name for each in TARGETS], metavar="NAME")
    parser.add_argument("--twice", action="store_true", help="build from a second directory, and compare the bytes")
    parser.add_argument("--build-only", action="store_true", help="check the wheels, and do not install them")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="in place of the quick suite")
    parser.add_argument("--require", action="store_true", help="fail if a wheel could not be built or tested")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="the longest that the tests of one may take")
    given = parser.parse_args()
    if unknown := set(given.target) - {each.name for each in TARGETS}:
        parser.error(f"no target is called {min(unknown)}: name one of {', '.join(each.name for each in TARGETS)}")
    if output("git", "status", "--porcelain", "--untracked-files=no"):
        say("The last commit is built: what is not committed is left out.")
    epoch = int(output("git", "log", "-1", "--format=%ct"))
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mintage-") as one, tempfile.TemporaryDirectory(prefix="mintage-") as two:
        trees = [Tree(Path(each), epoch) for each in ([one, two] if given.twice else [one])]
        rows = [source(trees)]
        for target in (each for each in TARGETS if each.name in given.target):
            reason = lacks(target.triple)
            rows += [
                Row(python, target.name, note=reason, is_missing=True)
                if reason
                else built(python, target, trees, epoch, given)
                for python in given.python
            ]
    print(table(rows))
    return int(any(row.is_wrong or (given.require and row.is_missing) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
