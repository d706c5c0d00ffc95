"""Heads as their authors save them: logits at every start against a plain network; what is refused; remarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import Tensor

from spectheory.errors import ModelError
from spectheory.measure import ModelPair, load_pair, model_files
from spectheory.measure.heads.base import HiddenStates
from spectheory.measure.heads.load import FORMATS
from spectheory.measure.model_files import quiet
from tests.made_up import each
from tests.measure.head_cases import (
    CASES,
    DEPTH,
    IDS,
    LAYERS,
    LLAMA,
    OF_DFLASH,
    PAIRS,
    PICKLE,
    WIDE,
    Case,
    Plain,
    V,
    saved,
    tensors_of,
)

CLOSE = 1e-5
"""Of the spread of logits: the networks run in float32, what they are compared with in float64."""


@pytest.fixture(scope="module")
def target(save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of eight layers with grouped heads and an output matrix of its own."""
    folder = save_model(tmp_path_factory.mktemp("models") / "target")
    (folder / "model.safetensors").unlink()
    config = transformers.LlamaConfig(**LLAMA | WIDE | {"num_hidden_layers": LAYERS, "initializer_range": 0.3})
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config)
    with torch.no_grad(), quiet():
        for name, weight in model.named_parameters():
            weight.add_(0.3 * torch.randn_like(weight) if "norm" in name else 0)
        model.save_pretrained(folder)
    return folder


def logits_of(pair: ModelPair, text: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Logits ``[PAIRS, DEPTH, V]`` of the loaded head at every start, and the states that transformers returns."""
    network, head = pair.target.network, pair.draft.head
    assert head is not None
    with torch.no_grad(), HiddenStates(network, head.layers) as hidden:
        states = network(text[None], output_hidden_states=True).hidden_states
        read = hidden.take()[0, :PAIRS]
    reading = head.reading()
    reading.read(read[:4], text[1:5])
    reading.read(read[4:], text[5 : PAIRS + 1])
    pairs = torch.arange(PAIRS)
    drafted = torch.stack([text[p + 2 : p + 1 + DEPTH] for p in pairs])
    return torch.stack(list(reading.depths(pairs, drafted, DEPTH)), 1).double(), [each[0].double() for each in states]


def distance(case: Case, pair: ModelPair, plain: Plain, states: Sequence[int]) -> float:
    """The largest difference of logits at any start, in units of their spread; -inf must be at the same ids."""
    text = torch.randint(V, (PAIRS + DEPTH + 1,), generator=torch.Generator().manual_seed(3))
    ours, hidden = logits_of(pair, text)
    read = torch.cat([hidden[i] for i in states], -1)
    theirs = torch.stack([plain.drafts(read[: p + 1], text[: p + 1 + DEPTH]) for p in range(PAIRS)])
    finite = theirs.isfinite()
    assert torch.equal(ours.isfinite(), finite)
    return float((ours - theirs)[finite].abs().max() / theirs[finite].std())


@each("name", list(CASES))
def test_logits_at_every_start(name: str, target: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    case = CASES[name]
    tensors = tensors_of(case)
    pair = load_pair(target, saved(tmp_path_factory.mktemp("heads") / "head", case, tensors), device="cpu")
    head = pair.draft.head
    assert head is not None
    assert (head.kind, head.trained) == (case.kind, case.trained)
    assert head.layers == tuple(LAYERS if i < 0 else i for i in case.states)
    plain = Plain(case, tensors, pair.target.network)
    assert distance(case, pair, plain, case.states) < CLOSE
    wrong = [i - 1 if i else LAYERS for i in case.states]
    assert distance(case, pair, plain, wrong) > 100 * CLOSE, "negative control: layers counted by their inputs"


def test_remarks(target: Path, tmp_path: Path) -> None:
    """What the file leaves open, what nobody reads, and that a pickle was read."""
    case = CASES["EAGLE-3 of its authors"]
    head = saved(tmp_path / "head", case, tensors_of(case), modal_type="LLM", eagle_config={IDS: [1, 3, 4]})
    pickled, counted, unknown, trained = load_pair(target, head, device="cpu").remarks
    assert pickled == "weights of 'head' are pickled (.bin): tensors were read and no code was run"
    assert counted.startswith(
        "eagle_config of the head 'head' counts outputs of layers: hidden states [2, 4, 5] are read"
    )
    assert unknown == "config.json of the head 'head' has fields that are not known here: modal_type"
    assert trained == "config.json of the head 'head' does not say how many drafts it was trained for; 7 are assumed"


EAGLE, BLOCK, PARALLEL = "EAGLE-3 of ModelOpt", "DFlash of z-lab", "P-EAGLE of SpecForge"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "ids in words": (EAGLE, {"eagle_config": {IDS: "all"}}, "'all': it must be a list of whole numbers"),
    "no fields": (EAGLE, {"eagle_config": [1]}, "eagle_config = [1]: it must hold fields"),
    "ids beside that differ": (EAGLE, {IDS: [1, 3, 4]}, "counts hidden states and gives [1, 3, 4]; correct"),
    "ids beyond the target": (EAGLE, {"eagle_config": {IDS: [1, 3, 8]}}, "reads layers [2, 4, 9]: 'target' has 8"),
    "ids of a smaller head": (EAGLE, {"eagle_config": {IDS: [1, 3]}}, "fc.weight of shape [32, 96]"),
    "one hidden state": (EAGLE, {"eagle_config": {"use_aux_hidden_state": False}}, "use_aux_hidden_state = False: it "),
    "drafts in parallel": (EAGLE, {"eagle_config": {"parallel_draft_step": 4}}, "parallel_draft_step = 4: it makes"),
    "other ids": (EAGLE, {"eagle_config": {"layer_ids": [1, 2, 3]}}, "eagle_config.layer_ids = [1, 2, 3]: it makes"),
    "two meanings": (EAGLE, {"norm_output": False}, "in SpecForge it is the norm before the output matrix, in vLLM"),
    "latent attention": (EAGLE, {"model_type": "kimi_k2"}, "'kimi_k2': those of llama, qwen2, qwen3 are read"),
    "model type in a list": (EAGLE, {"model_type": ["llama"]}, "layers of the family ['llama']"),
    "drafts in words": ("EAGLE-3 of DeepSpec", {"ttt_length": "many"}, "'many' drafts of a call: it must be"),
    "moving frequencies": (EAGLE, {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope_type 'dynamic'"),
    "moving frequencies of EAGLE-1": (
        "EAGLE-1 with biases of queries",
        {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
        "rope_type 'dynamic'",
    ),
    "no mask token": (PARALLEL, {"mask_token_id": None}, "no mask_token_id: a P-EAGLE head drafts from mask tokens"),
    "mask token beyond": (PARALLEL, {"mask_token_id": 64}, "needs an id of the target's vocabulary"),
    "no layers": (BLOCK, {"dflash_config": {"mask_token_id": 5}}, "the dflash head names no layers"),
    "a block of its anchor": (BLOCK, {"block_size": 1}, "0 drafts of a call"),
    "a block without end": (BLOCK, {"block_size": 10**9}, "a block has an anchor and 1 to 1024 drafts"),
    "no block": (BLOCK, {"block_size": None}, "block_size = None: it must be a whole number"),
    "causal slots": (BLOCK, {"dflash_config": OF_DFLASH | {"causal": True}}, "causal = True: it makes"),
    "sinks": (BLOCK, {"dflash_config": OF_DFLASH | {"attention_sink_bias": True}}, "attention_sink_bias = True"),
    "windows of no size": (BLOCK, {"layer_types": ["sliding_attention"] * 2}, "sliding_window = None"),
    "windows within a block": (
        BLOCK,
        {"layer_types": ["sliding_attention"] * 2, "sliding_window": 4},
        "a sliding window of 4: a block has 5 slots, of which training and engines",
    ),
    "causal slots of some layers": (BLOCK, {"is_causal": True}, "causal = True: it makes another network"),
    "another network": (
        BLOCK,
        {"dflash_config": OF_DFLASH | {"projector_type": "none"}},
        "is a head (DFlashDraftModel)",
    ),
}


@each("name", list(REFUSED))
def test_configurations_that_are_refused(name: str, target: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    kind, changes, said = REFUSED[name]
    head = saved(tmp_path_factory.mktemp("heads") / "head", CASES[kind], tensors_of(CASES[kind]), **changes)
    with pytest.raises(ModelError) as caught:
        load_pair(target, head, device="cpu")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_usual_layers_of_a_small_target(tiny_folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Two of three would be one: the head then reads what config.json must say."""
    case = CASES["EAGLE-3 of its authors"]
    with pytest.raises(ModelError, match=r"names no layers of its target; the usual ones are \[2, 1, -1\]") as caught:
        load_pair(tiny_folders[0], saved(tmp_path / "head", case, tensors_of(case)), device="cpu")
    assert str(caught.value).endswith(f"write the ids of its training into config.json as {IDS}")


TENSORS: dict[str, tuple[str, Callable[[dict[str, Tensor]], Any], str]] = {
    "one more": (EAGLE, lambda t: t.update(extra=torch.ones(2)), "has unknown weights: extra"),
    "one less": (EAGLE, lambda t: t.pop("norm.weight"), "lacks weights: norm.weight"),
    "more of EAGLE-1": ("EAGLE-1 of its authors", lambda t: t.update({"layers.0.x": t["fc.bias"]}), "unknown weights"),
    "no d2t": (EAGLE, lambda t: t.pop("d2t"), "has no d2t"),
    "small numbers": (
        EAGLE,
        lambda t: t.update({"fc.weight": t["fc.weight"].to(torch.float8_e4m3fn)}),
        "has fc.weight in torch.float8_e4m3fn: weights must be floating-point numbers; quantised ones are not read",
    ),
    "a Markov head": (BLOCK, lambda t: t.update({"markov_head.markov_w1.weight": torch.ones(2, 2)}), "unknown weights"),
}


@each("name", list(TENSORS))
def test_tensors_that_are_refused(name: str, target: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    kind, change, said = TENSORS[name]
    tensors = tensors_of(CASES[kind])
    change(tensors)
    head = saved(tmp_path_factory.mktemp("heads") / "head", CASES[kind], tensors)
    with pytest.raises(ModelError) as caught:
        load_pair(target, head, device="cpu")
    assert said in str(caught.value)


class Harm:
    """What a pickle would run."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("harm"),)


@each("whole", [True, False])
def test_pickles_run_no_code(
    whole: bool, target: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of older versions of torch are read too."""
    folder, case = tmp_path_factory.mktemp("heads"), CASES["EAGLE-1 of its authors"]
    monkeypatch.chdir(folder)
    tensors = tensors_of(case)
    head = saved(folder / "head", case, tensors)
    torch.save(dict(tensors), head / PICKLE, _use_new_zipfile_serialization=whole)
    assert load_pair(target, head, device="cpu").draft.head is not None
    torch.save({**tensors, "harm": Harm()}, head / PICKLE, _use_new_zipfile_serialization=whole)
    with pytest.raises(ModelError, match=r"weights of .* cannot be loaded "):
        load_pair(target, head, device="cpu")
    assert not Path("harm").exists()


def test_weights_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that its weights alone give away is known before anything else is downloaded: one file of names."""
    case, asked = CASES["EAGLE-1 of its authors"], list[str]()
    tensors = tensors_of(case)
    folder = saved(tmp_path / "head", case, tensors)

    def download(source: str, name: str, revision: str | None = None) -> str:
        asked.append(name)
        if not (folder / name).is_file():
            raise LocalEntryNotFoundError(name)
        return str(folder / name)

    monkeypatch.setattr(model_files, "hub_answers", lambda: True)
    monkeypatch.setattr(model_files, "hf_hub_download", download)
    names = model_files.weight_map("someone/head", None)
    assert names == dict.fromkeys(tensors, PICKLE)
    assert asked == ["model.safetensors", "model.safetensors.index.json", PICKLE]
    read = model_files.read_weights("someone/head", None, {"ours": "fc.weight"})
    assert list(read) == ["ours"]
    assert torch.equal(read["ours"], tensors["fc.weight"])


def test_the_page_has_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "measuring_reference.md").read_text(encoding="utf-8")
    rows = "".join(f"| {form.title} | {form.writers} | {form.sign} |\n" for form in FORMATS)
    assert rows in page, f"docs/measuring_reference.md must have\n{rows}"
