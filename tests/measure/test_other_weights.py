"""Folders that hold more than a plain model, or another kind of head: never measured as what they are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from spectheory.errors import ModelError
from spectheory.measure import load_pair
from spectheory.measure.model_files import quiet
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
    "DFlash": {"architectures": ["DFlashDraftModel"], "block_size": 7, "dflash_config": LAYERS},
    "EAGLE-1": {"architectures": ["EagleLlamaForCausalLM"]},
    "EAGLE-3": {"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {}},
    "DSpark of DeepSpec": {"architectures": ["Qwen3DSparkModel"], "markov_rank": 4, "block_size": 7, **LAYERS},
    "DSpark of SpecForge": {
        "architectures": ["DSparkDraftModel"],
        "block_size": 7,
        "dflash_config": {"projector_type": "dspark", "markov_rank": 4, **LAYERS},
    },
    "Domino": {
        "architectures": ["DFlashDraftModel"],
        "block_size": 7,
        "dflash_config": {"projector_type": "domino", "emb_dim": 4, "gru_hidden_dim": 4, **LAYERS},
    },
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
    root = tmp_path_factory.mktemp("head")
    folder, plain = save_model(root / "head"), save_model(root / "plain")
    assert load_pair(folder, folder, device="cpu").remarks == (), "without the fields it is a plain model"
    edited(folder, **HEADS[kind])
    for lack in (None, "tokenizer.json"):
        if lack:
            (folder / lack).unlink()
        for target in (folder, plain):
            said = refused(target, folder)
            assert any(words in said for words in ("is a head (", "is a draft head", "head 'head' ", "mask tokens"))
            assert "tokenizer" not in said


def test_weights_that_the_model_does_not_have(folder: Path) -> None:
    with_weights(folder, "hidden_norm.weight", "score.bias")
    assert "loads with 2 unexpected keys (hidden_norm.weight): the weights must be those of the model" in refused(
        folder, folder
    )


@each("name", ["fc.weight", "midlayer.other.weight", "d2t", "markov_head.markov_w1.weight"])
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


SMALL = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 16}
SMALL |= {"num_key_value_heads": 2, "intermediate_size": 64, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
FAMILIES: dict[str, dict[str, Any]] = {
    **{family: {} for family in ("llama", "qwen3", "gemma", "mistral", "phi", "gpt_neox", "bloom")},
    **{family: {"num_attention_heads": 4, "rotary_dim": 8} for family in ("gpt2", "gptj", "codegen")},
    "gpt_neo": {"num_layers": 2, "num_heads": 2, "attention_types": [[["global", "local"], 1]]},
    "mamba": {"state_size": 4},
}
"""Families of transformers, and what config.json of their small models has beside SMALL."""
TABLES = {
    "llama": "model.layers.0.self_attn.rotary_emb.inv_freq",
    "phi": "model.layers.0.self_attn.rotary_emb.cos_cached",
    "gpt_neox": "gpt_neox.layers.0.attention.masked_bias",
    "gpt2": "transformer.h.0.attn.masked_bias",
    "gptj": "transformer.h.0.attn.bias",
    "gpt_neo": "transformer.h.0.attn.attention.masked_bias",
    "codegen": "transformer.h.0.attn.causal_mask",
}
"""Tables that older versions saved beside the weights."""


@each("family", list(FAMILIES))
def test_right_models_open_without_a_remark(
    family: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = save_model(tmp_path_factory.mktemp("models") / "model")
    config = transformers.AutoConfig.for_model(family, **SMALL | FAMILIES[family])
    (folder / "model.safetensors").unlink()
    torch.manual_seed(0)
    with quiet():
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    assert load_pair(folder, folder, device="cpu").remarks == ()
    if family in TABLES:
        with_weights(folder, TABLES[family])
        assert load_pair(folder, folder, device="cpu").remarks == ()
        other = TABLES[family].rpartition(".")[0] + ".scale"
        with_weights(folder, other)
        assert f"loads with 1 unexpected keys ({other})" in refused(folder, folder)
