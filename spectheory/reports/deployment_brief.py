"""What a plan shows first: what to run, the best settings in 80 columns, and which engines run it."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.deployment import Candidate
from spectheory.deployment.candidates import DO_NOT, SPECULATE, UNCERTAIN
from spectheory.deployment.whole import Deployment
from spectheory.prediction.over_prompts import few_prompts
from spectheory.reports.base import Brief
from spectheory.reports.brief import LONGEST_NAME, MOST_ROWS, narrowed, point, range_words, short, verdict
from spectheory.reports.recorded import heavy, kept
from spectheory.reports.table import Cell, Column, Row, Table, Value

VERDICTS = {
    SPECULATE: "Speculate",
    UNCERTAIN: "May not pay",
    DO_NOT: "Do not speculate; best",
}
LETTERS = 13
"""Of a draft's name."""


def deployment_brief(answer: Deployment, asked: Sequence[Table]) -> Brief:
    """The verdict, the best settings, the tables that were `asked` for, and where to find settings to paste."""
    best = answer.ranking.best.prediction
    notes = [*heavy(answer.recorded, best), *_engines(answer), *few_prompts(answer.prompts)]
    return Brief(
        [*_verdict(answer), *verdict(kept(best.provenance, answer.recorded))],
        [narrowed(_table(answer)), *map(narrowed, asked)],
        notes,
    )


def _verdict(answer: Deployment) -> list[str]:
    best, needs = answer.ranking.best, answer.break_even
    said, gain = VERDICTS[best.verdict], point(best.speedup, "x")
    known = f"{range_words(best.speedup, 'x') or gain} over plain decoding"
    if best.verdict == DO_NOT:
        most = needs.draft_ratio_needed
        cheaper = "" if most is None else f" or a draft pass of {most:.2f} target steps"
        known = (
            f"Pays with {needs.tokens_per_call_needed:.2f} tokens per call (now {needs.tokens_per_call:.2f}){cheaper}"
        )
    elif answer.ranking.runner_up is not None and not answer.ranking.told_apart:
        known += "; the next setting's interval overlaps"
    else:
        known += f"; {point(best.prediction.tokens_per_call)} tokens per target call"
    return verdict(f"{said}: {_named(best, answer)}: speed-up {gain}", known)


def _named(candidate: Candidate, answer: Deployment) -> str:
    """Rule and shape without a tree's depth, with the draft if there are several."""
    rule, shape = candidate.prediction.rule, candidate.shape.partition(", depth")[0]
    if _several(answer):
        return f"{short(candidate.draft.name, LETTERS)}, {short(rule.name)}, {shape}"
    return f"{short(rule.label, LONGEST_NAME + LETTERS)}, {shape}"


def _several(answer: Deployment) -> bool:
    """Whether several draft models are compared."""
    return len({c.draft.name for c in answer.ranking.candidates if c.prediction.rule.uses_draft}) > 1


def _table(answer: Deployment) -> Table:
    """The fastest settings; the draft is named if there are several."""
    several, best = _several(answer), answer.ranking.best
    columns = [
        *([Column("draft", kind="words")] if several else []),
        Column("rule", kind="words"),
        Column("shape", kind="words"),
        Column("tokens per call", aside=True),
        Column("speed-up", "x"),
    ]
    rows: list[Row] = []
    for each in answer.ranking.candidates[:MOST_ROWS]:
        named = [*([short(each.draft.name, LETTERS)] if several else []), short(each.prediction.rule.name), each.shape]
        values: list[Value] = [*named, each.prediction.tokens_per_call, each.speedup]
        rows.append([Cell(value, best=each is best) for value in values])
    return Table("The fastest settings over plain decoding", columns, rows)


def _engines(answer: Deployment) -> list[str]:
    """Whether an engine runs the best rule, and that settings for engines are in the whole answer."""
    if not answer.engines:
        return []
    rule = answer.ranking.best.prediction.rule.name
    fastest = max(answer.engines, key=lambda each: each.candidate.speedup.best)
    runs = fastest.candidate.prediction.rule.name
    names = list(dict.fromkeys(each.engine for each in answer.engines))
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    absent = (
        []
        if rule in {each.candidate.prediction.rule.name for each in answer.engines}
        else [f"No engine here runs {short(rule)} verification; {fastest.engine} runs {short(runs)}."]
    )
    return [*absent, f"Settings to paste into {listed}: --all."]
