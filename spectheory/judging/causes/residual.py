"""Cause: the engine samples the target again where a draft is rejected, instead of the residual."""

from __future__ import annotations

import numpy as np

from spectheory.judging.causes.base import Cause, Context, Finding
from spectheory.judging.output import output_tests

NAME = "residual not taken"
_NEEDED = {"log_target", "log_draft", "total_variation"}


def _explains(context: Context) -> Finding | None:
    """The output is then of the law min(p, q) + TV p, of which a share m / (m + TV) was accepted, m = min(1, q/p)."""
    columns = context.trace.columns
    wrong = min(output_tests(context.trace), key=lambda test: test.p, default=None)
    if wrong is None or not wrong.refuted or not set(columns) >= _NEEDED:
        return None
    kept = np.exp(np.minimum(0.0, np.asarray(columns["log_draft"] - columns["log_target"], np.float64)))
    lost = np.asarray(columns["total_variation"], np.float64)
    given = np.divide(kept, kept + lost, out=np.ones_like(kept), where=kept + lost > 0)
    likely = float(np.log(np.maximum(kept + lost, 1e-300)).sum())
    after = context.judge(_products(given, context.counting.k), context.counting)
    if likely <= 0 or after.refuted:
        return None
    said = (
        "rejected drafts are replaced by samples of the target instead of the residual: the texts are then "
        f"exp({likely:.1f}) times as probable, and the counts fit (p = {after.p:.2g})"
    )
    return Finding(NAME, said, "token", {**after.as_dict(), "log_likelihood_ratio": likely}, after.closeness)


def _products(accepted: np.ndarray, k: int) -> np.ndarray:
    """P(tau >= i) at each position; what reaches past the end of the texts is 0."""
    padded = np.concatenate([accepted, np.zeros(k)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, k)[: len(accepted)]
    return np.asarray(windows.cumprod(axis=1))


RESIDUAL = Cause(NAME, "rejected drafts are replaced by samples of the target", _explains, of_output=True)
