"""Trees scored on other texts than those they were chosen on (cross-fitting, S4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Tree

Floats = NDArray[np.float64]


def cross_fitted(
    law: Floats, lengths: NDArray[np.int64], part: NDArray[np.int64], search: Callable[..., Tree]
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_], Tree]]:
    """Each part of the texts, as masks ``[texts]`` and ``[N]``, with the tree that was found on all other texts.

    `law` ``[N, A]`` is P(R = r | text) at each position; `lengths` and `part` ``[texts]`` are the tokens of each text
    and the number of its part. A single part has its own tree. Scores are estimates: each tree was found on fewer texts
    than the one that is deployed.
    """
    for number in np.unique(part):
        inside = part == number
        rows = np.repeat(inside, lengths)
        yield inside, rows, search(law, lengths) if inside.all() else search(law[~rows], lengths[~inside])
