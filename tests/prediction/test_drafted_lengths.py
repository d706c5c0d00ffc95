"""Drafted tokens of calls that a stopping rule ends: estimates and bounds against all texts and drafts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.drafting import StoppingRule, read_stop
from spectheory.prediction.drafted_lengths import Drafted, DraftedLengths
from spectheory.prediction.stopped import lengths_along
from spectheory.verification import PATH_RULES, PathRule
from tests.prediction.toy_pair import K, Pair, decoded

Floats = NDArray[np.float64]
ENUMERATED = 1e-12
"""Sums of a few thousand products of probabilities in double precision."""
STOPS = ["token<0.3", "token<0.5", "top<0.5", "top<0.7", "entropy>0.9", "entropy>0.5"]


def estimated(pair: Pair, rule: PathRule, stop: StoppingRule) -> DraftedLengths:
    """Means over all texts of what a trace says, each weighed by its probability."""
    parts = []
    for text, mass in pair.texts():
        if mass > 0:
            trace = pair.trace(text)
            shared = Drafted(trace, rule, K)
            found = shared.lengths_of_calls(lengths_along(trace.columns, stop, K, shared.left), keeps=stop.keeps)
            parts.append([mass * getattr(found, name)[0] for name in DraftedLengths.__dataclass_fields__])
    return DraftedLengths(*(np.sum([part[i] for part in parts], axis=0) for i in range(len(parts[0]))))


@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("rule", ["token", "argmax"])
def test_both_estimates_have_the_right_mean(rule: str, head: bool) -> None:
    """Over all texts they equal what all drafts of all calls give; the bounds hold, the weights are needed."""
    wrong = 0.0
    for seed, text in enumerate(STOPS):
        pair, stop = Pair(seed, head=head), read_stop(text)
        at_least, calls, unread = decoded(pair, stop, chosen=rule == "argmax")
        found = estimated(pair, PATH_RULES[rule], stop)
        np.testing.assert_allclose([found.calls, found.full], [calls, unread], rtol=ENUMERATED)
        np.testing.assert_allclose(found.going, at_least, atol=ENUMERATED)
        np.testing.assert_allclose(found.stopping, at_least, atol=ENUMERATED)
        assert (found.low <= at_least + ENUMERATED).all()
        assert (at_least <= found.high + ENUMERATED).all()
        wrong = max(wrong, np.abs(found.low - at_least).max(), np.abs(found.high - at_least).max())
    assert wrong > 1e-2, "the bounds alone would do"


@pytest.mark.parametrize("rule", ["token", "argmax"])
def test_estimates_are_on_either_side_where_the_target_is_cut(rule: str) -> None:
    """Drafts that the target cannot output are missed by one estimate and never stop in the other."""
    apart = 0.0
    for seed, text in enumerate(STOPS):
        pair, stop = Pair(seed, cut=True), read_stop(text)
        at_least, calls, unread = decoded(pair, stop, chosen=rule == "argmax")
        found = estimated(pair, PATH_RULES[rule], stop)
        np.testing.assert_allclose([found.calls, found.full], [calls, unread], rtol=ENUMERATED)
        assert (found.going <= at_least + ENUMERATED).all()
        assert (at_least <= found.stopping + ENUMERATED).all()
        apart = max(apart, float((found.stopping - found.going).max()))
    assert apart > 1e-2
