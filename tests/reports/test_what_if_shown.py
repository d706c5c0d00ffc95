"""What a change would bring, in sentences, tables and a picture: each is a view of the same answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spectheory.answers import plain
from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.pages.vega import curves
from spectheory.plots.chart import write_curves
from spectheory.plots.prediction import costs_chart
from spectheory.prediction import from_acceptance, what_if
from spectheory.prediction.what_if_answer import what_if_counted
from spectheory.reports.what_if import what_if_report
from spectheory.trace import Trace

TRACE = Trace.from_log_probabilities(
    [([-1.0] * 40, [-1.5, -1.0] * 20), ([-1.0] * 40, [-1.1] * 40), ([-1.0] * 20, [-1.9] * 20)]
)


def test_a_sentence_and_a_table_for_each_change() -> None:
    answer = what_if(TRACE, ["draft-kl=-10%", "c=0..0.2", "prompts=2%"], ConstantRatio(0.1))
    report = what_if_report(answer)
    assert report.brief is not None
    better, pays, best, wider = report.brief.verdict
    assert all(len(line) <= 80 for line in report.brief.verdict)
    assert answer.now is not None
    assert answer.now.speedup is not None
    (draft,) = answer.drafts
    now, then = (f"{each.best:.2f}x" for each in (answer.now.speedup, draft.best.speedup) if each)
    assert better == f"A draft with 10% less KL: speed-up {now} -> {then} (mixed)"
    assert answer.costs is not None
    assert pays == f"Pays up to c = {answer.costs.pays_below:.3g}"
    assert best.startswith("Best at c = 0: k = 16")
    assert answer.prompts is not None
    assert f"about {answer.prompts.needed.best:.0f} prompts" in wider
    assert "3 give" in wider
    assert [table.title.split()[0] for table in report.pieces] == ["The", "The", "Prompts"]
    assert any("better_drafts" in note for note in report.notes)
    content = report.as_dict()
    assert content["changes"] == {"draft_kl": 0.1, "c": [0.0, 0.2], "prompts": 0.02}
    assert content["costs"]["pays_below"] == answer.costs.pays_below
    assert content["prompts"]["needed"] == plain(answer.prompts.needed)


def test_a_certain_range_is_sure_to_pay() -> None:
    report = what_if_report(what_if_counted(from_acceptance(0.8, k_max=4).rows, "c=0.05..0.4"))
    assert report.headline.startswith("Sure to pay up to c = 0.667")
    assert "now" not in report.as_dict()


def test_the_chart_has_each_best_setting_and_the_fastest_at_each_c(tmp_path: Path) -> None:
    """Drawn on a page and as a picture, each setting is below the fastest, and equal to it where it is the fastest."""
    costs = what_if(TRACE, "c=0.05..1.5").costs
    assert costs is not None
    chart = costs_chart(costs)
    assert {dot.name for dot in chart.dots} == {each.name for each in chart.series}, "a page groups by names"
    fastest = chart.of("the fastest")
    assert [dot.y for dot in fastest] == [row.speedup for row in costs.rows]
    settings = {row.shape.nodes for row in costs.rows}
    assert 1 < len(settings) == len(chart.series) - 1
    heights = np.array([[dot.y.best for dot in chart.of(each.name)] for each in chart.series[:-1]])
    assert heights.max(axis=0) == pytest.approx([row.speedup.best for row in costs.rows])
    assert f"pays up to c = {costs.pays_below:.3g}" in chart.words
    assert "c, time of a draft pass over that of a target step" in json.dumps(curves(chart).spec)
    assert [file.stem for file in write_curves({"speedup_by_c": chart}, tmp_path)] == ["speedup_by_c"] * 2


def test_a_change_has_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["predict", "--acceptance", "0.8", "--what-if", "c=0.05..0.4", "--report", str(page)]) == 0
    text = page.read_text()
    assert "Sure to pay up to c = " in text
    assert "The fastest setting at each c" in text
    assert "Speed-up at each cost ratio" in text
