"""The clairvoyant bound: nothing that decides its length beats it, and it is reached where tau is certain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.drafting import Chain, Parallel, StoppingRule, read_stop
from spectheory.drafting.stopping import EntropyAbove, TokenBelow, TopBelow
from spectheory.intervals import Interval
from spectheory.prediction.adaptive import _clairvoyant_speedup, call_seconds, least_seconds
from spectheory.prediction.call_times import _exactly, _stopped_seconds
from spectheory.trace import TextInfo, Trace
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


def bound(pair: Pair, rule: str, cost: ConstantRatio) -> float:
    """The bound, averaged over all texts."""
    times, _ = call_seconds(cost, Chain(K, stop=NEVER))
    mean = 0.0
    for text, mass in pair.texts():
        if mass > 0:
            survival = PATH_RULES[rule].path_survival(pair.trace(text).columns, K)
            mean += mass * least_seconds(survival, LENGTHS, times)[0]
    return mean


@pytest.mark.parametrize("rule", ["token", "argmax"])
def test_no_stopping_rule_beats_it(rule: str) -> None:
    """All thresholds of all kinds at three costs, fixed lengths among them; the best comes within a factor of two."""
    nearest = np.inf
    for seed in range(2):
        pair = Pair(seed)
        for c in (0.02, 0.3, 1.0):
            cost = ConstantRatio(c)
            least = bound(pair, rule, cost)
            times = [seconds(pair, stop, cost, chosen=rule == "argmax") for stop in (NEVER, *thresholds(pair))]
            assert min(times) >= least - ROUNDING
            nearest = min(nearest, min(times) / least)
    assert nearest < 2


def test_a_length_chosen_before_the_drafts_is_no_bound() -> None:
    """With the minimum outside the expectation a rule that sees its drafts is faster: it stops after a wrong one.

    The target always outputs token 0, which the draft draws with probability 0.6; its other token is below 0.5.
    """
    tokens, k, times = 30, 8, 1 + 0.1 * np.arange(9)
    survival = np.tile(0.6 ** np.arange(1, k + 1), (tokens, 1))
    law = -np.diff(np.concatenate([[1.0], survival[0], [0.0]]))
    adaptive, wrong = np.zeros(tokens + k + 1), np.zeros(tokens + k + 1)
    for n in reversed(range(tokens)):
        left = tokens - n - 1  # nothing is drafted past the end
        adaptive[n] = sum(law[i] * (times[min(i + 1, k, left)] + adaptive[n + i + 1]) for i in range(k + 1))
        wrong[n] = min(
            times[drafted] + sum(law[i] * wrong[n + min(i, drafted) + 1] for i in range(k + 1))
            for drafted in range(k + 1)
        )
    assert least_seconds(survival, np.array([tokens]), times)[0] < adaptive[0] < 0.95 * wrong[0]


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
    speedup = _clairvoyant_speedup(given, PATH_RULES["token"], 4, ConstantRatio(0.1), prefill_emits_token=True)
    assert speedup.best == pytest.approx(4 / 1.3, rel=ROUNDING)


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
