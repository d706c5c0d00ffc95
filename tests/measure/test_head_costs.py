"""What a draft head costs: its passes, the hidden states that are taken for it, and how a call counts them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cost import ConstantRatio, LatencyTable, LoopTime, ModelShape, Roofline
from spectheory.cost.accelerators import ACCELERATORS
from spectheory.cost.model import reads_besides
from spectheory.deployment.break_even import break_even
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, KAry, Parallel, Shape, Tree
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.measure import MeasureSettings, ModelPair, differences, latency, loop_time, measure, measure_latency
from spectheory.measure.decoders import Call, Method, decode
from spectheory.measure.heads import load
from spectheory.measure.heads.base import PAIR_BEFORE
from spectheory.measure.validation.answer import _by_table, _made_by_table, _TraceExpectation
from spectheory.measure.validation.runs import Run
from spectheory.prediction import plan, predict
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.paths import calls_of_chains
from spectheory.prediction.shape_calls import drafted
from spectheory.prompts import Prompt
from spectheory.trace import Trace
from spectheory.verification import TokenVerification
from spectheory.verification.registry import path_rule
from tests.toy_heads import ToyHead, ToyParallelHead, with_head

SECOND = Interval.exact
TARGET = {1: SECOND(1.0), 2: SECOND(1.1), 16: SECOND(1.5)}
DRAFT = {1: SECOND(0.10), 2: SECOND(0.12), 4: SECOND(0.2), 16: SECOND(0.5)}
KIND = {"draft": {"kind": "eagle3", "parallel": False}}
WIDE = {1: Interval(0.2, 0.3, 0.4, "statistical"), 2: Interval(0.33, 0.35, 0.4, "statistical")}
HEADS, MODELS = LatencyTable(TARGET, DRAFT, 64, KIND), LatencyTable(TARGET, DRAFT, 64)


def trace_of(**draft: Any) -> Trace:
    """Two prompts of 40 tokens and a draft that is half as probable as the target everywhere."""
    texts = [([-1.0] * 40, [-1.0 - np.log(2)] * 40)] * 2
    return Trace.from_log_probabilities(texts, provenance={"draft": draft})


# What a call takes


def test_the_first_pass_of_a_head_is_on_all_that_was_accepted() -> None:
    """By hand: three drafts, of which two were accepted before, are passes on 3, 1 and 1."""
    assert HEADS.reads_accepted
    assert not MODELS.reads_accepted
    third = (0.12 + 0.2) / 2
    verify = HEADS.target_pass(4).best
    assert np.isclose(HEADS.call(Chain(3), 2.0).best, verify + third + 0.2)
    assert np.isclose(HEADS.call(Chain(3), 0.5).best, verify + 0.11 + 0.2)
    assert np.isclose(HEADS.call(Chain(3), 1.0).best, MODELS.call(Chain(3), 1.0).best)
    assert np.isclose(HEADS.call(Chain(3)).best, verify + 0.3)


def test_a_first_pass_takes_what_was_timed_of_it() -> None:
    """By hand, where reading pairs costs other seconds than drafted tokens; without these times the latter stand."""
    timed = dataclasses.replace(HEADS, first={1: SECOND(0.3), 2: SECOND(0.35), 4: SECOND(0.75)})
    for shape, drafting in ((Chain(3), 0.3), (KAry((2, 1)), 0.1 + 0.12), (Chain(3, schedule=Parallel()), 0.16)):
        verify = HEADS.target_pass(shape.nodes + 1).best
        for more, extra in ((0.0, 0.0), (1.0, 0.05), (2.0, 0.25), (0.5, 0.025)):
            assert np.isclose(timed.call(shape, more).best, verify + drafting + extra)
    assert not np.isclose(timed.call(Chain(3), 2.0).best, HEADS.call(Chain(3), 2.0).best)
    with pytest.raises(SettingError, match="a first draft pass reads 5 tokens: latencies were measured up to 4"):
        timed.call(Chain(4), 4.0)
    ends = [low.call(Chain(3), 1.0).best for low, _ in dataclasses.replace(timed, first=WIDE).errors()]
    assert sorted(np.array(ends) - timed.call(Chain(3), 1.0).best) == pytest.approx([-0.02, 0.1])
    with pytest.raises(SettingError, match="first passes cover"):
        dataclasses.replace(HEADS, first={2: SECOND(0.35)})


def test_a_parallel_head_makes_one_pass() -> None:
    """By hand: one pass on three tokens; with a constant ratio one pass, whatever the length."""
    verify = HEADS.target_pass(4).best
    assert np.isclose(HEADS.call(Chain(3, schedule=Parallel())).best, verify + 0.16)
    assert np.isclose(HEADS.call(Chain(3, schedule=Parallel()), 1.0).best, verify + 0.2)
    assert ConstantRatio(0.25).call(Chain(7, schedule=Parallel())).best == 1.25
    assert ConstantRatio(0.25).call(Chain(7)).best == 2.75
    assert KAry((2, 2)).by(Parallel()).passes == (2,)
    assert KAry((2, 2)).tree().by(Parallel()) != KAry((2, 2)).tree()


def expected_speedup(cost: LatencyTable, tokens: float, calls: float, full: float, k: int, *, head: bool) -> float:
    """C2 by hand: N t(1) over the calls' time; the first pass on 1 + what was accepted, or on 1 or 2."""
    more = (tokens - calls) / calls if head else full / calls
    first = np.interp(1 + more, [1, k + 1], [cost.draft_pass(m).best for m in (1, k + 1)]) if head else None
    one, two = (cost.draft_pass(m).best for m in (1, 2))
    drafting = (first if head else one + more * (two - one)) + (k - 1) * one
    return tokens / (calls * (drafting + cost.target_pass(k + 1).best))


@pytest.mark.parametrize("k", [1, 3, 6])
def test_predicted_speedups_count_them(k: int) -> None:
    """The same calls at two costs; the head's is not the model's."""
    trace = trace_of(kind="eagle3", parallel=False)
    predictions = {
        head: predict(trace, TokenVerification(), Chain(k), HEADS if head else MODELS) for head in (True, False)
    }
    tokens = 80.0
    survival = TokenVerification().path_survival(trace.columns, k)
    calls = calls_of_chains(survival, trace.lengths, [k])[k]
    for head, prediction in predictions.items():
        assert prediction.speedup is not None
        want = expected_speedup(HEADS, tokens, calls.expected.sum(), calls.full.sum(), k, head=head)
        assert np.isclose(prediction.speedup.best, want)
    assert k == 1 or predictions[True].speedup.best < predictions[False].speedup.best  # type: ignore[union-attr]


def test_a_parallel_draft_is_known_by_its_trace() -> None:
    """One pass in every answer: chains, trees, and what a draft may cost at most."""
    one = trace_of(kind="dflash", parallel=True)
    several = trace_of(kind="eagle3", parallel=False)
    cost = ConstantRatio(0.2)
    prediction = predict(one, TokenVerification(), Chain(5), cost)
    assert prediction.shape.schedule == Parallel()
    assert str(prediction.shape) == "chain k=5"
    tokens = prediction.tokens_per_call.best
    assert prediction.speedup is not None
    assert np.isclose(prediction.speedup.best, tokens / 1.2)
    other = predict(several, TokenVerification(), Chain(5), cost)
    assert other.speedup is not None
    assert np.isclose(other.speedup.best, tokens / 2.0)
    assert np.isclose(prediction.tokens_per_call.best, other.tokens_per_call.best)
    best = plan(one, cost).best.shape.nodes
    assert best > plan(several, cost).best.shape.nodes, "longer chains cost no more passes"
    assert np.isclose(break_even(prediction, cost).draft_ratio, 0.2)  # type: ignore[arg-type]


def test_copied_drafts_beside_a_head_cost_nothing() -> None:
    """Prompt lookup is no draft of the head, whatever the trace's head is."""
    assert drafted(path_rule("lookup"), Chain(3), parallel=True).passes == ()


def test_the_least_acceptance_of_a_head_pays_for_what_its_first_pass_reads() -> None:
    """By hand at the two-token line: 1 + a = t(2) + d(1) + a (d(2) - d(1)); a model reads the same at k = 1.

    The control: at k = 2 they differ, since a head reads every accepted token and a model those of full calls.
    """
    tables = [LatencyTable({1: SECOND(1.0), 2: SECOND(1.1), 3: SECOND(1.2)}, DRAFT, 64, kind) for kind in (KIND, {})]
    trace = trace_of(kind="eagle3", parallel=False)
    points = [break_even(predict(trace, TokenVerification(), Chain(1), table), table, 1) for table in tables]
    for point in points:
        assert point.least_acceptance == pytest.approx((1.1 + 0.1 - 1) / (1 - 0.02), rel=1e-12)
    flat = [dataclasses.replace(table, target={1: SECOND(1.0), 2: SECOND(9.0), 3: SECOND(1.5)}) for table in tables]
    head, model = (break_even(predict(trace, TokenVerification(), Chain(2), each), each, 2) for each in flat)
    assert (head.least_acceptance_k, model.least_acceptance_k) == (2, 2)
    a, b = head.least_acceptance, model.least_acceptance
    assert a is not None
    assert b is not None
    assert 1 + a + a**2 == pytest.approx(1.5 + 0.2 + 0.02 * (a + a**2) + (0.04 - 0.02) * max(a + a**2 - 1, 0))
    assert 1 + b + b**2 == pytest.approx(1.5 + 0.2 + 0.02 * b**2)
    assert a > b + 1e-3


# What a validation expects of timed calls


def test_calls_as_they_were_made_by_a_head() -> None:
    """Three calls of chains of 3, of which 2, 0 and 3 are accepted: first passes on 1, 3 and 1 token."""
    calls = [Call(3, 3, accepted, "recovered", 0.0, 0.0, 0.0) for accepted in (2, 0)]
    calls.append(Call(3, 3, 3, "bonus", 0.0, 0.0, 0.0))

    @dataclasses.dataclass
    class Made:
        calls: list[Call]
        count: int = 3

    drafting = _made_by_table(HEADS, Chain(3), [Made(calls), Made(calls)]).drafting[0]  # type: ignore[list-item]
    third = (0.12 + 0.2) / 2
    assert np.isclose(drafting, (0.3 + (third + 0.2) + 0.3) / 3)
    in_one = _made_by_table(HEADS, Chain(3, schedule=Parallel()), [Made(calls), Made(calls)]).drafting[0]  # type: ignore[list-item]
    fifth = HEADS.draft_pass(5).best
    assert np.isclose(in_one, (third + fifth + third) / 3)
    models = _made_by_table(MODELS, Chain(3), [Made(calls), Made(calls)]).drafting[0]  # type: ignore[list-item]
    assert np.isclose(models, 0.3)


@pytest.mark.parametrize(
    ("shape", "made", "passes"),
    [
        (Grown(4, 2, 3), Call(2, 2, 0, "recovered", 0.0, 0.0, 0.0), (1, 2, 2)),
        (Grown(3, 2, 3), Call(3, 3, 0, "recovered", 0.0, 0.0, 0.0), (1, 2, 2)),
        (Grown(4, 2, 3).by(Parallel()), Call(1, 1, 0, "recovered", 0.0, 0.0, 0.0), (3,)),
        (Chain(3, schedule=Parallel()), Call(1, 1, 0, "recovered", 0.0, 0.0, 0.0), (3,)),
        (Chain(3, schedule=Parallel()), Call(0, 0, 0, "plain", 0.0, 0.0, 0.0), ()),
        (Grown(4, 2, 3), Call(0, 0, 0, "plain", 0.0, 0.0, 0.0), ()),
        (Chain(3), Call(1, 1, 0, "recovered", 0.0, 0.0, 0.0), (1,)),
    ],
)
def test_passes_of_a_short_call(shape: Shape, made: Call, passes: tuple[int, ...]) -> None:
    """A tree is grown to its last level, and a block drafted whole, however little of it is verified."""
    run = Run((0,), 1, 1.0, (made,))
    want = sum(HEADS.draft_pass(width).best for width in passes)
    assert np.isclose(_made_by_table(HEADS, shape, [run, run]).drafting[0], want)


def test_the_mean_call_of_a_head_by_the_table() -> None:
    """Its tokens per call say what the first pass is on; the share of full calls does not count."""
    one = np.ones(1)
    known = _TraceExpectation(Chain(3), 2.5 * one, 0.9 * one, {4: one})
    more = 1.5 * (HEADS.draft_pass(4).best - 0.1) / 3
    assert np.isclose(_by_table(HEADS, known).drafting[0], 0.3 + more)
    assert np.isclose(_by_table(MODELS, known).drafting[0], 0.3 + 0.9 * 0.02)


# Latencies measured


@pytest.mark.parametrize("kind", [ToyHead, ToyParallelHead])
def test_tables_of_heads(kind: type[ToyHead], tiny_pair: ModelPair) -> None:
    pair = with_head(tiny_pair, kind)
    table = measure_latency(pair, context=20, tokens=(1, 2, 4, 8), rounds=1, warm_up=0)
    assert set(table.target) == {1, 2, 4, 8}
    assert set(table.draft) == set(table.first) == {1, 2, 4, 8}
    assert table.reads_accepted
    taken = table.provenance["hidden_states"]
    assert taken["layers"] == [0, 2]
    assert taken["seconds"]["low"] <= taken["seconds"]["best"] <= taken["seconds"]["high"]
    assert abs(taken["seconds"]["best"]) < table.target[1].best
    assert not measure_latency(tiny_pair, context=20, tokens=(1, 2), rounds=1, warm_up=0).reads_accepted


def test_what_the_timed_passes_of_a_head_read(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """First passes of a chain read pairs, the others drafted tokens; a parallel pass drafts as many as it can."""
    seen: list[tuple[str, int, int]] = []
    for kind in (ToyHead, ToyParallelHead):
        reading = type(with_head(tiny_pair, kind).draft.network.reading())
        for name in ("read", "extend", "block"):
            original = getattr(reading, name, None)
            if original is not None:

                def noted(self: Any, one: Any, other: Any, name: str = name, original: Any = original) -> Any:
                    seen.append((name, len(one), other if isinstance(other, int) else len(other)))
                    return original(self, one, other)

                monkeypatch.setattr(reading, name, noted)
    head = latency._WarmHead(with_head(tiny_pair), 20, [1, 2, 8])
    assert list(head.firsts) == [1, 2, 8]
    seen.clear()
    head.burst(1)
    assert seen == [("read", 1, 1), *[("extend", 1, 1)] * (latency.BURST - 1)]
    seen.clear()
    head.burst(2)
    head.first(5)
    assert seen == [*[("extend", 2, 2)] * latency.BURST, ("read", 5, 5)]
    seen.clear()
    head.run(5, keep=5)
    assert seen == [("extend", 5, 5)]
    parallel = latency._WarmHead(with_head(tiny_pair, ToyParallelHead, deepest=4), 20, [1, 2, 4, 8, 16])
    assert list(parallel.firsts) == [1, 2, 4, 8], "it accepts four drafts at most"
    seen.clear()
    parallel.run(3, keep=3)
    parallel.first(5)
    assert [each for each in seen if each[0] == "block"] == [("block", 1, 3), ("block", 1, 4)]
    assert [each[1] for each in seen if each[0] == "read"] == [1, 1, 5, 5], "the toy hands what it reads on"


@pytest.mark.parametrize("kind", [ToyHead, ToyParallelHead])
def test_first_passes_of_a_decoder_read_what_the_table_counts(
    kind: type[ToyHead], tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Call by call; the control: one token, or two after a full acceptance, is what a draft model reads."""
    pair, read = with_head(tiny_pair, kind), list[int]()
    reading = type(pair.draft.network.reading())
    original = reading.read
    monkeypatch.setattr(reading, "read", lambda self, *given: (read.append(len(given[1])), original(self, *given))[1])
    prompt, method = torch.arange(12) % pair.vocabulary, Method("topk", KAry((4, 2)))
    (text,) = decode(pair, [prompt], method, sampling=Sampling(0.8), tokens=60, seed=1)
    before = [len(prompt) - PAIR_BEFORE, 0, *(call.accepted for call in text.calls[:-1])]  # the prompt, then calls
    drafted = sum(call.drafted > 0 for call in text.calls)
    assert read == [before[0], *(1 + reads_besides(HEADS, more, 0) for more in before[1 : 1 + drafted])]
    full = [int(call.last == "bonus") for call in text.calls[:-1]]
    assert read[2:] != [1 + reads_besides(MODELS, 0, more) for more in full[: drafted - 1]]


def test_a_head_begins_anew_before_its_context_grows(tiny_pair: ModelPair) -> None:
    head = latency._WarmHead(with_head(tiny_pair), 20, [1, 2, 8])
    most = 0
    for _ in range(60):
        head.first(2)
        most = max(most, head.reading.pairs)
    assert 20 + 40 < most <= 20 + 64 + 8


@pytest.mark.parametrize("kind", [ToyHead, ToyParallelHead])
def test_the_loop_around_a_head(kind: type[ToyHead], tiny_pair: ModelPair) -> None:
    """Chains and trees; the table is known again as the pair's."""
    pair = with_head(tiny_pair, kind)
    table = measure_latency(pair, context=9, tokens=(1, 2, 8), rounds=1, warm_up=0, loop=Sampling())
    assert table.loop is not None
    assert table.loop.plain > 0
    wanted = {"context": 9, "longest": 8, "sampling": Sampling()}
    assert differences(table, pair, **wanted) == ()
    assert differences(table, tiny_pair, **wanted) == ("draft",)
    assert "first passes" in differences(dataclasses.replace(table, first={}, groups=()), pair, **wanted)


@pytest.mark.parametrize("kind", [ToyHead, ToyParallelHead])
def test_the_loop_of_a_head_s_trees(kind: type[ToyHead], tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoded trees give what siblings take, in as many draft passes as the head makes; chains alone would say 0."""
    pair, shapes = with_head(tiny_pair, kind), [shape for _, shape in loop_time.CALIBRATION]
    true, decoded = LoopTime(plain=0.5, call=0.0, draft_pass=0.2, node=0.01, tree=0.3), loop_time._calls

    def as_true(*given: Any) -> list[Call]:
        calls, shape = decoded(*given), given[2].shape
        outside = true.of(shape.by(Parallel()) if kind.parallel else shape) if shape else true.plain
        assert shape is None or {call.drafted for call in calls} == {shape.nodes}, "the whole tree is drafted"
        return [
            dataclasses.replace(call, draft_seconds=0.0, target_seconds=1.0, seconds=1.0 + outside) for call in calls
        ]

    monkeypatch.setattr(loop_time, "_calls", as_true)
    fit = loop_time._time_loop(pair, 9, 1.0)
    made = [shape.by(Parallel()) if kind.parallel else shape for shape in shapes]
    for shape in made:
        assert fit.of(shape) == pytest.approx(true.of(shape))
    chains = [shape for shape in made if shape.is_chain]
    blind = loop_time._fit_loop(chains, [true.of(shape) for shape in chains], true.plain)
    assert (blind.tree, fit.tree) == (0.0, pytest.approx(true.tree))


def test_a_measured_head_is_predicted(tiny_pair: ModelPair, tmp_path: Any) -> None:
    """From trace and table to a speed-up, with chains and a searched tree."""
    prompts = [Prompt(f"q{i}", "", f"t{i} t{i + 1} t7") for i in range(1, 5)]
    for kind in (ToyHead, ToyParallelHead):
        pair = with_head(tiny_pair, kind)
        trace = measure(pair, prompts, MeasureSettings(tokens=20), tmp_path / f"{kind.kind}.parquet")
        table = measure_latency(pair, context=20, tokens=(1, 2, 4, 8), rounds=1, warm_up=0)
        answer = plan(trace, table, rules=[path_rule("race")], shapes=[Chain(2), Chain(4), BestTree(6)])
        passes = [p.shape.passes for p in answer.predictions]
        assert passes[:2] == ([(2,), (4,)] if kind.parallel else [(1, 1), (1, 1, 1, 1)])
        assert isinstance(answer.predictions[2].shape, Tree)
        assert len(passes[2]) == (1 if kind.parallel else answer.predictions[2].shape.depth)
        assert all(p.speedup is not None for p in answer.predictions)


# Sizes of a head

BLOCK = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 4096, "intermediate_size": 14336}
BLOCK |= {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256}


def head_config(kind: str, **fields: Any) -> dict[str, Any]:
    return {"speculators_model_type": kind, "transformer_layer_config": BLOCK, **fields}


NET = {"gru_hidden_dim": 12, "emb_dim": 24}


@pytest.mark.parametrize(
    ("kind", "drafted", "fields"),
    [
        ("eagle3", 20, {}),
        ("peagle", 20, {"mask_token_id": 3}),
        ("dflash", 50, {"mask_token_id": 3, "block_size": 4}),
        ("dspark", 20, {"mask_token_id": 3}),
        ("dspark", 50, {"mask_token_id": 3, "markov_rank": 8, "markov_head_type": "gated"}),
        ("dspark", 50, {"mask_token_id": 3, "markov_rank": 8, "markov_head_type": "rnn"}),
        ("dspark", 50, {"mask_token_id": 3, "markov_rank": 0, "enable_confidence_head": False}),
        ("domino", 20, {"mask_token_id": 3, **NET}),
        ("mtp", None, {}),
    ],
    ids=str,
)
def test_sizes_of_a_head_are_those_of_its_network(kind: str, drafted: int | None, fields: dict[str, Any]) -> None:
    """Weights that a token is multiplied by, from the configuration and from the network itself."""
    small = BLOCK | {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2}
    small |= {"head_dim": 16, "vocab_size": 50, "num_hidden_layers": 2, "model_type": "qwen3"}
    pruned = {} if drafted is None else {"draft_vocab_size": drafted}
    made = load.HEADS[kind]
    raw = head_config(kind, **pruned) | {"transformer_layer_config": small, "speculators_version": "0.9.0"}
    raw |= {"speculators_config": {"proposal_methods": [{"speculative_tokens": 3}]}}
    raw |= {made.layer_field: [1, 2, 3]} if made.layer_field else {}
    raw |= fields
    config = made.configured(raw, "head")
    network = made(config, config.layers or (3,))
    matrices = {name: p.numel() for name, p in network.named_parameters() if p.ndim == 2}
    apart = ("mask", "embed_tokens", "markov_w1", "confidence_head")  # rows, and one number a draft
    matrices = {name: n for name, n in matrices.items() if not any(part in name for part in apart)}
    assert ModelShape.from_config(raw).multiplied == sum(matrices.values()), matrices


def test_a_roofline_of_a_head() -> None:
    """It reads its own layers and its output matrix; its first pass reads what was accepted, which costs nothing."""
    target = ModelShape.from_config({**BLOCK, "num_hidden_layers": 32, "tie_word_embeddings": False})
    head = ModelShape.from_config(head_config("eagle3", draft_vocab_size=32_000))
    cost = Roofline(target, head, ACCELERATORS["H100-SXM"], context=1024)
    assert cost.reads_accepted
    assert not Roofline(target, target, ACCELERATORS["H100-SXM"], context=1024).reads_accepted
    assert cost.draft_pass(1).best < 0.06 * cost.target_step().best
    assert cost.call(Chain(4), 4.0).best == cost.call(Chain(4)).best, "few tokens: reading weights decides"
    assert np.isclose(cost.call(Chain(4, schedule=Parallel())).best, cost.draft_pass(4).best + cost.target_pass(5).best)


@pytest.mark.parametrize("config", [head_config("medusa"), {"speculators_model_type": "eagle3"}])
def test_heads_of_unknown_sizes(config: dict[str, Any]) -> None:
    with pytest.raises(
        SettingError, match=r"the config is of a head of kind .*known are eagle3, peagle, dflash, dspark, domino, mtp"
    ):
        ModelShape.from_config(config)


STRANGE = ("x", "", {"a": 1}, [1], [[1]], 1e300, 10**300, -1, 0, True, 1.5, math.inf, math.nan)


@pytest.mark.parametrize("kind", ["eagle3", "dflash", "dspark", "domino", "mtp", None])
def test_strange_values_in_a_config(kind: str | None) -> None:
    """Sizes, or one clear line: whatever stands where a number, a name or a list belongs."""
    fields = {"draft_vocab_size": 1000, "target_hidden_size": 4096, "num_experts": None, **BLOCK}
    fields |= {"layer_types": None, "n_inner": None, "tie_word_embeddings": None, "speculators_model_type": kind}
    fields |= {"eagle_aux_hidden_state_layer_ids": [1, 2], "aux_hidden_state_layer_ids": [1, 2]}
    fields |= {"markov_rank": 4, "markov_head_type": "rnn", **NET}
    said = []
    for field, value in itertools.product(fields, STRANGE):
        plain = {name: known for name, known in {**fields, field: value}.items() if known is not None}
        config = {**plain, "transformer_layer_config": {**BLOCK, **{field: value}}} if kind else plain
        try:
            ModelShape.from_config(config)
        except SettingError as error:
            said.append(str(error))
    assert len(said) > 100
    assert not [line for line in said if "\n" in line or len(line) > 300]
