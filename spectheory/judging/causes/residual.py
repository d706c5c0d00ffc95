"""Cause: the engine samples the target again where a draft is rejected, instead of the residual."""

from __future__ import annotations

import math

import numpy as np

from spectheory.judging.causes.base import EXPLAINED, Cause, Context, Finding
from spectheory.judging.output import FALSE_ALARM, OF_DRAFT, bonus_test, output_tests
from spectheory.judging.verified import Verified, bets

NAME = "residual not taken"


def _explains(context: Context) -> Finding | None:
    """A verified token x then has the law min(p, q) + TV p, and was accepted with probability m / (m + TV), where
    m = min(1, q/p) at x. Bets are on the target's and the draft's own law in its place. The texts must refute the
    target's law by this one: where TV is small, bets tell hardly any law from it.
    """
    wrong = min(output_tests(context.trace), key=lambda test: test.p, default=None)
    if wrong is None or not wrong.refuted or context.calls is None or not set(OF_DRAFT) <= set(context.trace.columns):
        return None
    bonus = bonus_test(context.trace, context.calls.bonus)
    if bonus is not None and bonus.refuted:
        return None
    verified = Verified.of(context.calls)
    log_draft, log_target, lost = (
        np.asarray(context.trace.columns[name], np.float64)[verified.rows] for name in OF_DRAFT
    )
    log_ratio = log_draft - log_target
    kept = np.exp(np.minimum(0.0, log_ratio))
    chance = np.divide(kept, kept + lost, out=np.ones_like(kept), where=kept + lost > 0)
    log_law = np.log(np.maximum(kept + lost, 1e-300))
    counts, law = verified.coins(chance), math.exp(-max(bets([-log_law, log_ratio - log_law]), 0.0))
    if min(counts, law) < EXPLAINED / 2 or log_law.sum() < -math.log(FALSE_ALARM):
        return None
    said = (
        "rejected drafts are replaced by samples of the target instead of the residual: tokens and acceptance are then "
        f"as expected (p = {law:.2g} and {counts:.2g}), and the texts exp({log_law.sum():.1f}) times as probable"
    )
    return Finding(NAME, said, "token", {"p_tokens": law, "p_accepted": counts, "log_likelihood_ratio": log_law.sum()})


RESIDUAL = Cause(NAME, "rejected drafts are replaced by samples of the target", _explains, of_output=True)
