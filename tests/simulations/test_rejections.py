"""Rejections along long texts against Y1 and Y3."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from simulations.draws import words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.markov_decoding import (
    horizon_rejections,
)
from simulations.models.pairs import RejectionCounts
from spectheory.limits import expected_calls, expected_rejections
from spectheory.limits.rejections import rejection_profile
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
