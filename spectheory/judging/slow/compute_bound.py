"""Verification is compute bound: at this batch more tokens take more time."""

from __future__ import annotations

from spectheory.cost.roofline import VERIFYING_OFF
from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason, minus


def _look(case: Case) -> Found | None:
    """By the roofline the verified tokens take longer to compute than the weights to read, or calls cost more plain
    steps than at a smaller concurrency.
    """
    return _by_sizes(case) or _by_runs(case)


def _by_sizes(case: Case) -> Found | None:
    if case.cost is None or case.k is None or case.verify is None:
        return None
    knee = case.cost.target_time.knee(case.k + 1)
    steps = minus(case.verify, Interval.exact(1.0))
    if case.cost.batch <= knee or not case.matters(steps):
        return None
    said = (
        f"verifying is compute bound at batch {case.cost.batch}: {case.k + 1} tokens of each sequence take "
        f"{case.verify.best:.2f} plain steps (within {100 * VERIFYING_OFF:.0f}%), beyond a batch of {knee:.0f}"
    )
    return Found(COMPUTE.name, said, steps, case.without(steps))


def _by_runs(case: Case) -> Found | None:
    pair = case.pair
    smaller = [each for each in case.beside if pair and pair.same_but(each, "batch")]
    if pair is None or case.cost is not None or not smaller:
        return None
    least = min(smaller, key=lambda each: each.drafted.batch)
    times = [each.alone((pair, *case.beside)) for each in (pair, least)]
    ratio, before = (call / step if step else 0.0 for step, call in times)
    steps = Interval.estimate(ratio - before)
    if least.drafted.batch >= pair.drafted.batch or not case.matters(steps):
        return None
    said = (
        f"a call costs {ratio:.2f} plain steps at concurrency {pair.drafted.batch} and {before:.2f} at "
        f"{least.drafted.batch}: verifying more tokens is no longer free, as it computes more "
        "(prompts of other requests left out)"
    )
    return Found(COMPUTE.name, said, steps, case.without(steps))


COMPUTE = Reason("compute bound", "verifying computes longer than it reads at this batch", _look)
