"""Recorded behaviour of real implementations: the files of ``spec/vectors``."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"


@cache
def vectors(name: str) -> Any:
    """Return the content of ``spec/vectors/<name>.json``; its README explains the fields."""
    return json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))


def named(case: dict[str, Any]) -> str:
    """Return the name of a case for pytest: its input, or else its text, or else the first text in it."""
    texts = (case.get("input"), case.get("text"), *case.values())
    return ascii(next((value for value in texts if isinstance(value, str)), ""))[1:-1]
