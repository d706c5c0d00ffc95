"""A run as it is compared with another: what was counted of each prompt, or what a trace expects."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain
from spectheory.errors import SettingError, TextError, argument
from spectheory.judging.counting import Counting, counting_of, starts_of
from spectheory.judging.expected import ExpectedCounts
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.over_prompts import FEW
from spectheory.prediction.paths import sums_of_texts, tokens_left
from spectheory.prediction.plan_answer import named_rules
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters, by_accepted, depth_of

Floats = NDArray[np.float64]
Evidence: TypeAlias = Trace | CallLog | Counters


@dataclass(frozen=True)
class Run:
    """Calls, and calls that accepted at least 1, ..., k drafts, of each prompt: `counts` ``[prompts, k + 1]``.

    - `prompts` names the rows; it is empty where totals alone are known, which are one row.
    - `errors` ``[k + 1]`` are then the standard deviations of tokens per call and of the shares by position, if they
      are known otherwise.
    - `rule` is the rule of a trace, whose counts are expected ones.
    - `coins` ``[k + 1]`` are the variances that a decoder's random numbers add to the shares given the texts (exact);
      expected counts are without them. 0 where they are not needed.
    - `slack` ``[k + 1]``: expected shares are known up to so much, as the other run does not say what it counts at the
      ends of texts.
    """

    name: str
    counts: Floats
    prompts: tuple[Hashable, ...] = ()
    errors: Floats | None = None
    rule: str = ""
    coins: Floats | float = 0.0
    slack: Floats | float = 0.0

    @classmethod
    def of(
        cls, name: str, evidence: Evidence, *, k: int | None = None, rule: str = "token", beside: Evidence | None = None
    ) -> Run:
        """What a log or a scrape counted, or what a trace expects of chains of `k` drafts under a rule.

        Calls with k tokens left or fewer are left out where this run and the one `beside` it know where their calls
        start: what engines count at the end of a text differs. Otherwise all calls count, and a trace expects what the
        run beside it would count of texts as long as the trace's.

        Examples
        --------
        >>> Run.of("a", Counters(calls=4, survival=(0.5, 0.25))).shares.tolist()
        [1.75, 0.5, 0.25]
        """
        whole = starts_known(evidence) and (beside is None or starts_known(beside))
        return _run_of(name, evidence, k, rule, beside, whole=whole)

    @property
    def k(self) -> int:
        """Drafts of a call."""
        return self.counts.shape[1] - 1

    @property
    def calls(self) -> float:
        """All calls."""
        return float(self.counts[:, 0].sum())

    @property
    def shares(self) -> Floats:
        """Tokens per call, and the share of calls that accepted at least i drafts, ``[k + 1]``."""
        return _shares(self.counts.sum(axis=0))

    @property
    def influence(self) -> Floats:
        """What each prompt adds to the error of the shares ``[prompts, k + 1]``: their squares add up to the variance.

        The linearised ratio of sums over prompts, for prompts that are drawn independently.
        """
        rows = len(self.counts)
        sums = np.column_stack([self.counts.sum(axis=1), self.counts[:, 1:]])
        return math.sqrt(rows / (rows - 1)) * (sums - self.shares * self.counts[:, :1]) / self.calls

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the errors: Kish's effective number of prompts, less one; infinite without prompts."""
        if len(self.prompts) < 2:
            return math.inf
        calls = self.counts[:, 0]
        return max(float(calls.sum() ** 2 / (calls**2).sum()) - 1, 1.0)

    @property
    def of_calls(self) -> Floats:
        """Variances of the shares if calls were independent, ``[k + 1]``."""
        survival = self.shares[1:]
        squares = float((2 * np.arange(1, self.k + 1) - 1) @ survival)
        return np.array([squares - survival.sum() ** 2, *(survival * (1 - survival))]) / self.calls

    @property
    def clustering(self) -> Floats:
        """By how much calls of one prompt depend: variances of counted shares over those of independent calls.

        Of a trace those between prompts, and of the decoder's random numbers.
        """
        if len(self.prompts) < FEW:
            return np.ones(self.k + 1)
        counted = (self.influence**2).sum(axis=0) + self.coins
        return np.maximum(np.divide(counted, self.of_calls, out=np.ones(self.k + 1), where=self.of_calls > 0), 1.0)

    def variance(self, clustering: Floats) -> Floats:
        """Variances of the shares; those of totals alone are taken to be as clustered as the other run's."""
        if self.errors is not None:
            return self.errors**2
        if len(self.prompts) < 2:
            return self.of_calls * clustering
        return np.asarray((self.influence**2).sum(axis=0))


def two_runs(
    names: tuple[str, str], sides: tuple[Evidence, Evidence], *, k: int | None = None, rule: str = "token"
) -> tuple[Run, Run]:
    """Each side as :meth:`Run.of` has it beside the other; a trace takes the k of the side that counted."""
    whole = all(map(starts_known, sides))
    length = k or next((_length_of(side) for side in sides if not isinstance(side, Trace)), None)
    one, other = (
        _run_of(name, side, length if isinstance(side, Trace) else k, rule, beside, whole=whole)
        for name, side, beside in zip(names, sides, reversed(sides), strict=True)
    )
    return one, other


def _length_of(side: CallLog | Counters) -> int | None:
    return (depth_of(side) if isinstance(side, CallLog) else len(side.survival)) or None


def _run_of(name: str, evidence: Evidence, k: int | None, rule: str, beside: Evidence | None, *, whole: bool) -> Run:
    if isinstance(evidence, Trace):
        if k is None:
            raise SettingError(
                f"{argument('k')} is not given",
                limit="traces have no length of calls",
                remedy="give the drafts per call",
            )
        return _with_calls(expected_run(name, evidence, rule, _counting_of(beside, k), whole=whole))
    found = _of_log(name, evidence, whole=whole) if isinstance(evidence, CallLog) else _of_totals(name, evidence)
    if k is not None and k != found.k:
        raise SettingError(
            f"{argument('k')} is {k}",
            limit=f"{name} counted calls of {found.k} drafts",
            remedy="leave it out, or serve that k",
        )
    return _with_calls(found)


def expected_run(
    name: str, trace: Trace, rule: str, counting: Counting, *, whole: bool, prompts: Sequence[Hashable] = ()
) -> Run:
    """What chains of k drafts are expected to count on the texts of a trace; `prompts` names those of the texts.

    `whole`: in calls with room for k drafts and one more token, exactly. Otherwise in all calls, in the middle of the
    fewest and the most that the way of counting allows at the ends of texts.
    """
    chosen = (named_rules([rule]) or [])[0]
    trace, prompts = trace.held(), prompts or [text.prompt or text.id for text in trace.texts]
    starts = CallStarts.of(trace, chosen, Chain(counting.k), prefill_emits_token=counting.prefill)
    if whole:
        of_text = np.repeat(np.arange(len(trace.texts)), trace.lengths)
        visits = np.where(tokens_left(trace.lengths) > counting.k, starts.visits, 0.0)
        rows = visits[:, None] * np.column_stack([np.ones(len(of_text)), starts.survival])
        counts = np.array([np.bincount(of_text, column, len(trace.texts)) for column in rows.T], dtype=float).T
        return Run(name, *_by_prompt(counts, prompts), rule=rule)
    expected = ExpectedCounts(starts.survival, trace.lengths, counting)
    fewest, most = expected.low.expected, expected.high.expected
    run = Run(name, *_by_prompt(np.asarray((fewest + most) / 2), prompts), rule=rule)
    if not run.calls > 0:
        return run
    slack = np.max([abs(_shares(end.sum(axis=0)) - run.shares) for end in (fewest, most)], axis=0)
    coins = _of_coins(*expected.decoded, run.shares) / run.calls**2
    return Run(name, run.counts, run.prompts, rule=rule, coins=coins, slack=slack)


def _shares(sums: Floats) -> Floats:
    """Tokens per call and shares by position of calls, and of calls that accepted at least i drafts."""
    return np.append(sums.sum(), sums[1:]) / sums[0]


def _of_coins(survival: Floats, lengths: NDArray[np.int64], shares: Floats) -> Floats:
    """Variances, given the texts, of tokens and accepted drafts less their shares of the calls, ``[k + 1]`` (exact)."""
    k = survival.shape[1]
    inside = np.where(np.arange(1, k + 1) < tokens_left(lengths)[:, None], survival, 0.0)
    accepted = np.arange(k + 1)[:, None]
    counted = np.hstack([accepted + 1.0, accepted >= np.arange(1, k + 1)]) - shares
    return np.asarray(sums_of_texts(inside, counted, lengths).variance.sum(axis=0))


def _with_calls(run: Run) -> Run:
    """The run, if it has a call."""
    if not run.calls > 0:
        raise TextError(
            f"{run.name} has no call", limit="shares are of calls", remedy="use longer texts, or serve some"
        )
    return run


def starts_known(evidence: Evidence) -> bool:
    """Whether it is known where in its text each call starts."""
    if isinstance(evidence, CallLog):
        counting = counting_of(evidence, depth_of(evidence) or None)
        return all(starts_of(request, counting) is not None for request in evidence.requests)
    return isinstance(evidence, Trace)


def _counting_of(beside: Evidence | None, k: int) -> Counting:
    """How the run beside a trace counts; totals do not say."""
    return counting_of(beside, k) if isinstance(beside, CallLog) else Counting(k)


def keys(log: CallLog) -> list[Hashable]:
    """What names the prompt of each request."""
    return [request.prompt or request.id for request in log.requests]


def _of_log(name: str, log: CallLog, *, whole: bool) -> Run:
    counting = counting_of(log, depth_of(log) or None)
    rows = []
    for request in log.requests:
        found = _with_room(request, counting) if whole else by_accepted(request)
        if not found and request.calls != 0 and not whole:
            raise TextError(
                f"request {request.id!r} of {name} has no accepted tokens of its calls",
                limit="positions are compared",
                remedy="log them, or compare the engine's counters",
            )
        rows.append([sum(n for j, n in found.items() if j >= i) for i in range(counting.k + 1)])
    return Run(name, *_by_prompt(np.array(rows, dtype=float).reshape(-1, counting.k + 1), keys(log)))


def _with_room(request: Request, counting: Counting) -> dict[int, int]:
    """Calls by accepted drafts, of those with room for k drafts and one more token."""
    starts = starts_of(request, counting)
    assert starts is not None
    accepted = np.array(request.accepted, dtype=np.int64)[len(request.output) - starts > counting.k]
    return dict(enumerate(np.bincount(accepted).tolist()))


def _of_totals(name: str, counters: Counters) -> Run:
    if not (counters.calls and counters.survival):
        raise TextError(
            f"{name} has no calls, or no counts by position",
            limit="positions are compared",
            remedy="scrape while the engine speculates, or compare a log of its calls",
        )
    return Run(name, counters.calls * np.array([[1.0, *counters.survival]]))


def _by_prompt(counts: Floats, names: Sequence[Hashable]) -> tuple[Floats, tuple[Hashable, ...]]:
    """Rows of one prompt added up."""
    each = tuple(dict.fromkeys(names))
    number = {name: i for i, name in enumerate(each)}
    rows = np.array([number[name] for name in names], dtype=np.int64)
    return np.stack([np.bincount(rows, column, len(each)) for column in counts.T], axis=1), each
