"""How calls end along texts: accepted drafts, and the rank of the next token in the draft's order (§7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import whole
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.law import moves_of
from spectheory.prediction.paths import tokens_left
from spectheory.trace import Trace
from spectheory.verification import PathRule
from spectheory.verification.base import PositionRule
from spectheory.verification.by_start import deepest

RANK = "draft_rank"
MOST_RANKED = 64
"""Deepest guess at one position."""


@dataclass(frozen=True)
class Outcomes:
    """How the calls of chains of k drafts end on each text, the last call excepted (exact given the texts).

    `ended` ``[texts, k + 1, r]`` are expected calls by accepted drafts j = 0..k and by the rank of the token after
    these in the draft's order, 1, 2, ..., the last column of all deeper ones. `calls` ``[texts]`` are all expected
    calls. After j < k accepted drafts the next one was refused, and is not the token: `refused` says whether it is the
    draft's first choice (``"first"``), some other token (``"drawn"``), or may be the token all the same (``"any"``).
    """

    ended: Floats
    calls: Floats
    refused: str

    @classmethod
    def of(cls, trace: Trace, rule: PathRule, k: int, *, prefill_emits_token: bool = False) -> Outcomes:
        """Those of a trace whose draft reads the text alone."""
        whole("k", k, remedy="the drafts of a call")
        _check_ahead(trace, rule)
        starts = CallStarts.of(trace, rule, Chain(k), prefill_emits_token=prefill_emits_token)
        known = np.asarray(trace.columns[RANK], np.int64) if _ranked(trace) else np.full(len(trace), MOST_RANKED + 1)
        rank = np.minimum(known, MOST_RANKED + 1) - 1
        of_text = np.repeat(np.arange(len(trace.lengths)), trace.lengths)
        left, moves = tokens_left(trace.lengths), moves_of(starts.survival)
        ended = np.zeros((len(trace.lengths), k + 1, MOST_RANKED + 1))
        for j in range(k + 1):
            inside = np.flatnonzero(left > j + 1)
            places = (of_text[inside], np.full(len(inside), j), rank[inside + j])
            np.add.at(ended, places, starts.visits[inside] * moves[inside, j])
        calls = np.asarray(np.bincount(of_text, starts.visits, len(trace.lengths)), np.float64)
        drawn = "first" if rule.drafts == "chosen" else "drawn"
        return cls(ended, calls, drawn if isinstance(rule, PositionRule) else "any")

    @cached_property
    def k(self) -> int:
        """Drafts of a call."""
        return self.ended.shape[1] - 1

    def hits(self, fan_out: Sequence[int]) -> tuple[Floats, Floats]:
        """Fewest and most expected calls of each text that end as predicted, ``[texts]``.

        Predicted are, after j accepted drafts, the `fan_out[j]` most probable tokens of the draft, a refused draft left
        out. The two are equal where it is known that the refused draft was among them.
        """
        low, high = np.zeros(len(self.ended)), np.zeros(len(self.ended))
        for j, guesses in enumerate(fan_out):
            for total, deepest_rank in zip((low, high), self._ranks(j, guesses), strict=True):
                total += self.ended[:, j, :deepest_rank].sum(axis=1)
        return low, high

    def _ranks(self, j: int, guesses: int) -> tuple[int, int]:
        """Ranks that so many guesses reach at least and at most."""
        if not guesses or j == self.k or self.refused == "any":
            return guesses, guesses
        return (guesses + 1, guesses + 1) if self.refused == "first" else (guesses, guesses + 1)

    def fan_out(self, guesses: int, *, each: bool = False) -> tuple[int, ...]:
        """Guesses after 0, 1, ..., k accepted drafts: so many for each, or in all where most calls are hit.

        In all, they are the best for these very texts, by the middle of the fewest and the most hits (a dynamic
        programme over the numbers of accepted drafts).
        """
        most = MOST_RANKED - 1
        if each:
            return (min(guesses, most),) * (self.k + 1)
        best, chosen = np.zeros(guesses + 1), list[NDArray[np.int64]]()
        for j in range(self.k + 1):
            values = [best, *(self._value(j, n) + best[: guesses + 1 - n] for n in range(1, min(most, guesses) + 1))]
            padded = [np.append(np.full(n, -1.0), value) for n, value in enumerate(values)]
            chosen.append(np.argmax(padded, axis=0))
            best = np.max(padded, axis=0)
        left, numbers = guesses, list[int]()
        for of_length in reversed(chosen):
            numbers.append(int(of_length[left]))
            left -= numbers[-1]
        return tuple(reversed(numbers))

    @cached_property
    def _cumulative(self) -> Floats:
        """Calls by accepted drafts and by the token's rank or a better one, ``[k + 1, r + 1]``."""
        return np.pad(self.ended.sum(axis=0).cumsum(axis=1), ((0, 0), (1, 0)))

    def _value(self, j: int, guesses: int) -> float:
        """Calls that so many guesses hit, the middle of the bounds."""
        return float(np.mean([self._cumulative[j, rank] for rank in self._ranks(j, guesses)]))


def _check_ahead(trace: Trace, rule: PathRule) -> None:
    """Refuse traces and rules whose drafts cannot be made while the target verifies."""
    if not rule.uses_draft or rule.grows:
        raise SettingError(
            f"drafting elsewhere is asked of rule {rule.name}",
            limit="its drafts take no pass of a draft model" if not rule.uses_draft else "its drafts are a grown tree",
            remedy="use token, block or argmax",
        )
    if deepest(trace.columns) is not None:
        raise TraceError(
            "the draft is a head, which reads the target's hidden states",
            limit="these are not there before verification ends",
            remedy="use a draft model",
        )
    rule.require(trace.columns)


def _ranked(trace: Trace) -> bool:
    """Whether the trace says where the text's token stands in the draft's order."""
    return RANK in trace.columns
