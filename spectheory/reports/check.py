"""Counted against predicted calls of another decoder, at each k and of all together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import ndtri

from spectheory.intervals import CONFIDENCE
from spectheory.judging.comparison import CERTAIN
from spectheory.prediction.law import in_deviations
from spectheory.reports.table import Column, Table

Records = Sequence[Mapping[str, Any]]
"""For each k: tokens, calls counted and predicted, standard error of the difference and ``z`` in standard errors."""
POWER = 0.9
"""Probability with which a difference of the size that is stated is found."""


def of_all(records: Records) -> dict[str, Any]:
    """Sums over every k, whose texts are independent: variances add up.

    ``found`` is the share by which all calls must be off to be found with probability :data:`POWER` by a two-sided test
    with 5% false alarms (asymptotic, to first order): more calls, as drafts are accepted less often, and with the
    variance that calls then have. Fewer calls vary less, so they are found with no smaller probability.
    """
    made = {name: sum(record[name] for record in records) for name in ("tokens", "counted", "predicted")}
    variance = sum(record["standard_error"] ** 2 for record in records)
    error, slope = math.sqrt(variance), max(sum(r["variance_slope"] * r["predicted"] for r in records), 0.0)
    z = in_deviations(made["counted"] - made["predicted"], error, CERTAIN)
    reach, power = float(ndtri((1 + CONFIDENCE) / 2)) * error, float(ndtri(POWER))
    # Calls off by x have the variance v + s x, and x = reach + power * sqrt(v + s x).
    half = power**2 * slope / made["predicted"] / 2 if error else 0.0
    found = (reach + half + math.sqrt(half**2 + 2 * half * reach + power**2 * variance)) / made["predicted"]
    return {**made, "standard_error": error, "z": z if math.isfinite(z) else None, "found": found}


def check_table(records: Records) -> Table:
    """Predicted against counted target calls, and predicted against measured speed-up."""
    columns = [Column("k"), Column("tokens", meaning="tokens decoded"), Column("calls counted")]
    columns += [Column("predicted", digits=1, meaning="target calls that the trace predicts for these texts")]
    columns += [Column("diff / s.e.", signed=True), Column("measured", "x"), Column("loop without overhead", "x")]
    every = {**of_all(records), "k": "all", "measured_speedup": None, "predicted_speedup": None}
    rows = [
        [
            *(record[name] for name in ("k", "tokens", "counted")),
            float(record["predicted"]),
            _z(record),
            record["measured_speedup"],
            record["predicted_speedup"],
        ]
        for record in (*records, *([every] if len(records) > 1 else []))
    ]
    notes = [
        f"Calls that are {100 * every['found']:.1f}% more or fewer than predicted at every k would be found with "
        f"probability {POWER:.0%} or more (5% false alarms)."
    ]
    return Table("Against transformers' assisted generation (token verification)", columns, rows, notes)


def _z(record: Mapping[str, Any]) -> float:
    """The difference in standard errors; None in JSON is infinite, with the sign of the difference."""
    off = record["counted"] - record["predicted"]
    return math.copysign(math.inf, off) if record["z"] is None else float(record["z"])
