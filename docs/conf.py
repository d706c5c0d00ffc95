"""The site: pages in Markdown, the reference from docstrings and commands."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from latex2mathml.converter import convert
from myst_nb.core.config import NbParserConfig
from myst_nb.core.read import create_nb_reader
from myst_parser.config.main import MdParserConfig
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.labels import BaseLabelStyle
from sphinx.util import logging

import spectheory

sys.path.insert(0, str(Path(__file__).parent))
from searches import missing

REPOSITORY = "https://github.com/spectheory/spectheory/blob/main/"

project = "spectheory"
author = "the spectheory developers"
copyright = f"2026, {author}"
release = version = spectheory.__version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
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
copybutton_prompt_text = "$ "  # of a block with commands and their output, the commands are copied
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False

bibtex_bibfiles = ["../paper.bib"]
bibtex_default_style = "keys"
html_theme = "pydata_sphinx_theme"
html_title = "spectheory"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_show_sourcelink = False
html_sidebars = {"start": []}
html_theme_options = {"header_links_before_dropdown": 7, "show_toc_level": 1, "footer_end": []}


class _Keys(BaseLabelStyle):  # type: ignore[misc]
    def format_labels(self, entries: Any) -> list[str]:
        """The keys that pages and docstrings name."""
        return [entry.key for entry in entries]


class _ByKey(Style):  # type: ignore[misc]
    default_label_style = _Keys


register_plugin("pybtex.style.formatting", "keys", _ByKey)


def setup(app: Any) -> None:
    """Register the formulas, and links to files outside the site, which lead to the repository."""
    app.add_html_math_renderer("mathml", (_formula, None), (_display, None))
    app.connect("builder-inited", _write_notebooks)
    app.connect("source-read", _outside)
    app.connect("source-read", _offer_notebook)
    app.connect("build-finished", _search)


def _outside(app: Any, page: str, source: list[str]) -> None:
    up = "../" * (page.count("/") + 1)
    source[0] = re.sub(r"\]\(" + re.escape(up) + r"(?!\.)", "](" + REPOSITORY, source[0])


def _write_notebooks(app: Any) -> None:
    """Notebooks to download, made of the pages; where each stands is what :func:`_offer_notebook` says."""
    folder = Path(app.srcdir)
    (folder / "_build" / "ipynb").mkdir(parents=True, exist_ok=True)
    for page in (folder / "notebooks").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        reader = create_nb_reader(str(page), MdParserConfig(), NbParserConfig(), text)
        if reader is not None:
            nbformat.write(reader.read(text), folder / "_build" / "ipynb" / f"{page.stem}.ipynb")


def _offer_notebook(app: Any, page: str, source: list[str]) -> None:
    folder, _, name = page.rpartition("/")
    if folder == "notebooks" and "{code-cell}" in source[0]:
        link = f"{{download}}`Download this page as a notebook <../_build/ipynb/{name}.ipynb>`"
        source[0] = re.sub(r"^(# .*\n)", rf"\1\n{link}\n", source[0], count=1, flags=re.MULTILINE)


def _search(app: Any, error: Exception | None) -> None:
    """Warn of searches that do not lead to their page; the index is the one that browsers read."""
    index = Path(app.outdir) / "searchindex.js"
    if error is None and index.exists():
        read = json.loads(index.read_text(encoding="utf-8").removeprefix("Search.setIndex(").removesuffix(")"))
        for line in missing(read, app.builder.indexer.lang.stem):
            logging.getLogger(__name__).warning(line)


def _formula(writer: Any, node: nodes.Node) -> None:
    """A formula as MathML, which browsers draw without a script or a network."""
    writer.body.append(f'<span class="formula">{convert(node.astext())}</span>')
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.Node) -> None:
    writer.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode
