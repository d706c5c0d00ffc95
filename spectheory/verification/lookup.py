"""Prompt lookup (A4, §7): drafts copied from the text itself, accepted as far as the output repeats it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array
from spectheory.errors import SettingError
from spectheory.verification.base import Columns, Drafts, PathRule
from spectheory.verification.matching import IndependentMatch

LOOKUP_NGRAM = 3
"""Longest suffix of the text that is looked for; traces record matches of this one."""
LONGEST_COPY = 1024
"""Longest draft whose match a trace records."""


@dataclass(frozen=True)
class LookupMatch(PathRule):
    r"""What followed the last tokens where they stood before is drafted, and accepted while the output equals it.

    The draft at a start n is a function of the text before n, and one of k tokens is the beginning of a longer one. So
    with :math:`m_n`, the number of its leading tokens that the text repeats from n on,
    :math:`P(\tau \ge i \mid x, n) = 1[m_n \ge i]` (§7, exact): given the text nothing is random. Token and block
    verification of a draft that is certain of its tokens are the same rule. No draft model is read.

    Examples
    --------
    >>> LookupMatch().path_survival({"lookup_match": np.array([2, 0, 1])}, 2)
    array([[1., 1.],
           [0., 0.],
           [1., 0.]])
    """

    name: ClassVar[str] = "lookup"
    served: ClassVar[bool] = True
    statement: ClassVar[str] = "A4"
    colour: ClassVar[str] = "pink"
    drafts: ClassVar[Drafts] = "copied"
    needs: ClassVar[tuple[str, ...]] = ("lookup_match", "lookup_drafted")
    missing: ClassVar[tuple[str, str]] = ("it needs the tokens of prompt and text", "measure again with this version")

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"prompt {self.name}"

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Target probability of the copied token, of which `draft` is certain (A4, exact)."""
        return IndependentMatch().acceptance(target, draft, k)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given the output: 1 at the copied token, else 0, ``[..., V]`` (A4, exact)."""
        return IndependentMatch().acceptance_given(target, draft)

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """1 where the text repeats at least i tokens of the draft, ``[N, k]`` (§7, exact)."""
        if k > LONGEST_COPY:
            raise SettingError(
                f"a chain of {k} copied tokens is asked for",
                limit=f"lookup_match is recorded up to {LONGEST_COPY}",
                remedy="use a shorter chain",
            )
        return (columns["lookup_match"][:, None] >= np.arange(1, k + 1)).astype(np.float64)

    def calls_by_drafted(
        self, columns: Columns, lengths: NDArray[np.int64], most: NDArray[np.int64], k: int, *, first: int = 0
    ) -> NDArray[np.int64]:
        """Calls of each text that copy 0, 1, ..., k tokens, ``[texts, k + 1]`` (exact).

        A call that starts at n outputs one token more than it has accepted, and the next one starts there. It never
        drafts the last token that a text has room for: the call outputs one of its own. Texts are concatenated, of
        `lengths` tokens each where `most` would have fitted; the first call of each starts at `first`.

        Examples
        --------
        >>> columns = {"lookup_match": np.array([0, 2, 1, 0]), "lookup_drafted": np.array([0, 3, 2, 1])}
        >>> LookupMatch().calls_by_drafted(columns, np.array([4]), np.array([4]), 3)
        array([[1, 0, 1, 0]])
        """
        begins = np.cumsum(lengths) - lengths
        counts = np.zeros((len(lengths), k + 1), dtype=np.int64)
        going = (lengths > first).nonzero()[0]
        at = np.full(len(going), first)
        while len(going):
            rows = begins[going] + at
            counts[going, np.minimum(columns["lookup_drafted"][rows], np.minimum(k, most[going] - at - 1))] += 1
            at = at + np.minimum(columns["lookup_match"][rows], k) + 1
            inside = at < lengths[going]
            going, at = going[inside], at[inside]
        return counts
