"""Commands whose answers are held against the JSON Schemas: inputs are made once, every answer is small."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters
from tests.cli.plan_cases import CONFIG, measured
from tests.cli.simulate_cases import FEW, PAIR
from tests.cli.theory_cases import full_trace
from tests.judging.toy_engines import ToyEngine, read, toy_pair
from tests.toy_server import affine, sweep
from tests.trace.counter_cases import SAMPLES

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
LOG, SCRAPE = SAMPLES / "vllm_specdecoding_log_line.txt", SAMPLES / "llama_server_metrics.txt"
PMFS = ("--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5")
SIZES = "FOLDER/config.json"
ON_H100 = ("--hardware", "H100-SXM", "--target-architecture", SIZES, "--draft-architecture", SIZES)
REQUESTS = ("--prompt-tokens", 100, "--output-tokens", 50, "--tpot", 20, "--batch", 4)
CHANGES = ("--what-if", "draft-kl=-10%", "--what-if", "c=0..0.4", "--what-if", "prompts=5%")
STEPS = ("--trace", "step0=FOLDER/small", "--trace", "step9=FOLDER/small")
CLAIM = "from proofs_check import Claim, at_most\nONE = Claim('p_1 <= 1', lambda p, q: at_most(p[0], 1))\n"


@dataclass(frozen=True)
class Asked:
    """A command, the schema of its answer, and its exit status; ``FOLDER/…`` is in the folder of the inputs."""

    schema: str
    command: tuple[object, ...]
    status: int = 0

    def arguments(self, folder: Path) -> list[str]:
        """The words of the command line."""
        return [str(word).replace("FOLDER", str(folder)) for word in self.command]


ASKED = [
    Asked("acceptance", ("predict", "--acceptance", 0.8, "--c", 0.05, "--k-max", 3)),
    Asked("what_if", ("predict", "FOLDER/small", *CHANGES, "--c", 0.1, "--k-max", 2)),
    Asked("elsewhere", ("predict", "FOLDER/full", "--c", 0.1, "--drafting", "ahead:4", "--drafting", "parallel:2")),
    Asked("samples", ("samples",)),
    Asked("comparison", ("compare", "FOLDER/full", "FOLDER/full", "--k", 2)),
    Asked("gate", ("gate", LOG, "--expect", LOG)),
    Asked("noise", ("noise", "FOLDER/full", "--k", 2)),
    Asked("why", ("why", "--speedup", 1.05, "--acceptance", "85%", "--k", 3, "--c", 0.05)),
    Asked("why", ("why", LOG, "--speedup", 1.2, "--expect", LOG)),
    Asked("why", ("why", "--bench", "FOLDER/bench")),
    Asked("noise", ("noise", SCRAPE, "--calls", 100)),
    Asked("prediction", ("predict", "FOLDER/full", "--c", 0.1, "--k-max", 2, "--stop", "token<0.4")),
    Asked("prediction", ("predict", "FOLDER/full", "--k-max", 2, "--shape", "tree", "--rule", "race")),
    Asked("prediction", ("predict", "FOLDER/small", "--where", "--k-max", 2, "--rule", "token")),
    Asked("readings", ("predict", SCRAPE, "--c", 0.05)),
    Asked("logs", ("plan", "--trace", "long=FOLDER/counts.json", "--trace", f"short={SCRAPE}")),
    Asked("plan", ("plan", "FOLDER/small", "--k-max", 2, "--nodes-max", 2)),
    Asked("plan", ("plan", "FOLDER/full", "--c", 0.1, "--k-max", 2, "--nodes-max", 1, "--stop", "token<0.4")),
    Asked("plan", ("plan", "FOLDER/small", "--k-max", 2, "--nodes-max", 1, *ON_H100, *REQUESTS)),
    Asked("training", ("plan", *STEPS, "--c", 0.1, "--k-max", 2)),
    Asked("readings", ("plan", "FOLDER/counts.json", *ON_H100, *REQUESTS)),
    Asked("served", ("plan", "--bench", "FOLDER/bench")),
    Asked("served", ("plan", "--bench", "FOLDER/bench", "--tpot", 20)),
    Asked("served", ("plan", "FOLDER/small", "--bench", "FOLDER/bench", "--batch", 2)),
    Asked("budgets", ("plan", "FOLDER/full", "--steps", "FOLDER/steps.csv", "--k-max", 2, "--tpot", 40)),
    Asked("budgets", ("plan", "FOLDER/small", "--bench", "FOLDER/bench", "--budget")),
    Asked("export", ("plan", "FOLDER/small", "--k-max", 2, "--export", "vllm-rates")),
    Asked("bounds", ("bounds", "--mu", 1.7, "--mu2", 5, "--nodes", 2)),
    Asked("bounds", ("bounds", "--rank-pmf", "0.6,0.25,0.1", "--nodes", 2)),
    Asked("bounds", ("bounds", "--target-pmf", "0.5,0.3,0.2", "--nodes", 2)),
    Asked("bounds", ("bounds", "FOLDER/full", "--nodes", 2, "--nodes", 5000)),
    Asked("needs", ("bounds", "--target-nats", 1.9, "--draft-nats", 2.3, "--vocabulary", 50_000)),
    Asked("needs", ("bounds", "--need", 2, "--c", 0.1)),
    Asked("rules", ("rules", *PMFS)),
    Asked("rules", ("rules", "--target-pmf", "0.5,0.5", "--draft-pmf", "1,0")),
    Asked("rules", ("rules", "FOLDER/full")),
    Asked("tree", ("tree", "--rank-pmf", "0.6,0.25,0.1", "--nodes", 5)),
    Asked("tree", ("tree", "FOLDER/full", "--nodes", 5)),
    Asked("import", ("import", LOG, "--out", "FOLDER/counted")),
    Asked("import", ("import", "FOLDER/log.jsonl", "--out", "FOLDER/requests")),
    Asked("import", ("import", "FOLDER/full/trace.parquet", "--out", "FOLDER/again")),
    Asked("judgement", ("judge", "FOLDER/judged/calls.jsonl", "FOLDER/judged/trace.parquet")),
    Asked("ledger", ("verify", "C1", "--workers", 1)),
    Asked("claims", ("verify", "--claim", "FOLDER/claim.py")),
    Asked("simulation", ("simulate", "race", *PAIR, *FEW)),
    Asked("kinds", ("simulate", "list")),
    Asked("figures", ("figures", "race", "--redraw", "--out", "FOLDER/figures")),
    Asked("doctor", ("doctor",)),
]


def prepare(folder: Path) -> Path:
    """Write what the commands read."""
    full_trace(folder / "full" / "trace.parquet")
    measured(folder / "small")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "steps.csv").write_text("tokens,seconds,drafting\n1,0.01,0.001\n64,0.02,0.002\n")
    (folder / "bench").mkdir()
    sweep(
        folder / "bench",
        affine(8e-3, 2e-4, 2e-7, 4e-4, 6e-4, 2.5e-4, 2e-8),
        (0, 1, 3),
        survival=(0.8, 0.6, 0.4),
        output=33,
    )
    Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2).write(folder / "counts.json")
    requests = (Request("a", accepted=(2, 0), drafted=(2, 2)), Request("b", by_drafted={2: (1, 0, 1)}))
    CallLog(requests, engine="toy", version="1", k=2, temperature=0.0).write(folder / "log.jsonl")
    pair: Any = toy_pair(3)
    log = ToyEngine(pair).log(12)
    (folder / "judged").mkdir()
    log.write(folder / "judged" / "calls.jsonl")
    read(pair, log).write(folder / "judged" / "trace.parquet")
    (folder / "claim.py").write_text(CLAIM)
    (folder / "figures").mkdir()
    shutil.copy(FIGURES / "race.json", folder / "figures")
    return folder
