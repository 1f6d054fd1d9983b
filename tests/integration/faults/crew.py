"""The crew of :mod:`mintage.prove.crew`, which mints in all schemes here."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mintage.prove.crew import PATIENCE_S, WIDTHS, Crew

__all__ = ["PATIENCE_S", "ROOT", "WIDTHS", "Crew"]

ROOT: Final = Path(__file__).parents[3]
