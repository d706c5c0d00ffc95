"""Limits of adaptive lengths: nothing that decides its length is faster, and they are reached where all is certain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.drafting import Chain, Parallel, StoppingRule, read_stop
from spectheory.drafting.stopping import EntropyAbove, TokenBelow, TopBelow
from spectheory.intervals import Interval
from spectheory.prediction.adaptive import _Limits, call_seconds, least_seconds, least_seconds_of_any_rule
from spectheory.prediction.call_times import _exactly, _stopped_seconds
from spectheory.prediction.stopped import weights_along
from spectheory.trace import GIVEN_TEXT, TextInfo, Trace
from spectheory.verification import PATH_RULES
from tests.prediction.toy_pair import TOKENS, K, Pair, decoded

Floats = NDArray[np.float64]
ROUNDING = 1e-12
NEVER = read_stop("token<1e-9")
LENGTHS = np.array([TOKENS])


def thresholds(pair: Pair) -> Iterator[StoppingRule]:
    """Stopping rules at all values that the toy's pmfs take."""
    pmfs = list(pair._q.values())
    values = np.unique(np.round(np.concatenate(pmfs), 6))
    for kind, at in ((TokenBelow, values), (TopBelow, values), (EntropyAbove, np.linspace(0.05, 1.09, 4))):
        for each in at[:: max(len(at) // 4, 1)]:
            if kind.inside(float(each)):
                yield kind(float(each))


def seconds(pair: Pair, stop: StoppingRule, cost: ConstantRatio, *, chosen: bool) -> float:
    """Expected time of a text by enumeration of all drafts."""
    at_least, calls, _ = decoded(pair, stop, chosen=chosen)
    return float(_exactly(np.array([calls]), at_least[None])[0] @ _stopped_seconds(cost, Chain(K, stop=stop))[:-1])


def bounds(pair: Pair, name: str, cost: ConstantRatio) -> Floats:
    """Averaged over all texts: the bound of each text, that in the mean over texts, and that of any rule."""
    times, _ = call_seconds(cost, Chain(K, stop=NEVER))
    rule, means = PATH_RULES[name], np.zeros(3)
    for text, mass in pair.texts():
        if mass > 0:
            trace = pair.trace(text)
            survival, weights = rule.path_survival(trace.columns, K), weights_along(trace, rule, K + 1)
            of_text = (
                least_seconds(survival, LENGTHS, times),
                least_seconds(survival, LENGTHS, times, weights=weights[:, :K]),
                least_seconds_of_any_rule(weights[:, 1:], LENGTHS, times),
            )
            means += mass * np.concatenate(of_text)
    return means


@pytest.mark.parametrize(("rule", "head"), [("token", False), ("token", True), ("argmax", False)])
def test_no_stopping_rule_beats_them(rule: str, head: bool) -> None:
    """All thresholds of all kinds at three costs, fixed lengths among them; the best comes near."""
    pair, nearest = Pair(int(head), head=head), np.inf
    for c in (0.02, 0.3, 1.0):
        cost = ConstantRatio(c)
        of_text, in_mean, any_rule = bounds(pair, rule, cost)
        times = [seconds(pair, stop, cost, chosen=rule == "argmax") for stop in (NEVER, *thresholds(pair))]
        assert min(times) >= in_mean - ROUNDING
        assert in_mean >= of_text - ROUNDING
        if rule == "token":
            assert in_mean >= any_rule - ROUNDING
        nearest = min(nearest, min(times) / in_mean)
    assert nearest < 1.2


def test_a_rule_that_sees_its_drafts_may_reach_it() -> None:
    """It stops after a wrong draft; control: lengths chosen before the drafts take longer.

    The target always outputs token 0, which the draft draws with probability 0.6; its other token is below 0.5.
    """
    tokens, k, times = 30, 8, 1 + 0.1 * np.arange(9)
    survival = np.tile(0.6 ** np.arange(1, k + 1), (tokens, 1))
    law = -np.diff(np.concatenate([[1.0], survival[0], [0.0]]))
    adaptive, before = np.zeros(tokens + k + 1), np.zeros(tokens + k + 1)
    for n in reversed(range(tokens)):
        left = tokens - n - 1  # nothing is drafted past the end
        adaptive[n] = sum(law[i] * (times[min(i + 1, k, left)] + adaptive[n + i + 1]) for i in range(k + 1))
        before[n] = min(
            times[drafted] + sum(law[i] * before[n + min(i, drafted) + 1] for i in range(k + 1))
            for drafted in range(k + 1)
        )
    weights = np.tile(0.6 ** np.arange(k), (tokens, 1))
    for least in (
        least_seconds(survival, np.array([tokens]), times),
        least_seconds(survival, np.array([tokens]), times, weights=weights),
        least_seconds_of_any_rule(survival, np.array([tokens]), times),
    ):
        assert least[0] == pytest.approx(adaptive[0], rel=ROUNDING)
    assert adaptive[0] < 0.95 * before[0]


def by_programme(ratios: Floats, prices: Floats, ahead: Floats) -> float:
    """The most that a call of any rule saves along a text, by a linear programme: M and R as unknowns, scaled."""
    k = len(ratios)
    at = np.concatenate([[1.0], ratios])
    falls = -np.diff(np.minimum.accumulate(ahead))
    rows: list[Floats] = []

    def row(*terms: tuple[int, float]) -> None:
        each = np.zeros(2 * k)
        for place, factor in terms:
            each[place] += factor
        rows.append(each)

    for i in range(k):  # M_1, ..., M_k, then R_0, ..., R_(k-1)
        row((i, 1.0), (k + i, -ratios[i]))
        if i:
            row((i, 1.0), (i - 1, -1.0))
            row((k + i, 1.0), (k + i - 1, -1.0))
    solved = linprog(
        np.concatenate([-falls, prices * at[:k]]), A_ub=np.array(rows), b_ub=np.zeros(len(rows)), bounds=(0, 1)
    )
    return -float(solved.fun)


def test_the_best_call_of_any_rule_is_a_linear_programme() -> None:
    """Random ratios, prices and what is ahead, rising or not; one call at the start of a text that is long enough."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        k = int(rng.integers(1, 6))
        logs = rng.normal(-0.2, 1.0, (2 * k + 2, k))
        ratios = np.exp(np.cumsum(logs, axis=1)) * (rng.random(logs.shape) > 0.05)
        times = 1 + np.cumsum(np.concatenate([[0.0], rng.random(k) / 2]))
        ahead = [least_seconds_of_any_rule(ratios[i:], np.array([len(ratios) - i]), times)[0] for i in range(1, k + 2)]
        saved = by_programme(ratios[0], np.diff(times), np.array(ahead))
        least = least_seconds_of_any_rule(ratios, np.array([len(ratios)]), times)[0]
        assert least == pytest.approx(times[0] + ahead[0] - saved, abs=1e-9)


def test_it_is_reached_where_what_is_accepted_is_certain() -> None:
    """Lengths of all calls by enumeration, for random certain acceptances and costs; calls without drafts carry on."""
    rng = np.random.default_rng(5)
    tokens, k = 7, 3
    for _ in range(20):
        accepted = rng.integers(0, k + 1, tokens)
        times, carried = 1 + np.cumsum(rng.random(k + 1)) / 4, np.arange(k + 1) * rng.random()

        def shortest(
            n: int, carries: float = 0.0, accepted: NDArray[np.int64] = accepted, t: Floats = times, c: Floats = carried
        ) -> float:
            if n >= tokens:
                return 0.0
            drafted = range(1, min(int(accepted[n]), k) + 1)
            ways = [float(t[i]) + carries + shortest(n + i + 1, float(c[i])) for i in drafted]
            return min([float(t[0]) + shortest(n + 1, carries), *ways])

        survival = (np.arange(1, k + 1) <= accepted[:, None]).astype(float)
        for first in (0, 1):
            seconds = least_seconds(survival, np.array([tokens]), times, carried, first=first)
            np.testing.assert_allclose(seconds, shortest(first), rtol=ROUNDING)


def test_more_drafts_may_take_less_time() -> None:
    """One draft is accepted; two are drafted faster than one, and faster than two calls without drafts are made."""
    assert least_seconds(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([2]), np.array([1.5, 3.0, 2.0])).tolist() == [2.0]


def test_what_a_head_reads_next_is_never_overrated() -> None:
    """Of all calls, whatever they draft and accept; one of them takes no more."""
    draft = {m: Interval.exact(seconds) for m, seconds in ((1, 0.1), (2, 0.11), (3, 0.2), (4, 0.21), (5, 0.22))}
    cost = LatencyTable({1: Interval.exact(1.0), 8: Interval.exact(2.0)}, draft, 64, {"draft": {"kind": "eagle3"}})
    shape = Chain(4, stop=NEVER)
    times, carried = call_seconds(cost, shape)
    spare = [
        cost.call(shape.cut(drafted), float(accepted)).best - times[drafted] - carried[accepted]
        for drafted in range(1, 5)
        for accepted in range(drafted + 1)
    ]
    assert min(spare) == pytest.approx(0, abs=ROUNDING)
    assert carried[4] > 0


def test_the_first_token_of_a_prompt_is_on_neither_side() -> None:
    """Four tokens more, all right: one call of three drafts."""
    given = Trace({"log_target": np.zeros(5), "log_draft": np.zeros(5)}, (TextInfo("a", 5),))
    limits = _Limits(given, PATH_RULES["token"], 4, ConstantRatio(0.1), prefill_emits_token=True)
    of_any = limits.of_any_rule()
    assert of_any is not None
    assert [limits.of_rule().best, of_any.best] == pytest.approx([4 / 1.3] * 2, rel=ROUNDING)


def test_which_drafts_have_which_limit() -> None:
    """Given text has no likelihood ratios, a first choice none of another rule; given text's limit is the looser."""
    columns = {"log_target": np.log([0.5, 0.3, 0.8, 0.6]), "log_draft": np.log([0.7, 0.1, 0.9, 0.3])}
    texts, cost, token = (TextInfo("a", 4),), ConstantRatio(0.2), PATH_RULES["token"]
    sampled, given = (
        _Limits(Trace(columns, texts, provenance), token, 3, cost, prefill_emits_token=False)
        for provenance in ({}, {"origin": GIVEN_TEXT})
    )
    assert sampled.of_any_rule() is not None
    assert given.of_any_rule() is None
    assert given.of_rule().best > sampled.of_rule().best
    chosen = Trace({**columns, "draft_rank": np.array([1, 2, 1, 1])}, texts)
    assert _Limits(chosen, PATH_RULES["argmax"], 3, cost, prefill_emits_token=False).of_any_rule() is None


def test_a_parallel_head_may_draft_less_or_nothing() -> None:
    """Its pass is on the tokens that are drafted, and there is none without drafts."""
    draft = {m: Interval.exact(0.1 * m) for m in (1, 2, 16)}
    target = {1: Interval.exact(1.0), 9: Interval.exact(1.1)}
    cost = LatencyTable(target, draft, 64, {"draft": {"kind": "dflash", "parallel": True}})
    times, carried = call_seconds(cost, Chain(8, stop=NEVER, schedule=Parallel()))
    chains = [cost.call(Chain(k).by(Parallel())).best for k in range(1, 9)]
    assert times.tolist() == pytest.approx([1.0, *chains])
    assert carried.tolist() == pytest.approx([0.1 * accepted for accepted in range(9)])
    wrong = least_seconds(np.zeros((20, 8)), np.array([20]), times, carried)
    assert wrong.tolist() == pytest.approx([20.0]), "plain steps"


def test_texts_do_not_mix() -> None:
    """Several texts of different lengths at once, and each alone."""
    rng = np.random.default_rng(6)
    lengths = np.array([5, 1, 9, 5])
    survival = np.minimum.accumulate(rng.random((lengths.sum(), 4)), axis=1)
    times = 1 + 0.2 * np.arange(5)
    parts = np.split(survival, np.cumsum(lengths)[:-1])
    alone = [least_seconds(part, np.array([len(part)]), times)[0] for part in parts]
    np.testing.assert_allclose(least_seconds(survival, lengths, times), alone, rtol=ROUNDING)
    alone = [least_seconds_of_any_rule(part, np.array([len(part)]), times)[0] for part in parts]
    np.testing.assert_allclose(least_seconds_of_any_rule(survival, lengths, times), alone, rtol=ROUNDING)
