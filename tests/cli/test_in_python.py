"""The same question asked of a function gives what the command writes, field by field: bounds, rules, tree, predict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spectheory
from spectheory.cost import ConstantRatio
from spectheory.prediction import FromAcceptance, from_acceptance
from spectheory.prediction.bounds_answer import EarlyAnswer
from spectheory.reports import Report, bounds_report, prediction_report, rules_report, tree_report
from spectheory.reports.bounds import acceptance_report, early_report
from spectheory.trace import Trace
from tests.cli.theory_cases import Ask, P, Q, ask, full_trace
from tests.made_up import each

__all__ = ["ask"]

SHOW: dict[str, Callable[[Any], Report]] = {
    "bounds": lambda answer: early_report(answer) if isinstance(answer, EarlyAnswer) else bounds_report(answer),
    "rules": rules_report,
    "tree": tree_report,
    "predict": lambda answer: (acceptance_report if isinstance(answer, FromAcceptance) else prediction_report)(answer),
}
LOGPROBS = [[-0.5, -1.0, -2.0], [-0.25, -1.5]]
K3 = ["--rule", "token", "--k-max", "3"]
TOKEN = {"rules": ["token"], "k_max": 3}
SHAPES = {"shapes": ["2x1", "tree"], "k_max": 2}
CHEAP = ConstantRatio(0.1)
RANKS = [0.6, 0.3]


@each(
    "command, options, asked",
    [
        ("bounds", ["--mu", "1.7", "--mu2", "5"], {"mu": 1.7, "mu2": 5.0}),
        ("bounds", ["--target-pmf", "0.5,0.3,0.2", "--nodes", "4"], {"target_pmf": P, "nodes": 4}),
        ("bounds", ["--rank-pmf", "0.6,0.3", "--nodes", "8", "--nodes", "2"], {"rank_pmf": RANKS, "nodes": [2, 8]}),
        ("bounds", ["--target-nats", "1.9", "--draft-nats", "2.1"], {"target_nats": 1.9, "draft_nats": 2.1}),
        ("bounds", ["--need", "2", "--c", "0.1", "--k", "4"], {"need": 2.0, "c": 0.1, "k": [4]}),
        ("bounds", ["TRACE", "--nodes", "8", "--chains", "4"], {"nodes": [8], "chains": [4]}),
        ("bounds", ["--target-logprobs", "LOGPROBS", "--nodes", "2"], {"target_logprobs": LOGPROBS, "nodes": [2]}),
        ("predict", ["--acceptance", "0.8", "--c", "0.05", "--k-max", "4"], {"acceptance": 0.8, "c": 0.05, "k_max": 4}),
        ("predict", ["--acceptance", "0.5", "--counted-k", "3"], {"acceptance": 0.5, "counted_k": 3}),
        ("rules", ["--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5"], {"target_pmf": P, "draft_pmf": Q}),
        ("rules", ["TRACE", "--candidates", "2"], {"candidates": 2}),
        ("rules", ["TRACE", "--rule", "race", "--rule", "token"], {"rules": ["race", "token"]}),
        ("tree", ["--rank-pmf", "0.6,0.3", "--nodes", "6"], {"rank_pmf": RANKS, "nodes": 6}),
        ("tree", ["TRACE", "--nodes", "4"], {"nodes": 4}),
        ("tree", ["TRACE", "--rule", "race", "--max-depth", "2"], {"rule": "race", "max_depth": 2}),
        ("predict", ["TRACE", *K3, "--stop", "token<0.4"], {**TOKEN, "stops": ["token<0.4"]}),
        ("predict", ["TRACE", *K3, "--bias", "0", "--bias", "0.5"], {**TOKEN, "bias": [0.0, 0.5]}),
        ("predict", ["TRACE", *K3, "--prefill-token"], {**TOKEN, "prefill_emits_token": True}),
        ("predict", ["TRACE", *K3, "--new-prompts", "5"], {**TOKEN, "new_prompts": 5}),
        ("predict", ["TRACE", *K3, "--stop", "best", "--c", "0.1"], {**TOKEN, "stops": ["best"], "cost": CHEAP}),
        ("predict", ["TRACE", "--shape", "2x1", "--shape", "tree", "--k-max", "2"], SHAPES),
    ],
)
def test_python_answers_what_the_command_answers(
    command: str, options: list[str], asked: dict[str, Any], ask: Ask, tmp_path: Path
) -> None:
    given = {"TRACE": tmp_path / "trace.parquet", "LOGPROBS": tmp_path / "texts.jsonl"}
    full_trace(given["TRACE"], texts=16)
    given["LOGPROBS"].write_text("\n".join(json.dumps({"target": text}) for text in LOGPROBS))
    shown = ask(command, *(given.get(word, word) for word in options))
    function = (
        from_acceptance if "acceptance" in asked else getattr(spectheory, {"predict": "plan"}.get(command, command))
    )
    answer = function(Trace.read(given["TRACE"]), **asked) if "TRACE" in options else function(**asked)
    assert shown == json.loads(json.dumps(SHOW[command](answer).as_dict()))
