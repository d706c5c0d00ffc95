"""The benchmark of plan's picks: what it tries and tries again."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from plan_picks import Measured, finalists, settings_tried, tree_rules

from spectheory.cost import ConstantRatio, LatencyTable, LoopTime
from spectheory.deployment import Draft, Ranking
from spectheory.deployment.ranking import rank_drafts
from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.measure.decoders import Call
from spectheory.measure.validation.answer import Evidence
from spectheory.measure.validation.runs import Run
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PATH_RULES


def toy_trace() -> Trace:
    """Texts of which half the tokens are a first choice of the draft, and a quarter a second."""
    rows = 160
    first = np.random.default_rng(1).uniform(0.2, 0.8, rows)
    ranks = {"rejection_rank": np.stack([first, (1 - first) / 2], axis=1)}
    logs = {"log_target": np.full(rows, -1.0), "log_draft": np.full(rows, -1.7)}
    return Trace(logs | ranks, tuple(TextInfo(str(i), 40) for i in range(4)))


def ranked(trace: Trace, c: float) -> Ranking:
    return rank_drafts([Draft("toy", trace, ConstantRatio(c))], tree_rules=tree_rules(trace, 1.0))


@pytest.mark.parametrize("c", [0.001, 0.1, 0.4])
def test_every_setting_once_and_the_pick_among_them(c: float) -> None:
    trace = toy_trace()
    ranking = ranked(trace, c)
    tried, pick = settings_tried(trace, ranking, 1.0)
    assert len({setting.name for setting in tried}) == len(tried), "rounds are kept by name"
    assert len({(setting.rule, setting.drafts.tree()) for setting in tried}) == len(tried)
    best = ranking.best.prediction
    assert pick in tried
    assert (pick.rule, pick.drafts.tree()) == (best.rule.name, best.shape.tree())


def test_plain_decoding_is_the_pick_where_drafts_do_not_pay() -> None:
    trace = toy_trace()
    assert settings_tried(trace, ranked(trace, 2.0), 1.0)[1] is PLAINLY


def test_greedy_traces_have_no_trees() -> None:
    trace = toy_trace()
    tried, _ = settings_tried(trace, rank_drafts([Draft("toy", trace, ConstantRatio(0.3))]), 0.0)
    assert all(isinstance(setting.shape, Chain) for setting in tried)


def test_finalists_are_the_fastest_and_the_pick() -> None:
    settings = [Setting("token", Chain(k)) for k in range(1, 5)]
    measured = dict(zip(settings, (1.0, 1.3, 1.2, 0.9), strict=True))
    one, two, three, four = settings
    assert finalists(measured, two, 2) == [two, three]
    assert finalists(measured, four, 2) == [two, three, four]
    assert finalists(measured, PLAINLY, 3) == [two, three, one]


def test_what_is_predicted_is_what_the_plan_says() -> None:
    """The loop's time counts in both."""
    trace, second = toy_trace(), Interval.exact
    loop = LoopTime(plain=0.2, call=0.5, draft_pass=0.1, node=0.1, tree=0.0)
    table = LatencyTable({1: second(1.0), 3: second(1.3)}, {1: second(0.1), 2: second(0.2)}, 8, loop=loop)
    trace = Trace(trace.columns, tuple(replace(text, prompt=text.id) for text in trace.texts))
    said = rank_drafts([Draft("toy", trace, table).in_loop], rules=[PATH_RULES["token"]]).best
    setting, names = Setting("token", said.prediction.shape), tuple(text.id for text in trace.texts)
    call = Call(0, 0, 0, "plain", draft_seconds=0.0, target_seconds=1.0, seconds=1.0)
    runs = [{one.name: Run((1,) * 40, 40, 40.0, 40 * (call,)) for one in (PLAINLY, setting)} for _ in names]
    measured = Measured([Evidence((setting,), names, runs, trace, table)])
    assert measured.record(setting)["predicted"] == said.speedup.as_dict()


def test_the_documents_tell_the_ratios_that_were_measured() -> None:
    """README, docs/built_in_pair.md and docs/planning.md, from the results of the benchmark."""
    root = Path(__file__).parents[2]
    pairs = json.loads((root / "benchmarks" / "results" / "plan_picks.json").read_text())["pairs"]
    ratios = [one["measured"]["pick_over_best"] for one in pairs]
    readme, pair, planning = (
        (root / name).read_text() for name in ("README.md", "docs/built_in_pair.md", "docs/planning.md")
    )
    for ratio in ratios:
        assert f"{ratio['best']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})" in pair
    values = [f"{ratio['best']:.3f}" for ratio in ratios]
    assert all(f"{values[0]}, {values[1]} and {values[2]} of the fastest" in page for page in (readme, planning))
