"""The numbers that kernels and readable algorithms draw, and tables that stand for their pmfs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from proofs_check.library.strategies import Floats, pmfs
from simulations.draws import Alias, Stream, alias, alias_draw, exponential, next_word, uniform, words
from tests.simulations.laws import straying

SUMMED = 1e-13
"""A column is topped up by subtractions of numbers of order one, V of them at most."""


def test_the_generator_is_xoshiro() -> None:
    """The first outputs of xoshiro256++ from the state 1, 2, 3, 4, as its authors publish them."""
    state = np.array([1, 2, 3, 4], dtype=np.uint64)
    assert [int(next_word(state)) for _ in range(3)] == [41943041, 58720359, 3588806011781223]


def test_a_stream_draws_what_it_says() -> None:
    """From a copy of the words: tokens by table and by inversion, coins, times; impossible tokens never."""
    state, weights = words(7, 1), np.array([0.0, 1.0, 0.0, 3.0, 0.0])
    stream = Stream(state)
    assert [stream.uniform(), stream.exponential()] == [uniform(state), exponential(state)]
    for draw in (stream.token, stream.inverted, lambda w: stream.inverted(w, np.array([3, 4, 2, 1, 0]))):
        assert straying(np.bincount([draw(weights) for _ in range(4000)], minlength=5), weights / 4) == []
    heads = sum(stream.coin(0.25) for _ in range(4000))
    assert straying([heads, 4000 - heads], [0.25, 0.75]) == []
    assert straying([heads, 4000 - heads], [0.35, 0.65]) != [], "negative control"


def test_streams_of_other_seeds_differ() -> None:
    seeds = [(0,), (1,), (1, 0), (1, 1), (1, 1, 0), (2**70,)]
    assert len({tuple(map(int, words(*seed))) for seed in seeds}) == len(seeds)


def law_of(table: Alias) -> Floats:
    """The pmfs that tables stand for, from their columns."""
    tokens = table.keep.shape[-1]
    law = np.array(table.keep)
    for row, keep, other in zip(*(each.reshape(-1, tokens) for each in (law, *table)), strict=True):
        np.add.at(row, other, 1 - keep)
    return law / tokens


@given(pmfs(7))
def test_a_table_stands_for_its_pmf(pmf: Floats) -> None:
    table = alias(pmf)
    np.testing.assert_allclose(law_of(table), pmf, atol=SUMMED)
    assert np.all(law_of(table)[pmf == 0] == 0)


def test_a_wrong_table_is_seen() -> None:
    """Negative control."""
    pmf = np.array([0.5, 0.3, 0.2])
    table = alias(pmf)._replace(other=np.array([0, 0, 1], dtype=np.int32))
    assert np.abs(law_of(table) - pmf).max() > 0.05


@pytest.mark.parametrize("tokens", [1, 3, 64])
def test_a_uniform_draws_the_column_and_then_the_token(tokens: int) -> None:
    """Evenly spaced uniforms give every token its share."""
    pmf = np.random.default_rng(tokens).dirichlet(np.ones(tokens))
    table, cells = alias(pmf), 4000 * tokens
    tally = np.bincount(
        [alias_draw(table.keep, table.other, (i + 0.5) / cells) for i in range(cells)], minlength=tokens
    )
    np.testing.assert_allclose(tally / cells, pmf, atol=tokens / cells)


def test_several_tables_at_once() -> None:
    rows = np.random.default_rng(1).dirichlet(np.ones(5), size=(2, 3))
    np.testing.assert_allclose(law_of(alias(rows)), rows, atol=SUMMED)
