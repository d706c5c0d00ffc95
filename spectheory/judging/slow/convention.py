"""Acceptance is counted in another convention: with or without the bonus token, per call or per draft."""

from __future__ import annotations

from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason

_AS_BONUS = (0.75, 1.05)
"""Tokens per call that outputs lack where accepted tokens hold the bonus token: 1, less what prompts add."""


def _look(case: Case) -> Found | None:
    """Output tokens say otherwise than accepted ones, or tokens per call and rate agree in another convention alone."""
    said = _by_outputs(case) or _by_rate(case)
    return Found(CONVENTION.name, said, of_data=True) if said else None


def _by_outputs(case: Case) -> str:
    """What calls and output tokens show; calls without drafts can only add output tokens."""
    counts = case.counters
    if counts is None or not (counts.calls and counts.tokens and counts.length):
        return ""
    output = counts.tokens / counts.calls
    if not _AS_BONUS[0] <= counts.length - output <= _AS_BONUS[1]:
        return ""
    return (
        f"accepted tokens already hold the bonus token: {counts.length:.2f} tokens per call by accepted tokens, "
        f"{output:.2f} by the output; the latter is right, and a call then costs "
        f"{output / case.speedup.best:.2f} plain steps"
    )


def _by_rate(case: Case) -> str:
    """A tokens per call and a rate that do not belong together, and the convention in which they do."""
    if case.rate is None or case.k is None or _meet(case.tokens, _times(case.rate, case.k, 1.0)):
        return ""
    tokens, k = case.tokens, case.k
    if _meet(tokens, _times(case.rate, k, 0.0)):
        actual = tokens.best + 1
        return (
            f"tokens per call leave out the recovered or bonus token: {tokens.best:.2f} are {k} x "
            f"{case.rate.best:.3g} accepted ones, with it {actual:.2f}, and a call then costs "
            f"{actual / case.speedup.best:.2f} plain steps"
        )
    if _meet(tokens, _times(case.rate, k + 1, 0.0)):
        return f"the rate counts the bonus token: {case.rate.best:.3g} is {tokens.best:.2f} tokens of {k + 1}"
    if _meet(tokens, _times(case.rate, 1, 1.0)):
        each = (tokens.best - 1) / k
        return f"the rate is of accepted tokens per call; per drafted token it is {each:.3g}"
    return (
        f"{tokens.best:.2f} tokens per call do not go with a rate of {case.rate.best:.3g} at k = {k}, which gives "
        f"{1 + k * case.rate.best:.2f}: calls draft fewer than {k}, or the two are of different runs"
    )


def _times(rate: Interval, factor: float, shift: float) -> Interval:
    return rate * factor + shift


def _meet(one: Interval, other: Interval) -> bool:
    return one.low <= other.high and other.low <= one.high


CONVENTION = Reason(
    "another convention",
    "acceptance is counted otherwise: with or without the bonus token, per call or per drafted token",
    _look,
)


def readings_of_rate(rate: Interval, k: int) -> list[tuple[str, Interval]]:
    """What an acceptance rate may mean, with the tokens per call of each (the last one idealised).

    Examples
    --------
    >>> [(what, round(tokens.best, 2)) for what, tokens in readings_of_rate(Interval.exact(0.85), 3)]
    [('accepted of drafted tokens', 3.55), ('accepted tokens per call', 1.85), ('each draft, i.i.d.', 3.19)]
    """
    from spectheory.cost import iid_tokens_per_call

    low, best, high = (iid_tokens_per_call(min(each, 1.0), k) for each in (rate.low, rate.best, rate.high))
    return [
        ("accepted of drafted tokens", _times(rate, k, 1.0)),
        ("accepted tokens per call", _times(rate, 1, 1.0)),
        ("each draft, i.i.d.", Interval(low, best, high, "estimate")),
    ]
