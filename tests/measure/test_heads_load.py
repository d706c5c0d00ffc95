"""Loading heads: beside their target, and one clear line for everything that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from spectheory.errors import ModelError
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.heads.load import load_head
from tests.made_up import each
from tests.measure.heads_made import DRAFTED, LAYERS, WIDTH, V, config_of, made_head, made_text, save_head

PRUNED = config_of("eagle3", draft_vocab_size=DRAFTED)
OWN = ("embed_tokens.weight", "lm_head.weight")


def first_logits(head: Any) -> torch.Tensor:
    reading = head.reading()
    hidden, text = made_text(head, 9)
    reading.read(hidden, text[1:])
    return torch.stack(list(reading.depths(torch.tensor([0, 4]), torch.tensor([[1], [2]]), 2)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_head(tmp_path / "head", made_head(PRUNED), PRUNED)


def changed(folder: Path, **fields: Any) -> None:
    """Change fields of config.json; None removes one, and ``block`` changes those of its layers."""
    raw = json.loads((folder / "config.json").read_text())
    raw["transformer_layer_config"].update(fields.pop("block", {}))
    raw.update(fields)
    (folder / "config.json").write_text(json.dumps({name: value for name, value in raw.items() if value is not None}))


def retensored(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def refused(folder: Path, pair: ModelPair) -> str:
    with pytest.raises(ModelError) as caught:
        load_head(folder, pair.target)
    message = str(caught.value)
    assert "\n" not in message
    assert message.count(";") >= 1
    return message


def test_a_pair_with_a_head(tiny_folders: tuple[Path, Path], folder: Path) -> None:
    pair = load_pair(tiny_folders[0], folder, device="cpu")
    assert pair.vocabulary == V
    assert pair.window == 128
    assert pair.draft.head is not None
    assert pair.remarks == ()
    facts = pair.describe()["draft"]
    assert facts["kind"] == "eagle3"
    assert facts["layers"] == [2, 0, 1]
    assert (facts["trained"], facts["parallel"], facts["name"]) == (4, False, "head")
    assert facts["parameters"] == sum(p.numel() for p in made_head(PRUNED).parameters())
    assert str(folder.parent) not in json.dumps(pair.describe())
    assert torch.equal(first_logits(pair.draft.network), first_logits(made_head(PRUNED)))


@each("pruned", [True, False])
def test_what_the_checkpoint_lacks_is_the_targets(pruned: bool, tiny_pair: ModelPair, tmp_path: Path) -> None:
    raw = PRUNED if pruned else config_of("eagle3")
    made = made_head(raw)
    model = load_head(save_head(tmp_path / f"head{pruned}", made, raw, without=(*OWN, "t2d")), tiny_pair.target)
    network = tiny_pair.target.network
    embeddings = network.get_input_embeddings().weight.detach()
    outputs = embeddings if made.t2d is None else embeddings[made.t2d]  # the tiny target's outputs are its embeddings
    with torch.no_grad():
        made.embed_tokens.weight.copy_(embeddings)
        made.lm_head.weight.copy_(outputs)
    assert torch.equal(first_logits(model.network), first_logits(made))
    assert model.network.embed_tokens.weight.data_ptr() == embeddings.data_ptr()  # shared, not copied
    assert model.network.num_parameters() == made.num_parameters() - (V + made.config.drafted) * WIDTH


def test_precision_is_the_targets(tiny_folders: tuple[Path, Path], folder: Path) -> None:
    pair = load_pair(tiny_folders[0], folder, dtype="bfloat16", device="cpu")
    assert pair.draft.dtype == "bfloat16"
    assert pair.draft.network.rotary.inv_freq.dtype == torch.float32  # positions are not rounded
    exact, rounded = first_logits(made_head(PRUNED)), first_logits(pair.draft.network).float()
    finite = exact.isfinite()
    assert torch.equal(rounded.isfinite(), finite)
    assert 1e-4 < float((rounded - exact)[finite].abs().max()) < 0.1 * float(exact[finite].std())


def test_layers_that_the_file_does_not_name(save_model: Callable[..., Path], tmp_path: Path) -> None:
    """As the package has it: 2, half of the layers, and three from the end."""
    raw = config_of("eagle3")
    del raw["eagle_aux_hidden_state_layer_ids"]
    folder = save_head(tmp_path / "head", made_head(config_of("eagle3")), raw)
    target = load_pair(save_model(tmp_path / "target"), tmp_path / "target", device="cpu").target
    target.network.model.layers.extend([target.network.model.layers[0]] * 8)  # ten of them
    assert load_head(folder, target).network.layers == (2, 5, 7)


def test_final_norm_of_mtp(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """It reads what engines serve: the last hidden state after the target's final norm."""
    raw = config_of("mtp")
    head: Any = load_head(save_head(tmp_path / "mtp", made_head(raw), raw), tiny_pair.target).network
    ids = torch.tensor([[1, 2, 3]])
    states = tiny_pair.target.network(ids, output_hidden_states=True).hidden_states
    assert head.layers == (LAYERS,)
    seen = list[torch.Tensor]()
    hook = tiny_pair.target.network.model.norm.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    tiny_pair.target.network(ids)
    hook.remove()
    assert torch.equal(head.fuse(seen[0]), states[-1])
    assert not any("norm" in name for name, _ in head.named_parameters() if "blocks" not in name)


def test_remarks(tiny_folders: tuple[Path, Path], folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())["speculators_config"]
    config["verifier"]["name_or_path"] = "meta/Llama"
    changed(folder, speculators_version="0.11.2", speculators_config=config, new_option=False, dtype="float32")
    changed(folder, norm_before_residual=None)
    first, disputed, second = load_pair(tiny_folders[0], folder, device="cpu").remarks
    assert "saved by speculators 0.11.2; its format is known here up to 0.9" in first
    assert "leaves out norm_before_residual: it is false here as in speculators, true in vLLM" in disputed
    assert second == "the head 'head' names 'meta/Llama' as its target, and drafts for 'target' here"


CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown kind": ({"speculators_model_type": "medusa"}, "kind 'medusa': there are eagle3, "),
    "kind in a list": ({"speculators_model_type": ["eagle3"]}, "kind ['eagle3']: there are eagle3, "),
    "layers without end": (
        {"block": {"num_hidden_layers": 10**9}},
        "num_hidden_layers = 1000000000: a model has 1 to 1024",
    ),
    "newer version": ({"speculators_version": "1.0.0", "gates": 3}, "speculators_version 1.0.0 and the field 'gates'"),
    "family": ({"block": {"model_type": "gpt2"}}, "layers of the family 'gpt2'"),
    "hidden size": ({"block": {"hidden_size": 48}}, "reads hidden states of 48 numbers: 'target' has 32"),
    "target's hidden size": ({"target_hidden_size": 64}, "reads hidden states of 64 numbers"),
    "vocabulary": ({"block": {"vocab_size": 100}}, "is for 100 token ids: 'target' has 64"),
    "more drafted ids": ({"draft_vocab_size": 65}, "draft_vocab_size = 65"),
    "no drafted ids": ({"draft_vocab_size": 0}, "draft_vocab_size = 0"),
    "layers beyond": ({"eagle_aux_hidden_state_layer_ids": [0, 1, 3]}, "reads layers [0, 1, 3]: 'target' has 2"),
    "layer twice": ({"eagle_aux_hidden_state_layer_ids": [0, 1, 1]}, "reads layers [0, 1, 1]"),
    "negative layer": ({"eagle_aux_hidden_state_layer_ids": [-1, 1, 2]}, "reads layers [-1, 1, 2]"),
    "layers in words": ({"eagle_aux_hidden_state_layer_ids": "012"}, "eagle_aux_hidden_state_layer_ids = '012'"),
    "fewer layers": ({"eagle_aux_hidden_state_layer_ids": [0, 1]}, "fc.weight of shape [32, 96]"),
    "flag in words": ({"norm_output": "yes"}, "norm_output = 'yes': it must be true or false"),
    "both norms": ({"norm_before_fc": True, "fc_norm": True}, "norm_before_fc and fc_norm"),
    "no layer config": ({"transformer_layer_config": []}, "transformer_layer_config"),
    "no heads": ({"block": {"num_attention_heads": 0}}, "num_attention_heads = 0"),
    "key heads": ({"block": {"num_key_value_heads": 3}}, "of 4 and 3: the second must divide the first"),
    "activation": ({"block": {"hidden_act": "nothing"}}, "config.json of"),
    "size in words": ({"block": {"hidden_size": "wide"}}, "config.json of"),
    "no speculators_config": ({"speculators_config": "none"}, "no proposal_methods"),
    "no drafts": ({"speculators_config": {}}, "no proposal_methods"),
    "number of methods": ({"speculators_config": {"proposal_methods": 5}}, "no proposal_methods"),
    "strange drafts": (
        {"speculators_config": {"proposal_methods": [{"speculative_tokens": "many"}]}},
        "speculative_tokens = 'many'",
    ),
    "sliding windows": (
        {"block": {"layer_types": ["sliding_attention"], "use_sliding_window": True, "sliding_window": 8}},
        "sliding windows",
    ),
    "sliding windows of no size": ({"block": {"layer_types": ["sliding_attention"]}}, "sliding_window = None"),
    "partial rotation": (
        {"block": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}},
        "partial_rotary_factor",
    ),
    "missing weights": ({"norm_before_fc": True}, "lacks weights: input_norm.weight"),
    "unknown weights": ({"block": {"model_type": "llama"}}, "has unknown weights: layers.0.self_attn.k_norm.weight"),
}


@each("case", list(CONFIGS))
def test_configurations_that_are_refused(
    case: str, tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = save_head(tmp_path_factory.mktemp("head"), made_head(PRUNED), PRUNED)
    fields, said = CONFIGS[case]
    if "transformer_layer_config" in fields:
        raw = {**PRUNED, **fields}
        (folder / "config.json").write_text(json.dumps(raw))
    else:
        changed(folder, **fields)
    assert said in refused(folder, tiny_pair)


@each(
    "case",
    [
        ({"num_nextn_predict_layers": 2}, "lacks weights: mtp_layers.1.final_layernorm.weight"),
        ({"num_nextn_predict_layers": 0}, "num_nextn_predict_layers = 0: a head has 1 to 64 modules"),
        ({"num_nextn_predict_layers": 10**9}, "num_nextn_predict_layers = 1000000000: a head has 1 to 64 modules"),
        ({"mtp_zero_first": 1}, "mtp_zero_first = 1: it must be true or false"),
        ({"block": {"model_type": "llama"}}, "layers of qwen2 or qwen3 or qwen3_next"),
    ],
)
def test_mtp_heads_that_are_refused(
    case: tuple[dict[str, Any], str], tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = config_of("mtp")
    folder = save_head(tmp_path_factory.mktemp("head"), made_head(raw), raw)
    fields, said = case
    changed(folder, **fields)
    assert said in refused(folder, tiny_pair)


TENSORS: dict[str, tuple[Callable[[dict[str, torch.Tensor]], Any], str]] = {
    "no d2t": (lambda t: t.pop("d2t"), "has no d2t"),
    "short d2t": (lambda t: t.update(d2t=t["d2t"][:-1].clone()), f"d2t of shape [{DRAFTED - 1}]"),
    "d2t beyond": (lambda t: t["d2t"].__setitem__(-1, V), "maps its ids to"),
    "d2t below": (lambda t: t["d2t"].__setitem__(0, -1), "maps its ids to -1"),
    "d2t of ids": (lambda t: t["d2t"].add_(torch.arange(DRAFTED)), "maps its ids to"),
    "fractions in d2t": (lambda t: t.update(d2t=t["d2t"] + 0.5), "and torch.float32"),
    "quantised weights": (
        lambda t: t.update({"fc.weight": t["fc.weight"].to(torch.int8)}),
        "has fc.weight in torch.int8: weights must be floating-point numbers",
    ),
    "id twice": (lambda t: t["d2t"].__setitem__(1, t["d2t"][0] - 1), "different ids"),
    "other t2d": (lambda t: t["t2d"].logical_not_(), "a t2d that differs from its d2t"),
    "short t2d": (lambda t: t.update(t2d=t["t2d"][1:].clone()), "a t2d that differs from its d2t"),
    "no fusion": (lambda t: (t.pop("fc.weight"), t.pop("norm.weight")), "lacks weights: fc.weight, norm.weight"),
    "short rows": (lambda t: t.update({"lm_head.weight": t["lm_head.weight"][1:].clone()}), "lm_head.weight of shape"),
}


@each("case", list(TENSORS))
def test_tensors_that_are_refused(case: str, tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = save_head(tmp_path_factory.mktemp("head"), made_head(PRUNED), PRUNED)
    change, said = TENSORS[case]
    retensored(folder, change)
    assert said in refused(folder, tiny_pair)


def test_damaged_files(folder: Path, tiny_pair: ModelPair) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-50])
    assert "weights of" in refused(folder, tiny_pair)
    (folder / "config.json").write_text("{")
    assert "config.json of" in refused(folder, tiny_pair)
    (folder / "config.json").write_text("[" * 100_000)
    assert "config.json of" in refused(folder, tiny_pair)
    weights.unlink()
    assert "lacks weights" in refused(folder, tiny_pair)


def test_blocks_without_end(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Refused by its number: a text would fill the memory with mask tokens."""
    raw = config_of("dflash")
    folder = save_head(tmp_path / "head", made_head(raw), raw)
    assert load_head(folder, tiny_pair.target).network.deepest == 7
    for size in (10**9, 10**300, 1026):
        changed(folder, block_size=size)
        assert ": a block has an anchor and 1 to 1024 drafts; " in refused(folder, tiny_pair)


def test_sizes_that_no_weight_has_take_no_memory(folder: Path, tiny_pair: ModelPair) -> None:
    """The network is made after its sizes are compared with the checkpoint's."""
    changed(folder, block={"num_attention_heads": 10**9})
    assert "layers.0.self_attn.o_proj.weight of shape [32, 32]" in refused(folder, tiny_pair)


def test_a_head_is_no_target(tiny_folders: tuple[Path, Path], folder: Path) -> None:
    with pytest.raises(ModelError, match="is a draft head: a head reads the hidden states of a target"):
        load_pair(folder, tiny_folders[1], device="cpu")


def test_a_revision_of_a_folder(tiny_folders: tuple[Path, Path], folder: Path) -> None:
    with pytest.raises(ModelError, match="revision 'v1' is given for the folder"):
        load_pair(tiny_folders[0], folder, device="cpu", draft_revision="v1")
