"""Cause: tokens after calls whose drafts were all accepted are not the target's; all others are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spectheory.judging.causes.base import EXPLAINED, Cause, Context, Finding
from spectheory.judging.output import bonus_test, output_tests
from spectheory.trace import Trace

NAME = "bonus of another law"


def _explains(context: Context) -> Finding | None:
    """Where a position was drafted does not depend on its token, so the rest of the texts is tested as it stands."""
    if context.calls is None:
        return None
    bonus = bonus_test(context.trace, context.calls.bonus)
    if bonus is None or not bonus.refuted:
        return None
    tests = output_tests(_without(context.trace, context.calls.bonus))
    rest = min(tests, key=lambda test: test.p, default=None)
    if rest is None or rest.p < EXPLAINED / len(tests):
        return None
    said = (
        f"bonus tokens are no samples of the target (p = {bonus.p:.2g}, {bonus.tokens} of them), and all other tokens "
        f"are (smallest p = {rest.p:.2g})"
    )
    return Finding(NAME, said, "", {"bonus": bonus, "rest": rest})


def _without(trace: Trace, rows: np.ndarray) -> Trace:
    """The texts without some of their tokens, as tests of single tokens read them."""
    kept = np.ones(len(trace), bool)
    kept[rows] = False
    ends = np.cumsum(trace.lengths)
    counts = [int(kept[end - length : end].sum()) for end, length in zip(ends, trace.lengths, strict=True)]
    columns = {name: column[kept] for name, column in trace.columns.items()}
    texts = tuple(replace(text, tokens=n) for text, n in zip(trace.texts, counts, strict=True) if n)
    return replace(trace, columns=columns, texts=texts)


BONUS = Cause(NAME, "tokens after fully accepted calls are drawn from another law", _explains, of_output=True)
