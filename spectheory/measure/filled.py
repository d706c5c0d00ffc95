"""Models and heads with tokens in their caches, to time the same passes repeatedly."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import torch

from spectheory.measure.devices import wait_for
from spectheory.measure.heads.base import AutoregressiveReading, ParallelReading
from spectheory.measure.heads.hidden import HiddenStates
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading

BURST = 3
"""Draft passes, or plain steps, in a row."""
_LONGER = 64
"""Pairs that a head reads beyond its context before it reads its context again."""


class Filled:
    """A model with `context` tokens in its cache; `layers` are the hidden states that a head takes of it."""

    longer: Sequence[int] = ()

    def __init__(self, model: Model, vocabulary: int, context: int, layers: Sequence[int] = ()) -> None:
        self.model, self.vocabulary, self.context, self.layers = model, vocabulary, context, layers
        self.reading = Reading(model, vocabulary)
        self.reading.read(self._some_tokens(context))
        self.keeps = hasattr(self.reading.cache, "crop")
        if hasattr(self.reading.cache, "activate_past_recording"):
            self.reading.cache.activate_past_recording()

    def _some_tokens(self, count: int) -> torch.Tensor:
        """Arbitrary tokens: the time does not depend on them (in dense models)."""
        return (torch.arange(count, device=self.model.device) % self.vocabulary)[None]

    def run(self, tokens: int, keep: int, *, alone: bool = False) -> float:
        """Seconds of one pass on `tokens` with `keep` rows of logits; the cache is cropped afterwards.

        Hidden states are taken unless it is `alone`.
        """
        reading = self.reading if self.keeps else Reading(self.model, self.vocabulary)
        ids = self._some_tokens(tokens if self.keeps else self.context + tokens)
        states = HiddenStates(self.model.network, self.layers) if self.layers and not alone else None

        def work() -> None:
            reading.read(ids, keep=keep)
            if states is not None:
                states.take()

        with states or nullcontext():
            seconds = timed(work, self.model.device)
        if self.keeps:
            reading.cache.crop(-tokens)
        return seconds

    def burst(self, tokens: int) -> list[float]:
        """Seconds of the passes of a chain, one after the other."""
        return [self.run(tokens, keep=1) for _ in range(BURST)]


class FilledHead:
    """A head after `context` pairs of its target. A pass includes embeddings and the output matrix.

    The first pass of a call reads pairs; the others of an autoregressive head are on drafted tokens. A parallel head
    has one pass: on m tokens it reads one pair and drafts m, or as many as it can, and reads more pairs instead.
    """

    keeps = True

    def __init__(self, pair: ModelPair, context: int, longest: int) -> None:
        head = pair.draft.head
        assert head is not None
        self.model, self.head, self.context, self.vocabulary = pair.draft, head, context, pair.vocabulary
        with HiddenStates(pair.target.network, head.layers) as states:
            ids = torch.arange(context) % pair.vocabulary
            Reading(pair.target, pair.vocabulary).read(ids[None])
            self._hidden = states.take()[0].to(pair.draft.device, head.dtype)
        most = head.trained if head.deepest is None else head.deepest
        self.longer = (2 * min(most, longest),) if head.parallel else ()
        self._most, self.reading = most, head.reading()
        self._begin()

    def _begin(self) -> None:
        """Read the context."""
        self.reading = self.head.reading()
        self.reading.read(self._hidden, self._some_tokens(self.context))

    def _some_tokens(self, count: int) -> torch.Tensor:
        return torch.arange(count, device=self.model.device) % self.vocabulary

    def run(self, tokens: int, keep: int) -> float:
        """Seconds of one pass on `tokens`, with logits after all of them (`keep`) or after the last."""
        if isinstance(self.reading, AutoregressiveReading) and keep > 1 and self.head.deepest != 1:
            return self._extended([tokens])[0]
        drafts = min(tokens, self._most) if self.head.parallel else 1
        return self._first(tokens - drafts + 1, drafts)

    def burst(self, tokens: int) -> list[float]:
        """Seconds of the passes of a chain, one after the other; of a parallel head the same pass several times."""
        if not isinstance(self.reading, AutoregressiveReading) or self.head.deepest == 1:
            return [self.run(tokens, keep=1) for _ in range(BURST)]
        return [self._first(tokens, 1), *self._extended([tokens] * (BURST - 1))]

    def _first(self, pairs: int, drafts: int) -> float:
        """Seconds of reading pairs and drafting after the last."""
        if self.reading.pairs + pairs > self.context + _LONGER + 2 * self._most:
            self._begin()
        reading, last = self.reading, torch.tensor([self.reading.pairs + pairs - 1], device=self.model.device)
        hidden = self._hidden[torch.arange(pairs) % self.context]

        def work() -> None:
            reading.read(hidden, self._some_tokens(pairs))
            if isinstance(reading, ParallelReading):
                reading.block(last, drafts)
            elif isinstance(reading, AutoregressiveReading):
                reading.first(last)

        return timed(work, self.model.device)

    def _extended(self, levels: Sequence[int]) -> list[float]:
        """Seconds of a pass on each level of drafted tokens, each token below one of the level before."""
        reading = self.reading
        assert isinstance(reading, AutoregressiveReading)
        reading.forget()
        starts = [0]
        for tokens in levels:
            starts.append(starts[-1] + tokens)
        last, seconds = torch.tensor([-reading.pairs], device=self.model.device), []
        parents = last.expand(levels[0])
        for begin, end in pairwise(starts):
            ids = self._some_tokens(end - begin)
            seconds.append(timed(partial(reading.extend, parents, ids), self.model.device))
            parents = torch.arange(begin, end, device=self.model.device)
        reading.forget()
        return seconds


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of `work` including everything it started on the device, as the decoders time their passes."""
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started
