"""The page of targets, and its configurations against the published numbers of parameters."""

from __future__ import annotations

import pytest

from tests.docs.costs_of_targets import FACTS, PAGE, shape, with_tables

ROUNDED = {"Kimi-K2": 0.03}
"""Published as one trillion."""


def test_the_page_shows_what_is_computed() -> None:
    """If this fails, ``python -m tests.docs.costs_of_targets`` writes the page again."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text
    assert with_tables(text.replace("| Qwen3-8B | 8.2 |", "| Qwen3-8B | 8.3 |")) == text, "another number would be seen"


@pytest.mark.parametrize("name", FACTS)
def test_published_numbers_of_parameters(name: str) -> None:
    """Total within half a per cent; active within 2% or its last digit, by one of three usages: with the embedding and
    the output matrix, with the output matrix alone, with neither.
    """
    model, fact = shape(name), FACTS[name]
    assert model.parameters / 1e9 == pytest.approx(fact["billions"], rel=ROUNDED.get(name, 5e-3))
    neither = model.multiplied - model.vocabulary * model.hidden
    usages = [count / 1e9 for count in (model.active, model.multiplied, neither)]
    digit = 0.5 if float(fact["billions_active"]).is_integer() else 0.05
    off = min(abs(usage - fact["billions_active"]) for usage in usages)
    assert off <= max(0.02 * fact["billions_active"], digit)


def test_twelve_targets_with_sources() -> None:
    assert len(FACTS) >= 12
    for fact in FACTS.values():
        assert fact["source"].startswith("https://")
        assert "_config.json at " in fact["config_source"]
