"""The built-in pair: what is shipped, and its split."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.training.corpus import SourceFile, standard_library
from spectheory.measure import load_pair
from spectheory.pairs import HEADS, MODELS, PREFIX, PROMPTS, resolve
from spectheory.prompts import read_prompts

MEGABYTE = 1 << 20


def facts(name: str) -> dict[str, object]:
    content: dict[str, object] = json.loads((Path(resolve(PREFIX + name)) / "training.json").read_text())
    return content


def test_weights_fit_and_have_the_stated_shapes() -> None:
    weights = [Path(resolve(PREFIX + name)) / "model.safetensors" for name in (*MODELS, *HEADS)]
    assert sum(path.stat().st_size for path in weights) <= 17 * MEGABYTE
    pairs = {name: load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + name)) for name in ("draft", "distilled")}
    target = pairs["draft"].target.network
    assert 3e6 <= target.num_parameters() <= 8e6
    assert 12 <= target.config.num_hidden_layers <= 16
    assert pairs["draft"].vocabulary == len(pairs["draft"].tokenizer) == 512
    for name, pair in pairs.items():
        draft = pair.draft.network
        assert 8 * draft.num_parameters() <= target.num_parameters()
        assert draft.config.num_hidden_layers <= 2
        assert draft.num_parameters() == facts(name)["parameters"]


def test_target_reaches_its_loss() -> None:
    """The loss that the recipe recorded for the shipped weights, in nats per token."""
    assert facts("target")["held_out_loss_nats_per_token"] <= 2.2  # type: ignore[operator]


def test_the_split_is_by_path_and_prompts_come_from_the_held_out_part() -> None:
    assert SourceFile("x/a.py", "one").held_out == SourceFile("x/a.py", "two").held_out
    files = standard_library()
    share = sum(file.held_out for file in files) / len(files)
    assert 0.02 <= share <= 0.09
    rows = [json.loads(line) for line in PROMPTS.read_text().splitlines()]
    assert len(rows) >= 32
    assert all(SourceFile(row["source"], "").held_out for row in rows)
    assert len({row["source"] for row in rows}) == len(rows), "one prompt a file"
    assert len(read_prompts(PROMPTS)) == len(rows)
