"""A run as it is compared with another: what was counted of each prompt, or what a trace expects."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import amount, located, shown, whole
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.errors import FOREIGN, SettingError, SpectheoryError, TextError, argument, reason_of
from spectheory.files import loaded_json, read_text
from spectheory.intervals import Interval
from spectheory.judging.counting import Counting, counting_of, starts_of
from spectheory.judging.expected import ExpectedCounts
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.over_prompts import FEW, reach
from spectheory.prediction.paths import sums_of_texts, tokens_left
from spectheory.prediction.plan_answer import named_rules
from spectheory.trace import Trace, read_evidence
from spectheory.trace.calls import MOST_DRAFTS, CallLog, Request
from spectheory.trace.counters import Counters, by_accepted, depth_of

Evidence: TypeAlias = Trace | CallLog | Counters


@dataclass(frozen=True)
class Stated:
    """Tokens per call of an answer, or of a small file: at k drafts a call, None if it does not say.

    A certain bound counts from its low end to its high one. `provenance` says what the answer was computed from.
    """

    tokens: Interval
    k: int | None = None
    speedup: Interval | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""

    def __post_init__(self) -> None:
        for name, value in (("tokens per call", self.tokens), ("speed-up", self.speedup)):
            for end in () if value is None else (value.low, value.high):
                amount(f"an end of the {name}", end, positive=True, remedy="correct it")

    @classmethod
    def read(cls, path: Path) -> Stated | None:
        """What a JSON file states; None if it is no such file."""
        if path.suffix != ".json" or not path.is_file():
            return None
        try:
            content = loaded_json(read_text(path))
            if not isinstance(content, dict) or content.get("tokens_per_call") is None:
                return None
            best, speedup = content.get("best"), content.get("speedup")
            of_best = best.get("k") if isinstance(best, dict) else None  # the numbers of an engine's counts are its own
            k = content.get("k", content.get("nodes")) if of_best is None else of_best
            stated = cls(
                _interval(content["tokens_per_call"]),
                None if k is None else whole("k", k, most=MOST_DRAFTS, remedy="give the drafts per call"),
                None if speedup is None else _interval(speedup),
                _measured(content),
                str(content.get("rule") or ""),
            )
        except (*FOREIGN, SpectheoryError) as error:
            raise TextError(
                f"{path} states no tokens per call ({reason_of(error)})",
                limit='needs {"k": 3, "tokens_per_call": 2.4}, or the JSON of a prediction',
                remedy="correct the file",
            ) from error
        if content.get("drafted") is not None:
            raise TextError(
                f"{path} states {content.get('shape')}, which a stopping rule ends",
                limit="runs are compared by calls of as many drafts each",
                remedy="compare the answer for a fixed length",
            )
        return stated

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a range over prompts; infinite where their number is not stated."""
        prompts = self.provenance.get("prompts")
        count = prompts.get("count") if isinstance(prompts, Mapping) else None
        return count - 1 if isinstance(count, int) and count > 1 else math.inf

    def run(self, name: str, k: int, width: int, tokens_of_text: float = math.inf) -> Run:
        """The run of k drafts a call, in arrays for `width` drafts; positions are not stated.

        What is stated counts calls at the ends of texts in its own way: the other run, whose texts have so many tokens,
        may have up to a call and its drafts more or fewer tokens a text.
        """
        tokens, certain = self.tokens, self.tokens.kind in ("bound", "estimate")
        if not 1 <= tokens.best <= k + 1:
            raise TextError(
                f"{name} states {tokens.best:g} tokens per call",
                limit=f"calls of {k} drafts have 1 to {k + 1}",
                remedy="correct the file",
            )
        best = (tokens.low + tokens.high) / 2 if certain else tokens.best
        half, ends = (tokens.high - tokens.low) / 2, tokens.best * (k + 1) / tokens_of_text
        deviation = half / reach(self.freedom) if tokens.kind == "statistical" else 0.0
        unknown = np.full(width, np.inf)
        slack = np.array([(half if certain else 0.0) + ends, *np.zeros(width)])
        counts = np.array([[1.0, *np.full(width, (best - 1) / width)]])
        errors = np.array([deviation, *unknown])
        return Run(name, counts, errors=errors, slack=slack, length=k, known_by=self.freedom)


Side: TypeAlias = Evidence | Stated


def _interval(value: Any) -> Interval:
    return Interval(**value) if isinstance(value, dict) else Interval.exact(value)


def _measured(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The provenance of an answer; of several drafts that of the one whose numbers lead."""
    provenance = content.get("provenance")
    if not isinstance(provenance, Mapping):
        return {}
    of_draft = provenance.get(str(content.get("draft"))) if "draft" in content else None
    return dict(of_draft) if isinstance(of_draft, Mapping) else provenance


def side_of(given: Side | str | Path) -> Side:
    """What is given itself, or by the path of a file of it."""
    path = located(given) if isinstance(given, str | Path) else None
    side: Any = given if path is None else Stated.read(path) or read_evidence(path)
    if isinstance(side, Trace | CallLog | Counters | Stated):
        return side
    raise SettingError(
        f"a run is {shown(side)}", limit="needs a trace, a log of calls or counters", remedy="name the file of one"
    )


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
    - `length`: drafts of a call, where positions are not known.
    - `known_by`: degrees of freedom of `errors`.
    - `contains`: what says that its counts may contain the other run's, a line each.
    """

    name: str
    counts: Floats
    prompts: tuple[Hashable, ...] = ()
    errors: Floats | None = None
    rule: str = ""
    coins: Floats | float = 0.0
    slack: Floats | float = 0.0
    length: int = 0
    known_by: float = math.inf
    contains: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, evidence: Evidence, *, k: int | None = None, rule: str = "token") -> Run:
        """What a log or a scrape counted, or what a trace expects of chains of `k` drafts under a rule.

        Calls with k tokens left or fewer are left out where it is known where calls start: what engines count at the
        end of a text differs.

        Examples
        --------
        >>> Run.of("a", Counters(calls=4, survival=(0.5, 0.25))).shares.tolist()
        [1.75, 0.5, 0.25]
        """
        return _run_of(name, evidence, k, rule, None, whole=starts_known(evidence))

    @property
    def k(self) -> int:
        """Drafts of a call."""
        return self.length or self.counts.shape[1] - 1

    @property
    def calls(self) -> float:
        """All calls."""
        return float(self.counts[:, 0].sum())

    @cached_property
    def shares(self) -> Floats:
        """Tokens per call, and the share of calls that accepted at least i drafts, ``[k + 1]``."""
        return _shares(self.counts.sum(axis=0))

    @cached_property
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
            return self.known_by
        calls = self.counts[:, 0]
        return max(float(calls.sum() ** 2 / (calls**2).sum()) - 1, 1.0)

    @property
    def of_calls(self) -> Floats:
        """Variances of the shares if calls were independent, ``[k + 1]``."""
        survival = self.shares[1:]
        squares = float((2 * np.arange(1, self.k + 1) - 1) @ survival)
        return np.array([squares - survival.sum() ** 2, *(survival * (1 - survival))]) / self.calls

    @cached_property
    def clustering(self) -> Floats:
        """By how much calls of one prompt depend: variances of counted shares over those of independent calls.

        Of a trace those between prompts, and of the decoder's random numbers.
        """
        if len(self.prompts) < FEW:
            return np.ones(self.counts.shape[1])
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
    names: tuple[str, str], sides: tuple[Side, Side], *, k: int | None = None, rule: str = "token"
) -> tuple[Run, Run]:
    """Each side beside the other; a trace takes the k of the other side.

    Calls with k tokens left or fewer are left out where it is known of both sides where calls start. Otherwise all
    calls count, and a trace expects what the other side would count of texts as long as the trace's.
    """
    for name, side in zip(names, sides, strict=True):
        if isinstance(side, Counters):
            _of_totals(name, side)  # refuses counts without positions
        if (
            isinstance(side, Stated)
            and side.rule
            and any(isinstance(each, Trace) for each in sides)
            and side.rule != rule
        ):
            raise SettingError(
                f"{name} is an answer for rule {side.rule}",
                limit=f"the trace beside it is read under rule {rule}",
                remedy=f"give {argument('rule')} {side.rule}",
            )
    whole, lengths = all(map(starts_known, sides)), [_length_of(side) for side in sides]
    known = [length for length in lengths if length]
    stated = [side for side in sides if isinstance(side, Stated) and side.k]
    if len(set(known)) > 1 and len(stated) < len(sides):
        raise SettingError(
            f"calls draft {known[0]} tokens in {names[0]} and {known[1]} in {names[1]}",
            limit="with another k calls start elsewhere: every position differs without any fault",
            remedy="serve both with one k, or compare each with a trace",
        )
    asked = k or next(iter(known), None)
    rows = list(zip(names, sides, lengths, reversed(sides), strict=True))
    one, other = (
        side.run(name, length or _given(asked), max([*known, 1]), _tokens_of_text(beside))
        if isinstance(side, Stated)
        else _run_of(name, side, asked if isinstance(side, Trace) else k, rule, beside, whole=whole)
        for name, side, length, beside in rows
    )
    return one, replace(other, contains=_contained(names, *sides))


def _contained(names: tuple[str, str], one: Side, other: Side) -> tuple[str, ...]:
    """That one side's totals may be a later scrape of the other's counters; refused where they surely are."""
    if not (isinstance(one, Counters) and isinstance(other, Counters) and other.cumulative):
        return ()
    if _grew(one, other):
        first, second = names
    elif _grew(other, one):
        second, first = names
    else:
        return ()
    difference = argument("Counters.join([earlier, later])", f"spectheory import {first} {second} --out later")
    if one.provenance.get("started") is not None:  # the same of both, as they have a difference
        raise TextError(
            f"{second} is a later scrape of {first}'s counters",
            limit="totals since the start of one server contain each other",
            remedy=f"compare with their difference: {difference}",
        )
    return (f"{second} may be a later scrape of {first}'s counters", f"Their difference: {difference}")


def _grew(before: Counters, after: Counters) -> bool:
    """Whether the totals of one server could have grown from the one to the other."""
    try:
        return bool(Counters.join([before, after]))
    except TextError:
        return False


def _tokens_of_text(side: Side) -> float:
    """Output tokens of a request in the mean; infinite where they are not known."""
    lengths = [len(request.output) for request in side.requests] if isinstance(side, CallLog) else []
    return float(np.mean(lengths)) if any(lengths) else math.inf


def _length_of(side: Side) -> int | None:
    """Drafts of a call, as far as a side says."""
    if isinstance(side, Stated):
        return side.k
    if isinstance(side, Trace):
        return None
    return (depth_of(side) if isinstance(side, CallLog) else len(side.survival)) or None


def _given(k: int | None) -> int:
    """The k of sides that do not say it."""
    if k is None:
        raise SettingError(
            f"{argument('k')} is not given",
            limit="neither run says how long its calls are",
            remedy="give the drafts per call",
        )
    return k


def _run_of(name: str, evidence: Evidence, k: int | None, rule: str, beside: Side | None, *, whole: bool) -> Run:
    if isinstance(evidence, Trace):
        k = _given(k)  # how calls are counted is what the log beside says; totals do not
        counting = counting_of(beside, k) if isinstance(beside, CallLog) else Counting(k)
        return _with_calls(expected_run(name, evidence, rule, counting, whole=whole))
    run = counted_run(name, evidence, whole=whole) if isinstance(evidence, CallLog) else _of_totals(name, evidence)
    if k is not None and k != run.k:
        raise SettingError(
            f"{argument('k')} is {k}",
            limit=f"{name} counted calls of {run.k} drafts",
            remedy="leave it out, or serve that k",
        )
    return _with_calls(run)


def expected_run(
    name: str, trace: Trace, rule: str, counting: Counting, *, whole: bool, prompts: Sequence[Hashable] = ()
) -> Run:
    """What chains of k drafts are expected to count on the texts of a trace; `prompts` names those of the texts.

    `whole`: in calls with room for k drafts and one more token, exactly. Otherwise in all calls, in the middle of the
    fewest and the most that the way of counting allows at the ends of texts.
    """
    chosen = (named_rules([rule]) or [])[0]
    trace, prompts = trace.in_memory(), prompts or [text.prompt or text.id for text in trace.texts]
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


def starts_known(evidence: Side) -> bool:
    """Whether it is known where in its text each call starts."""
    if isinstance(evidence, CallLog):
        counting = counting_of(evidence, depth_of(evidence) or None)
        return all(starts_of(request, counting) is not None for request in evidence.requests)
    return isinstance(evidence, Trace)


def keys(log: CallLog) -> list[Hashable]:
    """What names the prompt of each request."""
    return [request.prompt or request.id for request in log.requests]


def counted_run(name: str, log: CallLog, *, whole: bool) -> Run:
    """What a log counted; `whole`: in calls with room for k drafts and one more token alone."""
    counting = counting_of(log, depth_of(log) or None)
    rows = []
    for request in log.requests:
        counts = _with_room(request, counting) if whole else by_accepted(request)
        if not counts and request.calls != 0 and not whole:
            raise TextError(
                f"request {request.id!r} of {name} has no accepted tokens of its calls",
                limit="positions are compared",
                remedy="log them, or compare the engine's counters",
            )
        rows.append([sum(n for j, n in counts.items() if j >= i) for i in range(counting.k + 1)])
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
