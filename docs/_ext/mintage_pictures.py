"""Show a picture of docs/pictures in the colours of the reader's theme.

``{picture} NAME …`` in Markdown shows one picture, or several beside each other where there is room. The text for
readers who see no pictures is the title inside the file.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PICTURES = Path(__file__).parents[1] / "pictures"


class Picture(SphinxDirective):
    """Images for both themes, of which furo hides one."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        row = nodes.container(classes=["pictures"])
        for name in self.arguments[0].split():
            for theme in ("light", "dark"):
                file = PICTURES / f"{name}-{theme}.svg"
                self.env.note_dependency(str(file))
                (title,) = re.findall("<title>(.*)</title>", file.read_text("utf-8"))
                row += nodes.image(uri=f"/pictures/{file.name}", alt=unescape(title), classes=[f"only-{theme}"])
        return [row]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
