"""The union of the tokens that two models keep, by merging.

The readable twin is :func:`spectheory.measure.columns.statistics.in_torch`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled

Ids = NDArray[np.int64]


def merged(
    target: Ids, log_target: Floats, draft: Ids, log_draft: Floats, tokens: Ids, size: int
) -> tuple[Ids, Floats, Floats, Ids]:
    """Union ``[rows, W]`` of ascending ids ``[rows, n]``, padded with `size`, and one token of each row.

    Returns the ids, both log-probabilities (-inf where a list lacks the id), and each token's place ``[rows, 1]``.
    """
    shape = len(tokens), target.shape[1] + draft.shape[1] + 1
    ids, place = np.full(shape, size), np.empty((len(tokens), 1), dtype=np.int64)
    logs = np.full(shape, -math.inf), np.full(shape, -math.inf)
    width = _merge(target, log_target, draft, log_draft, tokens, size, ids, *logs, place)
    return ids[:, :width], logs[0][:, :width], logs[1][:, :width], place


@compiled
def _merge(
    target: Ids,
    log_target: Floats,
    draft: Ids,
    log_draft: Floats,
    tokens: Ids,
    size: int,
    ids: Ids,
    log_p: Floats,
    log_q: Floats,
    place: Ids,
) -> int:
    """Write the union of each row; return the width of the longest."""
    width = 0
    for row in range(tokens.size):
        i = j = count = 0
        while True:
            a = target[row, i] if i < target.shape[1] else size
            b = draft[row, j] if j < draft.shape[1] else size
            c = tokens[row] if count == 0 or ids[row, count - 1] < tokens[row] else size
            least = min(a, b, c)
            if least == size:
                break
            ids[row, count] = least
            if a == least:
                log_p[row, count] = log_target[row, i]
                i += 1
            if b == least:
                log_q[row, count] = log_draft[row, j]
                j += 1
            if c == least:
                place[row, 0] = count
            count += 1
        width = max(width, count)
    return width
