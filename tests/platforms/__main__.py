"""Check the code for other systems and processors: ``make platforms``.

The types are checked for macOS and Windows, and all crates are compiled for them and for a processor of 32 bits. The
oldest Rust that ``Cargo.toml`` allows compiles them too. The tests of the core and of the protocols run on ARM64 and on
s390x, whose numbers begin with their most significant byte. The unit tests run on ARM64 too, with the extension. The
emulator, the C libraries and CPython are unpacked from Debian into ``.cache/platforms``; zig links. The exit code is 1
if a part failed. A part that this machine cannot run is a row with the reason, and with ``--require`` it fails too.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.helpers.wheel import BuildError, build_wheel
from tests.pythons.__main__ import wanted
from tests.wheels.__main__ import lacks, last_line, run
from tests.wheels.__main__ import linker as linker_of_wheels
from tests.wheels.rules import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".cache" / "platforms"
TARGET: Final = ROOT / "target" / "platforms"
SYSTEMS: Final = ("darwin", "win32")
"""Systems as mypy names them."""
COMPILED: Final = (
    "i686-unknown-linux-gnu",
    "x86_64-pc-windows-gnu",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
)
EMULATED: Final = {"aarch64": "arm64", "s390x": "s390x"}
"""Processors as Rust and qemu name them, and as Debian does."""
CROSS: Final = {"PYO3_CROSS": "1", "PYO3_CROSS_PYTHON_VERSION": "3.13", "PYO3_NO_PYTHON": "1"}
"""The settings by which PyO3 compiles for a Python that is not here."""


DEBIAN_PYTHON: Final = "3.13"
"""The version of CPython in Debian's stable suite."""
UNIT_TESTS: Final = (
    *("-p", "no:cacheprovider", "-m", "not servers", "--hypothesis-profile=quick", "--timeout=1800"),
    *("-k", "not first_of_a_namespace and not there_is_no_memory"),
)
"""The arguments of pytest under emulation, which takes about ten times as long.

The emulator has a thread of its own, and the kernel starts no namespace of processes for a process with threads. It
limits no program's address space.
"""


class UnavailableError(Exception):
    """This machine cannot run a part; the text is the reason."""


@dataclass
class Row:
    """The result of a part."""

    part: str
    result: str
    seconds: int
    is_wrong: bool = False
    is_missing: bool = False


def checked(*command: object, **variables: str) -> str:
    """Run a command that shows a fault by its exit code, and return its output.

    :raises RuntimeError: it failed.
    """
    done = run(*command, cwd=ROOT, **{"CARGO_TARGET_DIR": str(TARGET), **variables})
    if done.returncode:
        raise RuntimeError(f"{' '.join(done.args)}\n{done.stdout}")
    return done.stdout


def types(system: str) -> str:
    """Check the types of the package for a system."""
    cache = CACHE / f"mypy-{system}"
    refuses = ("--exclude", "server/process/") if system == "win32" else ()
    checked(sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", cache, *refuses, "src")
    return "types are right"


def add(target: str) -> None:
    """Add Rust's standard library for a target.

    :raises UnavailableError: rustup is not here, or cannot.
    """
    if reason := lacks(target):
        raise UnavailableError(reason)


def compiled(target: str) -> str:
    """Compile all crates for a target, without linking them."""
    add(target)
    words = ["--locked", "--quiet", "--workspace", "--target", target]
    checked("cargo", "clippy", *words, "--", "-D", "warnings", **CROSS)
    return "all crates compile"


def oldest_rust() -> str:
    """Compile all crates by the oldest Rust that they allow, without linking them.

    :raises UnavailableError: rustup is not here, or cannot install it.
    """
    version = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))["workspace"]["package"]["rust-version"]
    if shutil.which("rustup") is None:
        raise UnavailableError(f"no rustup is here to run Rust {version}")
    done = run("rustup", "toolchain", "install", version, "--profile", "minimal", "--no-self-update")
    if done.returncode:
        raise UnavailableError(f"rustup could not install Rust {version}: {last_line(done.stdout)}")
    words = ["--locked", "--quiet", "--workspace"]
    checked("rustup", "run", version, "cargo", "check", *words, PYO3_PYTHON=sys.executable)
    return f"all crates compile by Rust {version}"


def unpacked(architecture: str, name: str, *packages: str) -> Path:
    """Unpack packages of Debian, and return their directory.

    :raises UnavailableError: they cannot be had.
    """
    folder = CACHE / name
    done = run(ROOT / "tests" / "platforms" / "unpack.sh", architecture, folder, *packages)
    if done.returncode:
        raise UnavailableError(last_line(done.stdout))
    return folder


def emulator(processor: str) -> Path:
    """Return the program that runs those of another processor.

    :raises UnavailableError: it cannot be had.
    """
    name = f"qemu-{processor}-static"
    if found := shutil.which(name):
        return Path(found)
    here = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return unpacked(here, "qemu", "qemu-user-static" if here == "amd64" else "qemu-user") / "usr" / "bin" / name


def linker(processor: str) -> Path:
    """Write a linker for a processor, and return its path."""
    program = CACHE / f"link-{processor}"
    lines = ["#!/bin/sh", f"exec '{sys.executable}' -m ziglang cc -target {processor}-linux-gnu \"$@\"", ""]
    CACHE.mkdir(parents=True, exist_ok=True)
    program.write_text("\n".join(lines), "utf-8")
    program.chmod(0o755)
    return program


def emulated(processor: str) -> str:
    """Run the tests of the core and of the protocols on another processor."""
    target = f"{processor}-unknown-linux-gnu"
    add(target)
    libraries = unpacked(EMULATED[processor], processor, "libc6", "libgcc-s1")
    named = f"CARGO_TARGET_{target.upper().replace('-', '_')}"
    variables = {
        f"{named}_LINKER": str(linker(processor)),
        f"{named}_RUNNER": f"{emulator(processor)} -L {libraries}",
        "PROPTEST_CASES": "32",
        "XDG_CACHE_HOME": str(CACHE),  # zig's
    }
    words = ["--locked", "--target", target, "-p", "mintage-core", "-p", "mintage-wire"]
    output = checked("cargo", "test", *words, **variables)
    passed = sum(
        int(line.split("ok. ")[1].split()[0]) for line in output.splitlines() if line.startswith("test result: ok.")
    )
    return f"{passed} tests of the core and the protocols passed"


def python(processor: str) -> Path:
    """Make an environment with CPython of another processor, and return its program.

    The program is a script that starts the emulator. The emulator tells CPython the path of the script, so CPython
    starts its child processes by the script too.

    :raises UnavailableError: CPython or the emulator cannot be had.
    """
    packages = ["libc6", "libgcc-s1", "libstdc++6", "python3", "libpython3-stdlib"]
    system = unpacked(EMULATED[processor], f"{processor}-python", *packages)
    folder = CACHE / f"{processor}-environment"
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True, exist_ok=True)
    start = f"exec '{emulator(processor)}' -L '{system}' -0 \"$0\" '{system}/usr/bin/python{DEBIAN_PYTHON}' \"$@\""
    program.write_text(f"#!/bin/sh\n{start}\n", "utf-8")
    program.chmod(0o755)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n", "utf-8")
    return program


def unit_tests(processor: str) -> str:
    """Build the extension for another processor, and run the unit tests with it."""
    target = next(each for each in TARGETS if each.triple == f"{processor}-unknown-linux-gnu")
    add(target.triple)
    program = python(processor)
    wheels = CACHE / f"{processor}-wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    variables = {
        f"CARGO_TARGET_{target.triple.upper().replace('-', '_')}_LINKER": str(linker_of_wheels(target)),
        "XDG_CACHE_HOME": str(CACHE),
    }
    interpreter = f"python{DEBIAN_PYTHON}"
    wheel = build_wheel(ROOT, interpreter, wheels, "--target", target.triple, target=TARGET, **variables)
    packages = program.parents[1] / "lib" / f"python{DEBIAN_PYTHON}" / "site-packages"
    shutil.rmtree(packages, ignore_errors=True)
    platforms = [f"--platform={tag}_{processor}" for tag in ("linux", "manylinux2014", "manylinux_2_28")]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *platforms]
    checked(*pip, "--python-version", DEBIAN_PYTHON, "--target", packages, *wanted(), wheel)
    lines = checked(program, "-m", "pytest", *UNIT_TESTS, "tests/unit").strip().splitlines()
    return f"unit tests: {lines[-1]}"


def result(part: str, check: Callable[[], str]) -> Row:
    """Run a part, and return its row."""
    print(f"{part} …", file=sys.stderr, flush=True)
    start = time.monotonic()
    try:
        row = Row(part, check(), 0)
    except UnavailableError as reason:
        row = Row(part, str(reason), 0, is_missing=True)
    except (BuildError, RuntimeError) as error:
        print(error, file=sys.stderr)
        row = Row(part, "failed; the reason is above", 0, is_wrong=True)
    row.seconds = round(time.monotonic() - start)
    return row


def main() -> int:
    """Run the parts that the command line names."""
    parts: dict[str, Callable[[], str]] = {}
    for system in SYSTEMS:
        parts[f"types-{system}"] = lambda system=system: types(system)  # type: ignore[misc]
    for target in COMPILED:
        parts[target] = lambda target=target: compiled(target)  # type: ignore[misc]
    parts["oldest-rust"] = oldest_rust
    for processor in EMULATED:
        parts[processor] = lambda processor=processor: emulated(processor)  # type: ignore[misc]
    parts["aarch64-python"] = lambda: unit_tests("aarch64")
    parser = argparse.ArgumentParser(prog="python -m tests.platforms", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(parts)}; all by default")
    parser.add_argument("--require", action="store_true", help="fail if this machine cannot run a part")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(parts):
        parser.error(f"no part is called {min(unknown)}: name one of {', '.join(parts)}")
    rows = [result(part, parts[part]) for part in given.parts or parts]
    width = max(len(row.part) for row in rows)
    print(*(f"{row.part.ljust(width)}  {row.seconds:>4} s  {row.result}" for row in rows), sep="\n")
    return int(any(row.is_wrong or (given.require and row.is_missing) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
