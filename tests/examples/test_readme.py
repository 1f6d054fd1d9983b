"""A test of how the commands of a README are repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.examples.readme import LATE, TRIES, Example

if TYPE_CHECKING:
    from pathlib import Path


def test_command_that_is_always_late_fails_with_its_output(tmp_path: Path) -> None:
    example = Example("testing", tmp_path / "copy", {})
    with pytest.raises(AssertionError, match=LATE):
        example.run(f"echo >> {tmp_path}/tries; echo '{LATE}' >&2; exit 1")
    assert (tmp_path / "tries").read_text().count("\n") == TRIES
