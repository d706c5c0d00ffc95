"""What readers search for, and the page that the site's own search must show among its first results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from re import findall
from typing import Any

SEARCHES = {
    "EAGLE-3": "how_to/a_head",
    "DFlash": "how_to/a_head",
    "batch": "planning",
    "quantization": "planning",
    "TTFT": "planning",
    "metrics": "how_to/which_k_for_my_server",
    "token ids": "how_to/my_engines_text_looks_wrong",
    "acceptance rate": "how_to/an_acceptance_rate",
    "logits": "how_to/my_own_logits",
    "block verification": "how_to/is_block_worth_it",
}
FIRST = 10
"""Results on a first screen."""
TITLE, TEXT = 15, 5
"""What the search gives to a word in a heading, and in the text."""
LATER = ("theorems/", "figures/", "api/")
"""Folders whose pages come after all others, as _static/scorer.js says."""


def results(index: Mapping[str, Any], query: str, stem: Callable[[str], str]) -> list[str]:
    """Pages with every word of the query, in the order of the search: guides, the best word, then by title."""
    scores: dict[int, list[int]] = {}
    words = [word for word in findall(r"\w+", query.lower()) if not word.isdigit()]
    for word in words:
        of_page: dict[int, int] = {}
        for terms, score in ((index["terms"], TEXT), (index["titleterms"], TITLE)):
            pages = terms.get(stem(word), [])
            of_page |= dict.fromkeys([pages] if isinstance(pages, int) else pages, score)
        for page, score in of_page.items():
            scores.setdefault(page, []).append(score)
    whole = [page for page, each in scores.items() if len(each) == len(words)]
    names, titles = index["docnames"], index["titles"]
    order = sorted(whole, key=lambda page: (names[page].startswith(LATER), -max(scores[page]), titles[page].lower()))
    return [names[page] for page in order]


def missing(index: Mapping[str, Any], stem: Callable[[str], str]) -> list[str]:
    """The searches whose page is not among the first results, a sentence each."""
    orders = {query: results(index, query, stem) for query in SEARCHES}
    return [
        f"a search for {query!r} does not show {SEARCHES[query]} among its first {FIRST}: {', '.join(order[:FIRST])}"
        for query, order in orders.items()
        if SEARCHES[query] not in order[:FIRST]
    ]
