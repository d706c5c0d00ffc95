"""What a change would bring, in sentences, tables and a picture: each is a view of the same answer."""

from __future__ import annotations

import pytest

from spectheory.answers import plain
from spectheory.cost import ConstantRatio
from spectheory.plots.prediction import speedup_by_c
from spectheory.plots.style import new_figure
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


def test_the_picture_has_each_best_setting_and_the_fastest_at_each_c() -> None:
    costs = what_if(TRACE, "c=0.05..1.5").costs
    assert costs is not None
    ax = new_figure((6, 4)).add_subplot()
    speedup_by_c(ax, costs)
    settings = {row.shape.nodes for row in costs.rows}
    assert len(settings) > 1
    fastest, best, plain_decoding, ends = ax.get_lines()[len(settings) :][:4]  # a curve for each setting comes first
    assert list(best.get_ydata()) == [row.speedup.best for row in costs.rows]
    assert fastest.get_ydata()[[0, -1]].tolist() == [best.get_ydata()[0], best.get_ydata()[-1]]
    assert plain_decoding.get_ydata()[0] == 1
    assert ends.get_xdata()[0] == pytest.approx(costs.pays_below)
