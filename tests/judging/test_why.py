"""Why speculation is no faster: every cause is planted in a run and must be named first; a run without one names none.

The times of planted runs are worked out here by hand, from data sheets or step by step on a simulated server.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from spectheory.cli import main
from spectheory.cost import ACCELERATORS, ConstantRatio, LatencyTable, ModelShape, Roofline, Routing
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.judging import Why, why
from spectheory.judging.difference import FALSE_ALARM
from spectheory.judging.slow.case import LEAST
from spectheory.judging.slow.why import REASONS
from spectheory.trace.counters import Counters
from spectheory.trace.timed import NO_PREFILL, TimedRun, timed_runs
from tests.made_up import each
from tests.toy_server import affine, served

K, SURVIVAL = 3, (0.8, 0.64, 0.5)
TOKENS = 1 + sum(SURVIVAL)
CARD = ACCELERATORS["H100-SXM"]
SIZES = {"large": (32, 4096, 14336, 32, 8, 128, 128256)}
SIZES |= {"small": (1, 1024, 4096, 32, 8, 128, 32000), "big": (16, 2048, 8192, 32, 32, 128, 128256)}
LARGE, SMALL, BIG_DRAFT = (ModelShape.dense(*sizes) for sizes in SIZES.values())
MOE = {"num_experts": 64, "num_experts_per_tok": 4, "hidden_size": 2048, "moe_intermediate_size": 1024}
MOE |= {"num_hidden_layers": 16, "vocab_size": 50_000, "num_attention_heads": 16, "num_key_value_heads": 4}
MOE |= {"model_type": "qwen3_moe", "intermediate_size": 1024, "head_dim": 128}
WITH_EXPERTS = ModelShape.from_config(MOE)


def seconds(model: ModelShape, tokens: int, batch: int, context: int) -> float:
    """A pass by the data sheet: bytes over bandwidth, or operations over the peak."""
    layers, hidden, inner, heads, kv_heads, head_dim, vocabulary = SIZES[
        {LARGE: "large", SMALL: "small", BIG_DRAFT: "big"}[model]
    ]
    each = 2 * hidden * head_dim * (heads + kv_heads) + 3 * hidden * inner + 2 * hidden
    rows = layers * each + hidden + vocabulary * hidden
    cache = 2 * 2 * layers * kv_heads * head_dim * context * batch
    attention = 4 * layers * heads * head_dim * context
    reading = (2 * rows + cache) / 3.35e12
    return max(reading, batch * tokens * (2 * rows + attention) / (1979e12 / 2))


def on_card(draft: ModelShape, batch: int, context: int, more: float = 0.0) -> dict[str, Any]:
    """A run whose calls take what reading and computing do, and so many plain steps more."""
    plain = seconds(LARGE, 1, batch, context)
    call = seconds(LARGE, K + 1, batch, context) + K * seconds(draft, 1, batch, context) + more * plain
    tokens = round(TOKENS, 2)
    cost = Roofline(LARGE, draft, CARD, context, batch)
    return {"tokens_per_call": tokens, "speedup": round(tokens * plain / call, 3), "k": K, "cost": cost}


def counted(share: float = 1.0, calls: int = 4000, **other: Any) -> Counters:
    """An engine's counts, with so much of the usual acceptance."""
    survival = tuple(round(calls * share * each) / calls for each in SURVIVAL)
    accepted = round(calls * sum(survival))
    totals = {"calls": calls, "drafted": K * calls, "accepted": accepted, "survival": survival, "k": K, **other}
    return Counters(**totals)


def timed(law: Any, loads: Any = ((1, 100), (16, 100), (1, 1000)), ks: Any = (0, 1, 3), **of: Any) -> list[TimedRun]:
    """Runs of a simulated server at these concurrencies and prompts."""
    import tempfile

    runs, rng = [], np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        for k in ks:
            for concurrency, prompt in loads:
                path = Path(folder) / f"k{k}_c{concurrency}_in{prompt}.json"
                settings = {"survival": SURVIVAL, "noise": 0.0, **of}
                run = served(rng, law, concurrency, k, prompt=prompt, **settings)
                first = settings.get("prefill", 0.0)
                run |= {"mean_ttft_ms": 1e3 * first, "latencies": [first + each for each in run["latencies"]]}
                path.write_text(json.dumps(run))
                runs += timed_runs(path)
    return runs


def ideal(gain: float = TOKENS) -> dict[str, Any]:
    """A speed-up at calls of 1.05 plain steps, with drafts of little cost."""
    return {"speedup": round(gain / 1.05, 3), "cost": ConstantRatio(0.05 / K)}


FAST = affine(8e-3, 1e-5, 1e-9, 0.0, 1e-4, 0.0, 0.0)
PLANTED: list[tuple[str, dict[str, Any]]] = [
    ("lower acceptance", {"counts": counted(0.7), "expect": counted(), **ideal(1 + 0.7 * (TOKENS - 1))}),
    ("another convention", {"counts": counted(accepted=11760, survival=(), tokens=11760), **ideal()}),
    ("another convention", {"tokens_per_call": 1.94, "acceptance": 0.647, "k": K, **ideal()}),
    ("another convention", {"tokens_per_call": 2.94, "acceptance": 0.735, "k": K, **ideal()}),
    ("another convention", {"tokens_per_call": 1.85, "acceptance": 0.85, "k": K, **ideal(1.85)}),
    ("fewer drafts than set", {"counts": counted(drafted=4000, accepted=3200, survival=()), **ideal(1.8)}),
    ("fewer drafts than set", {"counts": counted(survival=(0.8,), accepted=3200, drafted=4000), **ideal(1.8)}),
    ("drafting", {"counts": counted(seconds=10.0, draft_seconds=4.0), "speedup": 1.5}),
    ("drafting", {"tokens_per_call": 2.94, "k": K, "speedup": 1.4, "cost": ConstantRatio(0.36)}),
    ("compute bound", on_card(SMALL, 256, 256)),
    ("long context", on_card(BIG_DRAFT, 8, 60_000)),
    (
        "experts",
        {
            "tokens_per_call": 2.94,
            "k": K,
            "speedup": 1.1,
            "target": WITH_EXPERTS,
            "cost": ConstantRatio(0.01),
        },
    ),
    ("overhead", on_card(SMALL, 1, 1024, more=1.5)),
    ("overhead", {"runs": timed(affine(8e-3, 1e-5, 1e-9, 6e-3, 1e-4, 0.0, 0.0))}),
    ("compute bound", {"runs": timed(affine(8e-3, 1e-5, 1e-9, 0.0, 1e-4, 3e-4, 0.0))}),
    ("long context", {"runs": timed(affine(8e-3, 1e-5, 1e-9, 0.0, 1e-4, 0.0, 3e-6), loads=((1, 100), (1, 4000)))}),
    ("unlike runs", {"runs": timed(FAST, loads=((1, 100),), ks=(0,)) + timed(FAST, loads=((16, 100),), ks=(3,))}),
    ("unlike runs", {"tokens_per_call": 2.0, "k": K, "speedup": 3.5}),
    ("prefill", {"runs": timed(FAST, loads=((1, 100),), prefill=0.2)}),
    ("prefill", {"runs": timed(FAST, loads=((1, 100), (16, 100)), prefill=0.05, spread=30), "batch": 16}),
    ("prefill", {**on_card(SMALL, 1, 1024), "speedup": 1.5, "requests": (30_000, 200)}),
    ("slow baseline", {**on_card(SMALL, 1, 1024), "plain_step": 3 * seconds(LARGE, 1, 1, 1024)}),
]


@each("cause, asked", PLANTED)
def test_a_planted_cause_is_named_first(cause: str, asked: dict[str, Any]) -> None:
    answer = why(**asked)
    assert answer.causes, answer.shares
    assert answer.causes[0].cause == cause, [(found.cause, found.sentence) for found in answer.causes]


def test_every_cause_was_planted() -> None:
    assert {reason.name for reason in REASONS} == {cause for cause, _ in PLANTED}


CONTROLS: list[dict[str, Any]] = [
    {"counts": counted(), "expect": counted(), **ideal()},
    {"counts": counted(tokens=11760), **ideal()},
    {"tokens_per_call": 2.94, "acceptance": 0.647, "k": K, **ideal()},
    {"counts": counted(seconds=10.0, draft_seconds=0.5), "speedup": 2.8},
    on_card(SMALL, 1, 1024),
    on_card(SMALL, 32, 256),
    {**on_card(SMALL, 1, 1024), "plain_step": 1.2 * seconds(LARGE, 1, 1, 1024)},
    {**on_card(SMALL, 1, 1024), "requests": (50, 2000)},
    {"runs": timed(FAST)},
    {"tokens_per_call": 2.94, "k": K, "speedup": 2.8, "target": LARGE, "cost": ConstantRatio(0.01)},
]


@each("asked", CONTROLS)
def test_a_run_without_a_cause_names_none(asked: dict[str, Any]) -> None:
    assert [found.sentence for found in why(**asked).causes] == []


def test_an_acceptance_as_expected_is_seldom_called_lower() -> None:
    """At the false-alarm rate of a comparison: more than the limit in 40 runs has probability 1e-6 at most."""
    rng, runs = np.random.default_rng(5), 40

    def run(loss: float = 0.0) -> Counters:
        accepted = (rng.random((4000, K)) < np.array([0.8, 0.8, 0.78]) - loss).cumprod(axis=1)
        return Counters(calls=4000, accepted=int(accepted.sum()), survival=tuple(accepted.mean(axis=0)), k=K)

    def named(loss: float) -> int:
        answers = [why(run(loss), expect=run(), speedup=2.8) for _ in range(runs)]
        return sum(answer.causes[:1] != () and answer.causes[0].cause == "lower acceptance" for answer in answers)

    most = int(binom.isf(1e-6, runs, FALSE_ALARM))
    assert named(0.0) <= most
    assert named(0.05) == runs, "a loss of .05 at every position is always seen"


def test_the_time_of_a_call_is_that_of_a_simulated_server() -> None:
    """Tokens per call over the speed-up is the time of a call over that of a step, as the clock of the server says.

    At concurrency 1 no sequence waits, so both are the law itself at the mean context; 1% for the change of the context
    along a text.
    """
    law = affine(8e-3, 0.0, 1e-7, 3e-3, 1e-3, 0.0, 0.0)
    answer = why(runs=timed(law, loads=((1, 100),), ks=(0, 3)))
    assert answer.case.call.best == pytest.approx(law(1, 132, 3) / law(1, 132, 0), rel=0.01)
    assert answer.case.tokens.low < answer.case.tokens.best < answer.case.tokens.high
    assert answer.shares[-1].steps.best == pytest.approx(answer.case.call.best - 1)


def test_shares_add_up_and_ends_enclose() -> None:
    answer = why(**on_card(BIG_DRAFT, 64, 4096, more=0.4))
    whole = sum(share.steps.best for share in answer.shares)
    assert whole == pytest.approx(answer.case.call.best)
    for share in answer.shares:
        assert share.steps.low <= share.steps.best <= share.steps.high
    assert answer.shares[-1].steps.low <= 0.4 <= answer.shares[-1].steps.high


def test_what_a_cause_takes_is_what_removing_it_gives() -> None:
    """The speed-up without overhead, against a run that has none."""
    slow, fast = why(**on_card(SMALL, 1, 1024, more=1.5)), why(**on_card(SMALL, 1, 1024))
    without = slow.causes[0].without
    assert without is not None
    assert without.low <= fast.case.speedup.best <= without.high
    assert without.best == pytest.approx(fast.case.speedup.best, rel=0.01)


def test_lengths_of_requests_separate_their_prompts() -> None:
    """A speed-up of whole requests, by the clock: prompts and decoding one after the other."""
    asked = on_card(SMALL, 1, 1024)
    cost, output = asked["cost"], 101
    prompt = [cost.prompt_pass(2000, drafted=drafted) for drafted in (False, True)]
    plain = 100 * seconds(LARGE, 1, 1, 1024)
    whole = (prompt[0] + plain) / (prompt[1] + plain / 2.5)
    answer = why(**{**asked, "speedup": whole}, requests=(2000, output))
    assert answer.case.speedup.best == pytest.approx(2.5, rel=1e-3)
    assert answer.case.whole is not None
    assert answer.case.whole.best == whole


def test_drafting_is_a_share_of_the_call_without_prompts() -> None:
    """A log's own times are of calls: 40% of a call, whatever the prompts of whole requests take."""
    asked = on_card(SMALL, 1, 1024)
    counts = counted(seconds=10.0, draft_seconds=4.0)
    case = why(counts, speedup=1.2, cost=asked["cost"], requests=(30_000, 200)).case
    assert case.speedup.best > 1.25
    assert case.drafting is not None
    assert case.drafting.best == pytest.approx(0.4 * TOKENS / case.speedup.best)


def test_times_without_prompts_blame_none() -> None:
    """Steps of `spectheory bench` have no prompts in them; the same numbers with prompts in them have a cause."""
    runs = timed(FAST, loads=((1, 100), (16, 100)), prefill=0.05, spread=30)
    alone = [replace(run, note=NO_PREFILL, seconds=None) for run in runs]
    answer = why(runs=alone, batch=16)
    assert answer.case.pair is not None
    assert answer.case.pair.alone(answer.case.beside) == (answer.case.pair.step, answer.case.pair.call)
    assert "prefill" not in {found.cause for found in answer.causes}
    assert "prefill" in {found.cause for found in why(runs=runs, batch=16).causes}


def test_a_routing_log_says_what_verifying_reads() -> None:
    """Tokens that all route alike read no more experts, so experts explain nothing; by bounds they might."""
    asked: dict[str, Any] = {"tokens_per_call": 2.94, "k": K, "speedup": 1.1, "target": WITH_EXPERTS}
    alike = Routing([np.tile(np.arange(4), (8, 16, 1))], experts=64)
    spread = Routing([np.arange(32 * 4).reshape(32, 1, 4) % 64 + np.zeros((1, 16, 1), int)], experts=64)
    by_log = [why(**asked, cost=Roofline(WITH_EXPERTS, None, CARD, 64, routing=log)) for log in (alike, spread)]
    assert "experts" not in {each.cause for each in by_log[0].causes}
    found = by_log[1].causes[0]
    plain, call = (WITH_EXPERTS.read_bytes + 16 * 3 * 2048 * 1024 * 2 * count for count in (4, 16))
    assert f"read {call / plain:.2f} times the weights of a plain step (by the routing log)" in found.sentence
    assert found.steps is not None
    assert found.steps.kind == "exact"


def test_calls_are_compared_without_prompts_at_every_concurrency() -> None:
    """Calls of 1.5 and 2.4 plain steps at 4 and 16 requests, beside which prompts of 50 ms are read."""
    load = {"output_tokens": 51.0, "prompt_tokens": 100.0, "ttft": 0.05}
    step, tokens = 0.01, {0: None, 1: 1.8, K: TOKENS}
    runs = []
    for batch, k, ratio in ((1, 0, 1), (1, 1, 1.1), (4, 0, 1), (4, K, 1.5), (16, 0, 1), (16, K, 2.4)):
        prompts = 0.05 * (batch - 1) / 50 * (tokens[k] or 1.0)
        runs.append(TimedRun("vllm", batch, 126.0, k, step * ratio + prompts, tokens[k], **load))
    found = {each.cause: each for each in why(runs=runs, batch=16).causes}["compute bound"]
    assert found.steps is not None
    assert found.steps.best == pytest.approx(2.4 - 1.5)


def test_a_roofline_is_at_the_load_of_the_run() -> None:
    """Runs that take what reading and computing do, at 256 requests: nothing else is to blame, at whatever batch the
    roofline was made.
    """
    times = {k: seconds(LARGE, k + 1, 256, 300) for k in (0, K)}
    shares = {0: {}, K: {"tokens_per_call": TOKENS, "calls": 30_000, "survival": SURVIVAL}}
    runs = [TimedRun("vllm", 256, 300.0, k, times[k], note=NO_PREFILL, **shares[k]) for k in times]
    for batch in (1, 256):
        answer = why(runs=runs, cost=Roofline(LARGE, None, CARD, 1024, batch))
        assert [found.cause for found in answer.causes] == ["compute bound"]
        assert answer.shares[-1].steps.best == pytest.approx(0, abs=2e-4), "norms are read, and not multiplied by"
    assert why(tokens_per_call=2.94, speedup=1.2, k=K, batch=8, cost=Roofline(LARGE, None, CARD, 300)).case.batch == 8
    table = LatencyTable({m: Interval.exact(1.0) for m in (1, 4)}, {m: Interval.exact(0.1) for m in (1, 2)}, context=64)
    with pytest.raises(SettingError, match="at concurrency 256"):
        why(runs=runs, cost=table)


def test_experts_of_several_sequences_are_an_estimate() -> None:
    """Sequences that use some experts more often read fewer in a plain step: the ratio may be above the end."""
    found = [
        why(tokens_per_call=2.94, k=K, speedup=1.1, target=WITH_EXPERTS, batch=batch).causes[0] for batch in (1, 2)
    ]
    assert [each.cause for each in found] == ["experts", "experts"]
    assert [each.steps.kind for each in found if each.steps] == ["bound", "estimate"]
    assert ["an upper bound" in each.sentence for each in found] == [True, False]


def test_published_runs_are_read_as_they_were() -> None:
    """Rapid-MLX#2175: 85.2% accepted (1,111 of 1,304 attempts) at k = 3, and 1.05x.

    Per drafted token that would be 3.4 plain steps a call. Three runs of 600 to 800 tokens are 1,304 + 1,111 if
    attempts are calls, and a call then takes 1.76.
    """
    rate = why(speedup=1.05, acceptance=0.852, k=3)
    calls = {what: tokens.best / 1.05 for what, tokens in rate.rate_readings}
    assert calls["accepted of drafted tokens"] == pytest.approx(3.387, abs=1e-3)
    assert calls["accepted tokens per call"] == pytest.approx(1.764, abs=1e-3)
    counts = Counters(calls=1304, accepted=1111, k=3, tokens=2415, drafted=1304)
    assert why(counts, speedup=1.05).case.call.best == pytest.approx(1.764, abs=1e-3)


def headline(answer: Why) -> str:
    from spectheory.reports.why import why_report

    return why_report(answer).headline


def test_an_unexplained_rest_is_no_cause_and_is_said() -> None:
    said = headline(why(speedup=1.05, acceptance=0.85, k=3))
    assert "The rest is unknown" in said
    assert "takes a tenth" in headline(why(**CONTROLS[0]))
    prompts = why(runs=timed(FAST, loads=((1, 100),), prefill=0.2))
    assert prompts.case.whole is not None
    said = f"{prompts.case.whole.short()}x would be {prompts.case.speedup.short()}x"
    assert said in headline(prompts), "whole requests are what would be faster"
    assert prompts.causes[0].effect(prompts.case.speedup) > 0
    assert "Acceptance is as expected" in headline(why(**CONTROLS[0]))
    assert LEAST == 1.1, "the sentence says a tenth"


def test_a_run_is_chosen_by_its_load() -> None:
    runs = timed(affine(8e-3, 1e-5, 1e-9, 0.0, 1e-4, 3e-4, 0.0))
    assert why(runs=runs).pairs[0].drafted.batch == 16
    answer = why(runs=runs, batch=1, context=1030)
    assert answer.pairs[0].drafted.name.endswith("c1_in1000")
    assert len(answer.pairs) == 6
    with pytest.raises(SettingError, match="no run has batch 7"):
        why(runs=runs, batch=7)
    with pytest.raises(SettingError, match="none with speculation"):
        why(runs=[run for run in runs if not run.k])


def test_a_run_without_positions_counts_its_output() -> None:
    run = replace(next(run for run in timed(FAST) if run.k == 3), survival=())
    plain = timed(FAST, ks=(0,))
    assert run.decoded is not None
    assert run.calls is not None
    assert why(runs=[*plain, run]).case.tokens.best == pytest.approx(run.decoded / run.calls)
    with pytest.raises(SettingError, match="1 runs with drafts have no tokens per call"):
        why(runs=[*plain, replace(run, tokens_per_call=None)])


def test_the_command_shows_what_the_function_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["why", "--speedup", "1.05", "--acceptance", "85%", "--k", "3", "--c", "0.05"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.startswith("A call takes 3.38 plain steps: verifying 1.00, drafting 0.15, the rest 2.23\n")
    assert max(map(len, out.splitlines()[:12])) <= 80
    assert main([*words, "--json", "--out", str(tmp_path)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["causes"][0]["cause"] == "overhead"
    assert content == json.loads((tmp_path / "why.json").read_text())


def test_drafts_that_take_longer_than_the_call_are_of_another_run() -> None:
    """Nothing is promised from them: 2 tokens per call are at most a speed-up of 2, as a call verifies."""
    answer = why(speedup=1.2, tokens_per_call=2, k=3, cost=ConstantRatio(100.0))
    assert answer.causes[0].cause == "unlike runs"
    assert "drafting would take 300.00 plain steps, a whole call takes 1.67" in answer.causes[0].sentence
    for found in why(speedup=1.2, tokens_per_call=2, k=3, cost=ConstantRatio(0.22)).causes:
        assert found.without is None or found.without.best <= 2.0 + 1e-12
