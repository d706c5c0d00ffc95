"""Write the trace that ships with the package: that of docs/figures/pair without the columns of trees and races."""

from __future__ import annotations

import shutil
from pathlib import Path

from spectheory.trace import Trace
from spectheory.trace.samples import PAIR

WHOLE = Path(__file__).parents[2] / "docs" / "figures" / "pair" / "distilled"
LEFT_OUT = ("race_rank", "rejection_rank", "distinct_rank", "uno_loss", "race_acceptance", "race_g")
"""Two thirds of the file, for rules that no serving engine runs."""


def main() -> None:
    """Write the trace, and its latencies beside it."""
    trace = Trace.read(WHOLE).held()
    columns = {name: column for name, column in trace.columns.items() if name not in LEFT_OUT}
    Trace(columns, trace.texts, trace.provenance).write(PAIR / "trace.parquet")
    shutil.copyfile(WHOLE / "latency.json", PAIR / "latency.json")


if __name__ == "__main__":
    main()
