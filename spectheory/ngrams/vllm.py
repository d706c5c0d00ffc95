"""vLLM's method ``ngram``: two lookups, that of the CPU and that of model runner V2 on GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spectheory.errors import SettingError
from spectheory.ngrams.base import LONGEST_COPY, Ids, NgramDraft, occurrences


@dataclass(frozen=True)
class VllmNgram(NgramDraft):
    """What followed the *earliest* occurrence of the longest suffix of `min` to `max` tokens, as far as the text goes.

    `min` and `max` are ``prompt_lookup_min`` and ``prompt_lookup_max``.

    Examples
    --------
    >>> VllmNgram(min=1, max=2).draft(np.array([1, 2, 7, 1, 2, 8, 1, 2]), None)
    array([7, 1, 2, 8, 1, 2])
    """

    min: int = 5
    max: int = 5

    name: ClassVar[str] = "ngram-vllm"
    engine: ClassVar[str] = "vllm"
    source: ClassVar[str] = "vllm/v1/spec_decode/ngram_proposer.py of vLLM 0.33.0"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min > self.max:
            raise SettingError(
                f"{self.name} has min {self.min} and max {self.max}", limit="needs min <= max", remedy="raise max"
            )

    def draft(self, text: Ids, state: Any) -> Ids:
        """The rest of the text after the earliest occurrence."""
        places = list(occurrences(text, self.max))
        return text[places[-1][0] :] if len(places) >= self.min else text[:0]


@dataclass(frozen=True)
class VllmGpuNgram(VllmNgram):
    """What followed the *latest* occurrence, then the last token again and again: every call drafts all its k tokens.

    Examples
    --------
    >>> VllmGpuNgram(min=1, max=2).draft(np.array([1, 2, 7, 1, 2, 8, 1, 2]), None)[:5]
    array([8, 1, 2, 2, 2])
    """

    name: ClassVar[str] = "ngram-vllm-gpu"
    source: ClassVar[str] = "vllm/v1/worker/gpu/spec_decode/ngram/speculator.py of vLLM 0.33.0"

    def draft(self, text: Ids, state: Any) -> Ids:
        """What followed, filled up."""
        places = list(occurrences(text, self.max))
        copied = text[places[-1][-1] :] if len(places) >= self.min else text[:0]
        return np.concatenate([copied, np.full(LONGEST_COPY, text[-1])])[:LONGEST_COPY]
