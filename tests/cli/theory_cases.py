"""What the tests of `rules`, `bounds` and `tree` share."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import console, main
from spectheory.trace import SAMPLED_TEXT, TextInfo, Trace
from tests.made_up import race_g

EXACT = 1e-11
"""Two float64 routes to one number of order one, thousands of operations each."""

P, Q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]

TABLE_P = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.05, 0.05, 0.9]]

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command with --json; nothing on stderr, one object on stdout without NaN or infinity."""

    def run(*arguments: object) -> dict[str, Any]:
        assert main([*map(str, arguments), "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} in JSON")

        return dict(json.loads(out, parse_constant=refuse))

    return run


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command on a terminal of a given width and return what it prints."""

    def run(*arguments: object, width: int = 80) -> str:
        monkeypatch.setattr(console.answers, "_width", width)
        assert main(list(map(str, arguments))) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


def full_trace(path: Path, *, texts: int = 6, tokens: int = 30, drop: tuple[str, ...] = (), **origin: Any) -> Trace:
    """A trace with every column the commands read, of made-up but consistent values; two texts a prompt."""
    rng = np.random.default_rng(3)
    rows = texts * tokens
    log_target = -rng.exponential(1.5, rows)
    log_draft = np.minimum(0.0, log_target + rng.normal(0.0, 0.8, rows))
    entropy = rng.exponential(1.5, rows)
    columns: dict[str, Any] = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g(rng, log_target, log_draft),
        "target_entropy": entropy,
        "target_second_moment": entropy**2 + rng.exponential(9.0, rows),
        "rejection_rank": rng.dirichlet([4.0, 2.0, *[1.0] * 7], rows)[:, :8],
        "race_rank": rng.dirichlet([4.0, 3.0, *[1.0] * 7], rows)[:, :8],
        "draft_rank": rng.geometric(0.5, rows),
        "greedy_agreement": rng.random(rows) < 0.7,
        "kl": rng.exponential(0.3, rows),
        "total_variation": rng.random(rows),
        "distinct_rank": rng.dirichlet([4.0, 3.0, *[1.0] * 3], rows)[:, :4],
    }
    kept = {name: column for name, column in columns.items() if name not in drop}
    infos = tuple(TextInfo(f"t{i}", tokens, prompt=f"p{i // 2}") for i in range(texts))
    trace = Trace(kept, infos, {"origin": SAMPLED_TEXT, **origin})
    trace.write(path)
    return trace


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "measured" / "trace.parquet"
    full_trace(path)
    return path


def text_of(values: list[float]) -> str:
    return ",".join(map(str, values))


def heaviest(rows: list[list[float]], nodes: int) -> float:
    """Weight of the heaviest prefixes where the pmf at depth d is rows[d]."""
    heap, total = [(-1.0, 0)], 0.0
    for taken in range(nodes + 1):
        weight, depth = heapq.heappop(heap)
        total += -weight if taken else 0.0
        for probability in rows[depth % len(rows)]:
            heapq.heappush(heap, (weight * probability, depth + 1))
    return total
