"""Configuration of Sphinx. Build the documentation with `sphinx-build -W --keep-going -n docs docs/_build/html`.

The package must be importable, with its extension built. In a checkout, this file puts `src` on the path.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import mintage  # noqa: E402

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "mintage"
author = "The mintage authors"
version = release = mintage.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "mintage_pictures", "mintage_reference"]
# Another page includes the table of faults.
exclude_patterns = ["_build", "explanation/fault-table.md"]
nitpicky = True
# Names of the standard library and of pymongo. They have no inventory here, so that a build needs no network.
nitpick_ignore_regex = [
    (r"py:.*", r"collections\.abc\..*|Callable|Iterable|Iterator|(typing\.)?(Any|Literal|NamedTuple|SupportsIndex)"),
    (
        r"py:.*",
        r"(typing_extensions\.)?Buffer|(uuid\.)?UUID|ObjectId|(datetime\.)?datetime|(array\.)?array|builtins\..*",
    ),
    # Type variables and private protocols.
    (r"py:.*", r"(mintage\.[\w.]+\.T)|_Source|mintage\.ext\.cattrs\.C"),
    # The states of a finding, which docs/how-to/who.md explains.
    (r"py:.*", r"State"),
    (r"py:.*", r"click\..*"),
    (r"py:.*", r"SearchStrategy|ValidationError"),
    # Names of SQLAlchemy and of drivers.
    (r"py:.*", r"(sqlalchemy|psycopg)\..*|AdaptContext|ColumnElement|_CT"),
    # Names of PyMongo.
    (r"py:.*", r"(bson\.codec_options\.)?Type(Codec|Encoder|Decoder|Registry)"),
    # Names of column engines, and the aliases of mintage.ext.columns, which its page explains.
    (r"py:.*", r"(pyarrow|pa|pandas|pd|polars|pl|_?duckdb|pyspark)\..*|DataFrame|Scheme|Dialect"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"mintage {version}"
html_static_path = ["_static"]
html_css_files = ["mintage.css"]
html_js_files = ["mintage.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"

# The copy button omits prompts, and in a block with prompts also the output of the commands.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def write_llms(app: Sphinx, _error: Exception | None) -> None:
    """Write llms.txt beside the pages. Its links lead to pages there, and to their sources in a checkout."""
    text = (HERE.parent / "llms.txt").read_text("utf-8").replace("(CHANGELOG.md", "(docs/changes.md")
    pages = re.sub(r"\]\(docs/([\w/-]+)\.(?:md|rst)", r"](\1.html", text)
    (Path(app.outdir) / "llms.txt").write_text(pages, "utf-8")


def setup(app: Sphinx) -> None:
    app.connect("build-finished", write_llms)
