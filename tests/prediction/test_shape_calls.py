"""The predictor with every shape: which rules take which shapes, and the numbers they give."""

from __future__ import annotations

import numpy as np
import pytest

from spectheory.cost import ConstantRatio
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree, expected_tokens, optimal_tree
from spectheory.errors import SettingError, TraceError
from spectheory.limits import tunstall_bound
from spectheory.prediction import plan, predict
from spectheory.prediction.best_tree import BestTree, text_tree
from spectheory.prediction.paths import calls_of_texts, calls_of_tree, tree_survival
from spectheory.reports import Table, prediction_report
from spectheory.trace import DISTINCT_RANKS, RECORDED_RANKS, TextInfo, Trace
from spectheory.verification import (
    BlockVerification,
    PoissonRace,
    RaceVerification,
    RankRule,
    RecursiveRejection,
    TokenVerification,
    TopKMatch,
)
from tests.made_up import draft_beside

EXACT = 1e-12
"""Two float64 routes to one number of order one."""
DISTINCT = RecursiveRejection(replacement=False)
RANKED = (RaceVerification(), PoissonRace(), RecursiveRejection(), DISTINCT, TopKMatch())


def ranked_trace(seed: int = 0, texts: int = 5, tokens: int = 24) -> Trace:
    """A trace with the columns of every rule with ranks, of made-up but consistent laws."""
    rng = np.random.default_rng(seed)
    rows = texts * tokens
    race, recursive = (rng.dirichlet([6, 2, 1, 1, 1, 1, 1, 1, 2], rows)[:, :8] for _ in range(2))
    log_target = -rng.exponential(1.5, rows)
    race_g = 1 / race[:, 0] - 1
    log_draft = draft_beside(rng, log_target, race_g)
    first = np.minimum(1.0, np.exp(log_draft - log_target))  # the first rank is token verification
    recursive *= ((1 - first) / (1 - recursive[:, 0]))[:, None]
    recursive[:, 0] = first
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g,
        "race_rank": race,
        "rejection_rank": recursive,
        "distinct_rank": recursive[:, :DISTINCT_RANKS],
        "draft_rank": rng.geometric(0.6, rows),
    }
    return Trace(columns, tuple(TextInfo(str(i), tokens) for i in range(texts)))


def known(rule: RankRule) -> int:
    """Ranks that the trace records, or that are looked at."""
    return DISTINCT_RANKS if rule == DISTINCT else RECORDED_RANKS


SHAPES: list[Shape] = [Batch(3), KAry((2, 2)), Tree.from_paths([(1,), (1, 1), (2,), (1, 1, 2)])]


@pytest.mark.parametrize("rule", RANKED, ids=lambda rule: rule.name)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape_with_any_rule_that_has_ranks(rule: RaceVerification, shape: Shape) -> None:
    """Tokens per call, acceptance and full calls are those of the tree's survival; a chain as a tree is a chain."""
    trace, cost = ranked_trace(), ConstantRatio(0.1)
    if rule.consecutive and not isinstance(shape, Batch | KAry):
        shape = Tree.from_paths([(1,), (1, 1), (2,), (1, 1, 1)])
    prediction = predict(trace, rule, shape, cost)
    law = rule.rank_law(trace.columns, 3)
    survival, leaves = tree_survival(law, shape.tree())
    calls = calls_of_tree(survival, leaves, trace.lengths)
    assert prediction.tokens_per_call.best == pytest.approx(len(trace) / calls.expected.sum(), rel=EXACT)
    assert prediction.acceptance.best == pytest.approx(survival[:, 0].mean(), rel=EXACT)
    assert prediction.iid_tokens_per_call == pytest.approx(float(expected_tokens(shape, law.mean(axis=0))), rel=EXACT)
    assert prediction.limits.decoding is prediction.regret is None
    full = rule.rank_law(trace.columns, known(rule)).mean(axis=0)
    letters = np.append(full, max(0.0, 1 - full.sum()))
    entropy = -np.sum(letters[letters > 0] * np.log(letters[letters > 0]))
    assert prediction.limits.iid_channel == pytest.approx(
        tunstall_bound(entropy, len(full) + 1, shape.nodes), rel=EXACT
    )
    as_chain = predict(trace, rule, Chain(3).tree(), cost)
    chain = predict(trace, rule, Chain(3), cost)
    assert as_chain.tokens_per_call.best == pytest.approx(chain.tokens_per_call.best, rel=EXACT)
    assert as_chain.speedup is not None
    assert chain.speedup is not None
    assert as_chain.speedup.best == pytest.approx(chain.speedup.best, rel=EXACT)
    by_hand = calls_of_texts(rule.path_survival(trace.columns, 3), trace.lengths).expected.sum()
    assert chain.tokens_per_call.best == pytest.approx(len(trace) / by_hand, rel=EXACT)


def test_the_best_tree_is_searched_per_rule() -> None:
    trace = ranked_trace(1)
    for rule in RANKED:
        prediction = predict(trace, rule, BestTree(5))
        law = rule.rank_law(trace.columns, min(5, known(rule)))
        best = text_tree(law, trace.lengths, 5, consecutive=rule.consecutive)
        assert prediction.shape == best.tree
        same_texts = predict(trace, rule, prediction.shape).tokens_per_call.best
        assert same_texts == pytest.approx(len(trace) / best.calls, rel=EXACT)
        for other in (Chain(5), optimal_tree(law.mean(axis=0), 5, consecutive=rule.consecutive)):
            assert same_texts >= predict(trace, rule, other).tokens_per_call.best - EXACT
    assert predict(trace, RaceVerification(), BestTree(5, max_depth=1)).shape.depth == 1


def test_a_plan_gives_shapes_to_the_rules_that_take_them() -> None:
    trace = ranked_trace(2)
    answer = plan(trace, rules=[BlockVerification(), RaceVerification()], shapes=[Chain(2), Batch(2), BestTree(3)])
    assert [(str(p.label), p.shape.nodes) for p in answer.predictions] == [
        ("block", 2),
        ("race", 2),
        ("race batch", 2),
        ("race tree", 3),
    ]
    assert list(map(str, answer.chains)) == ["block", "race"]
    assert list(map(str, answer.trees)) == ["race batch", "race tree"]
    both = answer + plan(trace, rules=[TokenVerification()], shapes=[Chain(9)])
    assert len(both.predictions) == 5
    assert both.best.tokens_per_call.best == max(p.tokens_per_call.best for p in both.predictions)
    content = prediction_report(both).as_dict()
    assert content["predictions"][3]["wanted"] == "best tree of 3"
    assert len(content["predictions"][3]["paths"]) == 3
    assert content["predictions"][0]["paths"] is None


def test_what_cannot_be_predicted_is_named() -> None:
    trace = ranked_trace(3)
    with pytest.raises(SettingError, match="block verification is asked for batch k=2: it judges one chain"):
        predict(trace, BlockVerification(), Batch(2))
    with pytest.raises(SettingError, match="no rule of block, token takes such a shape"):
        plan(trace, rules=[BlockVerification(), TokenVerification()], shapes=[Batch(2), Batch(3)])
    with pytest.raises(SettingError, match="race_rank records ranks up to 8"):
        predict(trace, RaceVerification(), Batch(9))
    without = Trace({name: c for name, c in trace.columns.items() if name != "race_rank"}, trace.texts)
    with pytest.raises(TraceError, match="no race_rank"):
        predict(without, RaceVerification(), Batch(2))
    with pytest.raises(SettingError, match="nodes is 0"):
        BestTree(0)
    with pytest.raises(SettingError, match="max depth is 0"):
        BestTree(2, max_depth=0)
    assert predict(trace, TopKMatch(), Batch(30)).tokens_per_call.best <= 2


def test_trees_of_recursive_rejection_try_ranks_in_order() -> None:
    """A law that favours rank 2: the race may skip rank 1, recursive rejection cannot."""
    trace = ranked_trace(4)
    rows = len(trace)
    late = np.tile([0.1, 0.8, 0, 0, 0, 0, 0, 0], (rows, 1))
    columns = {**trace.columns, "race_rank": late, "rejection_rank": late, "distinct_rank": late[:, :DISTINCT_RANKS]}
    favoured = Trace(columns, trace.texts)
    assert predict(favoured, RaceVerification(), BestTree(3)).shape.tree().paths == [(2,), (2, 2), (2, 2, 2)]
    for rule in (RecursiveRejection(), DISTINCT):
        siblings = set(predict(favoured, rule, BestTree(3)).shape.tree().paths)
        assert all(path[-1] == 1 or (*path[:-1], path[-1] - 1) in siblings for path in siblings)


def test_what_comes_from_estimates_is_said() -> None:
    """Of distinct candidates one alone is exact; more than are recorded cannot be had."""
    trace = ranked_trace(5)
    for rules, shape, said in (
        ([DISTINCT], Chain(3), False),
        ([DISTINCT], Batch(2), True),
        ([RecursiveRejection(), RaceVerification()], KAry((2, 3)), False),
        ([RaceVerification(), DISTINCT], KAry((2, 3)), True),
    ):
        notes = " ".join(prediction_report(plan(trace, rules=rules, shapes=[shape])).notes)
        assert ("recursive-distinct with several candidates is not exact" in notes) == said
    with pytest.raises(SettingError, match="distinct_rank records ranks up to 4"):
        predict(trace, DISTINCT, Batch(5))
    without = Trace({name: c for name, c in trace.columns.items() if name != "distinct_rank"}, trace.texts)
    with pytest.raises(TraceError, match="no distinct_rank"):
        predict(without, DISTINCT, BestTree(2))
    chains = [predict(without, rule, Chain(4)).tokens_per_call.best for rule in (DISTINCT, TokenVerification())]
    assert chains[0] == chains[1]


def test_shapes_of_one_size_stay_apart() -> None:
    """A searched tree, a k-ary one and one written by hand have columns of their own, and T1 stands once per rule."""
    trace = ranked_trace(5)
    shapes = [BestTree(3), Tree.from_paths([(1,), (2,), (1, 1)]), KAry((1, 2)), KAry((3,)), Chain(3)]
    answer = plan(trace, rules=[RaceVerification()], shapes=shapes)
    assert list(map(str, answer.labels)) == ["race tree", "race 1,2,1-1", "race 1x2", "race 3", "race"]
    table = prediction_report(answer).pieces[1]
    assert isinstance(table, Table)
    shown = [cell for row in table.texts for cell in row]
    for prediction in answer.predictions[:-1]:
        assert prediction.tokens_per_call.short() in shown
    assert [column.heading for column in table.columns].count("T1\nrace") == 1


def test_t1_names_its_rule() -> None:
    """Beside a rule with ranks it is that rule's, whatever stands in the next column."""
    trace = ranked_trace(6)
    for rules, heading in (
        ((TopKMatch(), TokenVerification()), "T1\ntopk"),
        ((TokenVerification(), TopKMatch()), "T1"),
    ):
        table = prediction_report(plan(trace, rules=rules, shapes=[Chain(2)])).pieces[0]
        assert isinstance(table, Table)
        assert table.columns[-1].heading == heading
