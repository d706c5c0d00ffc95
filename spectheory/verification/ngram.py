"""N-gram drafts of engines (A4, §7, §10): copied by token ids as ``spectheory.ngrams`` replays them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, whole
from spectheory.errors import SettingError, argument
from spectheory.ngrams import NgramDraft
from spectheory.verification.base import Columns
from spectheory.verification.copied import CopiedMatch


@dataclass(frozen=True)
class NgramMatch(CopiedMatch):
    """One n-gram draft of a trace, accepted while the output equals it. No draft model is read.

    `copies` is the draft, by whose name the rule is known; `place` is its column of ``ngram_match``. Where the replay
    fixes how many tokens a call drafts at most, this is the rule's `length`; else a call of k takes the first k.

    Examples
    --------
    >>> from spectheory.ngrams.vllm import VllmNgram
    >>> columns = {"ngram_match": np.array([[2, 0], [0, 1]]), "ngram_drafted": np.array([[2, 4], [3, 1]])}
    >>> NgramMatch(VllmNgram()).path_survival(columns, 2).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """

    copies: NgramDraft
    place: int = 0

    name: ClassVar[str] = "ngram"
    served: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("ngram_match", "ngram_drafted")

    def __post_init__(self) -> None:
        instance("copies", self.copies, NgramDraft, remedy="spectheory.ngrams.read_ngrams reads one")
        whole("place", self.place, least=0, remedy="count columns from 0")
        for name, value in {"name": str(self.copies), "length": self.copies.k}.items():
            object.__setattr__(self, name, value)

    @property
    def missing(self) -> tuple[str, str]:
        """Why a trace may lack the columns, and the remedy."""
        return "it needs the tokens of prompts and texts", f"measure with {argument('ngrams', '--ngram')} {self.name}"

    @property
    def label(self) -> str:
        """What sentences call it."""
        return self.name

    def matched(self, columns: Columns) -> NDArray[Any]:
        """Leading drafts that the text repeats from each position on, ``[N]``."""
        return columns[self.needs[0]][:, self.place]

    def drafted(self, columns: Columns) -> NDArray[Any]:
        """Tokens drafted at each position, ``[N]``."""
        return columns[self.needs[1]][:, self.place]

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """1 where the text repeats at least i tokens of the draft, ``[N, k]`` (§7, exact)."""
        if self.length not in (None, k):
            raise SettingError(
                f"a chain of {k} tokens of {self.name} is asked for",
                limit=f"it was replayed with {self.length}, and other lengths find other tokens",
                remedy=f"use a chain of {self.length}, or measure with this length",
            )
        return super().path_survival(columns, k)
