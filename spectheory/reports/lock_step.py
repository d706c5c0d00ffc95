"""Lock-step batches (§12) as a table, beside the continuous ones of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.deployment.lock_step import LockStepChoice
from spectheory.reports.table import Column, Row, Table

NOTE = (
    "B texts, drawn from the trace's with replacement, begin together; each leaves when it has ended, and the batch "
    "lasts until the slowest has. Speed-up over plain decoding of the same batches; in [ ] the calls of the slowest "
    "over the mean calls of a text."
)
FEW = "Batches of more than {} texts repeat texts of the trace: the slowest of that many different texts takes longer."

CHOICE = "best k, its speed-up, and in [ ] calls of the slowest text over the mean; so many cached tokens"


def lock_step_table(choices: Sequence[LockStepChoice], texts: int) -> Table:
    """Best k by batch and context; `texts` is how many the batches are drawn from."""
    contexts = list(dict.fromkeys(choice.context for choice in choices))
    at = {(choice.batch, choice.context): choice for choice in choices}
    rows: list[Row] = [
        [batch, *(_cell(at[batch, context]) for context in contexts)]
        for batch in dict.fromkeys(choice.batch for choice in choices)
    ]
    columns = [Column("batch"), *(Column(f"L = {context:.0f}", meaning=CHOICE) for context in contexts)]
    few = [FEW.format(texts)] if max(choice.batch for choice in choices) > texts else []
    return Table("The same in lock-step: best k, its speed-up, and waiting", columns, rows, [NOTE, *few])


def _cell(choice: LockStepChoice) -> str:
    return f"{choice.k}{f' ({choice.speedup:.2f}x)' if choice.k else ''} [{choice.waiting:.2f}]"
