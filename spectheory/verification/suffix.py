"""Suffix decoding (A4, §10): drafts copied from this text and from earlier outputs, by how often they followed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from spectheory.checks import BEYOND, MOST_EXACT, amount, instance, real, whole
from spectheory.errors import argument
from spectheory.verification.copied import CopiedMatch


@dataclass(frozen=True)
class SuffixDrafts:
    """What suffix decoding drafts, as Arctic Inference defines it and vLLM's method ``suffix`` runs it.

    Two collections of token sequences are searched: this request's prompt and output so far, and, with `across`, the
    outputs of the requests before it together with its own output so far. For every suffix of the text that stands
    there, of m < `max_depth` tokens and shorter than the text, the most frequent continuation is followed, at most
    ``factor * m + offset`` tokens and no further than `max_depth` tokens from where the suffix begins, while the
    product of the relative frequencies is at least `min_probability`. The suffix whose draft has the largest sum of
    these products drafts; of equal ones the longest, and this request before earlier ones.

    Defaults are those of Arctic Inference (vLLM has a depth of 24). An engine that caps drafts at k tokens compares
    suffixes by sums over k tokens; here all lengths are compared, and a call of k takes the first k.

    Raises :class:`~spectheory.errors.SettingError` for a depth below 2, a factor or probability out of range.

    Examples
    --------
    >>> SuffixDrafts().most_after(10), SuffixDrafts(factor=2.0).most_after(10), SuffixDrafts().most_after(60)
    (10, 20, 4)
    """

    max_depth: int = 64
    factor: float = 1.0
    offset: float = 0.0
    min_probability: float = 0.1
    across: bool = True

    def __post_init__(self) -> None:
        whole("max_depth", self.max_depth, least=2, remedy="64 is the default")
        amount("factor", self.factor, positive=True, below=BEYOND, remedy="leave the default")
        limit, remedy = "must be in (0, 1]", "leave the default"
        real("min_probability", self.min_probability, lambda p: 0 < p <= 1, limit=limit, remedy=remedy)
        real("offset", self.offset, math.isfinite, limit="must be finite", remedy="0 is the default")
        instance("across", self.across, bool, remedy="True is the default")

    def most_after(self, matched: int) -> int:
        """Most tokens that are drafted after a suffix of `matched` tokens."""
        matched = whole("matched", matched, least=0, most=MOST_EXACT, remedy="count tokens")
        wanted = math.floor(self.factor * matched + self.offset + 1e-6)
        return max(0, min(wanted, self.max_depth - matched))


OWN_TEXT = SuffixDrafts(across=False)
"""What our decoders draft: of this request alone, so that no text depends on the others."""


@dataclass(frozen=True)
class SuffixMatch(CopiedMatch):
    """What followed the text's suffixes most often is drafted (:class:`SuffixDrafts`), and accepted while it is output.

    No draft model is read. The draft at a start is a function of the text before it and of the requests served before.

    Examples
    --------
    >>> import numpy as np
    >>> SuffixMatch().path_survival({"suffix_match": np.array([1, 0])}, 2)
    array([[1., 0.],
           [0., 0.]])
    """

    name: ClassVar[str] = "suffix"
    served: ClassVar[bool] = True
    colour: ClassVar[str] = "pink"
    needs: ClassVar[tuple[str, ...]] = ("suffix_match", "suffix_drafted")

    @property
    def missing(self) -> tuple[str, str]:
        """Why a trace may lack the columns, and the remedy."""
        return "it needs the tokens of prompts and texts", f"measure with {argument('suffix')}"

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"{self.name} decoding"
