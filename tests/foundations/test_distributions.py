"""The door: sampling settings against a slow twin, bad logits, ratios."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import theorem
from spectheory.distributions import Sampling, as_floats, ratio, validate_pmf
from spectheory.errors import LogitsError, ShapeError
from tests.made_up import each

ROUNDING = 1e-12
"""A log-sum-exp of at most a few hundred terms in double precision, against math.fsum."""

SINGLE = 1e-5
"""The same in single precision, log-probabilities down to -20."""

HALF = {torch.float16: 0.02, torch.bfloat16: 0.15}
"""Half precisions: 11 and 8 bits; a log-probability of -8 is itself rounded by 4e-3 and 3e-2."""

BOUNDARY = 1e-9
"""A top-p closer than this to a cumulative sum may be decided either way by rounding; the twin leaves it out."""

Use = tuple[float, int | None, float | None, float | None]
"""Temperature, top-k, top-p, min-p."""


def slow_log_pmf(logits: list[float], use: Use) -> list[float]:
    """One filter after the other on plain lists; top-k keeps all ties at its cut, top-p those of lowest index."""
    temperature, top_k, top_p, min_p = use
    tokens = len(logits)
    order = sorted(range(tokens), key=lambda y: (-logits[y], y))
    if temperature == 0:
        return [0.0 if y == order[0] else -math.inf for y in range(tokens)]
    weight = [math.exp((logit - max(logits)) / temperature) for logit in logits]
    kept = order if top_k is None else [y for y in order if logits[y] >= logits[order[min(top_k, tokens) - 1]]]
    if top_p is not None:
        total = math.fsum(weight[y] for y in kept)
        reached, nucleus = 0.0, []
        for y in kept:
            if reached >= top_p:
                break
            nucleus.append(y)
            reached = math.fsum(weight[z] for z in nucleus) / total
        kept = nucleus
    if min_p is not None:
        kept = [y for y in kept if weight[y] >= min_p]  # the largest weight is 1
    total = math.fsum(weight[y] for y in kept)
    return [math.log(weight[y] / total) if y in kept and weight[y] > 0 else -math.inf for y in range(tokens)]


def near_boundary(logits: list[float], use: Use) -> bool:
    """Whether a cumulative probability is within rounding of top-p, or one over the largest of min-p."""
    temperature, top_k, top_p, min_p = use
    after_top_k = slow_log_pmf(logits, (temperature, top_k, None, None))
    pmf = np.sort(np.exp(after_top_k))[::-1]
    cuts = ((np.cumsum(pmf), top_p), (pmf / pmf[0], min_p))
    return any(np.any(np.abs(values - cut) < BOUNDARY) for values, cut in cuts if cut is not None)


settings_of_use = st.tuples(
    st.sampled_from([0.0, 0.3, 1.0, 2.5]),
    st.one_of(st.none(), st.integers(1, 9)),
    st.one_of(st.none(), st.floats(1e-6, 1)),
    st.one_of(st.none(), st.floats(0, 1)),
)
logit_lists = st.lists(
    st.one_of(st.floats(-20, 20), st.integers(-2, 2).map(float), st.just(-math.inf)), min_size=1, max_size=8
).filter(lambda logits: max(logits) > -math.inf)


@theorem
@given(logit_lists, settings_of_use)
def test_sampling_is_its_slow_twin(logits: list[float], use: Use) -> None:
    """Temperature, then top-k, top-p and min-p, each renormalised; numpy and torch agree."""
    if use[0] > 0 and near_boundary(logits, use):
        return
    exact = slow_log_pmf(logits, use)
    sampling = Sampling(*use)
    for wrap in (np.array, torch.tensor):
        value = sampling.log_pmf(wrap(logits, dtype=(np if wrap is np.array else torch).float64))
        np.testing.assert_allclose(np.asarray(value), exact, atol=ROUNDING)
    assert math.fsum(np.exp(exact)) == pytest.approx(1, abs=ROUNDING)


@each(
    "sampling, kept",
    [
        (Sampling(), [0, 1, 2, 3, 4, 5]),
        (Sampling(temperature=0), [1]),
        (Sampling(top_k=1), [1, 3]),
        (Sampling(top_k=2), [1, 3]),
        (Sampling(top_k=4), [0, 1, 2, 3, 4, 5]),
        (Sampling(top_p=0.6), [0, 1, 2, 3]),
        (Sampling(min_p=0.5), [0, 1, 2, 3, 4, 5]),
        (Sampling(min_p=0.8), [1, 3]),
        (Sampling(min_p=1.0), [1, 3]),
        (Sampling(top_k=100), [0, 1, 2, 3, 4, 5]),
        (Sampling(top_p=1e-9), [1]),
        (Sampling(top_p=0.35), [1, 3]),
        (Sampling(top_p=1.0), [0, 1, 2, 3, 4, 5]),
        (Sampling(top_k=3, top_p=0.5), [0, 1, 3]),
        (Sampling(temperature=0.01), [0, 1, 2, 3, 4, 5]),
    ],
)
@each("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_which_tokens_are_kept(sampling: Sampling, kept: list[int], dtype: torch.dtype) -> None:
    """Probabilities .2, .2 (tokens 1, 3) and .15 (the others), in every precision.

    Top-k keeps all tied tokens; greedy decoding and top-p take the lowest index.
    """
    logits = torch.log(torch.tensor([0.15, 0.2, 0.15, 0.2, 0.15, 0.15], dtype=torch.float64)).to(dtype)
    value = sampling.log_pmf(logits)
    assert value.dtype == dtype
    assert torch.nonzero(value > -math.inf).ravel().tolist() == kept


def test_top_k_comes_before_top_p() -> None:
    """After top-k 2 the probabilities are 5/8 and 3/8, so top-p .6 keeps one token; before it, two."""
    logits = np.log([0.5, 0.3, 0.2])
    assert np.isfinite(Sampling(top_k=2, top_p=0.6).log_pmf(logits)).sum() == 1
    assert np.isfinite(Sampling(top_p=0.6).log_pmf(logits)).sum() == 2


def test_min_p_comes_after_top_p() -> None:
    """After min-p .5 the probabilities would be 5/8 and 3/8, and top-p .6 would keep one token of two."""
    assert np.isfinite(Sampling(top_p=0.6, min_p=0.5).log_pmf(np.log([0.5, 0.3, 0.2]))).sum() == 2


def test_numpy_and_torch_agree_in_bulk() -> None:
    logits = np.random.default_rng(4).normal(size=(5, 3, 200)) * 4
    for sampling in (Sampling(), Sampling(0.7, 50), Sampling(1.3, None, 0.9), Sampling(0.5, 20, 0.8, 0.1), Sampling(0)):
        ours, theirs = sampling.log_pmf(logits), sampling.log_pmf(torch.from_numpy(logits))
        assert isinstance(ours, np.ndarray)
        assert isinstance(theirs, torch.Tensor)
        np.testing.assert_allclose(theirs.numpy(), ours, atol=ROUNDING)
        np.testing.assert_allclose(np.exp(ours).sum(axis=-1), 1, atol=ROUNDING)
        rows = [sampling.log_pmf(row) for row in logits.reshape(-1, 200)]
        np.testing.assert_array_equal(ours.reshape(-1, 200), rows)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_lower_precisions(dtype: torch.dtype) -> None:
    logits = torch.from_numpy(np.random.default_rng(4).normal(size=(3, 100)) * 2)
    tolerance = HALF.get(dtype, SINGLE)
    value = Sampling(temperature=0.8).log_pmf(logits.to(dtype))
    assert value.dtype == dtype
    np.testing.assert_allclose(
        value.double(), Sampling(temperature=0.8).log_pmf(logits), atol=tolerance, rtol=tolerance
    )


@each("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@each("temperature", [0.0, 0.1, 1.0, 5.0])
def test_extreme_logits(dtype: torch.dtype, temperature: float) -> None:
    """Logits of +-1e30 (half precision: its largest numbers) give an exact 0 and no NaN."""
    size = 1e30 if dtype != torch.float16 else 6e4
    logits = torch.tensor([[size, -size, 0.0], [-size, -size, -size], [0.0, -math.inf, -size]], dtype=dtype)
    value = Sampling(temperature).log_pmf(logits)
    assert not torch.isnan(value).any()
    assert torch.all(value <= 0)
    assert value[0, 0] == 0
    assert value[2, 0] == 0
    pmf = torch.exp(value.double())
    assert pmf[0].tolist() == [1, 0, 0]
    if temperature > 0:
        np.testing.assert_allclose(pmf[1], 1 / 3, rtol=0.02)
    numpy_types = {torch.float64: np.float64, torch.float32: np.float32}
    if dtype in numpy_types:
        again = Sampling(temperature).log_pmf(logits.numpy().astype(numpy_types[dtype]))
        np.testing.assert_allclose(again, value.numpy(), rtol=1e-6)


def test_logits_too_far_apart_for_half_precision_overflow_to_minus_infinity() -> None:
    """In numpy too, without a warning: 6e4 - (-6e4) is beyond float16."""
    value = Sampling().log_pmf(np.array([6e4, -6e4], dtype=np.float16))
    assert value.tolist() == [0, -math.inf]


def test_a_tiny_temperature_is_greedy_but_shares_ties() -> None:
    for wrap in (np.array, torch.tensor):
        value = Sampling(temperature=1e-300).log_pmf(wrap([1.0, 2.0, 2.0]))
        np.testing.assert_allclose(np.exp(np.asarray(value)), [0, 0.5, 0.5], atol=1e-7)


BAD_ROWS = [
    ([[0.0, 1.0], [math.nan, 0.0]], 1, "row 1 contain nan"),
    ([[math.inf, 0.0], [0.0, 0.0]], 0, "row 0 contain inf"),
    ([[0.0, 0.0], [0.0, 0.0], [-math.inf, -math.inf]], 2, "row 2 are all -inf"),
    ([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, math.nan]]], 3, "row 3 contain nan"),
]


@each("logits, row, fragment", BAD_ROWS)
@each("wrap", [np.array, torch.tensor])
@each("sampling", [Sampling(), Sampling(0), Sampling(1, 1, 0.5)])
def test_a_bad_row_is_named(
    logits: list[Any], row: int, fragment: str, wrap: Callable[[Any], Any], sampling: Sampling
) -> None:
    with pytest.raises(LogitsError) as caught:
        sampling.log_pmf(wrap(logits))
    assert caught.value.row == row
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


@each(
    "logits, fragment",
    [
        ("abc", "the logits are a str: needs a numpy or torch array"),
        ([0.0, 1.0], "the logits are a list"),
        (np.array(["0", "1"]), "the logits are <U1 of shape (2,)"),
        (np.array([0.0, None]), "the logits are object of shape (2,)"),
        (np.array([0.0, 1j]), "the logits are complex128 of shape (2,)"),
        (torch.tensor([0.0, 1j]), "the logits are torch.complex64 of shape (2,)"),
        (np.zeros((3, 0)), "the logits are float64 of shape (3, 0)"),
        (torch.zeros(0), "the logits are torch.float32 of shape (0,)"),
        (np.array(0.0), "the logits are float64 of shape ()"),
    ],
)
@each("sampling", [Sampling(), Sampling(0), Sampling(1, 1, 0.5)])
def test_what_is_no_array_of_logits_is_refused(logits: Any, fragment: str, sampling: Sampling) -> None:
    with pytest.raises(ShapeError) as caught:
        sampling.log_pmf(logits)
    assert fragment in str(caught.value)


# Ratios and dtypes


def test_ratios_decide_their_zero_cases() -> None:
    """0/0 = 0, p/0 = inf, 0/q = 0."""
    p, q = np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.25, 0.0, 0.0, 0.75])
    np.testing.assert_array_equal(ratio(p, q, np), [2, 0, math.inf, 0])


def test_what_comes_in_decides_what_goes_out() -> None:
    assert as_floats([1, 0]).dtype == np.float64
    assert as_floats(np.array([1, 0])).dtype == np.float64
    assert as_floats(np.ones(2, dtype=np.float32)).dtype == np.float32
    assert as_floats(torch.ones(2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    pmf = torch.tensor([0.5, 0.5], dtype=torch.bfloat16)
    assert validate_pmf(pmf) is pmf
