"""Validations that are refused, and the command."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spectheory.cli import main
from spectheory.drafting import Chain, KAry, Tree
from spectheory.errors import ModelError, SettingError, SpectheoryError, TextError, TraceError
from spectheory.measure import Model, ModelPair, measure
from spectheory.measure.validation import JUDGE, Validation, validate
from tests.validation.validation_cases import HOW, PROMPTS, WARM

KEPT = (("latency", "json"), ("rounds", "jsonl"), ("trace", "parquet"))


def test_a_torn_trace_says_what_to_do(tiny_pair: ModelPair, tmp_path: Path) -> None:
    torn = tmp_path / "trace.parquet"
    torn.write_bytes(b"PAR1 and no more")
    refused(lambda: measure(tiny_pair, PROMPTS, HOW, torn), TraceError, "is truncated.*remove the file")
    assert torn.read_bytes() == b"PAR1 and no more"


def refused(work: Callable[[], object], kind: type[SpectheoryError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        work()
    assert "\n" not in str(caught.value)


def test_what_cannot_be_run_is_refused_before_anything_runs(tiny_pair: ModelPair, tmp_path: Path) -> None:
    def asked(*rules: str, shape: Any = Chain(2), **how: Any) -> Validation:  # noqa: B008
        return Validation(rules, (shape,), (WARM,), dataclasses.replace(HOW, **how))

    refused(lambda: asked("best"), SettingError, "rule 'best' is unknown")
    refused(lambda: asked("block", shape=KAry((2, 2))), SettingError, "judges one chain")
    refused(lambda: asked(JUDGE, shape=KAry((2, 2))), SettingError, "judges one chain")
    refused(lambda: asked("recursive", shape=Tree.from_paths([(2,)])), SettingError, "ranks 1, 2")
    refused(lambda: asked("greedy"), SettingError, "temperature 0.8")
    refused(lambda: asked(given_text=True), SettingError, "given text")
    refused(lambda: Validation((), (Chain(1),), (math.nan,), HOW), SettingError, "temperature is nan")
    refused(lambda: Validation((), (Chain(1),), (0.7, 0.7 + 1e-9), HOW), SettingError, "two temperatures have the same")
    meta = torch.nn.Embedding(2, 2, device="meta")
    network = type("Elsewhere", (), {"get_input_embeddings": lambda self: meta, "dtype": torch.float32})()
    elsewhere = ModelPair(tiny_pair.target, Model("far", None, network, 64, 128, ""), tiny_pair.tokenizer, 64)
    cases: list[tuple[ModelPair, Any, Validation, type[SpectheoryError], str]] = [
        (elsewhere, PROMPTS, asked(JUDGE), ModelError, "target is on cpu and the draft on meta"),
        (tiny_pair, PROMPTS, asked("token", tokens=126), TextError, "3 tokens and 126 follow"),
        (tiny_pair, PROMPTS[:1], asked("token"), TextError, "there is 1 prompt"),
        (tiny_pair, (*PROMPTS, PROMPTS[0]), asked("token"), TextError, "two prompts are named '1'"),
        (tiny_pair, PROMPTS, asked("token", shape=Chain(127)), SettingError, "128 tokens.*126 nodes at most"),
    ]
    for pair, prompts, question, kind, words in cases:
        refused(lambda: validate(pair, prompts, question, tmp_path / "no"), kind, words)  # noqa: B023
    assert not (tmp_path / "no").exists()


# The command


@pytest.mark.usefixtures("quick_latencies")
def test_the_command(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "question.jsonl"
    rows = [{"question_id": p.id, "category": "", "turns": [p.text]} for p in PROMPTS]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    command = [
        *("validate", "--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"),
        *("--prompts", str(file), "--first", "3", "--tokens", "8", "--out", str(out)),
        *("--k", "1", "--temperature", "0", "--temperature", "1", "--rule", "token", "--rule", "lookup"),
    ]
    assert main([*command, "--all"]) == 0
    shown = capsys.readouterr().out
    assert "Counted and expected calls agree in all" in shown
    assert "overhead: a call outside the passes" in shown
    assert {path.name for path in out.iterdir()} == {
        *("validation.json", "validation.png", "validation.svg"),
        *(f"{what}-{at}.{kind}" for what, kind in KEPT for at in (0, 1)),
        *("calls-0", "calls-1"),
    }
    pair = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    for at, rule in ((0, "greedy"), (1, "token"), (1, "lookup")):
        log = out / f"calls-{at}" / f"{rule.replace('greedy', 'token')}-chain-k=1.jsonl"
        assert main(["judge", str(log), *pair]) == 0
        assert f"Counts fit rule {rule}: " in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    read = capsys.readouterr()
    content = json.loads(read.out)
    assert content == json.loads((out / "validation.json").read_text())
    assert "resumed: 3 of 3" in read.err
    assert str(tmp_path) not in json.dumps(content), "no path of the machine in the answer"
    monkeypatch.setattr("spectheory.measure.validation.answer.FALSE_ALARMS", 1e3)
    assert main(command) == 1
    assert "DISAGREE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rule", "best"], "rule 'best' is unknown"),
        (["--rule", "block", "--shape", "2x2"], "judges one chain of drafts"),
        (["--shape", "wide"], "shape 'wide' is unknown"),
        (["--k", "0"], "--k is 0"),
        (["--temperature", "-1"], "temperature is -1"),
        (["--first", "1"], "there is 1 prompt"),
        (["--first", "0"], "--first is 0"),
        (["--tokens", "250"], "the models take 256"),
        (["--rule", "greedy", "--temperature", "1"], "a greedy target has temperature 0"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", "--out", str(tmp_path / "out"), *arguments]) == 2
    err = capsys.readouterr().err
    assert message in " ".join(err.split())
    assert len([line for line in err.splitlines() if line.startswith("spectheory: ")]) == 1
