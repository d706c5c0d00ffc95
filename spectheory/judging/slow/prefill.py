"""Prompts: their time is not sped up."""

from __future__ import annotations

from spectheory.intervals import Interval
from spectheory.judging.slow.case import LEAST, Case, Found, Reason


def _look(case: Case) -> Found | None:
    """Whole requests gain less than decoding, or decoding less than it would without others' prompts."""
    return _of_whole(case) or _in_steps(case)


def _in_steps(case: Case) -> Found | None:
    """Prompts of other requests that are read in the steps of decoding."""
    if case.pair is None:
        return None
    step, call = case.pair.alone(case.beside)
    if not (step and call):
        return None
    without = Interval.estimate(case.tokens.best * step / call)
    if without.best < LEAST * case.speedup.best:
        return None
    said = (
        f"prompts of other requests are read in the same steps, {case.tokens.best:.2f} times as often for each call: "
        f"decoding alone would be {without.best:.2f}x"
    )
    return Found(PREFILL.name, said, without=without)


def _of_whole(case: Case) -> Found | None:
    """Whole requests gain less than decoding."""
    if case.whole is None or case.speedup.low < LEAST * case.whole.high:
        return None
    said = (
        f"prompts and waiting take their time as before: decoding is {case.speedup.best:.2f}x, whole requests are "
        f"{case.whole.best:.2f}x"
    )
    return Found(PREFILL.name, said, without=case.speedup, before=case.whole)


PREFILL = Reason("prefill", "prompts and waiting, which drafts do not speed up", _look)
