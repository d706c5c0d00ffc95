"""One text as one model scored it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.columns import LARGEST_VOCABULARY
from spectheory.trace.top_lists import SINGLE_PRECISION

Top = Mapping[int, float]


@dataclass(frozen=True)
class ScoredText:
    """One text, prompt included, under one model; every sequence has an entry per token or is empty.

    - `tokens`: ids, None for a first one that is unknown; `strings`: the tokens as strings. One of the two is given.
    - `log_probs`: natural logarithms of the tokens' probabilities; None where the server gave none.
    - `prompt`: leading tokens that are no output. `ended` says that the text ended by itself.
    - `tops`: the m most probable ids with their log-probabilities; `ranks`: each token's place in the model's order.
    - `sampling`: settings under which the text was drawn, if the log says so; the values are raw unless `processed`.
    - `vocabulary`: number of tokens; None if unknown: ranges hold for every size then.
    - `error`: rounding of a log-probability, nats.
    """

    id: str
    log_probs: tuple[float | None, ...]
    tokens: tuple[int | None, ...] = ()
    strings: tuple[str, ...] = ()
    prompt: int = 0
    ended: bool = False
    tops: tuple[Top | None, ...] = ()
    ranks: tuple[int | None, ...] = ()
    sampling: Mapping[str, Any] | None = None
    processed: bool = False
    vocabulary: int | None = None
    error: float = SINGLE_PRECISION

    def __post_init__(self) -> None:
        for name in ("tokens", "strings", "tops", "ranks"):
            if (have := len(getattr(self, name))) not in (0, len(self)):
                raise self.refused(f"has {have} {name} for {len(self)} log-probabilities", "needs one per token")
        if not (self.tokens or self.strings):
            raise self.refused("has no tokens", "needs ids or strings")
        outside = [
            token
            for token in self.tokens
            if token is not None and not 0 <= token < (self.vocabulary or LARGEST_VOCABULARY)
        ]
        if outside:
            limit = f"the vocabulary has {self.vocabulary or LARGEST_VOCABULARY} tokens"
            raise self.refused(f"has token {outside[0]}", limit)
        unknown = [i for i in range(self.first, len(self)) if self.log_probs[i] is None]
        if unknown or self.first >= len(self):
            what = f"has no log-probability of token {unknown[0] + 1}" if unknown else "has no scored output"
            raise self.refused(what, "only the first tokens may lack one")

    def __len__(self) -> int:
        """Number of tokens, prompt included."""
        return len(self.log_probs)

    @property
    def first(self) -> int:
        """The first position that is output and has a value."""
        unscored = next((i for i, each in enumerate(self.log_probs) if each is not None), len(self))
        return max(self.prompt, unscored)

    def refused(self, what: str, limit: str) -> TextError:
        """The error of this text."""
        return TextError(f"text {self.id!r} {what}", limit=limit, remedy="check the log for torn or mixed lines")
