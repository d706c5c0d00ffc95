"""transformers' ``prompt_lookup_num_tokens``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectheory.ngrams.base import Ids, NgramDraft, Request, occurrences


@dataclass(frozen=True)
class TransformersLookup(NgramDraft):
    """What followed the earliest occurrence of the longest suffix of up to `max` tokens whose next token is allowed.

    `max` is ``max_matching_ngram_size``. The draft ends before a token that ends the text, and before one that is not
    allowed. top-p is applied to logits that are all equal: it removes about a share of 1 - top_p of the vocabulary, and
    these tokens are never drafted, however probable they are. Which ones depends on how torch sorts equal numbers.

    Examples
    --------
    >>> text = np.array([1, 2, 7, 1, 2, 8, 1, 2])
    >>> lookup = TransformersLookup(max=2)
    >>> lookup.draft(text, Request(text[:3])), lookup.draft(text, Request(text[:3], removed={1}))
    (array([7, 1, 2, 8, 1, 2]), array([7]))
    """

    max: int = 2

    name: ClassVar[str] = "ngram-transformers"
    engine: ClassVar[str] = "transformers"
    source: ClassVar[str] = "generation/candidate_generator.py of transformers 5.23"

    def draft(self, text: Ids, state: Request) -> Ids:
        """The rest of the text after the occurrence, up to a token that is not drafted."""
        removed = np.isin(text, list(state.removed))
        for places in reversed(list(occurrences(text, self.max))):
            allowed = places[~removed[places]]
            if len(allowed):
                copied = text[allowed[0] :]
                last = (removed[allowed[0] :] | np.isin(copied, list(state.ends))).nonzero()[0]
                return copied[: last[0]] if len(last) else copied
        return text[:0]
