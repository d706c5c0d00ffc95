"""Position embeddings whose frequencies depend on the length of a text: log q must not depend on how it is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spectheory.errors import ModelError, TextError
from spectheory.measure import load_pair
from spectheory.measure.heads.load import load_head
from spectheory.measure.pair import Model
from spectheory.measure.reading import Reading
from spectheory.measure.tokens import check_window
from tests.made_up import each
from tests.measure.heads_made import config_of, made_head, save_head

HELD = 32
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [4.0] * 8, "rope_theta": 1e4}
LONG |= {"original_max_position_embeddings": HELD, "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4}
ROPES: dict[str, tuple[dict[str, Any], int]] = {"longrope": (LONG, 128), "dynamic": (DYNAMIC, HELD)}
"""The rope of a tiny model, and its window in config.json; in both the frequencies move beyond HELD tokens."""


def turned(folder: Path, rope: dict[str, Any], window: int) -> Path:
    path = folder / "config.json"
    content = json.loads(path.read_text()) | {"rope_parameters": rope, "max_position_embeddings": window}
    path.write_text(json.dumps(content))
    return folder


def logits(model: Model, tokens: int, piece: int) -> torch.Tensor:
    reading, text = Reading(model, model.outputs), torch.arange(tokens)[None] % 60
    return torch.cat([reading.read(part, keep=part.shape[1])[0] for part in text.split(piece, dim=1)])


@each("kind", list(ROPES))
def test_texts_are_held_where_frequencies_stand_still(
    kind: str, save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    rope, window = ROPES[kind]
    root = tmp_path_factory.mktemp("models")
    plain, folder = save_model(root / "plain"), turned(save_model(root / "model"), rope, window)
    assert load_pair(plain, plain, device="cpu").window == 128
    pair = load_pair(plain, folder, device="cpu")
    assert pair.window == HELD
    with pytest.raises(TextError, match=f"the models take {HELD}"):
        check_window("a", HELD, 1, pair.window)
    (remark,) = pair.remarks
    assert f"'model' turns positions by rope_type {kind!r}, whose frequencies move beyond {HELD} tokens" in remark
    whole = logits(pair.draft, HELD, HELD)
    assert torch.allclose(whole, logits(pair.draft, HELD, 5), atol=1e-4)
    beyond = logits(pair.draft, HELD + 8, HELD + 8)
    assert not torch.allclose(beyond, logits(pair.draft, HELD + 8, 5), atol=0.1), "negative control: one token more"


def test_a_rope_without_a_length(save_model: Callable[..., Path], tmp_path: Path) -> None:
    rope = LONG | {"original_max_position_embeddings": "long", "attention_factor": 1.0}
    folder = turned(save_model(tmp_path / "model"), rope, 128)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_pair(folder, folder, device="cpu")


@each("case", ["longrope", "dynamic", "yarn"])
def test_heads_with_moving_frequencies_are_refused(
    case: str, tiny_pair: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ropes = {"longrope": {**LONG, "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}, "dynamic": DYNAMIC}
    ropes["yarn"] = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": HELD}
    raw = config_of("eagle3", {"rope_parameters": ropes[case]})
    folder = save_head(tmp_path_factory.mktemp("head"), made_head(config_of("eagle3")), raw)
    if case == "yarn":
        assert load_head(folder, tiny_pair.target).window == 128, "its frequencies are fixed"
        return
    with pytest.raises(ModelError) as caught:
        load_head(folder, tiny_pair.target)
    assert f"rope_type {case!r}: its frequencies depend on the length of the text" in str(caught.value)
