"""A measured folder, and what the tests of `plan` share."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cost import LatencyTable
from spectheory.intervals import Interval
from spectheory.trace import TextInfo, Trace
from tests.made_up import race_g

SIZES = (1, 2, 4, 8, 16, 32, 33)

CONFIG = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
}


def measured(folder: Path, *, spread: float = 0.5, draft: float = 0.1, temperature: float = 1.0) -> Path:
    """A folder as ``spectheory measure`` leaves it."""
    rng = np.random.default_rng(0)
    rows = 200
    log_target = -rng.exponential(1.0, rows)
    log_draft = np.minimum(0, log_target + rng.normal(0, spread, rows))
    accepted = np.minimum(1, np.exp(log_draft - log_target))
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g(rng, log_target, log_draft),
        "rejection_rank": np.stack([accepted * (1 - accepted) ** r for r in range(8)], axis=1),
        "draft_rank": rng.geometric(0.6, rows),
        "greedy_agreement": accepted > 0.8,
        "target_entropy": np.full(rows, 1.0),
        "target_second_moment": np.full(rows, 2.0),
    }
    provenance = {
        "target": {"name": "large", "fingerprint": "f"},
        "draft": {"name": folder.name},
        "settings": {"sampling": {"temperature": temperature, "top_k": None, "top_p": None}},
        "origin": "sampled from the target",
    }
    Trace(columns, tuple(TextInfo(str(i), 50) for i in range(4)), provenance).write(folder / "trace.parquet")
    latencies(folder / "latency.json", draft)
    return folder


def latencies(path: Path, draft: float = 0.1, **hardware: str) -> None:
    exact = Interval.exact
    LatencyTable(
        {m: exact(1 + 0.02 * m) for m in SIZES},
        {m: exact(draft * (1 + 0.01 * m)) for m in SIZES},
        64,
        {"hardware": hardware},
    ).write(path)


def asked(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main(["plan", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))
