"""Budgets over a batch (§15): the compiled sums, the plan beside other routes, step times, and what vLLM reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import kernels
from spectheory.cost.served import StepTime, fit_server
from spectheory.deployment.batch_budget import best_budget, call_laws, least_edges, sum_law
from spectheory.deployment.budgets import BudgetAnswer, BudgetPoint, plan_budgets
from spectheory.deployment.step_times import ServedSteps, StepTable, read_steps
from spectheory.errors import SettingError
from spectheory.kernels.path_calls import budget_calls
from spectheory.prediction.adaptive import clairvoyant_seconds
from spectheory.prediction.law import moves_of
from spectheory.prediction.paths import by_text, calls_of_texts, tokens_left, visits_of
from spectheory.prediction.stopped import Drafted, rooms
from spectheory.trace import TextInfo, Trace
from spectheory.trace.reading import evidence_file, read_files
from spectheory.verification import TokenVerification
from spectheory.verification.by_start import along_calls
from tests.made_up import each, refused

STEPS = Path(__file__).parents[2] / "docs" / "figures" / "budgets" / "steps.csv"
K = 7
ALARM_Z = 5.0
"""A normal error beyond it has probability below 1e-6."""


@pytest.fixture(scope="module")
def trace() -> Trace:
    read = read_files([evidence_file(Path("builtin:"))])
    assert isinstance(read, Trace)
    return read


@pytest.fixture(scope="module")
def plan(trace: Trace) -> BudgetAnswer:
    return plan_budgets(trace, read_steps(STEPS), k_max=K)


@pytest.fixture(scope="module")
def greedy(trace: Trace) -> BudgetAnswer:
    return plan_budgets(trace, read_steps(STEPS), "argmax", batches=[256], k_max=K)


def sums_of(trace: Trace, along: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    survival = np.ascontiguousarray(TokenVerification().path_survival(trace.columns, K))
    calls, sums, tokens = np.zeros(len(trace.lengths)), np.zeros((5, len(trace.lengths), K)), np.zeros(K + 2)
    budget_calls(survival, weights, along, rooms(trace, K), trace.lengths, 1, calls, sums, tokens)
    return calls, sums, tokens


def test_the_compiled_sums_are_those_of_stopped_drafts(trace: Trace) -> None:
    """Beside the array code of §11, and the visits of the recursion."""
    shared = Drafted(trace, TokenVerification(), K, prefill_emits_token=True)
    along = np.minimum(np.random.default_rng(0).integers(0, K + 1, len(trace)), shared.room)
    arrays = shared.lengths_of_calls(along, keeps=False)
    calls, (going, stopped, inside, low, high), tokens = sums_of(trace, along, shared.weights)
    np.testing.assert_allclose(calls, arrays.calls, rtol=1e-12)
    for ours, theirs in ((going, arrays.going), (inside - stopped, arrays.stopping), (low, arrays.low)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(high, arrays.high, rtol=1e-9, atol=1e-9)
    verified = shared.survival * (np.arange(K) < along[:, None])
    visits = visits_of(verified, trace.lengths, prefill_emits_token=True)
    cut = np.where(np.arange(1, K + 1) < tokens_left(trace.lengths)[:, None], verified, 0.0)
    np.testing.assert_allclose(tokens[1:], visits @ moves_of(cut), rtol=1e-9)
    alone = sums_of(trace, along, shared.weights[:0])[1]
    drafted = by_text(visits[:, None] * (along[:, None] > np.arange(K)), trace.lengths)
    np.testing.assert_allclose(alone[0], drafted, rtol=1e-9, atol=1e-12)


def test_the_compiled_least_times_are_those_of_arrays(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    survival = TokenVerification().path_survival(trace.columns, K)
    for first, times in ((0, 1 + 0.1 * np.arange(K + 1)), (1, np.array([3.0, 2.0, 4.0, 4.0, 4.5, 6.0, 6.0, 9.0]))):
        compiled = clairvoyant_seconds(survival, trace.lengths, times, first=first)
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "pays", lambda positions: False)
            np.testing.assert_allclose(
                clairvoyant_seconds(survival, trace.lengths, times, first=first), compiled, rtol=1e-12
            )


def test_fixed_lengths_are_those_of_the_calls_and_the_convolution(trace: Trace, plan: BudgetAnswer) -> None:
    """Tokens of all texts over their calls, and the step's law by repeated convolution."""
    survival = TokenVerification().path_survival(trace.columns, K)
    calls = calls_of_texts(survival, trace.lengths, prefill_emits_token=True).expected.sum() - len(trace.lengths)
    tokens = (len(trace) - len(trace.lengths)) / calls
    visits = visits_of(survival, trace.lengths, prefill_emits_token=True)
    law = np.bincount(rooms(trace, K), visits, K + 1) / visits.sum()
    for choice in plan.choices[:5]:
        step = np.ones(1)
        for _ in range(choice.batch):
            step = np.convolve(step, law)
        seconds = step @ read_steps(STEPS).verifying(choice.batch, K)
        assert choice.longest.per_second.best == pytest.approx(choice.batch * tokens / seconds, rel=1e-9)
        assert choice.longest.tokens == pytest.approx(tokens, rel=1e-9)


def test_sums_of_laws() -> None:
    law = np.array([0.2, 0.0, 0.5, 0.3])
    np.testing.assert_allclose(sum_law(law, 3), np.convolve(np.convolve(law, law), law), atol=1e-15)
    assert sum_law(law, 0).tolist() == [1.0]


def test_corners_are_below_and_on_the_times() -> None:
    times = np.maximum.accumulate(np.random.default_rng(2).random(200) + np.arange(200) / 20)
    corners = least_edges(times)
    below = np.interp(np.arange(200), corners, times[corners])
    assert (below <= times + 1e-12).all()
    assert (np.diff(np.diff(times[corners]) / np.diff(corners)) > 0).all()


def test_intervals_are_those_of_plans_without_each_prompt(trace: Trace, plan: BudgetAnswer) -> None:
    """The step's time without a prompt is a tangent: beside whole plans of fewer texts."""
    kept = [n for n, text in enumerate(trace.texts) if (text.prompt or text.id) != (trace.texts[0].prompt or "")]
    rows = np.repeat(np.isin(np.arange(len(trace.texts)), kept), trace.lengths)
    columns = {name: np.asarray(trace.columns[name])[rows] for name in ("log_target", "log_draft")}
    fewer = Trace(columns, tuple(trace.texts[n] for n in kept), trace.provenance)
    (less,), whole = plan_budgets(fewer, read_steps(STEPS), batches=[256], k_max=K).choices, plan.choices[-1]
    change = less.longest.per_second.best / whole.longest.per_second.best - 1
    assert abs(change) < whole.longest.per_second.high / whole.longest.per_second.best - 1
    assert less.longest.per_second.kind == "statistical"


# Drafts that the text does not show


def chains(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A target and a draft of four states, the draft sure in some of them alone."""
    target = rng.dirichlet(np.ones(4), 4)
    sharp = np.array([1.0, 1.0, 3.0, 3.0])[:, None]
    draft = (target * rng.uniform(0.2, 3.0, (4, 4))) ** sharp
    return target, draft / draft.sum(axis=1, keepdims=True)


def decoded(
    target: np.ndarray, draft: np.ndarray, threshold: float, k: int, length: int, rng: np.random.Generator
) -> list[int]:
    """The drafts of every call of a text, by token verification as it is written: the product of the draft's largest
    probabilities decides.
    """
    text, drafted = [int(rng.choice(4, p=target[0]))], []
    while len(text) < length:
        state, sure, drafts = text[-1], 1.0, list[int]()
        while len(drafts) < min(k, length - len(text) - 1):
            sure *= draft[state].max()
            if sure < threshold:
                break
            state = int(rng.choice(4, p=draft[state]))
            drafts.append(state)
        drafted.append(len(drafts))
        for token in drafts:
            p, q = target[text[-1]], draft[text[-1]]
            if rng.random() >= p[token] / q[token]:
                excess = np.maximum(p - q, 0.0)
                text.append(int(rng.choice(4, p=excess / excess.sum())))
                break
            text.append(token)
        else:
            text.append(int(rng.choice(4, p=target[text[-1]])))
    return drafted


def test_drafts_per_call_are_those_of_decoding() -> None:
    """Likelihood ratios along sampled texts against a decoder; drafts along the text alone are refuted (alarm 1e-6)."""
    rng, texts, length, k, threshold = np.random.default_rng(5), 1500, 10, 3, 0.25
    target, draft = chains(rng)
    runs = [decoded(target, draft, threshold, k, length, rng) for _ in range(texts)]
    counted = np.array([[sum(run), len(run)] for run in runs], float)
    tokens = np.zeros((texts, length), int)
    for row in tokens:
        row[0] = rng.choice(4, p=target[0])
        for n in range(1, length):
            row[n] = rng.choice(4, p=target[row[n - 1]])
    before = np.concatenate([np.zeros((texts, 1), int), tokens[:, :-1]], axis=1)
    columns = {
        "log_target": np.log(target[before, tokens]).ravel(),
        "log_draft": np.log(draft[before, tokens]).ravel(),
        "draft_top": draft.max(axis=1)[before].ravel(),
    }
    trace = Trace(columns, tuple(TextInfo(str(i), length) for i in range(texts)))
    shared = Drafted(trace, TokenVerification(), k)
    sure = np.cumprod(along_calls(columns, k, lambda at: at["draft_top"], fill=0.0), axis=1)
    calls, sums, tokens_law = np.zeros(texts), np.zeros((5, texts, k)), np.zeros(k + 2)
    along = (sure >= threshold).sum(axis=1)
    budget_calls(shared.survival, shared.weights, along, shared.room, trace.lengths, 1, calls, sums, tokens_law)
    going, _, inside, low, _ = sums
    for drafted, agree in ((going, True), (low, False)):
        gap = counted[:, 0].mean() - drafted.sum(axis=1).mean()
        error = np.hypot(counted[:, 0].std(), drafted.sum(axis=1).std()) / texts**0.5
        assert bool(abs(gap) < ALARM_Z * error) is agree, (gap, error)
    gap = counted[:, 1].mean() - calls.mean()
    assert abs(gap) < ALARM_Z * np.hypot(counted[:, 1].std(), calls.std()) / texts**0.5
    assert inside.sum() > going.sum() > 0


# The plan


def test_policies_stand_in_their_order(plan: BudgetAnswer) -> None:
    """A threshold of 0 is a fixed length; knowing more gives more; nothing passes the limit."""
    assert plan.column == "draft_top"
    for choice in plan.choices:
        assert choice.confident is not None
        rates = [point.per_second.best for point in (choice.longest, choice.fixed, choice.confident, choice.informed)]
        assert rates == sorted(rates)
        assert max(*rates, choice.plain.per_second.best) <= choice.limit * (1 + 1e-12)
        assert choice.plain.per_second.kind == "exact"
        low, middle, high = choice.best.step_quantiles
        assert choice.batch <= low <= middle <= high <= choice.batch * (K + 1)


def test_the_shape_of_what_vllm_reported(plan: BudgetAnswer) -> None:
    """vllm#47808: at 256 requests the budget is above plain decoding, and k = 7, which is far below, past its peak."""
    last, longest = plan.choices[-1], [choice.longest.per_second for choice in plan.choices]
    assert last.batch == 256
    assert last.confident is not None
    assert last.confident.per_second.low > last.plain.per_second.best > last.longest.per_second.high * 1.5
    assert max(longest, key=lambda rate: rate.best) is longest[-2]
    assert plan.choices[0].longest.per_second.low > 3 * plan.choices[0].plain.per_second.best
    drafts = [choice.best.drafts for choice in plan.choices]
    assert drafts == sorted(drafts, reverse=True)


def test_with_first_choices_the_budget_alone_is_above_plain_decoding(greedy: BudgetAnswer) -> None:
    """vllm#47808: at 256 requests every fixed length is below plain decoding."""
    last = greedy.choices[-1]
    assert last.confident is not None
    assert last.confident.per_second.low > last.plain.per_second.best > last.fixed.per_second.high
    assert last.plain.per_second.best > 2 * last.longest.per_second.high


def test_a_target_on_the_time_per_token(trace: Trace, plan: BudgetAnswer) -> None:
    asked = replace(plan, tpot=20.0)
    best = asked.goodput
    assert best is not None
    assert best.tpot <= 20.0 < min(p.tpot for c in plan.choices if c.batch > best.batch for p in c.points)
    assert replace(plan, tpot=0.001).goodput is None
    assert isinstance(plan.goodput, BudgetPoint)
    assert plan.goodput.batch == 256


def test_drafts_that_cost_time_are_made_less_deep(trace: Trace) -> None:
    """Each pass of a draft model takes longer for all: the best depth falls, and so does what a budget gives."""
    free = StepTable((1, 64, 2048), (0.010, 0.012, 0.100))
    dear = replace(free, drafted=((1, 0.004), (64, 0.004)))
    (at_free,), (at_dear,) = (plan_budgets(trace, table, batches=[8], k_max=K).choices for table in (free, dear))
    assert at_free.informed.k == K > at_dear.informed.k
    assert at_dear.limit < at_free.limit
    assert at_dear.informed.per_second.best < at_free.informed.per_second.best


def test_without_a_confidence_there_is_no_budget_by_it() -> None:
    trace = Trace.from_log_probabilities([([-1.0] * 30, [-1.2] * 30)] * 2)
    answer = plan_budgets(trace, StepTable((1, 100), (0.01, 0.02)), batches=[4], k_max=2)
    assert answer.choices[0].confident is None
    assert answer.column is None
    assert "draft_top" in answer.reason


def test_the_laws_of_a_call_do_not_depend_on_texts_order(trace: Trace) -> None:
    survival, drafts = np.full((9, 2), [0.5, 0.25]), np.array([2, 1, 0, 2, 2, 1, 0, 2, 1])
    one = call_laws(survival, drafts, np.array([4, 5]))
    other = call_laws(survival, np.concatenate([drafts[4:], drafts[:4]]), np.array([5, 4]))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-15)


# Step times


def test_a_table_of_steps_is_read(tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    file.write_text("tokens,seconds,drafting\n1,0.01,0.001\n64,0.02,0.002\n65,0.03,\n")
    table = read_steps(file)
    assert table == StepTable((1, 64, 65), (0.01, 0.02, 0.03), ((1, 0.001), (64, 0.002)))
    assert table.least(1, 2, [0, 1, 2])[1] == pytest.approx(table.verifying(1, 2)[1] + 0.001)
    assert table.plain(64) == 0.02


def test_a_timed_server_gives_step_times() -> None:
    """Times that are linear in k are met between the chains that ran, and no step takes less than one before."""
    runs = [StepTime(b, 100, k, 0.01 + 0.001 * b + k * (0.002 + 0.001 * b)) for b in (1, 4, 16) for k in (0, 1, 4)]
    steps = ServedSteps(fit_server(runs), 100)
    times = steps.verifying(8, 4)
    np.testing.assert_allclose(times, 0.018 + np.arange(33) / 8 * 0.010, rtol=1e-6)
    assert steps.covers(16, 4)
    assert not steps.covers(17, 4)
    assert steps.drafting(8) == 0.0


@each(
    "text, words",
    [
        ("", "its columns are missing"),
        ("m,t\n1,2\n", "its columns are m, t"),
        ("tokens,seconds\n1,x\n", "cannot be read as step times"),
        ("tokens,seconds\n4,0.2\n8,0.1\n", "a step of 8 takes 0.1 s, after 4 with 0.2 s: sizes rise"),
        ("tokens,seconds\n0,0.2\n", "tokens is 0"),
        ("tokens,seconds\n1,nan\n", "seconds is nan"),
        ("tokens,seconds\n1,\n", "has no row"),
        ("tokens,seconds,drafting\n1,1,-1\n", "drafting is -1"),
    ],
)
def test_tables_that_are_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    file.write_text(text)
    refused(lambda: read_steps(file), SettingError, words)


@each(
    "survival, times, words",
    [
        ([[0.5, 0.6]], [1, 1, 1], "survival rises"),
        ([[1.5]], [1, 1], "or is no probability"),
        ([[0.5]], [1], "survival has shape (1, 1) and times (1,)"),
        ([[0.5]], [0, 1], "a step's time is not above 0"),
    ],
)
def test_choices_that_are_refused(survival: list[list[float]], times: list[float], words: str) -> None:
    refused(lambda: best_budget(survival, times), SettingError, words)


def test_sizes_outside_the_table_are_refused(trace: Trace) -> None:
    table = StepTable((1, 64), (0.01, 0.02))

    def asked(**how: Any) -> Callable[[], object]:
        return lambda: plan_budgets(trace, table, **how)

    words = "a step of 32 requests with 7 drafts each verifies 256 tokens"
    refused(asked(batches=[32], k_max=K), SettingError, words)
    refused(asked(k_max=100), SettingError, "no concurrency of 1, 2, 4, ..., 256 is covered with 100 drafts")
    refused(asked(batches=[1], k_max=1, tpot=-1.0), SettingError, "tpot is -1")


# The page


def test_the_saved_figure_and_the_page_are_of_this_plan(plan: BudgetAnswer, greedy: BudgetAnswer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "budgets.md").read_text(encoding="utf-8")
    saved = json.loads(STEPS.with_name("plan.json").read_text(encoding="utf-8"))
    for choice, written in zip(plan.choices, saved["choices"], strict=True):
        assert written["limit"] == pytest.approx(choice.limit, rel=1e-9)
        for name in ("plain", "fixed", "longest", "confident", "informed"):
            assert written[name]["per_second"]["best"] == pytest.approx(getattr(choice, name).per_second.best, rel=1e-9)
    both = plan.choices[-1], greedy.choices[-1]

    def row(name: str, *values: str) -> None:
        assert f"| {' | '.join([name, *values])} |\n".replace("|  |", "| |") in page

    def rates(name: str) -> list[str]:
        return [f"{getattr(choice, name).per_second.best:,.0f}" for choice in both]

    row("plain", "6,267", *rates("plain"))
    row("k = 7 of every call", "2,945", *rates("longest"))
    fixed = [f"{rate} (k = {choice.fixed.k})" for rate, choice in zip(rates("fixed"), both, strict=True)]
    row("best k of every call", "4,638 (k = 5, 6)", *fixed)
    row("budget by confidence", "8,855", *rates("confident"))
    row("by true acceptance", "", *rates("informed"))
    row("limit of every lossless budget", "", *(f"{choice.limit:,.0f}" for choice in both))


def test_the_step_times_are_those_that_the_page_derives() -> None:
    """Tokens of a step over tokens per second."""
    table = read_steps(STEPS)
    derived = {8: 3.44 / 264, 256: 256 / 6267, 1792: 256 * 3.4 / (0.74 * 6267), 2048: 256 * 3.4 / (0.47 * 6267)}
    for size, seconds in derived.items():
        assert table.seconds[table.tokens.index(size)] == pytest.approx(seconds, abs=6e-5)
