"""How the documentation is built: `sphinx-build -W --keep-going -n docs docs/_build/html`.

The package must be importable, with its extension built; from a checkout, `src` is on the path here.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import mintage  # noqa: E402

project = "mintage"
author = "The mintage authors"
version = release = mintage.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "mintage_reference"]
# The table of faults is a part of another page.
exclude_patterns = ["_build", "explanation/fault-table.md"]
nitpicky = True
# Names of the standard library and of pymongo, which have no inventory here: a build needs no network.
nitpick_ignore_regex = [
    (r"py:.*", r"(collections\.abc\.)?(Callable|Iterable|Iterator)|(typing\.)?(Any|Literal|NamedTuple|SupportsIndex)"),
    (
        r"py:.*",
        r"(typing_extensions\.)?Buffer|(uuid\.)?UUID|ObjectId|(datetime\.)?datetime|(array\.)?array|builtins\..*",
    ),
    # Type variables, and protocols that nobody needs by name.
    (r"py:.*", r"(mintage\.\w+\.T)|_Source|mintage\.ext\.cattrs\.C"),
    (r"py:.*", r"click\..*"),
    (r"py:.*", r"SearchStrategy"),
    # What SQLAlchemy and drivers call their own.
    (r"py:.*", r"(sqlalchemy|psycopg)\..*|AdaptContext|ColumnElement|_CT"),
    # Engines of columns, and the aliases of mintage.formats.sql, which its page explains.
    (r"py:.*", r"(pyarrow|pa|pandas|pd|polars|pl|_?duckdb|pyspark)\..*|DataFrame|Scheme|Dialect"),
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"mintage {version}"
html_static_path = ["_static"]
html_css_files = ["mintage.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "github-dark"

# Copying leaves out prompts, and of a block with prompts also what the commands print.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
