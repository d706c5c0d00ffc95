"""The site: pages in Markdown, the reference from docstrings and commands."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

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
]
exclude_patterns = ["_build"]
highlight_language = "none"
nb_execution_mode = "cache"
nb_execution_cache_path = "_build/notebooks"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_output_stderr = "remove"
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False

bibtex_bibfiles = ["references.bib"]
html_theme = "pydata_sphinx_theme"
html_title = "spectheory"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"start": []}
html_theme_options = {"header_links_before_dropdown": 7, "show_toc_level": 1, "footer_end": []}


def setup(app: Any) -> None:
    """Register the formulas, and links to files outside the site, which lead to the repository."""
    app.add_html_math_renderer("mathml", (_formula, None), (_display, None))
    app.connect("source-read", _outside)


def _outside(app: Any, page: str, source: list[str]) -> None:
    up = "../" * (page.count("/") + 1)
    source[0] = re.sub(r"\]\(" + re.escape(up) + r"(?!\.)", "](" + REPOSITORY, source[0])


def _formula(writer: Any, node: nodes.Node) -> None:
    """A formula as MathML, which browsers draw without a script or a network."""
    writer.body.append(f'<span class="formula">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.Node) -> None:
    writer.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode
