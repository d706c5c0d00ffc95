"""The benchmark of drafts of all kinds: its rows, and the table of docs/built_in_pair.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from drafts import RESULTS, WAYS, Way, row, table

from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft
from spectheory.pairs import HEADS, MODELS
from spectheory.trace import TextInfo, Trace


def draft(*, parallel: bool) -> Draft:
    """Drafts that all are accepted, two by start; a pass takes a tenth of the target's."""
    rows = 40
    logs = {"log_target": np.full(rows, -1.0), "log_draft": np.full(rows, -1.0)}
    by_start = {"start_log_draft": np.full((rows, 2), -1.0)}
    texts = tuple(TextInfo(str(i), 20, str(i)) for i in range(2))
    return Draft("toy", Trace(logs | by_start, texts, {"draft": {"parallel": parallel}}), ConstantRatio(0.1))


@pytest.mark.parametrize(("parallel", "passes"), [(False, 2), (True, 1)])
def test_a_row_counts_the_passes_of_a_call(parallel: bool, passes: int) -> None:
    entry = row(Way("toy", "token", "a toy", "nothing"), draft(parallel=parallel))
    assert (entry["k"], entry["passes"]) == (2, passes)
    tokens = 20 / 7  # calls of 3 tokens in a text of 20
    assert entry["tokens_per_call"]["best"] == pytest.approx(tokens)
    assert entry["speedup"]["best"] == pytest.approx(tokens / (1 + 0.1 * passes))
    assert "| a toy | token | 1.000 | 2 | 2.86 [2.86, 2.86] |" in table([entry])


def test_the_page_of_the_pair_has_the_measured_table() -> None:
    """Every kind of built-in draft is in it."""
    rows = json.loads((RESULTS / "drafts.json").read_text())["drafts"]
    assert {each["draft"] for each in rows} == {*HEADS, *MODELS} - {"target"}
    assert [(each["draft"], each["rule"]) for each in rows] == [(way.draft, way.rule) for way in WAYS]
    assert table(rows) in (Path(__file__).parents[2] / "docs" / "built_in_pair.md").read_text(encoding="utf-8")
