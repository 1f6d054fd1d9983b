"""Tests of other operating systems: their limits on the page and in doctor, and one room that knows the system."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import pytest

from mintage.cli import main
from mintage.cli.doctor import doctor
from mintage.cli.serve import serve
from mintage.errors import ConfigError
from mintage.platform.limits import limits

ROOT = Path(__file__).parents[2]
NAMES = {"macOS": "darwin", "Windows": "win32"}
REFUSALS = {"cli/serve.py", "server/process/__init__.py"}
"""The files that refuse Windows."""


def test_service_refuses_windows_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    assert serve.run is not None
    with pytest.raises(ConfigError, match="does not run on Windows: run it on Linux, on macOS or in WSL") as caught:
        serve.run(argparse.Namespace())
    assert caught.value.code == "config.platform"


@pytest.mark.parametrize("name", NAMES)
def test_page_lists_the_limits_of_the_system(name: str) -> None:
    page = (ROOT / "docs" / "uniqueness.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\w, ]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert [(about, instead, weaker) for systems, about, instead, weaker in rows if name in systems.split(", ")] == [
        tuple(limit) for limit in limits(NAMES[name])
    ]


@pytest.mark.parametrize("system", NAMES.values())
def test_doctor_shows_the_limits_of_its_system(
    system: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor.run is not None
    monkeypatch.setattr(sys.modules[doctor.run.__module__], "limits", lambda: limits(system))
    main(["doctor", "--json", "--store", "memory:"])
    shown = map(json.loads, capsys.readouterr().out.splitlines())
    found = [each for each in shown if each["topic"] == "platform"]
    assert [each["about"] for each in found] == [limit.about for limit in limits(system)]
    assert all(
        each["level"] == "ok" and limit.weaker in each["text"]
        for each, limit in zip(found, limits(system), strict=True)
    )


def test_linux_has_no_limits() -> None:
    assert limits("linux") == ()


def test_only_the_room_platform_asks_which_system_this_is() -> None:
    package = ROOT / "src" / "mintage"
    asking = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if path.parent.name != "platform" and re.search(r"sys\.platform|os\.name\b", path.read_text())
    }
    assert asking == REFUSALS
