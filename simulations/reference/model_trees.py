"""Text and best tree of a language model, reading every prefix anew: twin of :mod:`simulations.models.model_growth`."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from simulations.draws.streams import Stream

Floats = NDArray[np.float64]
PmfAfter = Callable[[Sequence[int]], Floats]
"""The model's pmf ``[V]`` after the tokens of a text."""


def drawn_trial(
    pmf_after: PmfAfter, prompts: Sequence[Sequence[int]], places: int, capacity: int, stream: Stream
) -> tuple[list[int], int, list[int]]:
    """Prompt, start and text of one trial: one uniform for the prompt, one for the start, one for each token."""
    prompt = list(prompts[int(stream.uniform() * len(prompts))])
    start = int(stream.uniform() * places)
    text: list[int] = []
    while len(text) < places - 1 + capacity:
        cumulative = np.cumsum(pmf_after(prompt + text))
        token = int(np.searchsorted(cumulative, stream.uniform() * cumulative[-1], side="right"))
        text.append(min(token, len(cumulative) - 1))
    return prompt, start, text


def heaviest_of_model(pmf_after: PmfAfter, before: Sequence[int], capacity: int) -> list[tuple[float, tuple[int, ...]]]:
    """The heaviest prefixes after a text, each with its weight, in the order in which they are found."""
    found: list[tuple[float, tuple[int, ...]]] = []
    waiting: list[tuple[float, tuple[int, ...]]] = []
    weight, prefix = 1.0, tuple[int, ...]()
    while len(found) < capacity:
        for token, share in enumerate(pmf_after([*before, *prefix]).tolist()):
            heapq.heappush(waiting, (-weight * share, (*prefix, token)))
        negative, prefix = heapq.heappop(waiting)
        weight = -negative
        found.append((weight, prefix))
    return found
