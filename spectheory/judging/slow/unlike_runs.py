"""The plain run and the run with drafts are not alike."""

from __future__ import annotations

from spectheory.judging.slow.case import Case, Found, Reason

_LEAST_CALL = 0.9
"""Plain steps that a call takes at least: it reads the target's weights once, as a plain step does."""


def _look(case: Case) -> Found | None:
    """Concurrency, prompts or outputs of the two runs differ, or calls would be shorter than plain steps."""
    if case.call.high < _LEAST_CALL:
        said = (
            f"a call would take {case.call.best:.2f} plain steps, less than the one that verification takes: tokens "
            "per call and the speed-up are of different runs or loads, or the plain run was slowed down"
        )
        return Found(UNLIKE.name, said, of_data=True)
    if case.drafting is not None and case.drafting.low > case.call.high:
        said = (
            f"drafting would take {case.drafting.best:.2f} plain steps, a whole call takes {case.call.best:.2f}: the "
            "cost of drafts is of another draft or machine than the speed-up"
        )
        return Found(UNLIKE.name, said, of_data=True)
    if case.pair is None or not case.pair.apart:
        return None
    said = f"the runs are not alike: {', '.join(case.pair.apart)}; a speed-up compares equal loads"
    return Found(UNLIKE.name, said, of_data=True)


UNLIKE = Reason("unlike runs", "the plain run has another concurrency, other prompts or outputs, or other costs", _look)
