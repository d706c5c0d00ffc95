"""Limits over a whole decoding (§12/L, B7): L beside a plain recursion, B7 as block verification's calls."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.cli import main
from spectheory.drafting import Batch, Chain
from spectheory.prediction import plan, predict
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.paths import calls_of_chains
from spectheory.prediction.text_limit import TextLimit
from spectheory.prediction.trace_limits import fewest_calls, least_calls
from spectheory.trace import GIVEN_TEXT, TextInfo, Trace
from spectheory.verification import PATH_RULES
from spectheory.verification.by_start import PREFIX

ROUNDING = 1e-12
"""Relative: sums of a few hundred terms in double precision."""
LENGTHS = np.array([7, 1, 30, 4, 30])
DEPTH = 5
CHAINS = [Chain(k) for k in range(1, DEPTH + 1)]


def masses(rng: np.random.Generator, kind: str) -> NDArray[np.float64]:
    """Block verification's survival by start, unrelated from start to start; past the end it carries no meaning."""
    tokens = int(LENGTHS.sum())
    if kind == "one-hot":
        return (rng.choice([0, 1, DEPTH], tokens)[:, None] >= np.arange(1, DEPTH + 1)).astype(np.float64)
    walks = np.cumsum(rng.normal(-0.2, 0.8, (tokens, DEPTH)), axis=1)
    return np.exp(np.minimum(0.0, np.minimum.accumulate(walks, axis=1)))


def plainly(survival: NDArray[np.float64], length: int, k: int, first: int = 0) -> float:
    """L(first) of one text, as §12 writes it."""
    ahead = [0.0] * (length + k + 2)
    for n in range(length - 1, first - 1, -1):
        kept = [1.0, *survival[n, :k], 0.0]
        least = [min(ahead[n + 1 : n + i + 2]) for i in range(k + 1)]
        ahead[n] = 1 + sum((kept[i] - kept[i + 1]) * least[i] for i in range(k + 1) if least[i])
    return ahead[first] if first < length else 0.0


@pytest.mark.parametrize("kind", ["soft", "one-hot"])
@pytest.mark.parametrize("prefill", [False, True])
def test_it_is_the_recursion(kind: str, prefill: bool) -> None:
    survival, ends = masses(np.random.default_rng(3), kind), np.cumsum(LENGTHS)
    least = least_calls(survival, LENGTHS, [1, 3, DEPTH], prefill_emits_token=prefill)
    below = 0
    for k, calls in least.items():
        plain = [plainly(survival[e - n : e], n, k, int(prefill)) + prefill for e, n in zip(ends, LENGTHS, strict=True)]
        np.testing.assert_allclose(calls, plain, rtol=ROUNDING)
        block = calls_of_chains(survival, LENGTHS, [k], prefill_emits_token=prefill)[k].expected
        assert np.all(calls <= block * (1 + ROUNDING))
        below += int(np.sum(calls < block - 1e-6))
    assert below, "where drafts depend on the start, giving some away may pay"


def test_past_the_end_nothing_is_read() -> None:
    survival, ends = masses(np.random.default_rng(4), "soft"), np.cumsum(LENGTHS)
    left = np.repeat(ends, LENGTHS) - np.arange(len(survival))
    spoilt = np.where(np.arange(1, DEPTH + 1) <= left[:, None], survival, np.nan)
    np.testing.assert_array_equal(*(least_calls(each, LENGTHS, [DEPTH])[DEPTH] for each in (survival, spoilt)))


def test_more_lengths_than_one_pass_serves() -> None:
    survival = np.repeat(masses(np.random.default_rng(5), "soft"), 5, axis=1)
    several, alone = (least_calls(survival, LENGTHS, ks)[20] for ks in (range(1, 25), [20]))
    np.testing.assert_allclose(several, alone, rtol=ROUNDING)


def pair(origin: str = "", by_start: bool = False) -> Trace:
    """Texts of a draft model, or of a head whose deeper drafts differ from start to start."""
    rng = np.random.default_rng(7)
    log_target = -rng.exponential(1.0, 160)
    log_draft = np.minimum(0.0, log_target + rng.normal(-0.2, 0.6, 160))
    columns = {"log_target": log_target, "log_draft": log_draft}
    if by_start:
        ahead = log_target[np.minimum(np.add.outer(np.arange(160), np.arange(DEPTH)), 159)]
        columns[PREFIX + "log_draft"] = np.minimum(0.0, ahead + rng.normal(-0.2, 0.6, ahead.shape))
        columns["log_draft"] = columns[PREFIX + "log_draft"][:, 0]
    columns["greedy_agreement"] = rng.random(160) < 0.6
    columns["draft_rank"] = rng.integers(1, 3, 160)
    if by_start:
        columns[PREFIX + "draft_rank"] = rng.integers(1, 3, (160, DEPTH))
        columns[PREFIX + "draft_rank"][:, 0] = columns["draft_rank"]
    texts = tuple(TextInfo(str(n), 16, prompt=str(n // 2)) for n in range(10))
    return Trace(columns, texts, {"origin": origin} if origin else {})


RULES = [PATH_RULES[name] for name in ("token", "block", "argmax")]


def test_of_a_draft_model_block_is_the_limit() -> None:
    answer = plan(pair(), rules=RULES, shapes=CHAINS)
    block = {p.shape.nodes: p for p in answer.of("block")}
    for each in answer.predictions:
        best = block[each.shape.nodes]
        assert each.limits.decoding == best.tokens_per_call
        assert each.limits.decoding_by_start is None
    for token in answer.of("token"):
        assert token.regret is not None
        ratio = block[token.shape.nodes].tokens_per_call.best / token.tokens_per_call.best
        assert token.regret.best == pytest.approx(ratio - 1, abs=ROUNDING)
    assert all(p.regret is not None and abs(p.regret.best) < ROUNDING for p in block.values())
    assert {p.regret for p in answer.of("argmax")} == {None}, "argmax drafts are not drawn"


def test_regret_is_paired_over_prompts() -> None:
    """Its interval is narrower than that of either rule's tokens per call: both vary together."""
    token = predict(pair(), PATH_RULES["token"], Chain(DEPTH))
    assert token.regret is not None
    width = (token.regret.high - token.regret.low) / (1 + token.regret.best)
    assert width < (token.tokens_per_call.high - token.tokens_per_call.low) / token.tokens_per_call.best / 2


def test_of_drafts_by_start_it_is_l() -> None:
    trace = pair(by_start=True)
    answer = plan(trace, rules=RULES, shapes=CHAINS)
    survival = PATH_RULES["block"].path_survival(trace.columns, DEPTH)
    for each in answer.predictions:
        k = each.shape.nodes
        calls = least_calls(survival, trace.lengths, [k])[k].sum()
        assert each.limits.decoding is None
        assert each.limits.decoding_by_start is not None
        assert each.limits.decoding_by_start.best == pytest.approx(len(trace) / calls, rel=ROUNDING)
    regret = answer.of("block")[-1].regret
    assert regret is not None
    assert regret.best > 1e-6, "block verification need not be the best for drafts by start"


def test_where_there_is_none() -> None:
    assert fewest_calls(pair(GIVEN_TEXT), [1, 2]) == {}
    deep = pair(by_start=True)
    assert set(fewest_calls(deep, [1, DEPTH, DEPTH + 1])) == {1, DEPTH}
    wide = predict(replace(deep, provenance={}), PATH_RULES["topk"], Batch(2))
    assert (wide.limits.decoding_by_start, wide.regret) == (None, None)


@pytest.mark.parametrize("prefill", [0, 1])
def test_b6_counts_the_starts_of_calls_that_do_not_sample(prefill: int) -> None:
    """Argmax drafts: B6 is the mean over the starts of their own calls; rules that sample have all positions.

    Where the prompt's pass emits a token, the first call starts after it.
    """
    trace, k = pair(), 2
    answer = plan(trace, rules=RULES, shapes=[Chain(k)], prefill_emits_token=bool(prefill))
    of = {p.rule.name: p.limits.text for p in answer.predictions}
    assert of["token"] == of["block"] != of["argmax"]
    right = trace.columns["draft_rank"] == 1
    visited = np.zeros(len(trace), dtype=bool)
    for start in range(0, len(trace), 16):
        n = start + prefill
        while n < start + 16:
            visited[n] = True
            n += 1 + next((i for i in range(k) if n + i < len(trace) and not right[n + i]), k)
    text = TextLimit(Prompts(trace.texts), trace, [k])
    at_starts, every = text.means(
        [(k, lambda block: visited.astype(np.float64)), (k, lambda block: np.ones(len(block)))]
    )
    assert of["argmax"] == at_starts
    assert of["token"] == every == text.at(k)


def test_predict_shows_the_column_where_block_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair().write(tmp_path / "trace.parquet")
    for rules, shown in ((["token"], True), (["token", "block"], False)):
        named = [word for rule in rules for word in ("--rule", rule)]
        assert main(["predict", str(tmp_path), *named, "--k-max", "2", "--shape", "chain"]) == 0
        columns = " ".join(capsys.readouterr().out.partition("Why not more")[0].split())
        assert ("upper limit for any lossless" in columns) is shown
    assert main(["predict", str(tmp_path), "--rule", "token", "--k-max", "2", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["regret"]) == {"low", "best", "high", "kind"}
    assert content["limits"]["decoding"]["best"] >= content["tokens_per_call"]["best"]
