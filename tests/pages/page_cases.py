"""Made-up answers of every command that has a page, for tests of pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.pages import Coloured, Lines, Picture, write_page
from spectheory.pages.prediction import prediction_charts
from spectheory.pages.validation import validation_charts
from spectheory.prediction import Plan, plan
from spectheory.reports import Report, prediction_report, validation_report
from spectheory.trace import Trace
from spectheory.verification import BlockVerification, TokenVerification
from tests.cli.plan_cases import CONFIG, measured
from tests.judging.toy_engines import ToyEngine, read, toy_pair

SHAPES = [Chain(k) for k in range(1, 13)]
HOSTILE = '</script><script>document.title = "taken"</script><img src=x onerror="document.title = 1">'
"""A text that would run if it were not escaped."""
FIGURES = Path(__file__).parents[2] / "docs" / "figures"
VALIDATION: dict[str, Any] = json.loads((FIGURES / "validation/distilled/validation.json").read_text())
"""A finished validation."""


def made_up_trace(tokens: int = 60) -> Trace:
    """A trace of token and block verification: six texts of so many tokens."""
    rng = np.random.default_rng(5)
    texts = [(-rng.exponential(0.7, tokens), -rng.exponential(0.9, tokens)) for _ in range(6)]
    return Trace.from_log_probabilities(texts)


def planned(trace: Trace, c: float) -> Plan:
    return plan(trace, ConstantRatio(c), rules=[TokenVerification(), BlockVerification()], shapes=SHAPES)


def written(file: Path, c: float = 0.1) -> Report:
    """The page of an answer, with hostile texts wherever something that is not ours may stand."""
    answer = planned(made_up_trace(), c)
    report = prediction_report(answer)
    content = msgspec.structs.replace(report.content, provenance={"target": HOSTILE, "said": HOSTILE})
    hostile = Report(content, report.pieces, report.headline, [*report.notes, HOSTILE])
    image = file.with_suffix(".svg")
    image.write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='document.title = 2' width='9' height='9'/>")
    parts = [
        *prediction_charts(answer),
        Coloured("text", f"Text {HOSTILE}", [(HOSTILE, "rgb(0 0 0 / 0%)", HOSTILE), (" next", "red", "90%")]),
        Lines("causes", HOSTILE, [HOSTILE]),
        Picture(
            "picture", HOSTILE, image, f"# Title\n\n![{HOSTILE}](a.svg)\n\n{HOSTILE} and [a link](https://a.example)"
        ),
    ]
    write_page(hostile, file, title="Prediction", parts=parts)
    return hostile


def hardware(folder: Path) -> list[str]:
    """Arguments of ``plan`` for a measured folder and a roofline: batches and contexts are known."""
    measured(folder)
    large, small = folder / "large.json", folder / "small.json"
    large.write_text(json.dumps(CONFIG))
    small.write_text(json.dumps({**CONFIG, "num_hidden_layers": 4}))
    given = ["plan", str(folder), "--hardware", "H100-SXM", "--nodes-max", "1", "--k-max", "8"]
    return [*given, f"--target-architecture={large}", f"--draft-architecture={small}"]


def judged(folder: Path, rule: str = "argmax") -> list[str]:
    """Arguments of ``judge`` for an engine that runs a rule and is said to run token verification."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = toy_pair(3)
    log = ToyEngine(pair, rule).log(40)
    log.write(folder / "calls.jsonl")
    read(pair, log).write(folder / "trace.parquet")
    return ["judge", str(folder / "calls.jsonl"), str(folder / "trace.parquet"), "--rule", "token"]


def figures(folder: Path) -> list[str]:
    """Arguments of ``figures`` for two saved ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("batch", "entropy"):
        (folder / f"{name}.json").write_bytes((FIGURES / f"{name}.json").read_bytes())
    return ["figures", "batch", "entropy", "--redraw", "--out", str(folder)]


def page_of(name: str, folder: Path) -> Path:
    """The page of a command, with the charts that it has; but of ``validate`` it prints its answer as JSON."""
    file = folder / f"{name}.html"
    if name == "validate":
        write_page(validation_report(VALIDATION), file, title="Validation", parts=validation_charts(VALIDATION))
    else:
        given = {"plan": hardware, "judge": judged, "figures": figures}[name](folder / name)
        assert main([*given, "--json", "--report", str(file)]) == (name == "judge")
    return file
