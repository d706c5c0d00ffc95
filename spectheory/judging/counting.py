"""How an engine counts, and what it counted over all requests."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain, Shape, StoppingRule, read_stop
from spectheory.drafting.shapes import read_shape
from spectheory.errors import SettingError, TextError, argument
from spectheory.ngrams import NGRAMS
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters, by_accepted
from spectheory.verification.base import PathRule
from spectheory.verification.copied_first import THEN
from spectheory.verification.registry import PATH_RULES, path_rule

MOST_K = 1024


@dataclass(frozen=True)
class Counting:
    """How calls and accepted tokens are counted.

    - `k`: the longest chain of a call.
    - `prefill`: the prompt's own pass emits the first token, without drafts, and is no call.
    - `past_end`: counts hold accepted tokens past the end of a text (True), none (False), or it is unknown (None).
    - `prompt_counted`: one call more is counted for each request; `skips_undrafted`: calls without drafts are not.
    """

    k: int
    prefill: bool = True
    past_end: bool | None = None
    prompt_counted: bool = False
    skips_undrafted: bool = False


def counting_of(log: CallLog, k: int | None = None) -> Counting:
    """The way of counting that a log states; where it does not say, its calls decide, or else the usual way."""
    prefill = log.prefill_emits_token
    if prefill is None:
        fits = {way: sum(starts_of(r, Counting(1, way)) is not None for r in log.requests) for way in (True, False)}
        prefill = fits[True] >= fits[False]
    return Counting(_longest(log, k), prefill, log.counts_past_end)


def shape_of(log: CallLog, k: int, stop: StoppingRule | None = None) -> Shape:
    """What a call drafts: a chain of k that `stop` may end, or the tree or the stopping rule that the log states.

    Examples
    --------
    >>> print(shape_of(CallLog((), provenance={"shape": "1,2,1-1"}), 2))
    tree 1 2 1-1
    """
    named, ended = (log.provenance.get(name) for name in ("shape", "stop"))
    if stop is None and ended:
        stop = read_stop(str(ended))
    if stop is not None:
        return Chain(k, stop=stop)
    return read_shape(str(named), [k])[0] if named else Chain(k)


def rule_of(log: CallLog) -> PathRule | None:
    """The rule that a log states, where it is a built-in one, an n-gram draft or a hybrid.

    Examples
    --------
    >>> rule_of(CallLog((), provenance={"rule": "suffix:max=8"})).name, rule_of(CallLog(()))
    ('suffix:max=8', None)
    """
    name = str(log.provenance.get("rule"))
    first = name.split(THEN)[0]
    return path_rule(name) if first in PATH_RULES or first.partition(":")[0] in NGRAMS else None


def starts_of(request: Request, counting: Counting) -> NDArray[np.int64] | None:
    """The position at which each call of a request starts; None if they are unknown or do not make up its text."""
    tokens, first = len(request.output), int(counting.prefill)
    if not request.accepted:
        return np.zeros(0, np.int64) if request.calls == 0 and tokens <= first + counting.skips_undrafted else None
    ends = first + np.cumsum(np.array(request.accepted, dtype=np.int64) + 1)
    starts = np.concatenate([[first], ends[:-1]])
    return starts if starts[-1] < tokens <= ends[-1] + counting.skips_undrafted else None


def torn(log: CallLog, counting: Counting) -> tuple[str, ...]:
    """Requests that list calls which do not make up their texts."""
    return tuple(r.id for r in log.requests if r.accepted and starts_of(r, counting) is None)


def past_end(log: CallLog, counting: Counting) -> int:
    """Accepted tokens past the end of their texts, where calls are listed; certain."""
    listed = [(r, starts) for r in log.requests if r.accepted and (starts := starts_of(r, counting)) is not None]
    return sum(int(max(starts[-1] + r.accepted[-1] - len(r.output), 0)) for r, starts in listed)


def _longest(log: CallLog, k: int | None) -> int:
    """Drafted tokens of the longest call."""
    known = [log.k or 0, *(d for r in log.requests for d in (*r.drafted, *r.by_drafted))]
    longest = k or max(known)
    if not longest and not any(r.calls for r in log.requests):
        raise TextError(
            "the log has no call with drafts",
            limit="judging compares the number of calls",
            remedy="log a run with speculation",
        )
    if not longest:
        raise TextError(
            "the log does not say k", limit="needs the drafted tokens of a call", remedy=f"give {argument('k')}"
        )
    if not 1 <= longest <= MOST_K:
        raise SettingError(
            f"k is {longest}", limit=f"must be in 1..{MOST_K}", remedy="give the longest chain of a call"
        )
    deepest = max((max(r.accepted, default=0) for r in log.requests), default=0)
    if deepest > longest:
        raise TextError(
            f"a call accepted {deepest} tokens",
            limit=f"calls draft {longest} at most",
            remedy=f"check {argument('k')} and the log",
        )
    replace(log, k=longest)  # checks the counts of every request against calls of so many drafts
    return longest


@dataclass(frozen=True)
class Counted:
    """Totals over all requests: calls, and calls that accepted at least i tokens, i = 1..k, if these are known."""

    calls: int
    accepted: tuple[int, ...] = ()


def counted(log: CallLog, k: int, counters: Counters | None = None) -> Counted:
    """What was counted, request by request or by an engine in total."""
    if counters is not None:
        if counters.calls is None:
            raise TextError("the counters hold no calls", limit="needs their number", remedy="import the whole scrape")
        if counters.calls > (tokens := sum(len(request.output) for request in log.requests)):
            raise TextError(
                f"the totals hold {counters.calls} calls, and the log {tokens} tokens",
                limit="each call outputs a token or more",
                remedy="give the totals over the requests of the log",
            )
        exact = counters.rounding * counters.calls < 1 / 2
        of_calls = tuple(round(share * counters.calls) for share in counters.survival[:k] if exact)
        return Counted(counters.calls, of_calls if len(of_calls) == k else ())
    known = [r.calls for r in log.requests if r.calls is not None]
    if len(known) < len(log.requests):
        missing = next(r.id for r in log.requests if r.calls is None)
        raise TextError(
            f"request {missing!r} has no number of calls",
            limit="judging compares the number of calls",
            remedy="log them, or add the engine's totals over these requests as a file",
        )
    counts = [by_accepted(r) for r in log.requests]
    if not all(of_request or r.calls == 0 for of_request, r in zip(counts, log.requests, strict=True)):
        return Counted(sum(known))
    return Counted(sum(known), tuple(sum(n for of in counts for j, n in of.items() if j >= i) for i in range(1, k + 1)))
