"""Best draft trees, by a plain heap of everything that could come next."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from simulations.draws import Floats, Stream

Prefix = tuple[int, ...]
PmfAfter = Callable[[Sequence[int]], Floats]
"""A model's pmf ``[V]`` after the tokens of a text."""


def heaviest_prefixes(pmf_after: PmfAfter, before: Sequence[int], capacity: int) -> list[tuple[float, Prefix]]:
    """The heaviest prefixes after a text, each with its weight, in the order in which they are found.

    The pmf after a prefix is asked for once, when the prefix is found.
    """
    heaviest: list[tuple[float, Prefix]] = []
    waiting: list[tuple[float, Prefix]] = []
    weight, prefix = 1.0, Prefix()
    while len(heaviest) < capacity:
        for token, share in enumerate(pmf_after([*before, *prefix]).tolist()):
            heapq.heappush(waiting, (-weight * share, (*prefix, token)))
        negative, prefix = heapq.heappop(waiting)
        weight = -negative
        heaviest.append((weight, prefix))
    return heaviest


def model_trial(
    pmf_after: PmfAfter, prompts: Sequence[Sequence[int]], places: int, capacity: int, stream: Stream
) -> tuple[list[int], int, list[int]]:
    """Prompt, start and text of one trial: one uniform for the prompt, one for the start, one for each token."""
    prompt = list(prompts[int(stream.uniform() * len(prompts))])
    start = math.floor(stream.uniform() * places)
    text: list[int] = []
    while len(text) < places - 1 + capacity:
        pmf = pmf_after(prompt + text)
        text.append(min(stream.inverted(pmf), len(pmf) - 1))
    return prompt, start, text
