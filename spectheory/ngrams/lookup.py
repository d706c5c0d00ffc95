"""Prompt lookup as every trace records it, which is no engine's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectheory.ngrams.base import Ids, NgramDraft, occurrences


@dataclass(frozen=True)
class Lookup(NgramDraft):
    """What followed the latest earlier occurrence of the longest suffix of up to `max` tokens.

    O(max) passes over the text, of which the first does most of the work.

    Examples
    --------
    >>> import numpy as np
    >>> Lookup(max=2).draft(np.array([1, 2, 7, 1, 2, 8, 1, 2]), None)
    array([8, 1, 2])
    """

    max: int = 3

    name: ClassVar[str] = "lookup"
    engine: ClassVar[str] = "none"
    source: ClassVar[str] = "§7"

    def draft(self, text: Ids, state: object) -> Ids:
        """The rest of the text after the occurrence."""
        latest = [places[-1] for places in occurrences(text, self.max)]
        return text[latest[-1] :] if latest else text[:0]
