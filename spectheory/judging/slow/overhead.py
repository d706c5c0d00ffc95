"""Overhead: what neither verification nor drafting explains."""

from __future__ import annotations

from spectheory.judging.slow.case import Case, Found, Reason


def _look(case: Case) -> Found | None:
    """What remains where drafting, and verification as far as it is known, are explained; or what runs of several k
    have in common.
    """
    if case.drafting is not None and case.matters(case.rest):
        return Found(OVERHEAD.name, _remains(case), case.rest, case.without(case.rest))
    if case.fixed is None or not case.matters(case.fixed):
        return None
    said = (
        f"a call takes {case.fixed.best:.2f} plain steps whatever it drafts, by runs of several k: launches, "
        "scheduling, or the loop around the passes"
    )
    return Found(OVERHEAD.name, said, case.fixed, case.without(case.fixed))


def _remains(case: Case) -> str:
    assert case.drafting is not None
    said = f"{case.rest.best:.2f} of a call's {case.call.best:.2f} plain steps are"
    if case.verify is None:
        return (
            f"{said} beyond one step and {case.drafting.best:.2f} of drafting: overhead, or a verification that takes "
            "longer than a plain step; sizes of models and hardware tell which"
        )
    explained = f"verifying explains {case.verify.best:.2f} and drafting {case.drafting.best:.2f}"
    return f"{said} overhead: {explained}; look at launches, scheduling, sampling on the host, passes without a graph"


OVERHEAD = Reason("overhead", "time of a call that is neither reading, computing nor drafting", _look)
