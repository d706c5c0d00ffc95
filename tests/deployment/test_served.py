"""Plans for a server that was timed: a simulated one, whose sweep gives back what is known of it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cost import served as fitting
from spectheory.cost.served import ServedCost, fit_server
from spectheory.deployment import batch_ranges
from spectheory.deployment.served import (
    ServedChoice,
    TimedServer,
    _as_run,
    _served_choices,
    _tokens_of_runs,
    _tokens_of_trace,
    plan_server,
)
from spectheory.drafting import Chain
from spectheory.engines.vllm.bench import _read_run as read_bench
from spectheory.engines.vllm.timed import _timed_run
from spectheory.errors import SettingError, TextError
from spectheory.intervals import Interval
from spectheory.prediction import predict
from spectheory.trace.counters import BenchRun
from spectheory.trace.timed import TimedRun
from spectheory.verification import TokenVerification
from tests.made_up import each
from tests.toy_drafts import text_trace
from tests.toy_server import affine, served, sweep

LAW = affine(8e-3, 2e-4, 2e-7, 4e-4, 6e-4, 2.5e-4, 2e-8)
"""Memory-bound at small batches, so that k falls with the concurrency."""
SURVIVAL = (0.8, 0.64, 0.5, 0.4, 0.3)
TOKENS = [1 + sum(SURVIVAL[:k]) for k in range(6)]
NOISE = 0.02


def read_run(path: Path) -> TimedRun:
    return _timed_run(read_bench(path))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[TimedRun]:
    folder = sweep(tmp_path_factory.mktemp("bench"), LAW, (0, 1, 3, 5), survival=SURVIVAL, noise=NOISE)
    return [read_run(path) for path in sorted(folder.iterdir())]


def gain(batch: int, context: float, k: int) -> float:
    """The true speed-up."""
    return TOKENS[k] * LAW(batch, context, 0) / LAW(batch, context, k)


def test_a_simulated_sweep_is_recovered(runs: list[TimedRun]) -> None:
    """Times of calls from tokens, although requests differ in their calls and accepted tokens pass the end.

    Each run is off by its own 2%, and at the end of a run fewer sequences decode than the concurrency: 4 standard
    deviations and 3%. A time that counted accepted tokens past the end would be off by more at k = 5.
    """
    for run in runs:
        time = run.step
        assert time.seconds == pytest.approx(LAW(time.batch, time.context, time.k), rel=4 * NOISE + 0.03)
        if run.tokens_per_call:
            assert run.tokens_per_call < 1 + sum(run.survival)
    fit = fit_server([run.step for run in runs])
    assert fit.error == pytest.approx(NOISE, rel=0.6)
    assert max(map(abs, fit.left_out)) < 6 * NOISE
    for k in (0, 2, 4):
        assert fit.seconds(8, 500, k).best == pytest.approx(LAW(8, 500, k), rel=0.05)


def test_best_lengths_are_those_of_brute_force(runs: list[TimedRun]) -> None:
    """At every concurrency the chosen k loses at most 2% to the true best, and k really falls."""
    fit = fit_server([run.step for run in runs])
    batches, contexts = list(range(1, 17)), [150.0, 1000.0]
    choices = _served_choices(fit, _tokens_of_runs(runs, fit.ks), batches, contexts)
    for choice in choices:
        best = max(gain(choice.batch, choice.context, k) for k in range(6))
        assert gain(choice.batch, choice.context, choice.k) >= 0.98 * best
        assert choice.reading is (choice.k in (2, 4))
    assert choices[0].k > choices[-1].k, "one k everywhere would be wrong: the check can fail"
    ranges = batch_ranges(choices[:16])
    assert [(b, k) for first, last, k in ranges for b in range(first, last + 1)] == [
        (choice.batch, choice.k) for choice in choices[:16]
    ]


@each("tpot, ttft", [(None, 30.5), (6.0, 30.5), (9.0, 24.5), (None, 1e-3), (None, 1e3)])
def test_the_largest_concurrency_within_both_targets(runs: list[TimedRun], tpot: float | None, ttft: float) -> None:
    """First tokens of 10 ms, 1 ms more for each request and 2 ms for each draft, on a line between the runs; against
    every concurrency. k = 2 and 4 did not run and wait as long as 3 and 5. Control: at 1e-3 ms nothing is within.
    """

    def first(batch: float, k: int) -> float:
        return 10 + batch + 2 * k

    timed = [replace(run, ttft=1e-3 * first(run.batch, run.k)) for run in runs]
    server = TimedServer.of(timed)
    answer = plan_server(server, tpot=tpot, ttft=ttft).load
    assert answer is not None
    assert (answer.load.prompt_tokens, answer.load.output_tokens) == (100, 65)
    tokens = {0: 1.0} | {each.k: each.per_call.best for each in server.tokens}
    expected = {}
    for k, batch in itertools.product(tokens, range(1, 17)):
        per_token = 1e3 * server.fit.seconds(batch, server.contexts(None)[0], k).best / tokens[k]
        waited = first(batch, {2: 3, 4: 5}.get(k, k))
        if waited <= ttft and (tpot is None or per_token <= tpot):
            expected[k] = (batch, pytest.approx(per_token), pytest.approx(waited))
    assert {each.k: (each.batch, each.tpot, each.ttft) for each in answer.targets} == expected
    assert bool(expected) is (ttft > 1)


def test_first_tokens_are_known_at_contexts_that_ran(runs: list[TimedRun]) -> None:
    with pytest.raises(SettingError, match=r"no run has context 500: .* name one of 132, 1032 with contexts"):
        plan_server(TimedServer.of(runs), contexts=[500], ttft=10)


def padded(batch: float, context: float, k: int) -> float:
    """A step of multiples of 32 tokens, and 0.9 ms for each draft."""
    return 5e-3 + 1.2e-4 * 32 * math.ceil(batch * (k + 1) / 32) + 1e-7 * batch * context + 9e-4 * k


def test_k_is_chosen_at_the_edges_of_stairs() -> None:
    """Exact runs at eight concurrencies. With the graphs stated no concurrency from 1 to 32 loses against the true
    best, without them none of those that ran; a straight line loses 20% at one of them.
    """
    ran = (1, 2, 4, 8, 12, 16, 24, 32)
    survival = tuple(0.8**i for i in range(1, 6))
    tokens = {k: 1 + sum(survival[:k]) for k in range(6)}
    runs = [
        TimedRun("toy", b, c, k, padded(b, c, k), tokens[k] if k else None, survival=survival[:k])
        for b in ran
        for c in (100.0, 2000.0)
        for k in range(6)
    ]

    def loss(batches: Sequence[int], **settings: Any) -> float:
        losses = []
        for choice in plan_server(TimedServer.of(runs, **settings), batches).choices:
            gains = {k: tokens[k] / padded(choice.batch, choice.context, k) for k in range(6)}
            losses.append(1 - gains[choice.k] / max(gains.values()))
        return max(losses)

    graphs = range(32, 193, 32)
    assert loss(range(1, 33), sizes=graphs) < 1e-9
    assert loss(ran) < 1e-9
    assert loss(ran, law="affine") > 0.1


def timed(seed: int) -> list[TimedRun]:
    """60 runs of the law with 1% noise."""
    rng, per_call = np.random.default_rng(seed), {0: None, 1: 1.7, 3: 2.5, 5: 3.0}
    return [
        TimedRun("toy", b, c, k, LAW(b, c, k) * (1 + 0.01 * float(rng.standard_normal())), per_call[k], c, 64.0, 8 * b)
        for b in (1, 4, 8, 16, 32)
        for c in (100.0, 1000.0, 4000.0)
        for k in (0, 1, 3, 5)
    ]


def test_runs_contradict_a_fit_beyond_their_noise_alone() -> None:
    """Of 60 settings at 5% each, 14 or more are contradicted with probability 1e-6. Control: the fit's own interval,
    which is narrower than the noise of a run, would be contradicted more often. One run that is 15% off is seen.
    """
    choices = [choice for seed in range(4) for choice in plan_server(TimedServer.of(timed(seed))).choices]
    outside = [at for at in choices if at.ran and not at.speedup.low <= at.ran.best <= at.speedup.high]
    assert sum(not at.agrees for at in choices) < 14 <= len(outside)
    runs = timed(0)
    best = next(choice for choice in choices if (choice.batch, choice.context) == (8, 1000))
    at = next(i for i, run in enumerate(runs) if (run.batch, run.context, run.k) == (8, 1000, best.k))
    runs[at] = replace(runs[at], step_seconds=1.15 * runs[at].step_seconds)
    again = [(at.batch, at.context) for at in plan_server(TimedServer.of(runs)).choices if not at.agrees]
    assert again == [(8, 1000.0)]


PREFILL = 6e-3
"""Seconds that a prompt takes of a step of all others."""


def test_prompts_of_other_requests_slow_calls_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Continuous batching, prompts read within the steps: calls emit more tokens, so that more prompts begin per call.

    The truth at concurrency 32, k = 1, is that of a long run without noise. Control: the law without a term of its own
    for calls per sequence is off by more than 5% there, and says that it pays.
    """
    runs, truth = with_prompts(tmp_path, 0)

    def choice() -> ServedChoice:
        fit = fit_server([each.step for each in runs])
        (best,) = _served_choices(fit, _tokens_of_runs(runs, (1,)), [32], [fit.runs[-1].context])
        return _as_run(best, runs, fit)

    answer = choice()
    assert answer.k == 1
    assert answer.speedup.best == pytest.approx(truth[1], rel=0.02)
    assert answer.agrees
    assert not answer.certain
    used = fitting._used
    monkeypatch.setattr(fitting, "_used", lambda each: [term for term in used(each) if term < 7])
    without = choice()
    assert without.speedup.best > 1.1 * truth[1]
    assert without.speedup.low > 1
    assert not without.certain


def with_prompts(folder: Path, spread: int) -> tuple[list[TimedRun], dict[int, float]]:
    """Runs of a server that reads prompts within the steps, off by 0.5% each; and the speed-ups of long exact ones at
    concurrency 32, by k.
    """
    law = affine(8e-3, 1e-4, 0.0, 2e-4, 3e-4, 1e-4, 0.0)

    def run(concurrency: int, k: int, requests: int, noise: float) -> TimedRun:
        rng, settings = np.random.default_rng([concurrency, k, requests]), {"noise": noise, "spread": spread}
        content = served(rng, law, concurrency, k, survival=SURVIVAL, requests=requests, prefill=PREFILL, **settings)
        path = folder / f"{concurrency}-{k}-{requests}.json"
        path.write_text(json.dumps(content))
        return read_run(path)

    runs = [run(concurrency, k, 40 * concurrency, 0.005) for concurrency in (1, 8, 32) for k in (0, 1, 3, 5)]
    times = {k: run(32, k, 3200, 0.0).token_seconds or math.nan for k in (0, 1, 3)}
    return runs, {k: times[0] / seconds for k, seconds in times.items() if k}


def test_outputs_of_varying_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain requests then end one by one and read each other's prompts too: what a call reads more is in proportion to
    its accepted tokens. Control: with a term by calls alone, k = 3 is off by more than its interval.
    """
    runs, truth = with_prompts(tmp_path, 32)

    def at(k: int) -> Interval:
        fit = fit_server([each.step for each in runs])
        (tokens,) = _tokens_of_runs(runs, [k])
        return tokens.speedup(ServedCost(fit, 32, fit.runs[-1].context))

    for k, true in truth.items():
        assert at(k).best == pytest.approx(true, rel=0.012)
        assert at(k).low <= true <= at(k).high
    used = fitting._used
    monkeypatch.setattr(fitting, "_used", lambda each: [term for term in used(each) if term != 8])
    assert at(3).best > 1.012 * truth[3]


def test_speculation_is_off_where_it_does_not_pay(tmp_path: Path) -> None:
    """A dear draft: plain decoding wins at large concurrencies."""
    law = affine(8e-3, 2e-4, 0.0, 0.0, 1e-3, 1.2e-3, 0.0)
    folder = sweep(tmp_path, law, (0, 1, 3), survival=SURVIVAL, noise=0.005)
    bench_runs = [read_run(path) for path in sorted(folder.iterdir())]
    fit = fit_server([run.step for run in bench_runs])
    choices = _served_choices(fit, _tokens_of_runs(bench_runs, fit.ks), [1, 4, 16], [fit.contexts[0]])
    assert [choice.k > 0 for choice in choices] == [True, True, False]
    assert choices[0].certain
    assert (choices[-1].tokens_per_call, choices[-1].speedup.best) == (1.0, 1.0)


def test_tokens_of_a_trace_are_those_of_predict(runs: list[TimedRun]) -> None:
    """Speed-ups with both errors together; wider than with the times' alone."""
    trace, rule = text_trace(4, 0.6), TokenVerification()
    fit = fit_server([run.step for run in runs])
    cost = ServedCost(fit, 4, 500)
    for each_k in _tokens_of_trace(trace, rule, [1, 4]):
        predicted = predict(trace, rule, Chain(each_k.k), cost, prefill_emits_token=True).speedup
        assert each_k.speedup(cost) == predicted
        alone = each_k.per_call.best * cost.target_step().best / cost.call(Chain(each_k.k)).best
        assert predicted is not None
        assert predicted.best == pytest.approx(alone)


def test_counted_tokens_have_the_times_errors(runs: list[TimedRun]) -> None:
    """Errors of the times and of the counts add in squares; a k that ran has its own tokens."""
    fit = fit_server([run.step for run in runs])
    by_k = {each.k: each for each in _tokens_of_runs(runs, fit.ks)}
    for k, each_k in by_k.items():
        nearest = next(ran for ran in (1, 3, 5) if ran >= k)
        same = [run for run in runs if run.k == nearest]
        calls, decoded = sum(run.calls or 0 for run in same), sum(run.decoded or 0 for run in same)
        if k == nearest:
            assert each_k.per_call.best == pytest.approx(decoded / calls)
        assert 1 + sum(SURVIVAL[:k]) - 0.15 < each_k.per_call.best < 1 + sum(SURVIVAL[:k]), "no tokens past the end"
    cost = ServedCost(fit, 4, 500)
    moved = [
        math.log(low.target_step().best / low.call(Chain(3)).best * high.call(Chain(3)).best / high.target_step().best)
        for low, high in cost.errors()
    ]
    got = by_k[3].speedup(cost)
    counted = math.log(by_k[3].per_call.high / by_k[3].per_call.low)
    assert math.log(got.high / got.best) == pytest.approx(np.linalg.norm([*moved, counted]) / 2, rel=1e-3)


@each(
    "change, words",
    [
        ({"concurrency": None}, "has no concurrency: the batch must be known; run with --max-concurrency"),
        ({"failed": 3}, "has 3 failed requests"),
        ({"drafted": 10}, "tokens per call, 3 at most: calls must be of one length"),
        ({"output_tokens": 10**6}, "of its tokens from steps without drafts: at most 1% may be"),
    ],
)
def test_runs_that_say_no_time_are_refused(change: dict[str, int | None], words: str) -> None:
    run = BenchRun("k3", 4, 64, 0, 2.0, 6400, 4160, 5e-3, 1.5e-3, 6.1, 1700, 5100, 2550, (0.8, 0.5, 0.2))
    assert _timed_run(run).k == 3
    with pytest.raises(TextError) as refused:
        _timed_run(replace(run, **change))  # type: ignore[arg-type]
    assert words in str(refused.value)
