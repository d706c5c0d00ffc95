"""Predicted against measured: calls at a stated false-alarm rate, and seconds."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.cost import LatencyTable, LoopTime
from spectheory.drafting import Chain, Copied, KAry
from spectheory.intervals import Interval
from spectheory.measure import ModelPair, teacher_forced
from spectheory.measure.decoders import Call
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation import CHAIN_RULES, TREE_RULES, Setting
from spectheory.measure.validation.agreement import p_value, z_value
from spectheory.measure.validation.answer import answer_at
from spectheory.measure.validation.budget import CallTime, Timing, TokensPerCall, budget, speedup
from spectheory.measure.validation.evidence import Evidence
from spectheory.measure.validation.expected import Expected, expected_calls
from spectheory.measure.validation.rounds import decoded_rounds
from spectheory.measure.validation.runs import Run
from spectheory.measure.validation.times import Known, by_table, made_by_table
from spectheory.prediction.law import law_of_calls, tail
from spectheory.prediction.paths import calls_of_texts
from spectheory.reports import PARTS
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PATH_RULES, IndependentMatch, LookupMatch, RaceVerification
from tests.validation.validation_cases import PROMPTS, QUESTION, WARM

SIGMA = 6.0
"""|z| of a right prediction exceeds this in 2e-9 of all runs (normal limit); some 30 are looked at."""


DISTINCT = "recursive-distinct, k-ary 2x2"


def records(found: dict[str, Any], temperature: float) -> list[dict[str, Any]]:
    return next(each["settings"] for each in found["temperatures"] if each["temperature"] == temperature)


@pytest.mark.evidence
def test_counted_calls_are_those_expected(found: dict[str, Any]) -> None:
    """8 texts of up to 30 tokens: an expectation off by about 20% would be seen. The control is the next test but one.

    The tests of the decoders look at more rules and texts.
    """
    compared = records(found, WARM)
    assert {record["rule"] for record in compared} == {*CHAIN_RULES, *TREE_RULES}
    for record in compared:
        assert abs(record["expected"]["z"]) < SIGMA, record["name"]
        assert record["expected"]["p"] > 1e-9, record["name"]
    certain = {record["rule"] for record in compared if record["expected"]["deviation"] < 1e-3}
    assert certain == {"argmax", "topk", "lookup"}
    assert [record["name"] for record in compared if record["expected"]["of_estimates"] > 0] == [DISTINCT]


def test_greedy_calls_are_exact(found: dict[str, Any]) -> None:
    """All but a tree of distinct candidates: what remains of a draft that has one token is drawn uniformly."""
    for record in records(found, 0.0):
        if record["name"] != DISTINCT:
            assert record["calls"] == round(record["expected"]["calls"]), record["name"]
            assert record["expected"]["z"] == 0


@pytest.mark.parametrize(
    ("name", "rule", "k"),
    [
        ("race, chain k=3", IndependentMatch(), 3),
        ("race, chain k=3", RaceVerification(), 1),
        ("lookup, chain k=3", PATH_RULES["argmax"], 3),
        ("lookup, chain k=1", LookupMatch(), 3),
    ],
)
def test_a_wrong_expectation_is_seen(
    name: str, rule: Any, k: int, found: dict[str, Any], tiny_pair: ModelPair, folder: Path
) -> None:
    """Negative control: the expectation of another rule, and of another number of drafts."""
    settings = QUESTION.settings(WARM)
    rounds = decoded_rounds(tiny_pair, PROMPTS, settings, QUESTION.at(WARM), folder / f"rounds-{WARM}.jsonl")
    runs = []
    for prompt, one in zip(PROMPTS, rounds, strict=True):
        run = one[name]
        wrong = expected_calls(
            tiny_pair, encode_prompt(tiny_pair.tokenizer, prompt), torch.tensor(run.output), QUESTION.at(WARM).sampling,
            rule, Chain(k),
        )  # fmt: skip
        runs.append(dataclasses.replace(run, expected=wrong))
    assert abs(z_value(runs)) > SIGMA
    assert p_value(runs) < 1e-9


def test_what_is_certain_must_be_equal() -> None:
    expected = Expected(calls=3.0, variance=0.0, noise=0.0, least=3, law=(1.0,))
    assert z_value([Run((1, 2), 3, 1.0, expected=expected)]) == 0
    assert z_value([Run((1, 2), 4, 1.0, expected=expected)]) == math.inf
    assert [p_value([Run((1, 2), count, 1.0, expected=expected)]) for count in (2, 3, 4)] == [0, 1, 0]


def test_the_law_of_calls_has_the_moments_of_the_theorem() -> None:
    """On drawn survival functions, what reaches past the end included."""
    rng = np.random.default_rng(1)
    for tokens, depth in ((1, 3), (2, 1), (9, 4), (30, 5)):
        survival = np.multiply.accumulate(rng.random((tokens, depth)), axis=1)
        calls, law, count = calls_of_texts(survival, np.array([tokens])), law_of_calls(survival), np.arange(tokens + 1)
        mean = float(law @ count)
        assert math.isclose(law.sum(), 1, rel_tol=1e-12)
        assert math.isclose(mean, calls.expected[0], rel_tol=1e-12)
        assert math.isclose(law @ (count - mean) ** 2, calls.variance[0], rel_tol=1e-9, abs_tol=1e-12)


def test_tails_are_no_false_alarms() -> None:
    """Whatever the law, a tail is below a rate at most so often; here by enumeration, of two texts."""
    rng = np.random.default_rng(2)
    laws = [(1, law / law.sum()) for law in rng.random((2, 6)) ** 4]
    total = np.convolve(laws[0][1], laws[1][1])
    tails = np.array([tail(laws, 2 + count) for count in range(len(total))])
    for rate in (0.01, 0.1, 0.5):
        assert total[tails < rate].sum() <= rate


def test_noise_of_estimates_widens_the_deviation() -> None:
    """By that of the mean of four readings, and by that of one, which its variance lacks: 1 + 0.6 + 4 * 0.6 = 2²."""
    exact, noisy = (
        Expected(calls=3.0, variance=1.0, noise=noise, least=2, law=(0.5, 0.0, 0.5)) for noise in (0.0, 0.6)
    )
    assert [z_value([Run((1, 2), 5, 1.0, expected=one)]) for one in (exact, noisy)] == [2, 1]


# Seconds


def test_the_parts_of_the_budget_add_up(found: dict[str, Any]) -> None:
    for temperature in (0.0, WARM):
        for record in records(found, temperature):
            speedup = record["speedup"]
            if record["judged"]:
                assert "budget" not in speedup
                continue
            assert set(speedup["budget"]) == set(PARTS)
            total = sum(part["best"] for part in speedup["budget"].values())
            assert math.isclose(total, speedup["miss"]["best"], abs_tol=1e-9)
            miss = 100 * math.log(speedup["measured"]["best"] / speedup["predicted"]["best"])
            assert math.isclose(miss, speedup["miss"]["best"], abs_tol=1e-9)
            assert speedup["largest"] in PARTS


def test_a_part_is_what_it_says() -> None:
    """One cause at a time: only its own part of the budget is not zero."""
    tokens = TokensPerCall(*np.full((3, 1), 2.0))
    table = CallTime(np.array([0.5]), np.array([1.1]), np.array([0.1]))
    predicted = Timing(table, 0.05)

    def parts(
        tokens: TokensPerCall = tokens, made: CallTime = table, timed: CallTime = table, plain: float = 0.05
    ) -> list[str]:
        measured = Timing(timed, plain)
        found = budget(tokens, predicted, made, measured)
        miss = np.log(speedup(tokens.counted, measured) / speedup(tokens.trace, predicted))
        assert np.isclose(sum(vars(found).values()), miss, atol=1e-12)
        return [name for name, part in vars(found).items() if abs(part[0]) > 1e-12]

    slower = {
        name: dataclasses.replace(table, **{name: np.array([1.3])}) for name in ("drafting", "verifying", "overhead")
    }
    assert parts() == []
    assert parts(dataclasses.replace(tokens, trace=np.array([2.5]))) == ["texts"]
    assert parts(dataclasses.replace(tokens, counted=np.array([2.5]))) == ["acceptance"]
    for name, timed in slower.items():
        assert parts(timed=timed) == [name]
    assert parts(made=slower["drafting"], timed=slower["drafting"]) == ["cut"]
    assert parts(plain=0.2) == ["plain"]


def test_calls_as_made_by_the_table() -> None:
    """By hand: three drafts in full, then a first pass on two tokens, then a text that ends after one draft."""
    second = Interval.exact
    table = LatencyTable({1: second(2.0), 4: second(5.0)}, {1: second(1.0), 2: second(1.5)}, context=8)
    calls = [Call(3, 3, 3, "bonus", 0, 0, 0), Call(3, 3, 1, "recovered", 0, 0, 0), Call(1, 1, 0, "recovered", 0, 0, 0)]
    made = made_by_table(table, Chain(3), [Run((0,) * 7, 3, 1.0, tuple(calls))] * 2)
    np.testing.assert_allclose(made.drafting, (3.0 + 3.5 + 1.0) / 3 / 2)
    np.testing.assert_allclose(made.verifying, (5.0 + 5.0 + 3.0) / 3 / 2)
    narrow = made_by_table(table, KAry((2, 1)), [Run((0,) * 2, 1, 1.0, (Call(2, 2, 1, "recovered", 0, 0, 0),))] * 2)
    np.testing.assert_allclose(narrow.drafting, 2.0 / 2)  # a draft with a single token: both passes are on one
    calls = [Call(3, 3, 3, "bonus", 0, 0, 0), Call(1, 1, 0, "recovered", 0, 0, 0), Call(0, 0, 0, "plain", 0, 0, 0)]
    copied = made_by_table(table, Copied(3), [Run((0,) * 6, 3, 1.0, tuple(calls))] * 2)
    np.testing.assert_array_equal(copied.drafting, 0.0)
    np.testing.assert_allclose(copied.verifying, (5.0 + 3.0 + 2.0) / 3 / 2)
    one, shares = np.ones(2), np.array([0.0, 1.0])
    shape = by_table(table, Known(Copied(3), one, shares, {4: shares, 1: 1 - shares}))
    np.testing.assert_array_equal(shape.drafting, 0.0)
    np.testing.assert_allclose(shape.verifying, [1.0, 2.5])
    shape = by_table(table, Known(Chain(3), one, shares, {4: one}))
    np.testing.assert_allclose(shape.drafting, [1.5, 1.75])
    np.testing.assert_allclose(shape.verifying, 2.5)


@pytest.mark.parametrize("looped", [True, False])
def test_what_is_predicted_is_met_when_the_seconds_are_the_table_s(
    tiny_pair: ModelPair, folder: Path, found: Any, looped: bool
) -> None:
    """Runs whose seconds are those of the table: drafting, verifying and overhead are no part of the miss."""
    settings, how = QUESTION.settings(WARM), QUESTION.at(WARM)
    table = LatencyTable.read(folder / f"latency-{WARM}.json")
    step = table.target_pass(1).best
    loop = LoopTime(plain=0.2 * step, call=0.3 * step, draft_pass=0.1 * step, node=0.01 * step, tree=0.0)
    table = dataclasses.replace(table, loop=loop if looped else None)
    rounds = decoded_rounds(tiny_pair, PROMPTS, settings, how, folder / f"rounds-{WARM}.jsonl")
    token = Setting("token", Chain(3))
    for one in rounds:
        for name, setting in (("plain", None), (token.name, token)):
            one[name] = _timed_by(table, one[name], step, setting)
    evidence = Evidence(
        (token,),
        tuple(p.id for p in PROMPTS),
        rounds,
        Trace.read(folder / f"trace-{WARM}.parquet"),
        table,
    )
    (record,) = answer_at(evidence)
    parts = {name: part["best"] for name, part in record["speedup"]["budget"].items()}
    for name in ("drafting", "verifying", "overhead", "plain"):
        assert abs(parts[name]) < 1e-9
    assert math.isclose(record["speedup"]["machine"], 1.0)
    alone, measured = record["speedup"]["passes_alone"]["best"], record["speedup"]["measured"]["best"]
    assert math.isclose(alone, measured) != looped
    assert math.isclose(record["speedup"]["miss"]["best"], record["speedup"]["miss_of_passes"]["best"]) != looped


def test_nothing_is_cut_when_the_trace_is_of_the_texts(tiny_pair: ModelPair, folder: Path, found: Any) -> None:
    """Prompt lookup: given the texts, the predicted calls are those that were made. The control: drafts in full."""
    how, lookup = QUESTION.at(WARM), Setting("lookup", Chain(3))
    rounds = decoded_rounds(tiny_pair, PROMPTS, QUESTION.settings(WARM), how, folder / f"rounds-{WARM}.jsonl")
    outputs = [torch.tensor(one[lookup.name].output) for one in rounds]
    asked = [encode_prompt(tiny_pair.tokenizer, prompt) for prompt in PROMPTS]
    read = [teacher_forced(tiny_pair, *ids, how.sampling) for ids in zip(asked, outputs, strict=True)]
    columns = {name: np.concatenate([one[name] for one in read]) for name in read[0]}
    texts = tuple(
        TextInfo(prompt.id, len(text), prompt.id, ended=int(text[-1]) in tiny_pair.end_of_text)
        for prompt, text in zip(PROMPTS, outputs, strict=True)
    )
    full = columns | {"lookup_drafted": np.full(len(columns["token"]), 3)}
    cut = []
    for known in (columns, full):
        trace = Trace(known, texts, {"settings": {"tokens": how.tokens}})
        table = LatencyTable.read(folder / f"latency-{WARM}.json")
        of = Evidence((lookup,), tuple(p.id for p in PROMPTS), rounds, trace, table)
        (record,) = answer_at(of)
        cut.append(record["speedup"]["budget"]["cut"])
        assert abs(record["speedup"]["budget"]["texts"]["best"]) < 1e-9
    assert max(abs(cut[0][end]) for end in ("low", "best", "high")) < 1e-9
    assert abs(cut[1]["best"]) > 1e-2


def _timed_by(table: LatencyTable, run: Run, step: float, setting: Setting | None) -> Run:
    calls, full, around = [], False, 0.0
    if table.loop:
        around = table.loop.of(setting.drafts) if setting else table.loop.plain
    for call in run.calls:
        drafting = sum(table.draft_pass(1 + (full and i == 0)).best for i in range(call.depth))
        verifying = table.target_pass(call.drafted + 1).best if setting else step
        timed = {"draft_seconds": drafting, "target_seconds": verifying, "seconds": drafting + verifying + around}
        calls.append(dataclasses.replace(call, **timed))
        full = call.last == "bonus"
    return dataclasses.replace(run, calls=tuple(calls), seconds=sum(call.seconds for call in calls))
