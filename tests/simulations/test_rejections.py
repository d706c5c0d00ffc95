"""Rejections along long texts against Y1 and Y3; bad input."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from proofs_check.theorems.rejections.batch_recursion import left_after, profile
from simulations.draws import words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.markov_decoding import (
    horizon_rejections,
    token_calls,
)
from simulations.models.ngram import BYTES, byte_tokens, ngram, text_of, text_parameters
from simulations.models.pairs import RejectionCounts
from spectheory.limits import expected_calls, expected_rejections
from spectheory.limits.rejections import rejection_profile
from tests.simulations.decoding_cases import model, tenths_chain
from tests.simulations.laws import ALARM, Counts, Floats, straying

HORIZON, REJECTED_TEXTS = 50, 200_000
"""A position's rejections are known to 0.008, those of a text to 0.06 of 16.4."""


@cache
def bed() -> tuple[Floats, Floats, Floats]:
    """yin2024's chains: seven tokens, uniform matrices normalised by rows, the draft's first."""
    rng = np.random.RandomState(10)
    draft, target = (rng.rand(HORIZON, 7, 7) for _ in range(2))
    return *(m / m.sum(axis=-1, keepdims=True) for m in (target, draft)), np.full(7, 1 / 7)


@cache
def rejections(drafts: int, printed: bool = False) -> RejectionCounts:
    """Counted on the test bed; drafts = 0 is the horizon kernel."""
    chains = bed()
    if not drafts:
        return horizon_rejections(*chains, length=HORIZON, texts=REJECTED_TEXTS, state=words(7))
    return batch_rejections(
        *chains, length=HORIZON, drafts=drafts, texts=REJECTED_TEXTS, state=words(8, drafts), printed=printed
    )


def mean_strays(texts: Counts, expected: float) -> bool:
    """Whether the mean of a histogram is too far off: empirical Bernstein (Maurer and Pontil 2009, Theorem 4)."""
    values, runs = np.arange(texts.size), int(texts.sum())
    mean = texts @ values / runs
    variance = texts @ (values - mean) ** 2 / (runs - 1)
    log = math.log(4 / ALARM)
    slack = math.sqrt(2 * variance * log / runs) + 7 * (texts.size - 1) * log / (3 * (runs - 1))
    return bool(abs(mean - expected) > slack)


@pytest.mark.parametrize(("drafts", "printed"), [(0, False), (1, False), (2, False), (5, False), (5, True)])
def test_rejections_by_position(drafts: int, printed: bool) -> None:
    """Y1 and Y3 term by term; as printed M drafts reject like one."""
    counts = rejections(drafts, printed)
    expected = rejection_profile(*bed(), drafts=1 if printed else max(drafts, 1))
    assert straying(counts.positions, expected, REJECTED_TEXTS) == []
    assert not mean_strays(counts.texts, expected.sum())
    assert counts.texts @ np.arange(HORIZON + 1) == counts.positions.sum()
    wrong = rejection_profile(*bed(), drafts=2 if drafts < 2 or printed else drafts - 1)
    assert mean_strays(counts.texts, wrong.sum()), "negative control: another number of drafts"
    assert straying(counts.positions, wrong, REJECTED_TEXTS)


def test_rejections_and_calls_of_the_papers_chains() -> None:
    """16.405 at T = 50, and the calls that they make."""
    counts = rejections(0)
    assert float(expected_rejections(*bed())) == pytest.approx(16.405, abs=5e-4)
    assert not mean_strays(counts.texts, 16.405)
    target, draft, start = bed()
    before = horizon_rejections(
        target[:-1], draft[:-1], start, length=HORIZON - 1, texts=REJECTED_TEXTS, state=words(13)
    )
    assert not mean_strays(before.texts, float(expected_calls(*bed())) - 1)
    assert mean_strays(before.texts, float(expected_rejections(*bed()))), "negative control: 1 + all rejections"


def test_calls_to_the_horizon_are_one_and_the_rejections_before_the_end() -> None:
    """The two kernels decode the same texts from the same stream."""
    counts = token_calls(*bed(), length=HORIZON, k=HORIZON, texts=REJECTED_TEXTS, state=words(7))
    assert counts.accepted.sum() == REJECTED_TEXTS + rejections(0).positions[:-1].sum()


BATCH_TEXTS = 300_000
"""A share of texts is known to 0.007."""


def test_a_recursion_that_starts_at_zero_is_caught() -> None:
    """Negative control: Y3 with f(empty) = 0 loses the first round's gain."""
    (p, target), (q, draft) = tenths_chain(3, 3, 3), tenths_chain(4, 3, 3)
    prefixes = [prefix for n in range(3) for prefix in product(range(3), repeat=n)]
    p_table, q_table = ({prefix: model(chain)(prefix) for prefix in prefixes} for chain in (p, q))
    counts = batch_rejections(target, draft, [1, 0, 0], length=3, drafts=2, texts=BATCH_TEXTS, state=words(10))
    shares = [
        np.array([float(term) for term in profile(p_table, q_table, left_after(2), first=first)]) for first in (1, 0)
    ]
    assert straying(counts.positions, shares[0], BATCH_TEXTS) == []
    assert 0 in straying(counts.positions, shares[1], BATCH_TEXTS)


# Bigrams of real text


def test_rejections_on_real_text() -> None:
    """Two bigram models of the same bytes: Y1 at every position, to 0.011; another draft's is seen."""
    text = byte_tokens(text_of(text_parameters("statistics")))
    models = [ngram(text, BYTES, order=2, weight=weight) for weight in (0.98, 0.6, 0.7)]
    p, q, other = (np.stack([model.pmf((x,)) for x in range(BYTES)]) for model in models)
    start = np.bincount(text, minlength=BYTES) / text.size
    counts = horizon_rejections(p, q, start, length=10, texts=100_000, state=words(12))
    assert straying(counts.positions, rejection_profile(p, q, start, horizon=10), 100_000) == []
    assert len(straying(counts.positions, rejection_profile(p, other, start, horizon=10), 100_000)) == 10
