"""JSON Schemas of what the commands write, made from the types of the answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from spectheory.answers import (
    counts,
    doctor,
    judged,
    measured,
    plan,
    prediction,
    simulated,
    theory,
)
from spectheory.answers.base import Part
from spectheory.errors import SettingError

__all__ = ["json_schema", "schema_names"]

_ANSWERS: dict[str, tuple[type[Part], str]] = {
    "acceptance": (theory.AcceptanceJson, "predict, from an acceptance rate alone"),
    "bench": (measured.BenchJson, "bench"),
    "bounds": (theory.BoundsJson, "bounds"),
    "calls": (counts.CallsJson, "first line of calls.jsonl"),
    "claims": (simulated.ClaimsJson, "verify --claim"),
    "budgets": (plan.BudgetsJson, "plan --steps"),
    "comparison": (judged.DifferenceJson, "compare"),
    "counters": (counts.CountersJson, "counters"),
    "doctor": (doctor.DoctorJson, "doctor"),
    "elsewhere": (prediction.ElsewhereJson, "predict --drafting"),
    "engines": (judged.EnginesJson, "validate --engine"),
    "export": (plan.ExportJson, "plan --export"),
    "figure": (simulated.FigureJson, "data of a figure"),
    "figures": (simulated.FiguresJson, "figures"),
    "gate": (judged.GateJson, "gate"),
    "import": (counts.ImportJson, "import"),
    "judgement": (judged.JudgementJson, "judge"),
    "kinds": (simulated.KindsJson, "simulate list"),
    "latency": (measured.LatencyJson, "measure"),
    "ledger": (simulated.LedgerJson, "verify"),
    "logs": (counts.LogsJson, "predict and plan, of the counts of several logs"),
    "needs": (theory.NeedsJson, "bounds, before there is a draft"),
    "noise": (judged.NoiseJson, "noise"),
    "plan": (plan.PlanJson, "plan"),
    "prediction": (prediction.PredictionJson, "predict"),
    "readings": (counts.ReadingsJson, "predict and plan, of counts"),
    "request": (counts.RequestJson, "further lines of calls.jsonl"),
    "rules": (theory.RulesJson, "rules"),
    "samples": (counts.SamplesJson, "samples"),
    "served": (plan.ServedJson, "plan --bench"),
    "simulation": (simulated.SimulationJson, "simulate"),
    "trace": (measured.TraceJson, "trace.parquet"),
    "training": (plan.TrainingJson, "plan of training steps"),
    "tree": (theory.TreeJson, "tree"),
    "validation": (judged.ValidationJson, "validate"),
    "watch": (judged.WatchJson, "watch, one a line"),
    "what_if": (prediction.WhatIfJson, "predict --what-if"),
    "why": (judged.WhyJson, "why"),
}
"""By its name: the type of an answer or file, and the title of its schema."""
_HEADLINE = {
    "headline": {"description": "the answer in one sentence", "type": "string"},
    "notes": {
        "description": "what must be known to trust the numbers, a sentence each",
        "type": "array",
        "items": {"type": "string"},
    },
}


def schema_names() -> tuple[str, ...]:
    """Names of the schemas, which :func:`json_schema` takes.

    Examples
    --------
    >>> {"prediction", "plan", "judgement"} <= set(schema_names())
    True
    """
    return tuple(_ANSWERS)


@cache
def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an answer or a file, with all that it refers to.

    Raises
    ------
    SettingError
        There is no schema of that name.

    Examples
    --------
    >>> json_schema("tree")["properties"]["schema"]["const"]
    1
    """
    if name not in schema_names():
        raise SettingError(
            f"schema {name!r} is unknown", limit=f"there are {', '.join(schema_names())}", remedy="use one of them"
        )
    answer, title = _ANSWERS[name]
    (top,), parts = msgspec.json.schema_components([answer], ref_template="#/$defs/{name}")
    for part in parts.values():
        part["description"] = part["description"].partition("\n")[0]
        del part["title"]
    whole = parts.pop(top["$ref"].rpartition("/")[2])
    number = (
        {} if answer.schema is None else {"schema": {"description": "version of this format", "const": answer.schema}}
    )
    words = _HEADLINE if answer.has_headline else {}
    return whole | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "properties": number | whole["properties"] | words,
        "required": [*number, *whole["required"], *words],
        "$defs": parts,
    }
