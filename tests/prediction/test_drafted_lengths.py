"""Drafted tokens of calls that a stopping rule ends: estimates and bounds against all texts and drafts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.drafting import StoppingRule, read_stop
from spectheory.prediction.paths import calls_of_texts
from spectheory.prediction.stopped import Drafted, DraftedLengths, _surely_stopped, drafted_along, stopped_survival
from spectheory.verification import PATH_RULES, Columns, PathRule
from tests.prediction.toy_pair import TOKENS, K, Pair, decoded

ENUMERATED = 1e-12
"""Sums of a few thousand products of probabilities in double precision."""
STOPS = ["token<0.3", "token<0.5", "top<0.5", "top<0.7", "entropy>0.9", "entropy>0.5"]


def estimated(
    pair: Pair, rule: PathRule, stop: StoppingRule, surely: Callable[..., NDArray[np.bool_]] = _surely_stopped
) -> DraftedLengths:
    """Means over all texts of what a trace says, each weighed by its probability."""
    parts = []
    for text, mass in pair.texts():
        if mass > 0:
            trace = pair.trace(text)
            shared = Drafted(trace, rule, K)
            along = drafted_along(trace.columns, stop, K).sum(axis=1)
            sure = surely(trace.columns, stop, K, along)
            lengths = shared.lengths_of_calls(along, keeps=stop.keeps, sure=sure)
            parts.append([mass * getattr(lengths, name)[0] for name in DraftedLengths.__dataclass_fields__])
    return DraftedLengths(*(np.sum([part[i] for part in parts], axis=0) for i in range(len(parts[0]))))


@pytest.mark.parametrize("end", [None, 0])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("rule", ["token", "argmax"])
def test_both_estimates_have_the_right_mean(rule: str, head: bool, end: int | None) -> None:
    """Over all texts they equal what all drafts of all calls give; the bounds hold, the weights are needed."""
    wrong = 0.0
    for seed, text in enumerate(STOPS):
        pair, stop = Pair(seed, head=head, end=end), read_stop(text)
        at_least, calls, unread = decoded(pair, stop, chosen=rule == "argmax")
        means = estimated(pair, PATH_RULES[rule], stop)
        np.testing.assert_allclose([means.calls, means.full], [calls, unread], rtol=ENUMERATED)
        np.testing.assert_allclose(means.going, at_least, atol=ENUMERATED)
        np.testing.assert_allclose(means.stopping, at_least, atol=ENUMERATED)
        assert (means.low <= at_least + ENUMERATED).all()
        assert (at_least <= means.high + ENUMERATED).all()
        wrong = max(wrong, np.abs(means.low - at_least).max(), np.abs(means.high - at_least).max())
    assert wrong > 1e-2, "the bounds alone would do"


def nowhere(columns: Columns, stop: StoppingRule, k: int, along: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.zeros(len(along), bool)


def everywhere(columns: Columns, stop: StoppingRule, k: int, along: NDArray[np.int64]) -> NDArray[np.bool_]:
    return along > 0


def test_a_stop_is_sure_where_the_most_probable_token_stops() -> None:
    """Bounds get tighter, estimates keep their mean; a stop taken for sure everywhere breaks both."""
    tighter = wrong = 0.0
    for seed, text in enumerate(["token<0.3", "token<0.5", "token<0.7"]):
        pair, stop = Pair(seed), read_stop(text)
        at_least, _, _ = decoded(pair, stop, chosen=False)
        loose, tight, off = (
            estimated(pair, PATH_RULES["token"], stop, how) for how in (nowhere, _surely_stopped, everywhere)
        )
        np.testing.assert_allclose(loose.stopping, at_least, atol=ENUMERATED)
        assert (tight.high <= loose.high + ENUMERATED).all()
        tighter = max(tighter, float((loose.high - tight.high).max()))
        wrong = max(wrong, float(np.abs(off.stopping - at_least).max()))
    assert min(tighter, wrong) > 1e-2


@pytest.mark.parametrize("head", [False, True])
def test_greedy_calls_stop_by_the_plain_softmax(head: bool) -> None:
    """At temperature 0, of token verification and argmax drafts alike; a one-hot confidence expects other calls."""
    off = 0.0
    for seed in range(12):
        for text in ("token<0.5", "token<0.8", "top<0.6", "top<0.8"):
            pair, stop = Pair(seed, head=head, greedy=True), read_stop(text)
            at_least, calls, _ = decoded(pair, stop, chosen=True)
            means = estimated(pair, PATH_RULES["token"], stop)
            np.testing.assert_allclose(means.calls, calls, rtol=ENUMERATED)
            for low, high in ((means.low, means.high), (means.going, means.stopping)):
                assert (low <= at_least + ENUMERATED).all()
                assert (at_least <= high + ENUMERATED).all()
            (words,) = [words for words, mass in pair.texts() if mass > 0]
            columns = {
                n: np.ones_like(c) if n.endswith("draft_top") else c for n, c in pair.trace(words).columns.items()
            }
            one_hot = calls_of_texts(stopped_survival(PATH_RULES["token"], stop, K, columns), np.array([TOKENS]))
            off = max(off, float(calls - one_hot.expected[0]))
    assert off >= 1, "calls are whole numbers"


@pytest.mark.parametrize("rule", ["token", "argmax"])
def test_estimates_are_on_either_side_where_the_target_is_cut(rule: str) -> None:
    """Drafts that the target cannot output are missed by one estimate and never stop in the other."""
    apart = 0.0
    for seed, text in enumerate(STOPS):
        pair, stop = Pair(seed, cut=True), read_stop(text)
        at_least, calls, unread = decoded(pair, stop, chosen=rule == "argmax")
        means = estimated(pair, PATH_RULES[rule], stop)
        np.testing.assert_allclose([means.calls, means.full], [calls, unread], rtol=ENUMERATED)
        assert (means.going <= at_least + ENUMERATED).all()
        assert (at_least <= means.stopping + ENUMERATED).all()
        apart = max(apart, float((means.stopping - means.going).max()))
    assert apart > 1e-2
