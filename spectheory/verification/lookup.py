"""Prompt lookup (A4, §7): drafts copied from the text itself, accepted as far as the output repeats it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectheory.ngrams.lookup import Lookup
from spectheory.verification.copied import CopiedMatch

LOOKUP_NGRAM = 3
"""Longest suffix of the text that is looked for; traces record matches of this one."""


@dataclass(frozen=True)
class LookupMatch(CopiedMatch):
    """What followed the last tokens where they stood before is drafted, and accepted while the output equals it.

    The draft at a start is a function of the text before it, and one of k tokens is the beginning of a longer one. No
    draft model is read.

    Examples
    --------
    >>> import numpy as np
    >>> LookupMatch().path_survival({"lookup_match": np.array([2, 0, 1])}, 2)
    array([[1., 1.],
           [0., 0.],
           [1., 0.]])
    """

    name: ClassVar[str] = "lookup"
    served: ClassVar[bool] = True
    colour: ClassVar[str] = "wine"
    needs: ClassVar[tuple[str, ...]] = ("lookup_match", "lookup_drafted")
    copies = Lookup(LOOKUP_NGRAM)
    missing = ("it needs the tokens of prompt and text", "measure again with this version")

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"prompt {self.name}"
