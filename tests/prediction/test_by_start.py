"""Columns by start and depth (§10) beyond what the ledger enumerates: the special case, the depths, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proofs_check.statement.findings import Effort
from proofs_check.theorems.path.head_cases import by_start, random_heads
from proofs_check.theorems.path.start_survival import CALLED, by_position, head_calls
from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft
from spectheory.deployment.ranking import rank_drafts
from spectheory.drafting import Batch, Chain, KAry
from spectheory.errors import SettingError, TraceError
from spectheory.prediction import plan, predict
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.bias_tradeoff import bias_tradeoff
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.text_limit import one_call_bound
from spectheory.trace import TextInfo, Trace
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification import PATH_RULES, BiasedVerification, RankRule, TokenVerification
from spectheory.verification.by_start import PREFIX
from spectheory.verification.registry import DEFAULT_RULES
from tests.commands import answer
from tests.commands import refused as refused_command
from tests.made_up import all_refused, head_columns
from tests.made_up import by_start as rewritten

DEPTH = 4
RANKED = ("race", "poisson", "recursive", "recursive-distinct", "topk")
READ = ("token", "block", "argmax", "greedy", "independent", *RANKED)
ROUNDING = 1e-12
"""Sums of some hundred products near one."""


def head(texts: int = 6, seed: int = 1) -> Trace:
    """A made-up head along texts of 20 tokens, by three prompts."""
    infos = tuple(TextInfo(f"text {i}", 20, prompt=f"p{i % 3}") for i in range(texts))
    return Trace(head_columns(20 * texts, DEPTH, seed), infos, {"settings": {"depth": DEPTH}})


def read_by_position(trace: Trace) -> Trace:
    """The per-position reading of a head: the columns of its first drafts alone."""
    return replace(trace, columns={n: c for n, c in trace.columns.items() if n not in BY_START})


# The theorem, rule by rule


@pytest.mark.parametrize("name", list(CALLED))
def test_no_rule_has_the_per_position_reading(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule and tree by itself: the survival by start is exact in fractions, that by position is wrong."""
    monkeypatch.setattr("proofs_check.theorems.path.start_survival.CALLED", {name: CALLED[name]})
    cases = list(random_heads(Effort(), ((2, 3, 2), (3, 2, 2)), 2))
    for reading, holds in ((by_start, True), (by_position, False)):
        compared = [each for case in cases for each in head_calls(reading, **case)]
        assert all(each.left == each.right for each in compared) == holds


# A draft model is the special case


SHAPES: tuple[ShapeRequest, ...] = (
    *(Chain(k) for k in range(1, DEPTH + 1)),
    Batch(3),
    KAry((2, 2)),
    BestTree(6, DEPTH),
)


def test_a_draft_model_by_start_is_predicted_as_by_position() -> None:
    """The same numbers for every rule and shape, the best trees included, whichever way its columns are written."""
    plain = read_by_position(head())
    deep = replace(plain, columns={**plain.columns, **rewritten(plain.columns, DEPTH)})
    rules = [PATH_RULES[name] for name in READ]
    both = [plan(trace, ConstantRatio(0.1), rules=rules, shapes=SHAPES).predictions for trace in (plain, deep)]
    assert len(both[0]) == len(READ) * DEPTH + 3 * sum(isinstance(rule, RankRule) for rule in rules)
    for one, other in zip(*both, strict=True):
        assert (one.rule, str(one.shape), one.shape.tree()) == (other.rule, str(other.shape), other.shape.tree())
        for field in ("tokens_per_call", "acceptance", "speedup"):
            for end in ("low", "best", "high"):
                assert getattr(getattr(one, field), end) == pytest.approx(getattr(getattr(other, field), end), ROUNDING)
        assert (one.limits.text, one.limits.iid_branching) == (other.limits.text, other.limits.iid_branching)
        if one.limits.decoding is not None:  # block verification's value; L is at most that many calls
            assert other.limits.decoding is None
            assert other.limits.decoding_by_start is not None
            assert one.limits.decoding.best <= other.limits.decoding_by_start.best * (1 + ROUNDING)


def test_over_acceptance_by_start() -> None:
    """Share 0 is token verification; by start and by position a draft model has the same survival at every share."""
    plain = read_by_position(head()).columns
    deep = {**plain, **rewritten(plain, DEPTH)}
    token = TokenVerification().path_survival(deep, DEPTH)
    np.testing.assert_allclose(BiasedVerification(0.0).weighted_survival(deep, DEPTH), token, rtol=ROUNDING)
    inside = slice(0, 120 - DEPTH)
    for share in (0.0, 0.3, 1.0):
        rule = BiasedVerification(share)
        for of in (rule.path_survival, rule.weighted_survival, rule.weighted_survival_above):
            np.testing.assert_allclose(of(deep, DEPTH)[inside], of(plain, DEPTH)[inside], rtol=ROUNDING)


# Depths


def test_default_shapes_end_at_the_depth() -> None:
    """Plans, searched trees and rankings of drafts: nothing deeper than is recorded, all of that depth."""
    trace = head()
    assert {p.shape.nodes for p in plan(trace, trees=False).predictions} == set(range(1, DEPTH + 1))
    certain = replace(trace, columns={**trace.columns, **{n: np.ones_like(trace.columns[n]) for n in RANKS}})
    assert predict(certain, PATH_RULES["topk"], BestTree(9)).shape.depth == DEPTH
    ranking = rank_drafts([Draft("head", certain, ConstantRatio(0.01))], tree_rules=[PATH_RULES["topk"]])  # type: ignore[list-item]
    assert max(candidate.prediction.shape.depth for candidate in ranking.candidates) == DEPTH
    assert f"head: drafts beyond k = {DEPTH}, the trace records the draft no deeper." in ranking.left_out


RANKS = ("draft_rank", "start_draft_rank")


def without(*names: str) -> Trace:
    """The head without some columns."""
    trace = head()
    return replace(trace, columns={name: values for name, values in trace.columns.items() if name not in names})


def asked(name: str, shape: ShapeRequest, trace: Callable[[], Trace] = head) -> Callable[[], Any]:
    """A prediction to be refused."""
    return lambda: predict(trace(), PATH_RULES[name], shape)


test_what_is_not_recorded_is_refused = all_refused(
    {
        **{
            f"{name} beyond": (asked(name, Chain(DEPTH + 1)), SettingError, f"records this draft to depth {DEPTH}")
            for name in READ
        },
        "tree beyond": (asked("topk", KAry((1,) * (DEPTH + 1))), SettingError, f"to depth {DEPTH}"),
        "rank beyond": (asked("race", Batch(START_RANKS + 1)), SettingError, f"ranks up to {START_RANKS}"),
        **{
            f"{name} without": (
                asked(name, Chain(1), partial(without, *(PREFIX + needed for needed in PATH_RULES[name].needs))),
                TraceError,
                f"rule {name!r} cannot be predicted: the trace has no {PREFIX}",
            )
            for name in READ
        },
        "law without": (
            asked("race", Batch(2), lambda: without("start_race_rank")),
            TraceError,
            "the trace has no start_race_rank",
        ),
        "distinct law without": (
            asked("recursive-distinct", Batch(2), lambda: without("start_distinct_rank")),
            TraceError,
            "the trace has no start_distinct_rank",
        ),
        "bias": (
            lambda: bias_tradeoff(without("start_total_variation"), 2, [0.1]),
            TraceError,
            "the trace has no start_total_variation",
        ),
    }
)


def test_rules_without_their_columns_are_left_out_of_plans() -> None:
    names = {p.rule.name for p in plan(without("start_race_g"), trees=False).predictions}
    assert names == {rule.name for rule in DEFAULT_RULES} & {*READ} - {"race", "poisson"}


# Limits


def test_limits_are_of_the_drafts_by_start() -> None:
    """The one-call bound has the ratios by start and ends at the depth; T1 and the i.i.d. formula read first drafts."""
    trace = replace(head(), provenance={})
    prediction = predict(trace, PATH_RULES["block"], Chain(DEPTH))
    columns, rows = trace.columns, np.arange(120)
    ahead = np.stack([columns["log_target"][np.minimum(rows + i, 119)] for i in range(DEPTH)], axis=1)
    terms = np.minimum(1, np.exp(np.cumsum(columns["start_log_draft"] - ahead, axis=1)))
    whole = rows % 20 + DEPTH <= 20
    of_call = one_call_bound(Prompts(trace.texts), trace, [DEPTH, DEPTH + 1])
    assert list(of_call) == [DEPTH], "no draft is recorded beyond"
    assert of_call[DEPTH].best == pytest.approx(1 + terms[whole].sum() / whole.sum(), ROUNDING)
    by_position = read_by_position(trace)
    plain = predict(by_position, PATH_RULES["block"], Chain(DEPTH))
    other = one_call_bound(Prompts(trace.texts), by_position, [DEPTH])[DEPTH].best
    assert abs(other - of_call[DEPTH].best) > 1e-3, "the per-position reading differs"
    assert prediction.limits.iid_channel == plain.limits.iid_channel
    assert prediction.iid_tokens_per_call == pytest.approx(plain.iid_tokens_per_call, ROUNDING)
    wide = predict(trace, PATH_RULES["topk"], Batch(DEPTH + 3)).limits
    assert wide.decoding_by_start is None
    assert wide.text is not None


# Commands


def test_commands_take_a_head_s_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Default lengths are cut with a remark; what is asked for beyond the depth is refused in one line."""
    head().write(path := tmp_path / "trace.parquet")
    assert main(["predict", str(path), "--c", "0.1", "--k-max", "5", "--json"]) == 0
    out, err = capsys.readouterr()
    assert f"the trace records the draft to depth {DEPTH}: no chain or tree is deeper" in " ".join(err.split())
    assert f'"depth": {DEPTH}' in out
    assert f'"depth": {DEPTH + 1}' not in out
    shapes = answer(capsys, "predict", path, "--shape", "chain", "--shape", "batch", "--rule", "topk")["predictions"]
    assert {(p["depth"], p["k"]) for p in shapes} >= {(DEPTH, DEPTH), (1, 16)}
    assert f"to depth {DEPTH}" in refused_command(["predict", path, "--shape", "1x1x1x1x1", "--rule", "topk"], capsys)
    biased = answer(capsys, "predict", path, "--bias", "0,0.1", "--shape", "chain")["bias"]
    assert [each["bias"]["best"] > 0 for each in biased] == [False, True]
    assert answer(capsys, "tree", path, "--nodes", 6)["depth"] <= DEPTH
    for view in ([], ["--all"]):
        assert main(["rules", str(path), *view]) == 0
        assert "They are about a call's first draft" in " ".join(capsys.readouterr().out.split())
    for command in (
        ("plan", "--trace", f"head={path}", "--c", "0.1", "--nodes-max", "2"),
        ("rules", path),
        ("bounds", path),
    ):
        answer(capsys, *command)
