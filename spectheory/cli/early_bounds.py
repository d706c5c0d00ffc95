"""``spectheory bounds`` before there is a draft: from entropies, a wanted speed-up, or the target's own scores."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from spectheory.cli.theory_options import BoundsOptions
from spectheory.cli.trace_bounds import NO_ENTROPIES, of_trace
from spectheory.deployment.needed import draft_needed
from spectheory.errors import SettingError
from spectheory.reports import BoundsAnswer
from spectheory.reports.bounds import DETERMINISTIC, EarlyAnswer
from spectheory.trace.importers.logprobs import read_target

ABOVE = {"draft_nats": "target_nats", "vocabulary": "target_nats", "c": "need", "k": "need"}
"""Options that say nothing without another."""


def check_idle(question: BoundsOptions) -> None:
    """Refuse options that say nothing where they stand."""
    for name, above in ABOVE.items():
        if getattr(question, name) is not None and getattr(question, above) is None:
            raise SettingError(
                f"--{name.replace('_', '-')} is given without --{above.replace('_', '-')}",
                limit="it has no meaning alone",
                remedy="give both",
            )


def of_entropies(question: BoundsOptions) -> EarlyAnswer:
    """What entropies say of acceptance, and what a speed-up needs."""
    if question.nodes is not None:
        raise SettingError(
            "--nodes is given with entropies or a speed-up",
            limit="these bounds are for single tokens and chains",
            remedy="give --mu with --mu2, or --target-logprobs",
        )
    _check_entropies(question)
    needed = []
    if question.need is not None:
        if question.c is None:
            raise SettingError(
                "--need is given without --c", limit="the speed-up depends on the cost of drafts", remedy="give --c"
            )
        needed = draft_needed(question.need, question.c, *([sorted(set(question.k))] if question.k else []))
    return EarlyAnswer(
        question.target_nats, question.draft_nats, question.vocabulary, question.need, question.c, needed
    )


def _check_entropies(question: BoundsOptions) -> None:
    target, draft = question.target_nats, question.draft_nats
    for name, value in (("--target-nats", target), ("--draft-nats", draft)):
        if value is not None and not 0 <= value < math.inf:
            raise SettingError(f"{name} is {value:g}", limit="must be >= 0 and finite", remedy="give a mean in nats")
    if target is not None and draft is not None and draft < target:
        raise SettingError(
            f"--draft-nats is {draft:g}, below --target-nats {target:g}",
            limit="on text sampled from the target no model has a lower mean cross-entropy than the target",
            remedy="score more text that the target sampled, or give both models' scores to predict --logprobs",
        )


def of_target_scores(path: Path, nodes: list[int]) -> BoundsAnswer:
    """B6 and numeric of text that the target sampled: the limit of every draft that does not sample, perfect or not."""
    trace = read_target(path)
    found = of_trace(trace, nodes)
    surprisal = -float(np.mean(trace.columns["log_target"]))
    kept = {key: found.tables[DETERMINISTIC][key] for key in ("text", "numeric")}
    rows = {capacity: {key: row[key] for key in kept} for capacity, row in found.rows.items()}
    notes = [note for note in found.notes if note != NO_ENTROPIES]
    facts = {**found.facts, "nats_per_token": surprisal}
    return replace(found, source="target", facts=facts, tables={DETERMINISTIC: kept}, rows=rows, notes=notes)
