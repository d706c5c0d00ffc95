"""MTP modules in a model's own checkpoint: against transformers' MtpModel, which reads the same files by itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.cache_utils import MtpCache

from spectheory.errors import ModelError
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.heads.base import HiddenStates
from spectheory.measure.load import tokenizers_of
from spectheory.measure.model_files import quiet
from spectheory.pairs import PairSource
from tests.made_up import each
from tests.measure.native_made import CONFIGS, SIZES, named, save_native

SaveModel = Callable[..., Path]
TOKENS, CLOSE = 14, 2e-5
"""Of logits of order 1: some hundred products are summed in another order."""
IN_DOUBLE = {"deepseek_v3": 2e-6, "glm4_moe": 2e-6}
"""The same in double precision, where routers stay in single; 1e-12 without."""
OF_QWEN = [family for family in CONFIGS if family.startswith("qwen3")]
COUNTED = [family for family in CONFIGS if not family.startswith("qwen3")]
"""Families whose checkpoints may have several modules."""


@pytest.fixture(scope="module")
def saved(save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    root = tmp_path_factory.mktemp("native")
    return lambda family, modules=1, **fields: save_native(
        save_model, root / f"{family}{modules}{len(fields)}", family, modules, **fields
    )


def judge_of(pair: ModelPair, folder: Path, modules: int) -> Any:
    """The modules as transformers loads them. Its configurations of Qwen and MiMo do not count them, its patterns know
    published sizes alone, and it reads MiMo's under the names of DeepSeek.
    """
    from transformers.modeling_layers import MtpModel

    network = pair.target.network
    weights = load_file(folder / "model.safetensors")
    if mimo := [name for name in weights if name.startswith("model.mtp_layers.")]:
        renamed = {name: named("deepseek_v3", int(name.split(".")[2]), name.split(".", 3)[3]) for name in mimo}
        folder = folder.with_name(f"{folder.name}-renamed")
        folder.mkdir()
        save_file({renamed.get(name, name): weights[name] for name in weights}, folder / "model.safetensors")
    network.config.num_mtp_layers, network.config.name_or_path = modules, str(folder)
    network._keys_to_ignore_on_load_unexpected = [r"mtp", rf"model\.layers\.[{SIZES['num_hidden_layers']}-9]\."]
    if getattr(network.config, "layer_types", None):
        network.config.mtp_layer_types = ["full_attention"] * modules
    with quiet():
        return MtpModel.from_pretrained(network).eval()


@torch.no_grad()
def outputs_of(judge: Any, module: int, states: Tensor, tokens: Tensor, family: str) -> Tensor:
    """Outputs of one pass over whole rows, before the last norm, by transformers' parts: no cache, a causal mask."""
    layer, embedded = judge.layers[module], judge.embed_tokens(tokens)
    if family not in OF_QWEN:
        embedded[0] = 0
    both = [layer.enorm(embedded), layer.hnorm(states)]
    x = layer.eh_proj(torch.cat(both[::-1] if family == "qwen2" else both, dim=-1))[None]
    at = torch.arange(len(tokens))[None]
    seen = torch.full((len(tokens),) * 2, -torch.inf).triu(1)[None, None]
    return layer.mtp_block(x, attention_mask=seen, position_embeddings=judge.rotary_emb(x, at), position_ids=at)[0]


@torch.no_grad()
def by_definition(judge: Any, hidden: Tensor, text: Tensor, start: int, depth: int, family: str) -> Tensor:
    """Logits ``[depth, V]`` after pair `start`, everything computed anew for every draft.

    One module reads its own state and draft one place further; module m of several reads the rows of module m - 1.
    """
    several, states = len(judge.layers) > 1, hidden[: start + 1]
    normed, logits = family not in ("deepseek_v3", "glm4_moe"), []
    for i in range(depth):
        module = i if several else 0
        tokens = text[1 + i : start + 2 + i] if several else text[1 : start + 2 + i]
        output = outputs_of(judge, module, states, tokens, family)
        after = judge.layers[module].post_norm(output)
        logits.append(judge.shared_head(after[-1]))
        fed = after if normed else output
        states = fed if several else torch.cat([states, fed[-1:]])
    return torch.stack(logits)


def read_text(pair: ModelPair) -> tuple[Any, Tensor, Tensor]:
    """A reading of a text by the head, the normed hidden states, and the text."""
    head: Any = pair.draft.network
    text = torch.randint(1, 64, (TOKENS,), generator=torch.Generator().manual_seed(3))
    with HiddenStates(pair.target.network, head.layers) as states, torch.no_grad():
        pair.target.network(text[None])
        hidden = states.take()[0]
    reading = head.reading()
    reading.read(hidden[:-1], text[1:])
    return reading, head.fuse(hidden).detach(), text


@each("family", list(CONFIGS))
@each("modules", [1, 3])
def test_every_start_equals_the_definition(family: str, modules: int, saved: Callable[..., Path]) -> None:
    """One module applied again to depth 8, and several."""
    if family in OF_QWEN and modules > 1:
        return
    from transformers import PreTrainedConfig

    folder = saved(family, modules)
    pair = load_pair(folder, "mtp", device="cpu")
    judge, depth = judge_of(pair, folder, modules), 8 if modules == 1 else modules
    for network in (pair.target.network, pair.draft.network, judge):  # the rounding of single grows over 8 drafts
        network.double()
        for part in network.modules():
            if isinstance(getattr(part, "config", None), PreTrainedConfig):
                part.config._experts_implementation = "eager"  # others multiply in single precision alone
    close = IN_DOUBLE.get(family, 1e-12)
    reading, hidden, text = read_text(pair)
    starts = torch.arange(TOKENS - depth - 1)
    drafts = text[starts[:, None] + 2 + torch.arange(depth - 1)]
    ours = torch.stack(list(reading.depths(starts, drafts, depth)), dim=1)
    for start in starts.tolist():
        theirs = by_definition(judge, hidden, text, start, depth, family)
        assert float((ours[start] - theirs).abs().max()) < close, (family, start)
    assert float((ours[1:] - ours[:-1]).abs().max()) > 0.1, "control: the next start differs"


@torch.no_grad()
@each("family", ["deepseek_v3", "glm4_moe"])
def test_first_choices_of_several_modules_are_those_of_transformers(family: str, saved: Callable[..., Path]) -> None:
    """Its own forward pass and cache, after a text and after a longer one, with the fields that a remark names."""
    (remark,) = load_pair(saved(family, 2), "mtp", device="cpu").remarks
    assert '"mtp_fed_normed": true and "mtp_zero_first": false in config.json' in remark
    pair = load_pair(saved(family, 2, mtp_fed_normed=True, mtp_zero_first=False), "mtp", device="cpu")
    assert pair.remarks == ()
    judge = judge_of(pair, Path(pair.draft.source), 2)
    reading, hidden, text = read_text(pair)
    for last in (4, 9):
        at = torch.arange(1, last + 2)
        chosen, judged, _ = judge(
            text[None, at], hidden[None, : last + 1], None, at[None], MtpCache(config=judge.config)
        )
        place = torch.tensor([last])
        ours = torch.stack(list(reading.depths(place, chosen[:, :1], 2)), dim=1)
        assert float((ours - judged).abs().max()) < CLOSE * float(judged.std())
        assert ours[0].argmax(dim=-1).tolist() == chosen[0].tolist()


def refused(target: Path, draft: Any, **options: Any) -> str:
    with pytest.raises(ModelError) as caught:
        load_pair(target, draft, device="cpu", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_modules_of_another_folder(saved: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target without them, and the same ones as its own; a folder called mtp is one by its path."""
    folder, plain = saved("qwen3_5_text"), tmp_path / "mtp"
    own = load_pair(folder, "mtp", device="cpu")
    shutil.copytree(folder, plain)
    weights = {name: w for name, w in load_file(plain / "model.safetensors").items() if not name.startswith("mtp.")}
    save_file(weights, plain / "model.safetensors", metadata={"format": "pt"})
    assert "'mtp' has no MTP modules that are known here: weights are named mtp.fc " in refused(plain, "mtp")
    monkeypatch.chdir(tmp_path)
    for named_by in (PairSource("./mtp", f"mtp:{folder}"), PairSource(str(plain), f"mtp:{folder}").absolute()):
        pair = named_by.load("cpu")
        assert pair.draft.fingerprint == own.draft.fingerprint != pair.target.fingerprint
        assert pair.draft.describe()["kind"] == "mtp"
        assert pair.draft.source == str(folder)
    assert PairSource("./mtp", "mtp").absolute().draft == "mtp"
    assert PairSource("./mtp", "mtp:./mtp").absolute().draft == f"mtp:{plain}"
    assert tokenizers_of((folder, None), ("mtp", None))[2]
    whole = load_pair(plain, folder, device="cpu")
    assert whole.draft.head is None
    assert "the draft mtp (of the target) or mtp:FOLDER is the MTP layers alone" in whole.remarks[0]


def test_modules_of_mimo_beside_its_layers_as_qwen2(saved: Callable[..., Path], tmp_path: Path) -> None:
    """As transformers has no MiMo, the target has its layers under another name; the modules are read from its own."""
    folder = saved("qwen2", 2)
    mimo = shutil.copytree(folder, tmp_path / "mimo")
    raw = json.loads((mimo / "config.json").read_text())
    (mimo / "config.json").write_text(json.dumps(raw | {"model_type": "mimo", "auto_map": {"AutoConfig": "mimo.Mimo"}}))
    theirs, own = (load_pair(folder, draft, device="cpu").draft.network.weights() for draft in (f"mtp:{mimo}", "mtp"))
    assert theirs.keys() == own.keys()
    assert all(torch.equal(theirs[name], own[name]) for name in own)
    assert "needs its own code" in refused(mimo, "mtp")


def test_copies_of_the_targets_matrices_take_no_memory(saved: Callable[..., Path], tmp_path: Path) -> None:
    """Others are the head's own, the same for all of its modules."""
    folder = shutil.copytree(saved("glm4_moe", 2), tmp_path / "model")
    target, size = load_pair(folder, "mtp", device="cpu"), SIZES["vocab_size"] * SIZES["hidden_size"]
    outputs = target.target.network.get_output_embeddings().weight
    assert target.draft.network.lm_head.weight.data_ptr() == outputs.data_ptr()
    weights = load_file(folder / "model.safetensors")
    other = torch.randn_like(outputs)
    copies = [f"model.layers.{SIZES['num_hidden_layers'] + module}.shared_head.head.weight" for module in range(2)]
    save_file(
        weights | {copy: other.clone() for copy in copies}, folder / "model.safetensors", metadata={"format": "pt"}
    )
    own = load_pair(folder, "mtp", device="cpu").draft.network
    assert torch.equal(own.lm_head.weight, other)
    assert own.num_parameters() == target.draft.network.num_parameters() + size
    save_file(weights | {copies[1]: other}, folder / "model.safetensors", metadata={"format": "pt"})
    assert "MTP modules have different lm_head.weight: " in refused(folder, "mtp")


def test_modules_that_are_refused(saved: Callable[..., Path], tiny_folders: tuple[Path, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(saved("qwen3_next"), tmp_path / "model")
    weights, raw = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    assert "reads hidden states of" not in refused(tiny_folders[0], "mtp:./nowhere/at/all")
    assert "the draft is 'mtp:': after mtp: comes the folder of a checkpoint" in refused(folder, "mtp:")
    assert "revision 'v1' is given for the draft 'mtp'" in refused(folder, "mtp", draft_revision="v1")
    assert "has no MTP modules that are known here" in refused(*tiny_folders[:1], "mtp")
    for change, said in {
        "mtp.layers.1.mlp.gate.weight": "has unknown weights: mtp_layers.1.mlp.gate.weight",
        "mtp.new.weight": "has unknown weights: mtp_layers.0.new.weight",
        "mtp.layers.0.mlp.experts.4.up_proj.weight": "lacks weights: mtp_layers.0.mlp.experts.down_proj",
    }.items():
        save_file(weights | {change: weights["mtp.norm.weight"].clone()}, folder / "model.safetensors")
        assert said in refused(folder, "mtp"), change
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(raw | {"mtp_fed_normed": "yes"}))
    assert "mtp_fed_normed = 'yes': it must be true or false" in refused(folder, "mtp")
