"""Trees grown from the draft's confidences (§10): accepted as far as the output lies in the tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array
from spectheory.errors import argument
from spectheory.verification.base import Columns, Drafts, PathRule, at_least_one, checked_columns
from spectheory.verification.matching import TopKMatch


@dataclass(frozen=True)
class GrownMatch(PathRule):
    r"""A tree grown from the draft's confidences, matched with the target's own draw (EAGLE-2; li2024eagle2).

    The tree of a call is a function of the text before it (:class:`~spectheory.drafting.Grown`), and the target draws
    its tokens independently of it. So with :math:`m_n`, the depth to which the text from n on lies in the tree grown
    there, :math:`P(\tau \ge i \mid x, n) = 1[m_n \ge i]` (§10, exact): given the text nothing is random. It holds at
    temperature 0 and wherever the target's draw alone decides (target-only verification); rules that compare with the
    draft's probabilities are others. The size of the tree is that of the measurement.

    Examples
    --------
    >>> GrownMatch().path_survival({"grown_match": np.array([2, 0, 1])}, 2)
    array([[1., 1.],
           [0., 0.],
           [1., 0.]])
    """

    name: ClassVar[str] = "grown"
    served: ClassVar[bool] = True
    statement: ClassVar[str] = "R7"
    colour: ClassVar[str] = "yellow"
    drafts: ClassVar[Drafts] = "chosen"
    grows: ClassVar[bool] = True
    several: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("grown_match",)

    @property
    def missing(self) -> tuple[str, str]:
        """Why a trace may lack the columns, and the remedy."""
        size = argument("grown", "--grow NODESxTOPxDEPTH")
        return "its trees are grown while a pair is measured", f"measure with {size}, as 16x4x5"

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"{self.name} trees"

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Target probability of the draft's k most probable tokens, the first level of a tree (R7, exact)."""
        return TopKMatch().acceptance(target, draft, k)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance of one draft given the output: 1 at the draft's first choice, else 0, ``[..., V]`` (R7, exact)."""
        return TopKMatch().acceptance_given(target, draft)

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """1 where the text lies in the tree to depth i or more, ``[N, k]`` (§10, exact)."""
        checked_columns(columns, *self.needs)
        k = at_least_one("k", k)
        return (columns["grown_match"][:, None] >= np.arange(1, k + 1)).astype(np.float64)
