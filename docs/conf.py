"""The site: pages in Markdown, the reference from docstrings and commands."""

from __future__ import annotations

import re
from typing import Any

import spectheory

REPOSITORY = "https://github.com/spectheory/spectheory/blob/main/"

project = "spectheory"
author = "the spectheory developers"
copyright = f"2026, {author}"
release = version = spectheory.__version__

extensions = [
    "myst_nb",
    "sphinx_design",
    "sphinxcontrib.bibtex",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
nb_execution_mode = "cache"
nb_execution_cache_path = "_build/notebooks"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False

bibtex_bibfiles = ["references.bib"]
html_theme = "pydata_sphinx_theme"
html_title = "spectheory"


def setup(app: Any) -> None:
    """Links to files outside the site lead to the repository."""

    def rewrite(app: Any, page: str, source: list[str]) -> None:
        up = "../" * (page.count("/") + 1)
        source[0] = re.sub(r"\]\(" + re.escape(up) + r"(?!\.)", "](" + REPOSITORY, source[0])

    app.connect("source-read", rewrite)
