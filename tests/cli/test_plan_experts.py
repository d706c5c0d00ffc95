"""``spectheory plan`` for a mixture of experts: what verifying reads, a routing log, whole experts on devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cost import ModelShape, Routing
from tests.docs.costs_of_targets import FACTS

MIXTURE = FACTS["Qwen3-30B-A3B"]["config"]
DRAFT = {"num_hidden_layers": 28, "hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16}
DRAFT |= {"num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": True}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    for name, config in (("target", MIXTURE), ("draft", DRAFT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    sizes = ["--target-architecture", str(tmp_path / "target"), "--draft-architecture", str(tmp_path / "draft")]
    return ["plan", "builtin:", "--hardware", "H100-SXM", *sizes, "--rule", "token", "--k-max", "3", "--nodes-max", "1"]


def answered(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_what_verifying_reads_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*arguments, "--batch", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    answer = answered([*arguments, "--batch", "1"], capsys)
    reading, model = answer["reading"], ModelShape.from_config(MIXTURE)
    tokens = answer["nodes"] + 1
    high = model.pass_bytes(tokens).high / model.pass_bytes(1).best
    assert reading["ratio"] == {"low": 1.0, "best": (1 + high) / 2, "high": high, "kind": "bound"}
    assert f"Verifying {tokens} tokens reads 1.0 to {high:.1f} times the weights of one token (experts)" in lines
    assert "So speculation may lose: measure --experts, plan --routing say by how much" in lines
    assert (reading["experts"], reading["chosen"], reading["layers"], reading["logged"]) == (128, 8, 48, False)


def test_a_log_narrows_the_range(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All tokens alike: verifying reads what one token does, and the range is that of a dense target."""
    routes = np.tile(np.arange(8), (60, 48, 1))
    Routing([routes], 128).write(tmp_path / "routing.npz")
    bounds, counted = (
        answered([*arguments, "--batch", "1", *log], capsys)
        for log in ([], ["--routing", str(tmp_path / "routing.npz")])
    )
    assert counted["reading"]["ratio"] == {"low": 1.0, "best": 1.0, "high": 1.0, "kind": "exact"}
    assert counted["reading"]["logged"]
    widths = [one["speedup"]["high"] / one["speedup"]["low"] for one in (bounds, counted)]
    assert widths[1] < widths[0]
    assert counted["speedup"]["best"] > bounds["speedup"]["best"]


def test_a_state_is_said(arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of Qwen3-Next 36 layers have 32 states of 128 by 128 in 32 bits, and three tokens of 8192 in 16."""
    (tmp_path / "target" / "config.json").write_text(json.dumps(FACTS["Qwen3-Next-80B-A3B"]["config"]))
    assert main([*arguments, "--devices", "2", "--all"]) == 0
    state = 36 * (4 * 32 * 128 * 128 + 2 * 3 * 8192)
    assert f"Verification writes a state of {state / 1e6:.3g} MB per token" in capsys.readouterr().out.replace(
        "\n", " "
    )


def test_whole_experts_on_devices(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parts, whole = (
        answered([*arguments, "--batch", "32", "--devices", "4", *option], capsys)["batches"]["choices"][0]
        for option in ([], ["--expert-parallel"])
    )
    assert whole["tokens_per_second"] < parts["tokens_per_second"], "the busiest device decides"


def test_a_dense_target_says_nothing_of_experts(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The control."""
    (tmp_path / "target" / "config.json").write_text(json.dumps(FACTS["Qwen3-8B"]["config"]))
    assert answered(arguments, capsys).get("reading") is None
    assert main(arguments) == 0
    assert "experts" not in capsys.readouterr().out
