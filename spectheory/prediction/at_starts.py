"""Where calls start and how they end, as an engine counts them: at the starts of its own calls (§13)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats
from spectheory.drafting import Chain, Shape
from spectheory.errors import TraceError, argument
from spectheory.prediction.law import moves_of
from spectheory.prediction.ngrams import in_trace
from spectheory.prediction.paths import tokens_left, visits_of
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.stopped import drafted_along
from spectheory.trace import Trace
from spectheory.verification import Columns, CopiedFirst, PathRule
from spectheory.verification.copied import CopiedMatch


@dataclass(frozen=True)
class CallStarts:
    """The calls of one rule and shape along texts (exact given the texts).

    `survival` ``[N, depth]`` is P(tau >= i) of a call from each position. `full` ``[N, depth + 1]`` is the probability
    that it ends after j = 0, 1, ... accepted drafts because no more were drafted. `visits` ``[N]`` is the expected
    number of calls that start there, `lengths` are the tokens of each text.
    """

    survival: Floats
    full: Floats
    visits: Floats
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, trace: Trace, rule: PathRule, shape: Shape, *, prefill_emits_token: bool = False) -> CallStarts:
        """Those of a trace; with `prefill_emits_token` no call starts at a text's first token."""
        rule.require(trace.columns)
        rule = in_trace(rule, trace)
        survival, leaves = survival_of(rule, shape, trace.columns)
        visits = visits_of(survival, trace.lengths, prefill_emits_token=prefill_emits_token)
        ended = moves_of(survival)
        full = np.concatenate([np.zeros((len(survival), 1)), leaves], axis=1)
        undrafted = _undrafted(rule, shape, trace.columns)
        if undrafted is not None:
            full[:, :-1] = np.where(undrafted, ended[:, :-1], full[:, :-1])
        return cls(survival, np.minimum(full, ended), visits, trace.lengths)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Positions with room for all drafts: what lies past the end of a text is not known."""
        return tokens_left(self.lengths) >= self.survival.shape[1]

    @cached_property
    def counted(self) -> Floats:
        """The visits of positions with room for all drafts, ``[N]``."""
        return np.where(self.whole, self.visits, 0.0)

    @cached_property
    def tokens(self) -> Floats:
        """Tokens expected of a call from each position, none past the end of its text, ``[N]``."""
        depth = np.arange(1, self.survival.shape[1] + 1)
        return 1 + np.where(tokens_left(self.lengths)[:, None] > depth, self.survival, 0.0).sum(axis=1)

    @property
    def depths(self) -> Floats:
        """Survival at the calls' own starts, S_1, ..., ``[depth]``."""
        return np.asarray(self.counted @ self.survival / self.counted.sum())

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        r"""Calls that end at each position, ``[N]`` each: with a rejection there, and after all drafts were accepted.

        A call from n whose first j drafts are accepted ends with token n + j, so that of those that end before the
        text does

        .. math:: e(m) = \sum_j v(m - j)\, P(\tau = j \mid m - j) .

        Each text's last call ends with its last token, whatever is accepted: it is in neither.
        """
        rejected, full = np.zeros_like(self.visits), np.zeros_like(self.visits)
        left, tokens = tokens_left(self.lengths), len(self.visits)
        for j, (ended, after_all) in enumerate(zip(moves_of(self.survival).T, self.full.T, strict=True)):
            inside = np.where(left > j + 1, self.visits, 0.0)
            rejected[j:] += (inside * (ended - after_all))[: max(tokens - j, 0)]
            full[j:] += (inside * after_all)[: max(tokens - j, 0)]
        return rejected, full


def _undrafted(rule: PathRule, shape: Shape, columns: Columns) -> NDArray[np.bool_] | None:
    """Where a call from each position does not draft its i-th token, though the text goes on, ``[N, depth]``."""
    if shape.stop:
        return ~drafted_along(columns, shape.stop, shape.depth)
    copied = rule.copied if isinstance(rule, CopiedFirst) else rule
    if not isinstance(copied, CopiedMatch) or len(copied.needs) < 2:
        return None
    drafted = copied.drafted(columns)[:, None]
    shorter = drafted < np.arange(1, shape.depth + 1)
    return np.asarray(shorter & (drafted > 0) if copied is not rule else shorter)


def survival_at_starts(trace: Trace, rule: PathRule, k: int, *, prefill_emits_token: bool = True) -> Floats:
    r"""P(a call accepts at least i drafts), i = 1..k, ``[k]`` (§13, exact for the texts of the trace).

    .. math:: S_i(k) = \frac{\sum_n v(n) P(\tau \ge i \mid n)}{\sum_n v(n)}

    The visits v are those of chains of k drafts under this rule, so S_1 differs between k. The mean over all positions
    is another number: calls start after rejections more often than positions do. Starts with fewer than k tokens left
    do not count, since the texts do not say whether drafts past their end would be accepted. By default the prompt's
    pass emits each text's first token.

    Examples
    --------
    Tokens that are accepted for certain and never, in turn: calls start at the former alone.

    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-50.0, -0.5] * 20, [-0.1, -50.0] * 20)])
    >>> survival_at_starts(trace, TokenVerification(), 1, prefill_emits_token=False).round(3).tolist()
    [1.0]
    """
    starts = CallStarts.of(trace, rule, Chain(k), prefill_emits_token=prefill_emits_token)
    if not starts.counted.sum() > 0:
        raise TraceError(
            f"no text has {k} tokens after its first",
            limit="calls need room for k drafts",
            remedy=f"lower {argument('k', '--k-max')}",
        )
    return starts.depths
