"""Bad numbers at the doors of the calculators: a named error before anything is allocated; errors travel whole."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch

from spectheory.checks import real, whole
from spectheory.cost.iid import best_chain_length, iid_operations, iid_speedup, iid_tokens_per_call, required_acceptance
from spectheory.errors import LogitsError, MissingExtraError, SettingError, SpectheoryError
from tests.made_up import each

HUGE = 10**400
"""Beyond floats."""


def test_whole_numbers() -> None:
    assert [type(whole("k", k, remedy="")) for k in (3, np.int64(3), torch.tensor(3))] == [int] * 3
    assert whole("k", 0, least=0, most=0, remedy="") == 0
    for bad in (2.0, math.nan, "3", None, [3], 1j, -1, 5, np.ones(2), torch.ones(2)):
        with pytest.raises(SettingError, match=r"^k is "):
            whole("k", bad, least=0, most=4, remedy="use 1")


def test_real_numbers() -> None:
    assert [
        real("c", c, bool, limit="", remedy="") for c in (1, 1.0, np.float32(1), torch.tensor(1.0), Fraction(1))
    ] == [1.0] * 5
    for bad in (math.nan, "1", None, [1.0], 1j, HUGE, np.ones(2), torch.ones(2), 0.0):
        with pytest.raises(SettingError, match=r"^c is "):
            real("c", bad, bool, limit="must not be 0", remedy="use 1")


# Long chains


@each("alpha", [0.0, 1e-300, 0.3, 0.7, 0.999, 1 - 2**-40, 1 - 2**-53, 1.0])
@each("k", [64, 65, 1000])
def test_long_chains_have_their_sum(alpha: float, k: int) -> None:
    """Against the sum in fractions, where the closed form begins and beyond."""
    exact = sum(Fraction(alpha) ** i for i in range(k + 1)) if alpha < 0.9 and k < 100 else None
    if exact is None:
        a = Fraction(alpha)
        exact = Fraction(k + 1) if a == 1 else (1 - a ** (k + 1)) / (1 - a)
    assert iid_tokens_per_call(alpha, k) == pytest.approx(float(exact), rel=1e-14)


def test_endless_chains() -> None:
    """At a billion drafts only the limit 1/(1 - alpha) is left, at alpha = 1 every draft."""
    k = 10**9
    assert iid_speedup(0.7, k, 0.1) == pytest.approx(1 / 0.3 / (k / 10 + 1), rel=1e-14)
    assert iid_operations(0.7, k, 0.1) == pytest.approx((k / 10 + k + 1) * 0.3, rel=1e-14)
    assert iid_speedup(1.0, k, 0.5) == pytest.approx((k + 1) / (k / 2 + 1), rel=1e-14)
    assert required_acceptance(3.0, k, 1e-10) == pytest.approx(1 - 1 / (3 * (k * 1e-10 + 1)), rel=1e-12)


@each("alpha", [0.0, 0.05, 0.3, 0.8, 0.99, 1.0])
@each("c", [0.0, 0.02, 0.1, 0.5, 1.0, 2.0])
def test_the_best_length_of_any_range(alpha: float, c: float) -> None:
    """The search by halving finds what looking at every length finds; and answers for a billion lengths."""
    for k_max in (1, 2, 7, 200):
        every = [iid_speedup(alpha, k, c) for k in range(1, k_max + 1)]
        assert every[best_chain_length(alpha, c, k_max) - 1] == pytest.approx(max(every), rel=1e-14)
    longest = best_chain_length(alpha, c, 10**9)
    assert longest == 10**9 if c == 0 < alpha or c < alpha == 1 else longest < 10**4


ERRORS = [
    SettingError("k is 0", limit="must be >= 1", remedy="use 1"),
    LogitsError("row 3 is NaN", limit="needs numbers", remedy="look at the model", row=3),
    MissingExtraError("z3 is not installed", limit="needs the extra 'proofs'", remedy="install it"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_travels_whole(error: SpectheoryError) -> None:
    """Workers hand their errors to the parent."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert str(error).count("\n") == 0
