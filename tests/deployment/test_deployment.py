"""Planning: candidates, break-even, batches, engines; each number again by another route."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest

from spectheory.cost import (
    ACCELERATORS,
    ConstantRatio,
    CostModel,
    LatencyTable,
    Roofline,
    batch_table,
    iid_speedup,
    iid_tokens_per_call,
)
from spectheory.deployment import (
    Candidate,
    Draft,
    batch_ranges,
    best_lengths,
    break_even,
    distances,
    fastest_tree,
    other_machine,
)
from spectheory.deployment import plan as deployment_plan
from spectheory.deployment.ranking import rank_drafts
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction import plan, predict
from spectheory.prediction.best_tree import BestTree
from spectheory.trace import Trace
from spectheory.verification import RULES, RankRule, TokenVerification
from tests.toy_drafts import LARGE, SMALL, table, text_trace

ROUNDING = 1e-9
"""Sums and solves of some hundred numbers near one, a root to 1e-12."""


def calls(trace: Trace, k: int) -> float:
    """Target calls under token verification, text by text from the end (the recursion itself)."""
    total, start = 0.0, 0
    accepted = np.minimum(1, np.exp(trace.columns["log_draft"] - trace.columns["log_target"]))
    for length in trace.lengths:
        a = accepted[start : start + length]
        left = [0.0] * (length + k + 2)
        for n in range(length - 1, -1, -1):
            survival = [1.0]
            for i in range(1, k + 1):
                survival.append(survival[-1] * (a[n + i - 1] if n + i - 1 < length else 0.0))
            survival.append(0.0)
            left[n] = 1 + sum((survival[i] - survival[i + 1]) * left[n + i + 1] for i in range(k + 1))
        total += left[0]
        start += length
    return total


# Candidates


def test_ranking_is_that_of_the_recursion() -> None:
    """Best lengths and order of two drafts, from calls counted back from the end of each text."""
    drafts = {"near": (text_trace(2, 0.3), 0.3), "far": (text_trace(3, 1.2), 0.05)}
    by_hand = {
        name: max((len(trace) / calls(trace, k) / (1 + k * c), -k) for k in range(1, 9))
        for name, (trace, c) in drafts.items()
    }
    ranking = rank_drafts(
        [Draft(name, trace, ConstantRatio(c)) for name, (trace, c) in drafts.items()],
        rules=[TokenVerification()],
        k_max=8,
    )
    assert [c.draft.name for c in ranking.by_draft] == sorted(by_hand, key=lambda name: by_hand[name], reverse=True)
    for candidate in ranking.candidates:
        speedup, k = by_hand[candidate.draft.name]
        assert candidate.speedup.best == pytest.approx(speedup, rel=ROUNDING)
        assert candidate.prediction.shape == Chain(-k)


def test_verdicts() -> None:
    trace = text_trace(2, 1.0)
    prediction = predict(trace, TokenVerification(), Chain(1), ConstantRatio(0.1))
    tokens = prediction.tokens_per_call
    verdicts = {}
    for name, gain in (("speculate", tokens.low * 0.99), ("uncertain", tokens.best * 0.999), ("no", tokens.best)):
        cost = ConstantRatio(gain - 1)  # the speed-up is tokens over gain
        verdicts[name] = Candidate(Draft("a", trace, cost), predict(trace, TokenVerification(), Chain(1), cost)).verdict
    assert verdicts == {
        "speculate": "speculate",
        "uncertain": "speculating may not pay",
        "no": "do not speculate",
    }


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("a", {}, "names must differ"),
        ("b", {"target": {"name": "org/other", "fingerprint": "g"}}, "differ in target"),
        ("b", {"settings": {"sampling": {"temperature": 0.5}}}, "differ in sampling"),
    ],
)
def test_drafts_that_cannot_be_ranked(name: str, change: dict[str, Any], words: str) -> None:
    one = text_trace(2, 0.5)
    other = Trace(one.columns, one.texts, {**one.provenance, **change})
    with pytest.raises(SettingError, match=words):
        rank_drafts([Draft("a", one, ConstantRatio(0.1)), Draft(name, other, ConstantRatio(0.1))])
    with pytest.raises(SettingError, match="no draft"):
        rank_drafts([])


def test_latencies_limit_the_shapes() -> None:
    ranking = rank_drafts([Draft("a", text_trace(2, 0.5), table(longest=33))], k_max=40, nodes=64)
    assert any("chains beyond k = 32" in what for what in ranking.left_out)
    narrow = LatencyTable(table().target, {m: Interval.exact(0.1) for m in (1, 2)}, 64)
    trees = [RULES["recursive"], RULES["topk"]]
    ranking = rank_drafts([Draft("a", text_trace(2, 0.5), narrow)], tree_rules=trees, nodes=16)  # type: ignore[arg-type]
    assert all(max(c.prediction.shape.passes) <= 2 for c in ranking.candidates)


# Trees for seconds


@pytest.mark.parametrize("name", ["recursive", "topk"])
@pytest.mark.parametrize("draft", [0.05, 0.3])
def test_fastest_tree_against_every_size_and_depth(name: str, draft: float) -> None:
    # One prompt: every tree is scored where it was found, by both.
    rule, trace, cost = RULES[name], text_trace(5, 0.8, texts=1, tokens=240), table(verify=0.03, draft=draft)
    assert isinstance(rule, RankRule)
    most = 12
    grid = [BestTree(n, d) for n in range(2, most + 1) for d in range(1, n)]
    every = plan(trace, cost, rules=[rule], shapes=grid).best.speedup
    wanted = fastest_tree(trace, rule, cost, most)
    assert wanted is not None
    speedup = predict(trace, rule, wanted, cost).speedup
    fewest = predict(trace, rule, BestTree(most), cost).speedup
    assert every is not None
    assert speedup is not None
    assert fewest is not None
    assert speedup.best >= 0.99 * every.best, "a local search: within one percent of the best of all"
    if draft == 0.3:
        assert speedup.best > 1.02 * fewest.best, "chosen for calls, a tree is slower: the check can fail"


# Break-even


@pytest.mark.parametrize("shape", [Chain(1), Chain(5), BestTree(6, 3)])
@pytest.mark.parametrize("cost", [ConstantRatio(0.2), ConstantRatio(1.5), table(), table(draft=0.9)])
def test_break_even_solved_back_gives_one(shape: Any, cost: CostModel) -> None:
    trace, rule = text_trace(4, 0.7), RULES["recursive"]
    prediction = predict(trace, rule, shape, cost)
    point = break_even(prediction, cost)
    assert prediction.speedup is not None
    assert prediction.speedup.best * point.tokens_per_call_needed / point.tokens_per_call == pytest.approx(1)
    assert point.draft_ratio_needed is not None
    if isinstance(cost, ConstantRatio):
        assert point.draft_ratio == pytest.approx(cost.c, rel=ROUNDING)
        cheaper: CostModel = ConstantRatio(point.draft_ratio_needed)
    else:
        assert isinstance(cost, LatencyTable)
        scale = point.draft_ratio_needed / point.draft_ratio
        cheaper = LatencyTable(cost.target, {m: entry * scale for m, entry in cost.draft.items()}, 64)
    solved = predict(trace, rule, prediction.shape, cheaper).speedup
    assert solved is not None
    assert solved.best == pytest.approx(1, rel=ROUNDING)
    if isinstance(shape, Chain):
        assert point.acceptance is not None
        assert iid_tokens_per_call(point.acceptance, shape.k) == pytest.approx(point.tokens_per_call, rel=ROUNDING)
        if point.acceptance_needed is not None:
            needed = iid_tokens_per_call(point.acceptance_needed, shape.k)
            assert needed == pytest.approx(point.tokens_per_call_needed, rel=ROUNDING)
        else:
            assert point.tokens_per_call_needed > shape.k + 1


def test_least_acceptance_is_where_some_chain_begins_to_pay() -> None:
    cost = ConstantRatio(0.3)
    prediction = predict(text_trace(4, 0.7), TokenVerification(), Chain(3), cost)
    point = break_even(prediction, cost, 12)
    assert point.least_acceptance == pytest.approx(0.3), "some k improves iff alpha > c"
    assert point.least_acceptance is not None
    assert max(iid_speedup(point.least_acceptance - 1e-6, k, 0.3) for k in range(1, 13)) < 1
    assert max(iid_speedup(point.least_acceptance + 1e-6, k, 0.3) for k in range(1, 13)) > 1


def test_free_drafts_may_not_be_enough() -> None:
    cost = table(verify=2.0)
    point = break_even(predict(text_trace(4, 0.7), TokenVerification(), Chain(1), cost), cost)
    assert point.draft_ratio_needed is None
    assert point.least_acceptance is None
    with pytest.raises(SettingError, match="no speed-up"):
        break_even(predict(text_trace(4, 0.7), TokenVerification(), Chain(1)), cost)


# Limits


def test_distances_multiply_back() -> None:
    trace = text_trace(4, 0.7)
    for rule, shape in (("token", Chain(3)), ("topk", BestTree(5, 2)), ("argmax", Chain(2))):
        prediction = predict(trace, RULES[rule], shape, ConstantRatio(0.1))
        by_name = {d.limit.name: d for d in distances(prediction)}
        assert prediction.speedup is not None
        for distance in by_name.values():
            assert distance.reached * distance.tokens_per_call == pytest.approx(prediction.tokens_per_call.best)
            assert distance.speedup == pytest.approx(prediction.speedup.best / distance.reached)
        assert by_name["B6"].binds is (rule != "token")
        assert ("B7" in by_name) is isinstance(shape, Chain)
        if rule == "argmax":
            assert not by_name["B7"].binds, "argmax drafts are no draws from the draft"


# Batches


def test_best_lengths_against_the_batch_table() -> None:
    trace, k_max, batches = text_trace(4, 0.5), 6, (1, 8, 64, 256)
    cost = Roofline(LARGE, SMALL, ACCELERATORS["H100-SXM"], context=0)
    choices = best_lengths(trace, TokenVerification(), cost, k_max=k_max, batches=batches, contexts=(0, 2048))
    assert [(c.context, c.batch) for c in choices] == [(context, b) for context in (0, 2048) for b in batches]
    for choice in choices:
        at = Roofline(LARGE, SMALL, ACCELERATORS["H100-SXM"], context=choice.context)
        gains = {0: 1.0}
        for k in range(1, k_max + 1):
            tokens = len(trace) / calls(trace, k)
            (point,) = batch_table(at, Chain(k), tokens, [choice.batch], full_share(trace, k))
            gains[k] = point.speedup
            if k == choice.k:
                assert choice.tokens_per_second == pytest.approx(point.tokens_per_second, rel=1e-6)
        assert choice.speedup == pytest.approx(max(gains.values()), rel=1e-6)
        assert gains[choice.k] == pytest.approx(max(gains.values()), rel=1e-6)
    assert choices[3].k == 0, "at batch 256 without context verifying is compute-bound"
    assert choices[0].k > 0


def full_share(trace: Trace, k: int) -> float:
    from spectheory.prediction.shape_calls import calls_by_shape

    (shape_calls,) = calls_by_shape(trace, TokenVerification(), [Chain(k)])
    return float(shape_calls.calls.full.sum() / shape_calls.calls.expected.sum())


def test_ranges_cover_every_batch_once() -> None:
    cost = Roofline(LARGE, SMALL, ACCELERATORS["H100-SXM"], context=0)
    every = best_lengths(text_trace(4, 0.5), TokenVerification(), cost, k_max=6, batches=range(1, 257))
    ranges = batch_ranges(every)
    covered = [(b, k) for first, last, k in ranges for b in range(first, last + 1)]
    assert covered == [(choice.batch, choice.k) for choice in every]
    assert len(ranges) > 2


def test_one_batch_costs_have_no_table() -> None:
    with pytest.raises(SettingError, match="one batch size"):
        best_lengths(text_trace(4, 0.5), TokenVerification(), table())  # type: ignore[arg-type]


# The machine


def test_other_machines_are_named() -> None:
    here = f"{platform.system()} {platform.machine()}"
    assert other_machine({"system": here, "threads": 99}) is None
    words = other_machine({"system": here, "cpu": "Abacus 9"})
    assert words is not None
    assert "Abacus 9" in words
    assert other_machine({"system": here, "gpu": ["Slide Rule 5000"]}) is not None


def test_intervals_that_overlap_tell_nothing_apart() -> None:
    """The best is the larger, and the upper end of the second is above its lower end; then it is below."""
    trace = text_trace(2, 0.5)
    for ratio, apart in ((0.11, False), (0.5, True)):
        drafts = [Draft("a", trace, ConstantRatio(0.1)), Draft("b", trace, ConstantRatio(ratio))]
        ranking = rank_drafts(drafts, rules=[TokenVerification()])
        assert ranking.runner_up is not None
        one, two = ranking.best.speedup, ranking.runner_up.speedup
        assert one.low > two.low
        assert (one.low > two.high) is apart
        assert ranking.told_apart is apart


def test_the_break_even_ratio_is_that_of_the_shape_that_is_best() -> None:
    """Of a tree where a tree is best: tokens per call of the tree over its drafts, not those of the chain."""
    cost = ConstantRatio(0.1)
    answer = deployment_plan([Draft("a", text_trace(2, 1.5), cost)], nodes=16)
    assert answer.ranking.best.kind == "tree"
    tree, chain = (break_even(each.prediction, cost, 16) for each in (answer.ranking.best, answer.chain))
    assert tree != chain
    assert answer.break_even == tree
