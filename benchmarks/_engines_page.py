"""Write what engines did, `results/engines/*.json`, into docs/engines.md and docs/figures/engines.*; `make engines`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft
from spectheory.deployment.engines import engine_settings
from spectheory.plots.judgement import write_figure
from spectheory.reports.engines_page import engines_table, figure_rows
from spectheory.reports.render import markdown
from spectheory.trace import SAMPLED_TEXT, SOURCES, Trace

ROOT = Path(__file__).parents[1]
ANSWERS = ROOT / "benchmarks" / "results" / "engines"
PAGE = ROOT / "docs" / "engines.md"
FIGURE = ROOT / "docs" / "figures" / "engines"
ORDER = ("openvino", "onnxruntime", "vllm", "vllm-repaired", "llama.cpp")
DRAWN_K = 3
BEGIN, END = "<!-- written by benchmarks/_engines_page.py -->", "<!-- end -->"


def answers() -> list[dict[str, Any]]:
    """The saved answers in the page's order."""
    return [json.loads(file.read_text()) for name in ORDER if (file := ANSWERS / f"{name}.json").exists()]


def lines(temperature: float) -> str:
    """What `spectheory plan` prints for the engines that ran, for a pair whose draft is mostly right."""
    ran = {engine["engine"] for answer in answers() for engine in answer["engines"]}
    columns = {
        "log_target": np.full(60, -0.3),
        "log_draft": np.full(60, -0.4),
        "draft_rank": np.array([1, 1, 1, 2] * 15),
        "greedy_agreement": np.array([True, True, True, False] * 15),
    }
    settings = {"sampling": {"temperature": temperature}}
    models = {name: {"name": name.upper(), "dtype": "bfloat16"} for name in ("target", "draft")}
    sources = {SOURCES: {"target": "TARGET", "draft": "DRAFT"}}
    provenance = {**models, **sources, "settings": settings, "origin": SAMPLED_TEXT}
    plain = Trace.from_log_probabilities([(columns["log_target"], columns["log_draft"])] * 2)
    both = {name: np.tile(values, 2) for name, values in columns.items()}
    trace = Trace(both, plain.texts, provenance)
    found = engine_settings([Draft("DRAFT", trace, ConstantRatio(0.1))])
    blocks = [f"*{one.engine} {one.version}*\n\n```\n{one.paste.strip()}\n```" for one in found if one.engine in ran]
    return "\n\n".join(blocks)


def section() -> str:
    """What stands between the marks."""
    parts = [BEGIN, markdown(engines_table(answers()))]
    for temperature in (0.0, 1.0):
        parts += [f"### What `plan` prints at temperature {temperature:g}", lines(temperature)]
    return "\n\n".join([*parts, END])


def renewed(page: str) -> str:
    """The page with its section written again."""
    before, _, rest = page.partition(BEGIN)
    return before + section() + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
    write_figure(list(figure_rows(answers(), DRAWN_K)), FIGURE)
