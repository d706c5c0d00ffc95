"""The plain run and the run with drafts are not alike."""

from __future__ import annotations

from spectheory.judging.slow.case import Case, Found, Reason


def _look(case: Case) -> Found | None:
    """Concurrency, prompts or outputs of the two runs differ."""
    if case.pair is None or not case.pair.apart:
        return None
    said = f"the runs are not alike: {', '.join(case.pair.apart)}; a speed-up compares equal loads"
    return Found(UNLIKE.name, said, of_data=True)


UNLIKE = Reason("unlike runs", "the plain run has another concurrency, or other prompts or outputs", _look)
