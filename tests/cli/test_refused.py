"""Bad command lines: each line of refusals.txt is a command, and a part of the one line that refuses it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.cli.plan_cases import measured
from tests.cli.theory_cases import TABLE_P, full_trace
from tests.commands import refused
from tests.made_up import each

REFUSED = Path(__file__).with_name("refusals.txt").read_text(encoding="utf-8").splitlines()
MOE = {"model_type": "qwen3_moe", "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 64}
MOE |= {"num_attention_heads": 4, "vocab_size": 256, "num_experts": 8, "num_experts_per_tok": 2}
ARRAYS = {
    "table": TABLE_P,
    "two": TABLE_P[:2],
    "off": [[1.0, 0.0], [0.5, 0.0]],
    "cube": [[[1.0]]],
    "words": ["a"],
}
TEXTS = {
    "empty.txt": "",
    "words.txt": "0.5\nhalf\n",
    "ragged.txt": "0.5 0.5\n1.0\n",
    "bad.json": '[0.5, "0.5"]',
    "object.json": '{"pmf": [1]}',
    "torn.json": "[0.5, ",
    "nan.json": "[NaN, 1]",
    "log.jsonl": '{"target": [-1, -0.5], "draft": [-2, -0.1]}\n',
    "lengths.yaml": "model:\n  1: 1.7\n  2: .nan\n",
    "stated.json": '{"k": 1, "survival": [0.5], "tokens_per_call": 1.5, "kind": "exact"}',
    "nan.csv": "tokens,seconds\n1,nan\n",
    "steps.csv": "tokens,seconds\n1,0.01\n64,0.02\n",
    "moe.json": json.dumps(MOE),
    "torn.npz": "PK\x03\x04",
    "ROWS": "0.5 0.5\n0.5 0.5\n",
    "OTHER": "not results\n",
    "FOLDER/results.jsonl": "not results\n",
    "breaks.py": "1 / 0",
    "empty.py": "",
    "exits.py": "import sys\nsys.exit(0)",
    "number.py": "from proofs_check import Claim\nc = Claim('c', lambda p, q: p[0])",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command lines name: two traces, pmfs, results, claims; a folder stands where a file should."""
    folder = tmp_path_factory.mktemp("refused")
    full_trace(folder / "T")
    measured(folder / "MEASURED")
    for taken in ("FOLDER", "FOLDERS/results.jsonl", "taken/checks.jsonl"):
        (folder / taken).mkdir(parents=True)
    for name, values in ARRAYS.items():
        np.save(folder / f"{name}.npy", np.array(values))
    (folder / "torn.npy").write_bytes((folder / "table.npy").read_bytes()[:100])
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    return folder


@each("row", REFUSED)
def test_bad_command_lines_are_refused_in_one_line(
    row: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    command, _, message = row.partition(" -> ")
    assert message in refused(shlex.split(command), capsys)


def test_a_command_line_that_is_fine_is_seen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Negative control."""
    with pytest.raises(AssertionError):
        refused(["tree", "--rank-pmf", "0.5"], capsys)
