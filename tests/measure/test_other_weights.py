"""Folders that hold more than a plain model, or another kind of head: never measured as what they are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spectheory.errors import ModelError
from spectheory.measure import load_pair
from tests.made_up import each

SaveModel = Callable[..., Path]


@pytest.fixture
def folder(save_model: SaveModel, tmp_path: Path) -> Path:
    """A plain model of two layers with its tokenizer."""
    return save_model(tmp_path / "model")


def edited(folder: Path, **entries: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def with_weights(folder: Path, *names: str) -> None:
    weights = load_file(folder / "model.safetensors") | {name: torch.ones(2, 2) for name in names}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def refused(target: Path, draft: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_pair(target, draft, device="cpu")
    assert "\n" not in str(caught.value)
    return str(caught.value)


LAYERS = {"target_layer_ids": [1, 3], "mask_token_id": 5}
HEADS: dict[str, dict[str, Any]] = {
    "DSpark of DeepSpec": {"architectures": ["Qwen3DSparkModel"], "markov_rank": 4, "block_size": 7, **LAYERS},
    "DSpark of SpecForge": {"architectures": ["DSparkDraftModel"], "dflash_config": {"projector_type": "dspark"}},
    "Domino": {"architectures": ["DFlashDraftModel"], "dflash_config": {"projector_type": "domino", **LAYERS}},
    "no architecture": {"architectures": None, "markov_rank": 4, **LAYERS},
    "EAGLE-3 by its vocabulary": {"draft_vocab_size": 32},
    "P-EAGLE": {"architectures": ["PEagleDraftModel"], "draft_vocab_size": 64},
    "Medusa": {"architectures": None, "medusa_num_heads": 4},
    "MLP speculator": {"architectures": ["MLPSpeculatorPreTrainedModel"]},
    "MTP layers alone": {"architectures": ["Qwen3NextMTP"]},
}
"""What config.json of a head has, beside what a plain model's has."""


@each("kind", list(HEADS))
def test_heads_with_a_tokenizer_are_no_plain_models(
    kind: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = save_model(tmp_path_factory.mktemp("head") / "head")
    assert load_pair(folder, folder, device="cpu").remarks == (), "without the fields it is a plain model"
    edited(folder, **HEADS[kind])
    for lack in (None, "tokenizer.json"):
        if lack:
            (folder / lack).unlink()
        said = refused(folder, folder)
        assert "is a head" in said
        assert "in another format" in said
        assert "tokenizer" not in said


def test_weights_that_the_model_does_not_have(folder: Path) -> None:
    with_weights(folder, "hidden_norm.weight", "score.bias")
    assert "loads with 2 unexpected keys (hidden_norm.weight): the weights must be those of the model" in refused(
        folder, folder
    )


@each("name", ["fc.weight", "midlayer.hidden_norm.weight", "d2t", "markov_head.markov_w1.weight"])
def test_heads_that_only_their_weights_give_away(
    name: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = save_model(tmp_path_factory.mktemp("head") / "head")
    with_weights(folder, name)
    (folder / "tokenizer.json").unlink()
    assert f"is a head (it has the weights {name!r})" in refused(folder, folder)


@each(
    "name",
    ["mtp.fc.weight", "model.mtp.layers.0.fc.weight", "model.mtp_layers.0.eh.weight", "model.layers.2.eh.weight"],
)
def test_models_with_mtp_layers_are_read_whole(
    name: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("models")
    plain, native = save_model(root / "plain", seed=1), save_model(root / "native", seed=2)
    with_weights(native, name)
    edited(native, num_nextn_predict_layers=1)
    assert load_pair(native, plain, device="cpu").remarks == ()
    pair = load_pair(plain, native, device="cpu")
    (remark,) = pair.remarks
    assert remark.startswith("'native' has MTP layers, and was read whole, as a draft model: ")
    assert "model.layers.1.mlp.up_proj.weight" in pair.draft.network.state_dict()


@each("layer", [1, 2, 3])
def test_other_layers_are_no_mtp_layers(
    layer: int, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Layer 2 of two is one where config.json says so; without that, it was cut off the model."""
    folder = save_model(tmp_path_factory.mktemp("models") / "model")
    with_weights(folder, f"model.layers.{layer}.eh.weight")
    assert f"unexpected keys (model.layers.{layer}.eh.weight)" in refused(folder, folder)
    edited(folder, num_nextn_predict_layers=1)
    if layer == 2:
        load_pair(folder, folder, device="cpu")
    else:
        refused(folder, folder)


def test_towers_of_other_inputs_are_left_out(folder: Path) -> None:
    with_weights(folder, "visual.blocks.0.weight", "vision_tower.patch.weight", "multi_modal_projector.weight")
    assert load_pair(folder, folder, device="cpu").remarks == ()


ADVICE: dict[str, tuple[dict[str, Any], str]] = {
    "EAGLE-3 with ids": (
        {"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4]}},
        """--algorithm eagle3 --verifier TARGET --algorithm-kwargs '{"eagle_aux_hidden_state_layer_ids": [2, 4, 5]}'""",
    ),
    "EAGLE-3 with ids beside": (
        {"architectures": ["Eagle3LlamaForCausalLM"], "eagle_aux_hidden_state_layer_ids": [2, 4, 5]},
        """--algorithm eagle3 --verifier TARGET --algorithm-kwargs '{"eagle_aux_hidden_state_layer_ids": [2, 4, 5]}'""",
    ),
    "EAGLE-3 of the usual layers": ({"draft_vocab_size": 32}, "--algorithm eagle3 --verifier TARGET"),
    "DFlash": (
        {"architectures": ["DFlashDraftModel"], "dflash_config": {"target_layer_ids": [-1, 9]}, "block_size": 16},
        """--algorithm dflash --verifier TARGET --algorithm-kwargs '{"aux_hidden_state_layer_ids": [0, 10]}'""",
    ),
    "DFlash without ids": ({"architectures": ["DFlashDraftModel"], "dflash_config": None}, ""),
    "strange eagle_config": ({"architectures": ["Eagle3"], "eagle_config": [1]}, ""),
    "DFlash with strange ids": ({"dflash_config": {"target_layer_ids": "all"}, "block_size": 16}, ""),
    "EAGLE-3 with strange ids": ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1.5]}}, ""),
    "EAGLE-3 of one state": ({"eagle_config": {"use_aux_hidden_state": False}}, ""),
    "EAGLE-1": ({"architectures": ["EagleLlamaForCausalLM"]}, ""),
    "P-EAGLE": (HEADS["P-EAGLE"], ""),
    "Domino": (HEADS["Domino"], ""),
    "DSpark": (HEADS["DSpark of DeepSpec"], ""),
    "Medusa": (HEADS["Medusa"], ""),
}
"""Fields of a head in another format, and the command that converts it; none where it takes no such format."""


@each("kind", list(ADVICE))
def test_how_a_head_is_converted(kind: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory) -> None:
    fields, command = ADVICE[kind]
    folder = save_model(tmp_path_factory.mktemp("head") / "head")
    edited(folder, **fields)
    said = refused(folder, folder)
    if command:
        assert "; convert it first: speculators convert HEAD " in said.replace(str(folder), "HEAD")
        assert said.endswith(command)
    else:
        assert "speculators convert" not in said
        assert "use a head in the format of speculators" in said
