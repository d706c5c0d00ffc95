"""Prompt lookup in seconds: costs of calls, plans, engines."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import norm, t

from spectheory.cli import main
from spectheory.cost import (
    ACCELERATORS,
    AffineCost,
    AffineTime,
    ConstantRatio,
    CostModel,
    LatencyTable,
    LoopTime,
    ModelShape,
    PassCost,
    Roofline,
    batch_table,
    break_even_batch,
)
from spectheory.deployment import Draft, best_lengths, break_even, distances, engine_settings
from spectheory.deployment.candidates import NO_DRAFT, SPECULATE, UNCERTAIN, Candidate
from spectheory.deployment.ranking import rank_drafts
from spectheory.drafting import Chain, Copied
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction import predict
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PATH_RULES, LookupMatch, TokenVerification
from tests.measure.lookup_cases import KS, text_trace


def drafted_by_walking(trace: Trace, k: int, first: int = 0) -> list[int]:
    """What each call drafts: start at the first token, go on behind what a call puts out."""
    lengths, start = list[int](), 0
    match, drafted = (trace.columns[name] for name in LookupMatch.needs)
    for length in trace.lengths:
        at, end = start + first, start + length
        while at < end:
            lengths.append(int(min(drafted[at], k, end - at - 1)))
            at += min(int(match[at]), k) + 1
        start = end
    return lengths


# Costs and plans

second = Interval.exact


def lookup_chain(k: int, shares: Sequence[float] = ()) -> Chain:
    """At most k copied tokens."""
    return Chain(k, schedule=Copied(tuple(shares)))


TABLE = LatencyTable({m: second(1 + 0.03 * m) for m in (1, 8, 33)}, {1: second(0.2), 2: second(0.4)}, context=64)
LARGE = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
SMALL = ModelShape.dense(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
ROOFLINE = Roofline(LARGE, SMALL, ACCELERATORS["H100-SXM"], context=512)


@pytest.mark.parametrize(
    "cost", [TABLE, ROOFLINE, AffineCost(AffineTime(0.01, 0.001), AffineTime(0.002, 0.001))], ids=str
)
def test_a_call_costs_its_verification(cost: PassCost) -> None:
    for k in (1, 5, 16):
        for share in (0.0, 0.7, 1.0):
            assert cost.call(lookup_chain(k), share) == cost.target_pass(k + 1)
            assert cost.call(Chain(k), share).best > cost.target_pass(k + 1).best


def test_the_mean_call_by_hand() -> None:
    """Half of the calls copy nothing, a quarter one token and a quarter three; the ends of intervals likewise."""
    ends = {1: (0.9, 1.0, 1.2), 2: (1.0, 1.2, 1.4), 4: (1.5, 2.0, 3.0)}
    table = LatencyTable({m: Interval(*each, "statistical") for m, each in ends.items()}, {}, 8)
    call = table.call(lookup_chain(3, (0.5, 0.25, 0.0, 0.25)))
    np.testing.assert_allclose((call.low, call.best, call.high), (1.075, 1.3, 1.7), rtol=1e-15)
    assert call.kind == table.target_pass(1).kind
    assert table.call(lookup_chain(3, (0.0, 0.0, 0.0, 1.0))) == table.call(lookup_chain(3)) == table.target_pass(4)
    assert table.call(lookup_chain(3, (1.0, 0.0, 0.0, 0.0))) == table.target_step()


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.5, 0.5, 0.5), (1.5, -0.5, 0.0), (1.0, 0.0, 0.0, 0.0)])
def test_shares_that_are_none(shares: tuple[float, ...]) -> None:
    with pytest.raises(SettingError, match="needs 3 numbers >= 0 of sum 1"):
        lookup_chain(2, shares)


def test_cost_models_without_passes() -> None:
    assert (
        ConstantRatio(0.3).call(lookup_chain(4)).best == ConstantRatio(0.3).call(lookup_chain(1, (0.5, 0.5))).best == 1
    )
    free = Roofline(LARGE, None, ACCELERATORS["H100-SXM"], context=512)
    for k, tokens in ((4, 2.0), (2, 1.3)):
        assert batch_table(ROOFLINE, lookup_chain(k), tokens, [1, 64, 512], 0.3) == batch_table(
            free, Chain(k), tokens, [1, 64, 512]
        )
        alone = break_even_batch(ROOFLINE, lookup_chain(k), tokens, 0.3)
        assert alone == break_even_batch(free, Chain(k), tokens)
        assert alone != break_even_batch(ROOFLINE, Chain(k), tokens, 0.3)


def test_batches_of_short_drafts() -> None:
    """The table is the mean call at each batch, and the break-even batch is where its speed-up is 1."""
    shape, whole = lookup_chain(4, (0.5, 0.0, 0.0, 0.1, 0.4)), lookup_chain(4)
    for tokens in (1.5, 2.0):
        ends = [break_even_batch(dataclasses.replace(ROOFLINE, context=0), each, tokens) for each in (shape, whole)]
        assert None not in ends
        batch, short_of = (float(end or 0) for end in ends)
        assert batch > short_of
        time = dataclasses.replace(ROOFLINE, context=0).target_time
        call = sum(share * time.seconds(m, batch) for m, share in shape.verified.items())
        assert tokens * time.seconds(1, batch) == pytest.approx(call, rel=1e-9)
    for point in batch_table(ROOFLINE, shape, 2.0, [1, 64, 512]):
        seconds = [ROOFLINE.target_time.seconds(m, point.batch) for m in (1, 4, 5)]
        assert point.call == pytest.approx(0.5 * seconds[0] + 0.1 * seconds[1] + 0.4 * seconds[2], rel=1e-12)


@pytest.mark.parametrize("k", KS)
def test_predicted_from_a_trace(k: int) -> None:
    """Tokens per call by walking through the texts; the speed-up is that over verification alone."""
    trace = text_trace()
    prediction = predict(trace, LookupMatch(), Chain(k), TABLE)
    drafts = drafted_by_walking(trace, k)
    tokens, call = len(trace) / len(drafts), sum(TABLE.target_pass(m + 1).best for m in drafts) / len(drafts)
    assert prediction.tokens_per_call.best == pytest.approx(tokens, rel=1e-12)
    assert tokens > 1.2
    assert prediction.speedup is not None
    assert prediction.speedup.best == pytest.approx(tokens * TABLE.target_pass(1).best / call, rel=1e-12)
    assert call < TABLE.target_pass(k + 1).best
    assert prediction.shape == lookup_chain(k, tuple((np.bincount(drafts, minlength=k + 1) / len(drafts)).tolist()))
    assert (str(prediction.shape), str(prediction.label)) == (f"chain k={k}", "lookup")
    (calls,) = calls_by_shape(trace, PATH_RULES["lookup"], [Chain(k)])
    assert calls.shape.passes == ()
    # After a token from the prompt's own pass, calls start one token later.
    after = drafted_by_walking(trace, k, first=1)
    prediction = predict(trace, LookupMatch(), Chain(k), TABLE, prefill_emits_token=True)
    assert prediction.shape == lookup_chain(k, tuple((np.bincount(after, minlength=k + 1) / len(after)).tolist()))


def test_texts_of_a_single_token_have_no_shares() -> None:
    """The prompt's own pass emits it: no call is left."""
    columns = {"log_target": np.full(2, -1.0), "log_draft": np.full(2, -1.0)}
    copied = dict.fromkeys(LookupMatch.needs, np.zeros(2, np.int16))
    trace = Trace(columns | copied, (TextInfo("1", 1), TextInfo("2", 1)))
    assert predict(trace, LookupMatch(), Chain(3), TABLE, prefill_emits_token=True).shape == lookup_chain(3)


# Half of eight prompts draft one token per call, half sixteen, and every call outputs two.
UNALIKE, COPIES = 8, 16

SURE = {1: second(1.0), 2: second(1.05), 17: second(2.7)}

UNSURE = {1: (0.9, 1.0, 1.2), 2: (1.0, 1.05, 1.3), 17: (1.5, 2.7, 2.8)}


def unalike(calls: int = 100) -> Trace:
    """Texts that could have been longer, so that the last call has room for its drafts."""
    rows = 2 * calls
    drafts = [1 if number % 2 else COPIES for number in range(UNALIKE)]
    columns = {name: np.full(UNALIKE * rows, -1.0) for name in ("log_target", "log_draft")}
    columns["lookup_match"] = np.tile(np.array([1, 0], np.int16), UNALIKE * calls)
    columns["lookup_drafted"] = np.repeat(np.array(drafts, np.int16), rows)
    texts = tuple(TextInfo(str(number), rows, ended=True) for number in range(UNALIKE))
    return Trace(columns, texts, {"settings": {"tokens": 10 * rows}})


@pytest.mark.parametrize(
    "cost",
    [
        LatencyTable(SURE, {}, 8),
        LatencyTable({m: Interval(*each, "statistical") for m, each in UNSURE.items()}, {}, 8),
        LatencyTable(SURE, {}, 8, loop=LoopTime(0.1, 0.2, 0.0, 0.3, 0.0)).looped,
        dataclasses.replace(ROOFLINE, batch=128),
        AffineCost(AffineTime(0.01, 0.001), None),
        ConstantRatio(0.3),
    ],
    ids=["table", "unsure", "looped", "roofline", "affine", "ratio"],
)
def test_times_of_calls_vary_over_prompts(cost: CostModel) -> None:
    speedup = predict(unalike(), LookupMatch(), Chain(COPIES), cost).speedup
    assert speedup is not None

    def speedup_with(dear: int, of: int, cost: CostModel = cost) -> float:
        shares = [0.0] * (COPIES + 1)
        shares[1], shares[COPIES] = 1 - dear / of, dear / of
        return cost.speedup(second(2.0), lookup_chain(COPIES, tuple(shares))).best

    half, all_but_one = UNALIKE // 2, UNALIKE - 1
    without = np.log([speedup_with(half - 1, all_but_one), speedup_with(half, all_but_one)] * half)
    of_prompts = all_but_one / UNALIKE * np.sum((without - without.mean()) ** 2)
    ends = [[speedup_with(half, UNALIKE, end) for end in pair] for pair in cost.errors()]
    of_times = sum((np.log(high / low) / 2 / norm.ppf(0.975)) ** 2 for low, high in ends)
    freedom = all_but_one * (1 + of_times / of_prompts) ** 2 if of_prompts > 0 else np.inf
    reach = t.ppf(0.975, freedom) * np.sqrt(of_prompts + of_times)
    best = speedup_with(half, UNALIKE)
    wanted = np.exp(np.log(best) + reach * np.array([-1, 0, 1]))
    np.testing.assert_allclose((speedup.low, speedup.best, speedup.high), wanted, rtol=1e-9)
    assert speedup.kind == "statistical"
    timed = isinstance(cost, LatencyTable) and cost.target[1].kind == "statistical"
    assert (len(ends) > 0) == (timed or isinstance(cost, Roofline)), "a roofline states an error"
    assert (speedup.low < speedup.high) == (not isinstance(cost, ConstantRatio))


def test_a_gain_that_hangs_on_the_prompts_is_not_sure() -> None:
    table = LatencyTable(SURE, {}, 8)
    draft = Draft("near", unalike(), table)
    verdicts = [Candidate(draft, predict(draft.trace, LookupMatch(), Chain(k), table)).verdict for k in (1, COPIES)]
    assert verdicts == [SPECULATE, UNCERTAIN], "short drafts cost every prompt the same"


def test_a_single_prompt_has_no_interval() -> None:
    several = unalike()
    texts = tuple(dataclasses.replace(text, prompt="one") for text in several.texts)
    trace = Trace(several.columns, texts, several.provenance)
    one = predict(trace, LookupMatch(), Chain(COPIES), LatencyTable(SURE, {}, 8)).speedup
    assert one is not None
    assert one == Interval.estimate(one.best)
    assert one.best == pytest.approx(2 / 1.875, rel=1e-12)


def test_the_first_trace_that_can_be_looked_up_is() -> None:
    """In rankings and in settings of engines, though the texts of another copy more."""
    one, other = text_trace(), text_trace(seed=3)
    without = Trace({name: one.columns[name] for name in ("log_target", "log_draft")}, one.texts, one.provenance)
    for first, last in ((one, other), (other, one)):
        drafts = [Draft(name, trace, TABLE) for name, trace in zip("abc", (without, first, last), strict=True)]
        ranked = rank_drafts(drafts).candidates
        asked = [*ranked, *(settings.candidate for settings in engine_settings(drafts))]
        looked_up = [candidate for candidate in asked if candidate.draft.name == NO_DRAFT]
        assert len(looked_up) == 3
        assert all(candidate.draft.trace is first for candidate in looked_up)


def test_lookup_is_ranked_once_and_without_a_draft() -> None:
    near, far = (Draft(name, text_trace(name=name), TABLE) for name in ("near", "far"))
    ranking = rank_drafts([near, far], k_max=8)
    (lookup,) = [c for c in ranking.candidates if c.prediction.rule.name == "lookup"]
    speedups = {
        k: len(near.trace) * TABLE.target_pass(1).best / sum(TABLE.target_pass(m + 1).best for m in drafts)
        for k, drafts in ((k, drafted_by_walking(near.trace, k)) for k in range(1, 9))
    }
    best = max(speedups, key=lambda k: speedups[k])
    assert lookup.prediction.shape.nodes == best
    assert lookup.speedup.best == pytest.approx(speedups[best])
    assert (lookup.draft.name, lookup.setting) == (NO_DRAFT, f"prompt lookup, k = {best}, no draft model")
    assert {c.draft.name for c in ranking.by_draft} == {"near", "far", NO_DRAFT}
    assert ranking.best is lookup
    with pytest.raises(SettingError, match="names must differ"):
        rank_drafts([Draft(NO_DRAFT, near.trace, TABLE)])


def test_break_even_and_limits_without_draft_passes() -> None:
    trace = text_trace()
    prediction = predict(trace, LookupMatch(), Chain(4), TABLE)
    point = break_even(prediction, TABLE, 8)
    assert point.draft_ratio is point.draft_ratio_needed is None
    assert prediction.speedup is not None
    assert prediction.speedup.best * point.tokens_per_call_needed / point.tokens_per_call == pytest.approx(1)
    drafted = break_even(predict(trace, TokenVerification(), Chain(4), TABLE), TABLE, 8)
    assert point.least_acceptance is not None
    assert drafted.least_acceptance is not None
    assert point.least_acceptance < drafted.least_acceptance, "verification alone has less to make up for"
    drafts = drafted_by_walking(trace, 4)
    call = sum(TABLE.target_pass(m + 1).best for m in drafts) / len(drafts)
    assert point.tokens_per_call_needed == pytest.approx(call / TABLE.target_pass(1).best)
    assert point.acceptance_needed is not None
    assert point.least_acceptance <= point.acceptance_needed, "its own length is among the chains tried"
    assert {d.limit.name: d.binds for d in distances(prediction)} == {"B7": False, "B6": True}


def test_top_p_cuts_what_transformers_copies() -> None:
    """It asks which tokens top-p leaves of flat logits; top-k leaves all of them, as they tie."""
    from transformers import LogitsProcessorList, TopKLogitsWarper, TopPLogitsWarper
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    text = torch.tensor([[5, 90, 3, 60, 7, 5]])
    copied = {}
    for options, processors in (
        ({}, []),
        ({"top_p": 0.5}, [TopPLogitsWarper(0.5)]),
        ({"top_k": 5}, [TopKLogitsWarper(5)]),
    ):
        kept = LogitsProcessorList(processors)
        engine = PromptLookupCandidateGenerator(None, 4, 3, 100, logits_processor=kept, vocab_size=100)
        plain = text_trace()
        how = {"settings": {"sampling": {"temperature": 1.0, **options}}}
        trace = dataclasses.replace(plain, provenance={**plain.provenance, **how})
        settings = engine_settings([Draft("near", trace, TABLE)], k_max=4, nodes=4)
        remarks = {s.engine: s.remarks for s in settings if not s.candidate.prediction.rule.uses_draft}
        copied[tuple(options)] = engine.get_candidates(text)[0].shape[1] - text.shape[1]
        assert any("top-p" in line for line in remarks["transformers"]) == ("top_p" in options)
    assert copied == {(): 4, ("top_p",): 0, ("top_k",): 4}


def test_best_lengths_by_batch() -> None:
    trace = text_trace()
    free = Roofline(LARGE, None, ACCELERATORS["H100-SXM"], context=512)
    choices = best_lengths(trace, LookupMatch(), ROOFLINE, k_max=8, batches=(1, 64, 256, 1024))
    assert choices == best_lengths(trace, LookupMatch(), free, k_max=8, batches=(1, 64, 256, 1024))
    assert len({choice.k for choice in choices}) > 1


def test_engines_that_look_up() -> None:
    settings = engine_settings([Draft("near", text_trace(), TABLE)], k_max=8, nodes=4)
    by_engine = {s.engine: s for s in settings if s.candidate.prediction.rule.name == "lookup"}
    k = rank_drafts([Draft("near", text_trace(), TABLE)], rules=[LookupMatch()], k_max=8).best.prediction.shape.nodes
    assert by_engine["transformers"].options == {
        **{"prompt_lookup_num_tokens": k, "max_matching_ngram_size": 3},
        **{"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0},
    }
    ours = {"method": "ngram", "num_speculative_tokens": k, "prompt_lookup_max": 3, "prompt_lookup_min": 1}
    assert by_engine["vllm"].options == ours
    assert json.dumps(ours) in by_engine["vllm"].paste
    assert "target.generate(**inputs, prompt_lookup_num_tokens=" in by_engine["transformers"].paste
    for one in by_engine.values():
        assert "An estimate" in one.remarks[0]
        assert one.candidate.draft.name == NO_DRAFT
    assert [s.engine for s in settings if s not in by_engine.values()] == ["transformers", "vllm", "onnxruntime"]


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text_trace().write(tmp_path / "trace.parquet")
    TABLE.write(tmp_path / "latency.json")
    assert main(["predict", str(tmp_path), "--rule", "lookup", "--k-max", "5", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [(p["rule"], p["shape"]) for p in content["predictions"]] == [
        ("lookup", f"chain k={k}") for k in range(1, 6)
    ]
    assert main(["plan", str(tmp_path), "--k-max", "8", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["rule"], content["draft"], content["break_even"]["draft_ratio"]) == ("lookup", NO_DRAFT, None)
    assert main(["plan", str(tmp_path), "--rule", "lookup", "--all"]) == 0
    shown = capsys.readouterr().out
    assert "prompt lookup, k = " in shown
    assert "vllm 0.32.0, no draft model" in shown
    assert "draft pass, target steps" not in shown
