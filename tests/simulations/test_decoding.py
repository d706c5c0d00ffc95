"""Decoding on Markov chains: the kernels against their readable twins."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from simulations.draws.streams import Stream, words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import (
    LANES,
    horizon_rejections,
    lane_streams,
    token_calls,
)
from simulations.reference.batch import batch_text
from simulations.reference.decoding import (
    block_call,
    horizon_text,
    token_call,
)
from simulations.reference.drawing import from_table
from simulations.reference.markov import StreamCall, decoded
from tests.simulations.decoding_cases import KERNELS, made_up, runs, uniform_start

TWINS: dict[str, StreamCall] = {"token": token_call, "block": block_call}


def counted(calls: Counter[int], k: int) -> list[int]:
    return [calls[i] for i in range(k + 1)]


def by_calls(calls: list[int], length: int) -> list[int]:
    """Texts by their number of calls."""
    return np.bincount(calls, minlength=length + 1).tolist()


def words_of(stream: Stream) -> list[int]:
    return [int(word) for word in stream.state]


def test_a_token_kernel_text_is_its_twin() -> None:
    for pair, k, length, seed in runs():
        start = uniform_start(pair)
        stream = Stream(lane_streams(words(seed), 1)[:, 0])
        calls = Counter(c.accepted for c in decoded(token_call, pair, from_table(start, stream), length, k, stream))
        found = token_calls(pair.target, pair.draft, start, length=length, k=k, texts=1, state=words(seed))
        assert found.accepted.tolist() == counted(calls, k)
        assert found.texts.tolist() == by_calls([calls.total()], length)


def test_a_block_kernel_text_is_its_twin() -> None:
    """Two texts; the streams end in the same state."""
    for pair, k, length, seed in runs():
        start, state = uniform_start(pair), words(seed)
        stream = Stream(state)
        texts: list[Counter[int]] = []
        for _ in range(2):
            steps = decoded(block_call, pair, from_table(start, stream), length, k, stream)
            texts.append(Counter(step.accepted for step in steps))
        found = block_calls(pair.target, pair.draft, start, length=length, k=k, texts=2, state=state)
        assert found.accepted.tolist() == counted(texts[0] + texts[1], k)
        assert found.texts.tolist() == by_calls([calls.total() for calls in texts], length)
        assert words_of(stream) == state.tolist()


def test_a_horizon_kernel_text_is_its_twin() -> None:
    for pair, _, length, seed in runs():
        start = uniform_start(pair)
        stream = Stream(lane_streams(words(seed), 1)[:, 0])
        rejected = horizon_text(pair, from_table(start, stream), length, stream)
        found = horizon_rejections(pair.target, pair.draft, start, length=length, texts=1, state=words(seed))
        assert np.flatnonzero(found.positions).tolist() == rejected
        assert found.texts[len(rejected)] == found.texts.sum() == 1


@pytest.mark.parametrize("printed", [False, True])
def test_a_batch_kernel_text_is_its_twin(printed: bool) -> None:
    for pair, drafts, length, seed in runs():
        start, state = uniform_start(pair), words(seed)
        stream = Stream(state)
        rejected = batch_text(pair, from_table(start, stream), length, drafts, stream, printed=printed)
        found = batch_rejections(
            pair.target, pair.draft, start, length=length, drafts=drafts, texts=1, state=state, printed=printed
        )
        assert np.flatnonzero(found.positions).tolist() == rejected
        assert found.texts[len(rejected)] == found.texts.sum() == 1
        assert words_of(stream) == state.tolist()


@pytest.mark.parametrize("texts", [1, LANES - 1, LANES, 2 * LANES + 5])
def test_lanes_share_the_texts(texts: int) -> None:
    """Text t is decoded from the stream of lane t mod 64, whatever the number of texts."""
    pair = made_up(4, 7, seed=1)
    start, streams = uniform_start(pair), [Stream(s) for s in lane_streams(words(3), min(LANES, texts)).T]
    calls: Counter[int] = Counter()
    lengths = []
    for t in range(texts):
        stream = streams[t % LANES]
        accepted = [c.accepted for c in decoded(token_call, pair, from_table(start, stream), 7, 2, stream)]
        calls.update(accepted)
        lengths.append(len(accepted))
    found = token_calls(pair.target, pair.draft, start, length=7, k=2, texts=texts, state=words(3))
    assert found.accepted.tolist() == counted(calls, 2)
    assert found.texts.tolist() == by_calls(lengths, 7)


def test_another_algorithm_is_not_the_twin() -> None:
    """Negative control: the printed batch's texts against the intended twin's."""
    wrong = 0
    for pair, drafts, length, seed in runs():
        stream, start = Stream(words(seed)), uniform_start(pair)
        rejected = batch_text(pair, from_table(start, stream), length, drafts, stream)
        found = batch_rejections(
            pair.target, pair.draft, start, length=length, drafts=drafts, texts=1, state=words(seed), printed=True
        )
        wrong += np.flatnonzero(found.positions).tolist() != rejected
    assert wrong > 50


def test_tokens_add_up() -> None:
    pair = made_up(5, 0, seed=2)
    for name, kernel in KERNELS.items():
        for k, length in product((1, 3, 12), (1, 2, 5, 12)):
            counts = kernel(pair.target, pair.draft, uniform_start(pair), length=length, k=k, texts=50, state=words(1))
            assert counts.accepted @ np.arange(1, k + 2) == 50 * length, name
            assert counts.texts.sum() == 50, name
            assert counts.texts @ np.arange(length + 1) == counts.accepted.sum(), name


def test_call_counts_add_up() -> None:
    pair = made_up(4, 0, seed=3)
    for name, kernel in KERNELS.items():
        one, two = (
            kernel(pair.target, pair.draft, uniform_start(pair), length=5, k=2, texts=n, state=words(n)) for n in (3, 4)
        )
        both = one + two
        assert both.texts.tolist() == (one.texts + two.texts).tolist(), name
        assert both.accepted.tolist() == (one.accepted + two.accepted).tolist(), name
