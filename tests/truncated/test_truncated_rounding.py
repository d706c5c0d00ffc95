"""Log-probabilities that a server rounded: `error` lets them in, and intervals still hold the unrounded values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from proofs_check.library.strategies import Floats
from spectheory import truncated
from spectheory.divergences import total_variation
from spectheory.errors import PmfError
from spectheory.intervals import Interval
from spectheory.truncated import TopLogProbs
from spectheory.verification import RaceVerification, TokenVerification

TOKENS, STEP = 12, 1e-3
ERROR = STEP / 2
"""What rounding to three digits after the point takes or adds at most."""

QUANTITIES: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Callable[[Floats, Floats], float]]] = {
    "tv": (truncated.total_variation, lambda p, q: float(total_variation(p, q))),
    **{
        rule.name: (partial(truncated.acceptance, rule), lambda p, q, rule=rule: float(rule.acceptance(p, q)))
        for rule in (TokenVerification(), RaceVerification())
    },
}


def rounded(pmf: Floats, m: int, error: float = ERROR, extra: int | None = None) -> TopLogProbs:
    """What a server tells that rounds to three digits; `extra` is a token asked for beside the top m."""
    top = np.argsort(-pmf, kind="stable")[:m]
    more = np.array([extra] if extra is not None and extra not in top else [], dtype=np.int64)
    logs, others = (np.round(np.log(pmf[ids]) / STEP) * STEP for ids in (top, more))
    return TopLogProbs(top, logs, len(pmf), more, others, error=error)


def pmfs(seed: int, count: int) -> Floats:
    """Peaked and flat ones, the flattest nearly uniform."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.dirichlet(np.full(TOKENS, 10.0 ** rng.uniform(-0.5, 4))) for _ in range(count)])


@pytest.mark.parametrize("m", [1, 3, TOKENS - 1, TOKENS])
def test_honest_rounding_is_let_in(m: int) -> None:
    """Every list; with `error` left at 0 many long lists are refused, so the tolerance is needed."""
    refused = 0
    for number, pmf in enumerate(pmfs(1, 250)):
        top = rounded(pmf, m, extra=number % TOKENS)
        assert top.miss <= math.expm1(ERROR) + 1e-12
        try:
            rounded(pmf, m, error=0.0, extra=number % TOKENS)
        except PmfError:
            refused += 1
    assert refused > 20 or m < TOKENS - 1


def test_certainty_rounded_up_is_let_in() -> None:
    """A probability of nearly one, and a log-probability that rounding brought above zero."""
    assert TopLogProbs([0], [4e-4], 5, error=ERROR).probabilities.tolist() == [1.0]
    with pytest.raises(PmfError, match="token 0 has log-probability"):
        TopLogProbs([0], [4e-4], 5, error=1e-4)


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("m", [3, TOKENS - 1, TOKENS])
def test_intervals_hold_the_unrounded_values(name: str, m: int) -> None:
    interval, value = QUANTITIES[name]
    p, q = pmfs(2, 150), pmfs(3, 150)
    for target, draft in zip(p, q, strict=True):
        certified = interval(rounded(target, m), rounded(draft, m))
        assert certified.low <= value(target, draft) <= certified.high


@pytest.mark.parametrize("factor", [1.002, 0.998])
def test_more_than_rounding_is_refused(factor: float) -> None:
    """Negative control: all probabilities too large, or too small, by four times what rounding explains."""
    logs = np.log(np.full(TOKENS, factor / TOKENS))
    with pytest.raises(PmfError, match="have mass"):
        TopLogProbs(range(TOKENS), logs, TOKENS, error=ERROR)
    TopLogProbs(range(TOKENS), logs, TOKENS, error=4 * ERROR + 1e-5)
