"""Contract of calculators on arrays: array libraries, batches, precisions and refusals, for each row of the table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from proofs_check.library.strategies import Floats, extreme_pairs
from spectheory.errors import PmfError, ShapeError
from tests.api.calculators import CALCULATORS, OF_PAIRS
from tests.made_up import each, refused

RELATIVE, ABSOLUTE = 1e-12, 1e-13
"""Sums of a few dozen float64 terms, and their logarithms, in another order."""
SINGLE = 2e-5
"""Single precision: 6e-8 a term, fifty terms, and entries that were rounded themselves."""
KINDS = ("random", "tiny entries", "draft lacks a token", "equal", "disjoint", "zeros in both")
PAIRS = {name: tuple(pmf[:20] / pmf[:20].sum() for pmf in extreme_pairs()[name]) for name in KINDS}


def close(values: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(values), expected, rtol=RELATIVE, atol=ABSOLUTE)


@pytest.fixture
def no_way_to_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise AssertionError("an array was copied to the host")

    for way in ("numpy", "cpu", "tolist", "__array__"):
        monkeypatch.setattr(torch.Tensor, way, refuses)


@pytest.mark.parametrize("name", CALCULATORS)
def test_torch_gives_the_numbers_of_numpy(name: str, no_way_to_the_host: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own precision, and nothing is copied to the host on the way."""
    function, arrays = CALCULATORS[name]
    results = {
        dtype: function(*(torch.from_numpy(x).to(dtype) for x in arrays)) for dtype in (torch.float64, torch.float32)
    }
    monkeypatch.undo()
    expected = function(*arrays)
    assert {type(value) for value in results.values()} == {torch.Tensor}
    assert [value.dtype for value in results.values()] == [*results]
    close(results[torch.float64], expected)
    np.testing.assert_allclose(results[torch.float32], expected, rtol=SINGLE, atol=SINGLE)
    single = function(*(x.astype(np.float32) for x in arrays))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=SINGLE, atol=SINGLE)


def test_a_copy_would_be_seen(no_way_to_the_host: None) -> None:
    """Negative control."""
    with pytest.raises(AssertionError, match="copied to the host"):
        np.asarray(torch.ones(3))


@pytest.mark.parametrize("name", OF_PAIRS)
@each("pair", PAIRS.values())
def test_three_libraries_and_batches(name: str, pair: tuple[Floats, Floats]) -> None:
    strict = pytest.importorskip("array_api_strict")
    function, (p, q) = OF_PAIRS[name], pair
    alone = function(p, q)
    for wrap in (torch.from_numpy, strict.asarray):
        value = function(wrap(p), wrap(q))
        assert type(value) is type(wrap(p))
        close(value, alone)
    batch = function(np.stack([p, q])[:, None], np.stack([q, p, q]))
    assert batch.shape == (2, 3, *np.shape(alone))
    close(batch[0, 0], alone)
    close(batch[1, 1], function(q, p))


@each("name", sorted(set(CALCULATORS) - set(OF_PAIRS)))
def test_others_in_the_strict_library(name: str) -> None:
    strict = pytest.importorskip("array_api_strict")
    function, arrays = CALCULATORS[name]
    close(function(*map(strict.asarray, arrays)), function(*arrays))


@each("name", OF_PAIRS)
def test_no_position_gives_no_number(name: str) -> None:
    """Batches of zero positions are batches."""
    none = np.empty((0, 3))
    expected = np.shape(OF_PAIRS[name](np.full((1, 3), 1 / 3), np.full((1, 3), 1 / 3)))
    assert np.shape(OF_PAIRS[name](none, none)) == (0, *expected[1:])


FAIR = np.array([0.5, 0.5])
NO_PAIRS = [
    (np.array([0.5, 0.6]), FAIR, PmfError, "target sums to 1.1"),
    (FAIR, np.array([0.5, math.nan]), PmfError, "draft[1] is nan"),
    (np.array([math.inf, 0.5]), FAIR, PmfError, "target sums to inf"),
    (np.array([FAIR, [1.25, -0.25]]), FAIR, PmfError, "target[1, 1] is -0.25"),
    (np.array([2.0, -1.0]), FAIR, PmfError, "not logits"),
    (np.array([1.0]), FAIR, ShapeError, "target has 1 tokens and draft 2"),
    (np.empty(0), np.empty(0), PmfError, "target has no entries"),
    (np.full((2, 2), 0.5), np.full((3, 2), 0.5), ShapeError, "have shapes (2, 2), (3, 2), which do not broadcast"),
    (FAIR, torch.tensor(FAIR), PmfError, "target is numpy and draft torch: both must be arrays of one library"),
]


@each("name", OF_PAIRS)
@each("target, draft, error, fragment", NO_PAIRS)
def test_what_is_no_pair_is_refused(name: str, target: Any, draft: Any, error: type[Exception], fragment: str) -> None:
    refused(lambda: OF_PAIRS[name](target, draft), error, fragment)


def test_single_precision_keeps_what_it_can() -> None:
    """Prefix sums run in double precision: at 262,144 tokens no more than the rounding of the pmfs is lost."""
    rng = np.random.default_rng(8)
    logits = 3 * rng.standard_normal(262_144)
    pmfs = [np.exp(x - np.logaddexp.reduce(x)) for x in (logits, logits + rng.standard_normal(262_144))]
    single = [pmf.astype(np.float32) for pmf in pmfs]
    for name in ("race acceptance", "poisson acceptance", "optimal to k"):
        exact = OF_PAIRS[name](*pmfs)
        assert OF_PAIRS[name](*single).dtype == np.float32
        np.testing.assert_allclose(OF_PAIRS[name](*single), exact, atol=1e-6)
        np.testing.assert_allclose(OF_PAIRS[name](*map(torch.from_numpy, single)), exact, atol=1e-6)
