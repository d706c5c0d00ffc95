"""In which order prompts are measured: in stages, so that whatever is finished first represents the whole file."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FIRST = 12
"""Prompts of the first stage."""


@dataclass(frozen=True)
class Stage:
    """The places of its own prompts, batch by batch, and `places`, with all those of the stages before."""

    batches: tuple[tuple[int, ...], ...]
    places: frozenset[int]


def stages_of(total: int, batch: int = 1) -> tuple[Stage, ...]:
    """The stages of a file of `total` prompts that are sampled at most `batch` at a time.

    The first has :data:`FIRST` prompts; each further one as many as all before it, rounded up to whole batches. The
    prompts of a stage are spread evenly over those that are left. Its batches are as few as can be, of about equal
    size, and each of neighbours. Places and batches follow from the two numbers alone.

    Examples
    --------
    >>> [len(stage.places) for stage in stages_of(60, batch=8)]
    [12, 28, 60]
    >>> [list(map(len, stage.batches)) for stage in stages_of(60, batch=8)]
    [[6, 6], [8, 8], [8, 8, 8, 8]]
    >>> stages_of(48, batch=16)[0].batches
    ((2, 6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46),)
    """
    left, made = list(range(total)), list[Stage]()
    done: frozenset[int] = frozenset()
    while left:
        own = _spread(left, math.ceil(len(done) / batch) * batch if done else FIRST)
        size = math.ceil(len(own) / math.ceil(len(own) / batch))
        done |= set(own)
        left = [place for place in left if place not in done]
        made.append(Stage(tuple(tuple(own[i : i + size]) for i in range(0, len(own), size)), done))
    return tuple(made)


def completed(stages: Sequence[Stage], finished: Collection[int]) -> Stage | None:
    """The last stage of which every prompt is finished, and of those before it."""
    whole = [stage for stage in stages if stage.places <= set(finished)]
    return whole[-1] if whole else None


def _spread(places: Sequence[int], count: int) -> list[int]:
    """So many of the places, one from the middle of each of equal parts."""
    count = min(count, len(places))
    return [places[(2 * i + 1) * len(places) // (2 * count)] for i in range(count)]
