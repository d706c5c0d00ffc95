"""Settings of sampling that were measured, beside each other."""

from __future__ import annotations

from collections.abc import Mapping

from spectheory.cost import LatencyTable
from spectheory.deployment.candidates import in_words
from spectheory.prediction import plan
from spectheory.reports.table import Column, Table
from spectheory.trace import Trace


def settings_table(measured: Mapping[str, tuple[Trace, LatencyTable]]) -> Table:
    """The best chain of token verification for each setting, by name."""
    rows = [
        {
            "name": name,
            "best": plan(trace, table, rules="token", trees=False).best,
            "entropy": float(trace.columns["target_entropy"].mean()),
            "c": table.ratio,
        }
        for name, (trace, table) in measured.items()
    ]
    columns = [
        Column("sampling", kind="names", at="name"),
        Column("acceptance", at="best.acceptance", meaning="mean over positions of a call's first draft"),
        Column("entropy", at="entropy", aside=True, meaning="mean entropy of the target, nats"),
        Column("c", meaning="time of a draft step over that of a target step"),
        Column("best k", kind="names", at=lambda row: in_words(row["best"].shape)),
        Column("tokens per call", at="best.tokens_per_call"),
        Column("speed-up", "x", at="best.speedup"),
    ]
    return Table.of("The best chain of token verification, by sampling", columns, rows)
