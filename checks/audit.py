"""Audit the workflows of the forge, and what the project depends on: ``python -m checks.audit``.

It runs actionlint and zizmor on the workflows, ``cargo deny`` on the crates by the rules of ``deny.toml``, and
pip-audit on the packages of this environment and of every requirements file. One sentence names each part that
cannot run here. With ``--require``, which the workflows give, such a part fails. The exit code is 1 if a part failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT: Final = Path(__file__).parent.parent
BIN: Final = Path(sys.executable).parent

ACTIONLINT: Final = "v1.7.12"
WORKSPACES: Final = ("Cargo.toml", "spec/model/Cargo.toml")
SECONDS: Final = 300
"""The timeout of a command."""

_PIN: Final = re.compile(r"^[\w.\[\]-]+==[^\s;]+", re.MULTILINE)
_NAME: Final = re.compile(r"[-_.]+")


class UnavailableError(Exception):
    """A part cannot run on this machine; the text is a whole sentence."""


def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the source tree, and return what it printed."""
    return subprocess.run(  # noqa: S603 (the words are in this file)
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def shown(*command: object) -> bool:
    """Run a command, print its output if it fails, and return True if it succeeds."""
    done = run(*command)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
    return not done.returncode


def check_syntax() -> bool:
    """Run actionlint, which Go compiles at the first time."""
    folder = ROOT / ".cache" / f"actionlint-{ACTIONLINT}"
    program = folder / "actionlint"
    if not program.exists():
        if shutil.which("go") is None:
            raise UnavailableError("actionlint is skipped, because Go is not installed.")
        done = run("go", "install", f"github.com/rhysd/actionlint/cmd/actionlint@{ACTIONLINT}", GOBIN=str(folder))
        if done.returncode:
            raise UnavailableError(f"actionlint is skipped, because Go could not install it: {last_line(done.stderr)}")
    # Without the programs that it would look for, so that its result is the same on each machine.
    return shown(program, "-shellcheck=", "-pyflakes=")


def check_rights() -> bool:
    """Run zizmor, which finds rights that a workflow does not need, and text from outside in its commands."""
    return shown(BIN / "zizmor", "--offline", "--quiet", "--no-progress", ".github")


def cargo_deny() -> str:
    """Return the path of cargo deny."""
    program = shutil.which("cargo-deny", path=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise UnavailableError("cargo deny is skipped, because no package has it for this processor.")
    return program


def deny(*kinds: str) -> bool:
    """Run ``cargo deny check`` on each workspace, by the rules of the root."""
    options = ["--locked", "--config", str(ROOT / "deny.toml")]
    done = [shown(cargo_deny(), *options, "--manifest-path", each, "check", *kinds) for each in WORKSPACES]
    return all(done)


def check_crates() -> bool:
    """Check the licences, duplicates and sources of the crates."""
    return deny("licenses", "bans", "sources")


def check_advisories() -> bool:
    """Look for known vulnerabilities of the crates, by a database that cargo deny downloads."""
    if run(cargo_deny(), "--locked", "fetch", "db").returncode:
        raise UnavailableError("The advisories on crates are skipped, because their database cannot be downloaded.")
    return deny("advisories")


def pins(files: Sequence[Path]) -> list[str]:
    """Return the pinned packages of requirements files, each once."""
    return sorted({line for file in files for line in _PIN.findall(file.read_text("utf-8"))})


def requirements() -> list[Path]:
    """Return the requirements files that git tracks."""
    tracked = run("git", "ls-files", "requirements.txt", "*/requirements.txt").stdout
    return [ROOT / name for name in tracked.splitlines()]


def pip_audit(*words: object) -> list[dict[str, Any]]:
    """Return what pip-audit says of each package."""
    done = run(BIN / "pip-audit", "--format", "json", "--progress-spinner", "off", *words)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except ValueError:
        raise UnavailableError(f"The advisories on Python packages are skipped: {last_line(done.stderr)}") from None
    return found


def pinned(lines: Sequence[str]) -> list[dict[str, Any]]:
    """Return what pip-audit says of these packages alone, and not of those that they need."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join(lines))
        file.flush()
        return pip_audit("--disable-pip", "--no-deps", "--requirement", file.name)


def faults(packages: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each vulnerability, and one for each package that the index does not have.

    pip-audit succeeds even if it found no package at all, so the second kind must not pass.
    """
    lines = set()
    for package in packages:
        if "skip_reason" in package and _NAME.sub("-", package["name"]).lower() != "mintage":
            lines.add(f"{package['name']}: {package['skip_reason']}")
        for each in package.get("vulns", ()):
            fixed = ", ".join(each["fix_versions"]) or "none"
            lines.add(f"{package['name']} {package['version']} has {each['id']}: fixed in {fixed}")
    return sorted(lines)


def check_packages() -> bool:
    """Look for known vulnerabilities of the Python packages, by the data of the package index."""
    lines = pins(requirements())
    if "skip_reason" in pinned(lines[:1])[0]:  # one request tells whether the index has the data
        raise UnavailableError("The advisories on Python packages are skipped, because this package index has none.")
    found = faults([*pinned(lines), *pip_audit("--local")])
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return not found


def last_line(text: str) -> str:
    """Return the last line of an output."""
    return (text.strip().splitlines() or ["it printed nothing."])[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run each part, and return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m checks.audit", description="Audit workflows and dependencies.")
    parser.add_argument("--require", action="store_true", help="fail if a part cannot run on this machine")
    is_required = parser.parse_args(arguments).require
    has_failed = False
    for part in (check_syntax, check_rights, check_crates, check_advisories, check_packages):
        try:
            has_failed |= not part()
        except UnavailableError as reason:
            print(reason, file=sys.stderr)
            has_failed |= is_required
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
