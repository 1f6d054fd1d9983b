"""Output with its variable parts replaced, and the first snippet of README.md with its output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

README: Final = Path(__file__).parents[2] / "README.md"


def shape(output: str) -> str:
    """Return output with every variable part replaced, and without the padding of columns."""
    for pattern, kind in (
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "<uuid>"),
        (r"\b[0-9]{15,20}\b", "<integer>"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00", "<time>"),
        (r"\b(?=[a-x]*[2-9])[2-9a-x]{16}\b", "<sno>"),
        (r"\b(in )?[0-9,]+ (year|month|day|hour|minute|second)s?( ago)?|just now", "<ago>"),
        (r" +", " "),
    ):
        output = re.sub(pattern, kind, output)
    return "\n".join(line.rstrip() for line in output.strip().splitlines())


def first_snippet() -> tuple[str, str]:
    """Return the first Python code of README.md, and the output that is shown below it."""
    readme = README.read_text("utf-8")
    (found, *_) = re.findall(r"(?s)```python\n(.*?)```\n\n```text\n(.*?)```", readme)
    snippet, output = found
    return snippet, output
