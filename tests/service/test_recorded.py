"""Tests of the recorded answers: clients get them byte for byte, except for values of the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.service.recorded import ANSWERS, CONFIGURATIONS, SAME, answers
from tests.service.running import running

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_service_gives_the_recorded_answers(tmp_path: Path, name: str) -> None:
    options, toml = CONFIGURATIONS[name]
    with running(tmp_path / "service", *options, toml=toml) as service:
        given = answers(service, name)
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8"))[SAME.get(name, name)]
    assert [asked for asked, _ in given] == [asked for asked, _ in recorded]
    differing = [(asked, was, now) for (asked, now), (_, was) in zip(given, recorded, strict=True) if now != was]
    assert not differing, "\n\n".join(f"{asked}\nrecorded: {was}\nnow: {now}" for asked, was, now in differing)
