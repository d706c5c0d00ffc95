"""Rank laws of the drafts of calls: one for each position of the text (§7), or for each start and depth (§10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class PathLaws:
    """P(R = r | text) of the drafts of calls that start at each position.

    `law` is ``[N, A]``, the law at each position, where a draft's pmf depends on its position alone; else
    ``[N, K, A]``, the law by start and depth. `deepest` is K, None in the first case; `columns` ``[A, N]`` or
    ``[K, A, N]`` is the law by rank.

    Examples
    --------
    The second draft of a call from the first position, of rank 1, under both:

    >>> law = np.array([[0.5], [0.2], [0.1]])
    >>> PathLaws(law).times(np.ones(3), 2, 1).tolist()
    [0.2, 0.1, 0.0]
    >>> PathLaws(np.stack([law, law / 2], axis=1)).times(np.ones(3), 2, 1).tolist()
    [0.25, 0.1, 0.05]
    """

    def __init__(self, law: Floats) -> None:
        self.starts, self.ranks = len(law), law.shape[-1]
        self.deepest = law.shape[1] if law.ndim == 3 else None
        self.columns = np.ascontiguousarray(np.moveaxis(law, 0, -1))

    def times(self, weight: Floats, depth: int, rank: int) -> Floats:
        """`weight` ``[N]`` times the probability that the draft of this depth has this rank; 0 past the end.

        Where the laws are by start, entries past the end of a text carry no meaning.
        """
        if self.deepest is not None:
            return weight * self.columns[depth - 1, rank - 1]
        product, inside = np.zeros_like(weight), self._inside(depth)
        np.multiply(weight[:inside], self.columns[rank - 1, depth - 1 :], out=product[:inside])
        return product

    def sums(self, weight: Floats, depth: int) -> Floats:
        """Sums over the starts of :meth:`times`, for every rank ``[A]``."""
        if self.deepest is not None:
            return np.asarray(self.columns[depth - 1] @ weight)
        return np.asarray(self.columns[:, depth - 1 :] @ weight[: self._inside(depth)])

    def _inside(self, depth: int) -> int:
        """Starts with a position at that depth."""
        return max(self.starts - depth + 1, 0)
