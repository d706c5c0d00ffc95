"""``spectheory predict --where``: tables, JSON, figures, and where the strings of tokens come from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.pairs import resolve
from spectheory.trace import SAMPLED_TEXT, SOURCES, TextInfo, Trace
from spectheory.trace.samples import SAMPLES
from tests.commands import answer, refused

TEXTS, TOKENS = 8, 40


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    return written(tmp_path / "trace.parquet", resolve("builtin:target"))


def written(path: Path, target: str) -> Path:
    """A trace whose tokens are those of the built-in tokenizer."""
    rng = np.random.default_rng(4)
    rows = TEXTS * TOKENS
    log_target = -rng.exponential(1.0, rows)
    columns = {
        "log_target": log_target,
        "log_draft": np.minimum(0.0, log_target + rng.normal(0, 0.7, rows)),
        "token": rng.integers(1, 512, rows),
    }
    texts = tuple(TextInfo(f"{i}", TOKENS, prompt=f"p{i // 2}", prompt_tokens=30 + i) for i in range(TEXTS))
    known = {"origin": SAMPLED_TEXT, "tokenizer_size": 512, SOURCES: {"target": target}}
    Trace(columns, texts, known).write(path)
    return path


def test_tables_and_json_say_the_same(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(measured), "--where", "--k-max", "4", "--rule", "token", "--all"]) == 0
    out, _ = capsys.readouterr()
    content = answer(capsys, "predict", measured, "--where", "--k-max", "4", "--rule", "token")
    (losses,) = content["where"]
    for table in ("depth at the calls' own starts", "position where they start", "prompt included", "class of token"):
        assert table in out
    first = losses["depths"][-1]["survival"][0]
    assert f"{first['best']:.3f}" in out
    assert content["tokens_per_call"]["best"] == pytest.approx(TEXTS * TOKENS / losses["calls"])
    assert losses["named"].endswith("tokenizer.json")
    assert sum(group["calls"] for group in losses["classes"]) == pytest.approx(losses["lost"])
    assert losses["lost"] + losses["full"] + TEXTS == pytest.approx(losses["calls"])
    assert content["headline"].startswith("token verification, chain k=4:")


def test_token_verification_stands_beside_the_best(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(capsys, "predict", measured, "--where", "--k-max", "3")
    assert [each["rule"] for each in content["where"]] == ["token", "block"]


def test_files(measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(measured), "--where", "--k-max", "3", "--out", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"prediction.json", "where.png", "where.svg"}
    assert "one text with its lost calls in colour: --report FILE.html" in " ".join(capsys.readouterr().err.split())
    assert "where" in json.loads((tmp_path / "out" / "prediction.json").read_text())


def test_strings_of_a_named_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace whose models are gone has classes by frequency, unless --target names the tokenizer."""
    gone = written(tmp_path / "trace.parquet", "/nowhere/target")
    by_frequency = answer(capsys, "predict", gone, "--where", "--k-max", "2")
    assert by_frequency["where"][0]["named"] is None
    assert by_frequency["where"][0]["classes"][0]["name"] == "the 10 most frequent ids"
    assert "--target" in " ".join(by_frequency["notes"])
    named = answer(capsys, "predict", gone, "--where", "--k-max", "2", "--target", resolve("builtin:target"))
    assert "word start" in [group["name"] for group in named["where"][0]["classes"]]


def test_counts_have_no_starts(capsys: pytest.CaptureFixture[str]) -> None:
    counts = SAMPLES / "sglang_metrics.txt"
    assert "need a trace" in refused(["predict", counts, "--where"], capsys)
