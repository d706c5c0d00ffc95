"""The check against another decoder: sums over all k, and the power that the table states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from spectheory.measure.assisted import variance_slope
from spectheory.prediction.paths import calls_of_texts
from spectheory.reports.optional_tables import POWER, check_table, of_all
from tests.made_up import each


def record(k: int, counted: int, predicted: float, error: float) -> dict[str, Any]:
    shown = {
        "variance_slope": 0.0,
        "measured_speedup": 1.2,
        "predicted_speedup": 1.5,
        "z": (counted - predicted) / error,
    }
    return {"k": k, "tokens": 1000, "counted": counted, "predicted": predicted, "standard_error": error, **shown}


RECORDS = [record(1, 600, 610.0, 3.0), record(3, 400, 390.0, 4.0)]


def test_all_together_are_sums() -> None:
    every = of_all(RECORDS)
    assert (every["tokens"], every["counted"], every["predicted"]) == (2000, 1000, 1000.0)
    assert every["standard_error"] == pytest.approx(5.0)
    assert every["z"] == 0
    assert of_all([record(1, 620, 610.0, 5.0)])["z"] == 2


def test_a_deviation_of_that_size_is_found_with_that_probability() -> None:
    """The normal law of z, shifted by the deviation, beyond 1.96 on either side."""
    every = of_all(RECORDS)
    shift = every["found"] * every["predicted"] / every["standard_error"]

    def above(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    assert above(1.959964 - shift) + above(1.959964 + shift) == pytest.approx(POWER, abs=1e-4)
    assert above(1.959964 - shift / 2) < 0.5, "the control: half the deviation is found less often"


@each("k", [1, 3, 8])
@each("texts", [1, 6])
def test_the_deviation_is_found_where_drafts_are_accepted_less_often(k: int, texts: int) -> None:
    """Power under the alternative, by the recursion with the acceptance that gives so many more calls.

    Control: the variance under the null alone gives a difference that is found with a probability below .87.
    """
    rng, lengths = np.random.default_rng(k), np.full(texts, 80)
    accepted = np.minimum(1.0, np.exp(rng.normal(0.3, 0.6, int(lengths.sum()))))
    survival = np.stack([np.append(accepted[i:], np.ones(i)) for i in range(k)], axis=1).cumprod(axis=1)

    def calls(less: float) -> tuple[float, float]:
        law = calls_of_texts(survival * (1 - less) ** np.arange(1, k + 1), lengths)
        return float(law.expected.sum()), float(law.variance.sum())

    predicted, variance = calls(0.0)
    made = record(k, 0, predicted, variance**0.5)
    right = of_all([made | {"variance_slope": variance_slope(survival, lengths)}])["found"]
    for share, low, high in ((right, 0.885, 0.925), (of_all([made])["found"], 0.0, 0.87)):
        less = brentq(lambda d, more=1 + share: calls(d)[0] - more * predicted, 0, 0.9)
        mean, spread = calls(less)
        assert low < ndtr((mean - predicted - 1.959964 * variance**0.5) / spread**0.5) < high


def test_nothing_random_and_yet_a_difference_is_written_as_null() -> None:
    assert of_all([record(1, 600, 610.0, 1.0) | {"standard_error": 0.0}])["z"] is None
    assert of_all([record(1, 610, 610.0, 1.0) | {"standard_error": 0.0}])["z"] == 0


def test_an_infinite_difference_has_a_sign() -> None:
    for counted, sign in ((600, "-inf"), (620, "+inf")):
        assert check_table([record(1, counted, 610.0, 1.0) | {"z": None}]).texts[0][4] == sign
