"""Totals that an engine counted over many requests."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.errors import FOREIGN, TextError, reason_of
from spectheory.files import loaded_json, read_text, write_whole
from spectheory.trace.calls import MOST_COUNTED, MOST_DRAFTS, CallLog, Request, is_count, is_number

COUNTERS_FILE = "counters.json"
"""Name of counters in a folder."""
MARK = "spectheory counters"
SCHEMA = 1
TOTALS = ("calls", "drafted", "accepted", "tokens", "seconds", "draft_seconds")
"""Totals that add up."""
_DOUBLE = 1e-9
"""Rounding of shares that were divided in double precision: far above it, far below a count in a billion."""


@dataclass(frozen=True)
class Counters:
    """Totals of an engine's calls with drafts, pooled over requests whose texts are unknown.

    - `calls`, `drafted`, `accepted`: calls that verified drafts, drafted tokens, accepted ones; None if unknown.
    - `survival`: the share of calls that accepted at least i tokens, i = 1, 2, ...; empty if unknown. Each is rounded
      by at most `rounding`.
    - `hazards`: the share of calls that accepted token i among those that drafted it and accepted the i - 1 before;
      empty if unknown. Unlike `survival` it is not biased by calls that drafted less.
    - `k`: the longest chain of a call; `tokens`: output tokens; `seconds`, `draft_seconds`: time of all calls and of
      their drafting.
    - `mean_length`: tokens per call as the source says it, where its totals are unknown.
    - `lengths`: pairs of k and tokens per call, where the source says them of several k; `mean_length` is the last.
    - `cumulative`: whether the totals count from the start of a server, so that two of them have a difference.
    - `remarks`: what the source leaves open or biases, one sentence each.

    A ``TextError`` says which numbers contradict each other.
    """

    calls: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    survival: tuple[float, ...] = ()
    k: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    draft_seconds: float | None = None
    mean_length: float | None = None
    lengths: tuple[tuple[int, float], ...] = ()
    rounding: float = 0.0
    hazards: tuple[float, ...] = ()
    cumulative: bool = False
    engine: str = ""
    version: str = ""
    remarks: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in TOTALS:
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 <= value <= MOST_COUNTED):
                raise _contradiction(f"{name} is {brief(value)}", "must be a number >= 0")
        if self.k is not None and not (is_count(self.k) and 1 <= self.k <= MOST_DRAFTS):
            raise _contradiction(f"k is {brief(self.k)}", f"must be an integer in 1..{MOST_DRAFTS}")
        if self.mean_length is not None and not (is_number(self.mean_length) and 1 <= self.mean_length < math.inf):
            raise _contradiction(f"a mean of {brief(self.mean_length)} tokens per call", "must be a number >= 1")
        for k, length in self.lengths:
            if not (is_count(k) and 1 <= k <= MOST_DRAFTS and is_number(length) and 1 <= length <= k + 1):
                raise _contradiction(f"{brief(length)} tokens per call with k = {brief(k)}", "1 to k + 1")
        if self.accepted is not None and self.drafted is not None and self.accepted > self.drafted:
            raise _contradiction(f"{self.accepted} tokens accepted, {self.drafted} drafted", "accepted <= drafted")
        most = self.k or MOST_DRAFTS
        for name, tokens in (("drafted", self.drafted), ("accepted", self.accepted)):
            if self.calls is not None and (tokens or 0) > most * self.calls:
                raise _contradiction(f"{tokens} tokens {name} in {self.calls} calls", f"at most k = {most} in a call")
        self._check_survival()

    def _check_survival(self) -> None:
        """Shares in [0, 1] that fall, and that give the accepted tokens within their rounding."""
        if outside := [share for share in self.survival if not 0 <= share <= 1]:
            raise _contradiction(
                f"a share of accepted calls is {outside[0]:g}",
                "shares are in 0..1, not percentages" if outside[0] > 1 else "shares are in 0..1",
            )
        if any(later > earlier + _DOUBLE for earlier, later in zip(self.survival, self.survival[1:], strict=False)):
            raise _contradiction("shares of accepted calls rise with the position", "P(accepted >= i) falls with i")
        if self.survival and self.calls is not None and self.accepted is not None:
            counted = self.calls * math.fsum(self.survival)
            slack = self.calls * len(self.survival) * (self.rounding + _DOUBLE)
            if abs(counted - self.accepted) > slack:
                raise _contradiction(
                    f"{self.accepted} tokens accepted, by position {counted:.0f}", f"must agree within {slack:.2g}"
                )

    @property
    def length(self) -> float | None:
        """Tokens per call, recovered and bonus ones included: 1 + accepted / calls."""
        if self.calls and self.accepted is not None:
            return 1 + self.accepted / self.calls
        return 1 + math.fsum(self.survival) if self.survival else self.mean_length

    @property
    def mean_drafted(self) -> float | None:
        """Drafted tokens per call."""
        return self.drafted / self.calls if self.calls and self.drafted is not None else None

    @property
    def biases(self) -> tuple[str, ...]:
        """What these numbers show to be biased, one sentence each."""
        sentences = []
        if self.k and self.calls and self.drafted is not None and self.drafted < self.k * self.calls:
            mean = int(100 * self.drafted / self.calls) / 100  # never the most itself
            sentences.append(
                f"Calls drafted {mean:.2f} tokens on average, {self.k} at most: a position that was not drafted counts "
                "as not accepted, so shares of later positions are biased down."
            )
        if self.tokens is not None and self.calls and self.accepted is not None:
            beside = self.tokens - self.calls - self.accepted
            if beside > 0:
                sentences.append(
                    f"{beside} of {self.tokens} output tokens came from no call counted here: from prompts' own passes "
                    "and from calls without drafts."
                )
            elif beside < 0:
                sentences.append(
                    f"Calls and accepted tokens are {-beside} more than the {self.tokens} output tokens: at least so "
                    "many lie past the end of a text, and tokens per call is biased up."
                )
        return tuple(sentences)

    @classmethod
    def join(cls, parts: Sequence[Counters]) -> Counters:
        """The sum of several logs; of two scrapes of one server the second less the first."""
        first = parts[0]
        if len(parts) == 1:
            return first
        for name in ("engine", "k", "cumulative"):
            # A scrape before the first call may list no positions.
            known = [getattr(part, name) for part in parts if name != "k" or part.k or part.calls != 0]
            if len(set(known)) > 1:
                shown = " and ".join(dict.fromkeys(map(repr, known)))
                raise TextError(
                    f"the logs differ in {name}: {shown}",
                    limit="totals are joined under one setting",
                    remedy="import each log on its own",
                )
        if not first.cumulative:
            return _sum(parts)
        if len(parts) > 2:
            raise TextError(
                f"{len(parts)} scrapes of a server are given",
                limit="a difference is of two: before and after",
                remedy="name the first and the last",
            )
        return _difference(*parts)

    def write(self, path: str | Path) -> None:
        """Write as JSON; the file appears when whole."""
        known = {name: value for name, value in asdict(self).items() if value not in (None, (), "", {})}
        text = json.dumps({"spectheory": MARK, "schema": SCHEMA, **known}, indent=2) + "\n"
        write_whole(Path(path), lambda partial: partial.write_text(text, encoding="utf-8"))

    @classmethod
    def read(cls, path: str | Path) -> Counters:
        """Read a file that :meth:`write` made."""
        try:
            content = loaded_json(read_text(Path(path)))
            if content.pop("spectheory") != MARK or content.pop("schema") != SCHEMA:
                raise ValueError("another mark or schema")
            lists = {name: tuple(content.get(name, ())) for name in ("survival", "hazards", "remarks")}
            lists["lengths"] = tuple((k, length) for k, length in content.get("lengths", ()))
            _check_types({**content, **lists})
            return cls(**{**content, **lists})
        except (OSError, *FOREIGN) as error:
            raise TextError(
                f"{path} holds no counters ({reason_of(error)})",
                limit=f"needs JSON of schema {SCHEMA}, as spectheory import writes it",
                remedy="import the engine's log again",
            ) from error


_TYPES: Mapping[str, type] = {"engine": str, "version": str, "provenance": dict, "cumulative": bool}


def _check_types(content: Mapping[str, Any]) -> None:
    """Types of what a file holds beside its totals."""
    wrong = [name for name, kind in _TYPES.items() if name in content and not isinstance(content[name], kind)]
    for name in ("survival", "hazards"):
        wrong += [name for each in content[name] if not (is_number(each) and 0 <= each < math.inf)]
    wrong += ["remarks" for each in content["remarks"] if not isinstance(each, str)]
    rounding = content.get("rounding", 0.0)
    wrong += [] if is_number(rounding) and 0 <= rounding < 1 else ["rounding"]
    if wrong:
        raise ValueError(f"{wrong[0]} is of another kind")


def _sum(parts: Sequence[Counters]) -> Counters:
    """Totals added; shares and means weighted by calls."""
    totals: dict[str, Any] = {name: _total([getattr(part, name) for part in parts]) for name in TOTALS}
    calls = [part.calls for part in parts]
    depth = max(len(part.survival) for part in parts)
    known = all(part.survival or not part.calls for part in parts) and totals["calls"]
    shares = (sum(part.survival[i] * (part.calls or 0) for part in parts if part.survival) for i in range(depth))
    stated = any(part.calls is None and part.survival for part in parts)
    if stated or len({(part.mean_length, part.lengths) for part in parts}) > 1:
        raise TextError(
            "the logs hold means without counts",
            limit="means of different logs have no weights",
            remedy="import each log on its own",
        )
    return replace(
        parts[0],
        **totals,
        survival=tuple(share / totals["calls"] for share in shares) if known else (),
        hazards=(),
        rounding=max(part.rounding for part in parts),
        remarks=tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
        provenance={**parts[0].provenance, "parts": len(calls)},
    )


def _difference(before: Counters, after: Counters) -> Counters:
    """What was counted between two scrapes."""
    starts = [part.provenance.get("started") for part in (before, after)]
    totals: dict[str, Any] = {}
    for name in TOTALS:
        earlier, later = getattr(before, name), getattr(after, name)
        totals[name] = None if earlier is None or later is None else later - earlier
        if (totals[name] or 0) < 0:
            raise _restarted(f"{name} went from {earlier:g} to {later:g}")
    if starts[0] != starts[1]:
        raise _restarted("the counters were created at another time")
    calls = totals["calls"]
    if calls == 0 or not any(totals.values()):
        raise TextError(
            "no calls were counted between the two scrapes",
            limit="a difference needs some",
            remedy="scrape before and after the requests that are to be read",
        )
    depth = max(len(before.survival), len(after.survival))
    counts = [_count(after, i) - _count(before, i) for i in range(depth)]
    if any(count < 0 for count in counts):
        raise _restarted("the count of a position went back")
    survival = tuple(count / calls for count in counts) if calls else ()
    provenance = {**after.provenance, "difference": True}
    return replace(after, **totals, survival=survival, mean_length=None, cumulative=False, provenance=provenance)


def _count(counters: Counters, i: int) -> int:
    """Calls that accepted more than i tokens: cumulative counters are whole, so their shares are exact."""
    return round(counters.survival[i] * (counters.calls or 0)) if i < len(counters.survival) else 0


def _restarted(what: str) -> TextError:
    return TextError(
        f"{what} between two scrapes",
        limit="counters of one run only grow",
        remedy="name the earlier scrape first; after a restart take a new first one",
    )


def _contradiction(what: str, limit: str) -> TextError:
    return TextError(what, limit=limit, remedy="check the log for torn or mixed lines")


PAST_END = "Counts hold accepted tokens past the end of a text."


def by_accepted(request: Request) -> dict[int, int]:
    """Calls of a request by the number of accepted tokens; empty if it has totals alone."""
    if request.accepted:
        return dict(Counter(request.accepted))
    histogram: Counter[int] = Counter()
    for row in request.by_drafted.values():
        histogram.update(dict(enumerate(row)))
    return {accepted: calls for accepted, calls in histogram.items() if calls}


def _hazards_of(log: CallLog, depth: int) -> tuple[float, ...]:
    """The share of calls that accepted token i, among those that drafted it and accepted all before; empty if unknown.

    Calls that drafted less than i say nothing of token i, so a variable number of drafts does not bias it.
    """
    calls: Counter[tuple[int, int]] = Counter()
    for each in log.requests:
        detailed = each.accepted and each.drafted
        if not detailed and not each.by_drafted and each.calls:
            return ()
        calls.update(zip(each.drafted, each.accepted, strict=True) if detailed else ())
        rows = () if detailed else each.by_drafted.items()
        calls.update({(drafted, accepted): n for drafted, row in rows for accepted, n in enumerate(row)})
    hazards = []
    for i in range(1, depth + 1):
        tried = sum(n for (drafted, accepted), n in calls.items() if drafted >= i and accepted >= i - 1)
        if not tried:
            break
        hazards.append(sum(n for (_, accepted), n in calls.items() if accepted >= i) / tried)
    return tuple(hazards)


def depth_of(log: CallLog) -> int:
    """The longest chain of a call that the log says or shows."""
    shown = (max([*by_accepted(each), *each.drafted, *each.by_drafted], default=0) for each in log.requests)
    return max([log.k or 0, *shown])


def pooled(log: CallLog | Counters) -> Counters:
    """The totals of all requests; survival by position where every request has it. Totals are returned as they are."""
    if not isinstance(log, CallLog):
        return log
    counts = [by_accepted(each) for each in log.requests]
    depth = depth_of(log)
    calls = _total([each.calls for each in log.requests])
    known = calls and all(histogram or each.calls == 0 for histogram, each in zip(counts, log.requests, strict=True))
    reached = [sum(n for histogram in counts for j, n in histogram.items() if j >= i) for i in range(1, depth + 1)]
    return Counters(
        calls=calls,
        drafted=_total([each.total_drafted for each in log.requests]),
        accepted=_total([each.total_accepted for each in log.requests]),
        survival=tuple(count / calls for count in reached) if known and calls else (),
        hazards=_hazards_of(log, depth) if known else (),
        k=depth or None,
        tokens=_total([each.tokens for each in log.requests]),
        engine=log.engine,
        version=log.version,
        remarks=(PAST_END,) if log.counts_past_end else (),
        provenance=log.provenance,
    )


def _total(values: list[Any]) -> Any:
    """The sum; None where one is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


@dataclass(frozen=True)
class BenchRun:
    """One run of `vllm bench serve`; times in seconds, None is unknown.

    `ttft` is the mean time to a first token and `tpot` the mean time of each further one. `decoding` sums, over
    requests, the time after the first token: from their latencies where the file has them, or else from `tpot`, which
    is right if outputs are equally long. Without speculation `calls` is None. `survival` has the share of calls that
    accepted at least i tokens, fractions, each rounded by at most `rounding`.
    """

    name: str
    concurrency: int | None
    completed: int
    failed: int
    duration: float | None
    input_tokens: int
    output_tokens: int
    ttft: float
    tpot: float
    decoding: float
    calls: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    survival: tuple[float, ...] = ()
    rounding: float = 0.0

    @property
    def k(self) -> int:
        """The longest chain of a call; 0 without speculation."""
        return len(self.survival)

    @property
    def context(self) -> float:
        """Mean cached tokens of a sequence while it decodes: its prompt and half of its output."""
        return (self.input_tokens + self.output_tokens / 2) / self.completed

    @property
    def decoded(self) -> int:
        """Output tokens after the first of each request, which the prompt's own pass emits."""
        return self.output_tokens - self.completed

    @property
    def in_flight(self) -> float | None:
        """Requests that were decoding at a time, the mean over the run (Little's law)."""
        return self.decoding / self.duration if self.duration else None
