"""What a better draft, another c or more prompts would change: a sentence and a table for each change."""

from __future__ import annotations

import math
from typing import Any

from spectheory.answers.prediction import WhatIfJson
from spectheory.deployment.candidates import in_words
from spectheory.prediction import Prediction
from spectheory.prediction.what_if_answer import CostSweep, PromptsNeeded, WhatIf
from spectheory.reports.base import Brief, Report, point
from spectheory.reports.table import Column, Table

_PATHS = (
    "mixed: the draft is replaced by the target at a share s of the tokens. geometric: the logits of both models are "
    "averaged, with weight s on the target's. s is where the mean KL(p || q) has fallen by the share asked for."
)
_FOUND = (
    "KL: the mean of the positions' own, or of log p - log q along the texts where these are not recorded. Ranges "
    "(95%) are over prompts at that s. All rows have the same texts: their difference is surer than their ranges."
)
_CONSTANT = "A draft pass costs c target steps, a call's verification one; measured latencies do not enter."
_KNOWN_K = "Longer chains than the counted ones are not tried."
_SPREAD = (
    "Student's t, with the spread over prompts as it was measured. The range of the number is the 95% range of that "
    "spread for normal values. Speed-ups have the error of the latencies besides, which prompts do not narrow."
)


def what_if_report(answer: WhatIf, *, counted: bool = False) -> Report:
    """A sentence for each change, then the tables; `counted` says that chains are those of an engine's counts."""
    lines, tables, notes = list[str](), list[Table](), list[str]()
    if answer.drafts and answer.now is not None:
        lines.append(_better(answer, answer.now))
        tables.append(_drafts_table(answer, answer.now))
        notes += [_PATHS, _FOUND, *answer.remarks]
    if answer.costs is not None:
        lines += _pays(answer.costs)
        tables.append(_costs_table(answer.costs))
        notes += [_CONSTANT, *([_KNOWN_K] if counted else [])]
    if answer.prompts is not None:
        lines.append(_wider(answer.prompts))
        tables.append(_prompts_table(answer.prompts))
        notes.append(_SPREAD)
    content = WhatIfJson.view(answer)
    return Report(content, tables, "; ".join(lines), notes, Brief.of(lines, tables, notes))


# Better drafts


def _gain(setting: Prediction) -> str:
    return point(setting.speedup, "x") if setting.speedup else point(setting.tokens_per_call)


def _better(answer: WhatIf, now: Prediction) -> str:
    drafts = sorted(answer.drafts, key=lambda each: each.best.gain)
    reached = " to ".join(f"{_gain(each.best)} ({each.path})" for each in drafts)
    what = "speed-up" if now.speedup else "tokens per call"
    return f"A draft with {100 * (answer.changes.draft_kl or 0):g}% less KL: {what} {_gain(now)} -> {reached}"


def _drafts_table(answer: WhatIf, now: Prediction) -> Table:
    rows: list[dict[str, Any]] = [{"path": "as it is", "s": 0.0, "kl": answer.kl, "best": now}]
    rows += [vars(each) for each in answer.drafts]
    columns = [
        Column("draft", kind="names", at="path"),
        Column("s", digits=3, meaning="share of the path from the draft to the target"),
        Column("KL", digits=3, at="kl", meaning="mean KL(p || q), nats per token"),
        Column("best setting", kind="names", at=lambda row: f"{row['best'].rule.name}, {in_words(row['best'].shape)}"),
        Column("tokens per call", at="best.tokens_per_call"),
        *([Column("speed-up", "x", at="best.speedup")] if now.speedup else []),
    ]
    return Table.of("The best setting of a better draft", columns, rows)


# Costs


def _pays(costs: CostSweep) -> list[str]:
    if not costs.pays_below:
        return ["Pays at no c: no draft is accepted"]
    first, last = costs.rows[0], costs.rows[-1]
    sure = "Sure to pay" if first.tokens_per_call.kind == "bound" else "Pays"
    until = (
        "at every c: some drafts need no pass" if math.isinf(costs.pays_below) else f"up to c = {costs.pays_below:.3g}"
    )
    ends = (f"c = {row.c:g}: {in_words(row.shape)}, {point(row.speedup, 'x')}" for row in (first, last))
    return [f"{sure} {until}", f"Best at {'; at '.join(ends)}"]


def _costs_table(costs: CostSweep) -> Table:
    ruled = any(row.rule for row in costs.rows)
    columns = [
        Column(
            "c", kind="names", meaning="time of a draft pass over that of a target step", at=lambda row: f"{row.c:g}"
        ),
        *([Column("rule", kind="names")] if ruled else []),
        Column("shape", kind="names", at=lambda row: in_words(row.shape)),
        Column("tokens per call"),
        Column("speed-up", "x", at="speedup"),
    ]
    return Table.of("The fastest setting at each c", columns, costs.rows)


# Prompts


def _wider(answer: PromptsNeeded) -> str:
    low, high = (f"{end:.0f}" for end in (answer.needed.low, answer.needed.high))
    return (
        f"±{100 * answer.wanted:g}% of tokens per call needs about {answer.needed.best:.0f} prompts ({low} to {high}); "
        f"{answer.prompts} give ±{100 * answer.half_width:.2g}%"
    )


def _prompts_table(answer: PromptsNeeded) -> Table:
    columns = [
        Column("prompts", digits=0),
        Column("half-width", "%", digits=2, meaning="relative half-width of the 95% interval of tokens per call"),
    ]
    rows = [(answer.prompts, 100 * answer.half_width), (int(answer.needed.best), 100 * answer.wanted)]
    title = f"Prompts for {answer.rule} verification, {in_words(answer.shape)}"
    return Table(title, columns, rows)
