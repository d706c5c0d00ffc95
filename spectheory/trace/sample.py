"""Some texts of a trace: those that choices are made on where there are more than a choice needs."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from spectheory.trace.record import Trace

CHOSEN_ON = 1 << 14
"""Positions of a sample: a tree or a threshold that is best on them is as good on the others to a few thousandths."""


def spread(lengths: NDArray[np.int64], groups: NDArray[np.int64], positions: int | None = None) -> NDArray[np.bool_]:
    """Texts spread evenly over each group with about so many tokens in all, ``[texts]``; all if there are no more.

    Each group has an equal share, and at least one text.

    Examples
    --------
    >>> spread(np.full(8, 10), np.arange(8) % 2, positions=40).tolist()
    [True, True, False, False, False, False, True, True]
    """
    chosen, most = np.ones(len(lengths), bool), positions or CHOSEN_ON
    if lengths.sum() <= most:
        return chosen
    numbers = np.unique(groups)
    for number in numbers:
        inside = np.flatnonzero(groups == number)
        share = min(1.0, most / len(numbers) / int(lengths[inside].sum()))
        places = np.linspace(0, len(inside) - 1, max(1, int(len(inside) * share))).astype(np.int64)
        chosen[np.delete(inside, places)] = False
    return chosen


def of_texts(trace: Trace, chosen: NDArray[np.bool_], names: Collection[str] | None = None) -> Trace:
    """The trace of the chosen texts ``[texts]`` alone, with the columns of these names; itself if all are chosen."""
    if chosen.all():
        return trace
    parts, texts, done = [], [], 0
    for block in trace.blocks(names):
        inside = chosen[done : done + len(block.texts)]
        rows = np.repeat(inside, block.lengths)
        parts.append({name: values[rows] for name, values in block.columns.items()})
        texts += [text for text, taken in zip(block.texts, inside.tolist(), strict=True) if taken]
        done += len(block.texts)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Trace(columns, tuple(texts), trace.provenance)
