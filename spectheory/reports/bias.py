"""The table of the bias trade-off: tokens per call and speed-up against the bias of over-acceptance (Y6)."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.prediction.bias_tradeoff import BiasPoint
from spectheory.reports.table import Column, Table

SHARE = "how far acceptance is raised, b = (1 - share) min(1, p/q) + share; 0 is lossless, 1 outputs the draft"


def bias_table(points: Sequence[BiasPoint]) -> Table:
    """Tokens per call against the bias, a row per share; both sides where they differ."""
    cut = any(point.upper_tokens_per_call for point in points)
    columns = [Column("share", meaning=SHARE), Column("tokens per call"), *([Column("upper estimate")] if cut else [])]
    rows = [
        [
            f"{point.rule.share:g}",
            point.tokens_per_call,
            *([point.upper_tokens_per_call] if cut else []),
            point.speedup,
            *(interval and interval.best for interval in (point.bias, point.uno_bias)),
        ]
        for point in points
    ]
    return Table(
        f"Token verification with over-acceptance, calls from lossless starts, chains of k = {points[0].k}",
        [*columns, Column("speed-up"), Column("bias per token", digits=4), Column("UNO's bias", digits=4)],
        rows,
        _bias_notes(cut),
    )


def _bias_notes(cut: bool) -> list[str]:
    """What the columns of the bias table mean."""
    sides = (
        "The target's tokens are cut (temperature 0, or a filter), or the trace does not say. After a draft that the "
        "target cannot output, tokens per call and speed-up count what the share alone accepts: a lower estimate. The "
        "upper estimate counts every draft. Noise may swap the two where they are close."
    )
    return [
        f"share: {SHARE}.",
        "The starts and prefixes of a biased decoder drift; these calls start where lossless ones do.",
        *([sides] if cut else []),
        "bias: total variation per token with the best recovery (Y6), and with recovery from the target (UNO).",
    ]
