"""Totals of a call log: its requests added up."""

from __future__ import annotations

from collections import Counter

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters

PAST_END = "Counts hold accepted tokens past the end of a text."


def by_accepted(request: Request) -> dict[int, int]:
    """Calls of a request by the number of accepted tokens; empty if it has totals alone."""
    if request.accepted:
        return dict(Counter(request.accepted))
    found: Counter[int] = Counter()
    for row in request.by_drafted.values():
        found.update(dict(enumerate(row)))
    return {accepted: calls for accepted, calls in found.items() if calls}


def hazards_of(log: CallLog, depth: int) -> tuple[float, ...]:
    """The share of calls that accepted token i, among those that drafted it and accepted all before; empty if unknown.

    Calls that drafted less than i say nothing of token i, so a variable number of drafts does not bias it.
    """
    found: Counter[tuple[int, int]] = Counter()
    for each in log.requests:
        detailed = each.accepted and each.drafted
        if not detailed and not each.by_drafted and each.calls:
            return ()
        found.update(zip(each.drafted, each.accepted, strict=True) if detailed else ())
        rows = () if detailed else each.by_drafted.items()
        found.update({(drafted, accepted): n for drafted, row in rows for accepted, n in enumerate(row)})
    hazards = []
    for i in range(1, depth + 1):
        tried = sum(n for (drafted, accepted), n in found.items() if drafted >= i and accepted >= i - 1)
        if not tried:
            break
        hazards.append(sum(n for (_, accepted), n in found.items() if accepted >= i) / tried)
    return tuple(hazards)


def depth_of(log: CallLog) -> int:
    """The longest chain of a call that the log says or shows."""
    shown = (max([*by_accepted(each), *each.drafted, *each.by_drafted], default=0) for each in log.requests)
    return max([log.k or 0, *shown])


def pooled(log: CallLog) -> Counters:
    """The totals of all requests; survival by position where every request has it."""
    counts = [by_accepted(each) for each in log.requests]
    depth = depth_of(log)
    calls = _sum([each.calls for each in log.requests])
    known = calls and all(found or each.calls == 0 for found, each in zip(counts, log.requests, strict=True))
    reached = [sum(n for found in counts for j, n in found.items() if j >= i) for i in range(1, depth + 1)]
    return Counters(
        calls=calls,
        drafted=_sum([each.total_drafted for each in log.requests]),
        accepted=_sum([each.total_accepted for each in log.requests]),
        survival=tuple(count / calls for count in reached) if known and calls else (),
        hazards=hazards_of(log, depth) if known else (),
        k=depth or None,
        tokens=_sum([each.tokens for each in log.requests]),
        engine=log.engine,
        version=log.version,
        remarks=(PAST_END,) if log.counts_past_end else (),
        provenance=log.provenance,
    )


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
