"""Decoders where the models are not on the CPU: tensors that never meet, whose time is whose, and memory that ends."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import flash_attention_mask

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry
from spectheory.errors import ModelError
from spectheory.measure import Model, ModelPair, latency, machine, measure_latency, teacher_forced
from spectheory.measure.decoders import HeaviestTree, Method, decode, readers
from spectheory.measure.decoders.readers import KeptReader
from spectheory.measure.decoders.tree import ROOT, DraftTree
from tests.far_device import FAR, FarTensor, TwoDevices, moved

PROMPTS = [torch.tensor(ids) for ids in ([5, 9, 11], [7], [3, 4, 3, 4, 3, 8, 2, 60, 33])]

ROUNDING = 2e-5
"""Other sums of the same float32 numbers; ranks divide some 1e-7 by what is left of a pmf, here 1% and more."""
PLACES = {"far target": (True, False), "far draft": (False, True), "both far": (True, True)}


@pytest.fixture
def without_inference_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in's tensors know none."""
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)


def spread(pair: ModelPair, place: str) -> ModelPair:
    """The pair on other devices."""
    target, draft = (
        moved(model) if far else model for model, far in zip((pair.target, pair.draft), PLACES[place], strict=True)
    )
    return dataclasses.replace(pair, target=target, draft=draft)


def test_devices_do_not_mix() -> None:
    """The control of all that follows: the stand-in refuses what a GPU refuses, and takes what it takes."""
    with TwoDevices():
        far, near, first = torch.zeros(2, 2).to(FAR), torch.ones(2, 2), torch.tensor([0])
        assert isinstance(far, FarTensor)
        assert isinstance(torch.arange(3, device=FAR) + 1, FarTensor)
        for mixing in (lambda: far + near, lambda: torch.cat([near, far]), lambda: far.index_select(0, first)):
            with pytest.raises(RuntimeError, match="same device"):
                mixing()
        with pytest.raises((RuntimeError, TypeError)):
            far.numpy()
        far[:, 1:] = far[torch.tensor([1, 0])][:, 1:] + 2 * near.to(FAR)[:, 1:]
        assert far.cpu().tolist() == [[0, 2], [0, 2]]


CUT = Sampling(0.7, top_k=20, top_p=0.9)


@pytest.mark.parametrize(
    ("place", "method", "batch", "sampling"),
    [
        ("far target", Method("token", Chain(3)), 1, Sampling()),
        ("far target", Method("race", KAry((2, 2))), 2, CUT),
        ("far draft", Method("toptree", HeaviestTree(4)), 1, CUT),
        ("both far", Method("race", KAry((2, 2))), 2, Sampling(0)),
        ("both far", Method("lookup", Chain(2)), 2, Sampling()),
    ],
)
@pytest.mark.usefixtures("without_inference_mode")
def test_texts_are_those_of_the_cpu(
    place: str, method: Method, batch: int, sampling: Sampling, tiny_pair: ModelPair
) -> None:
    """Prompts in chunks, masks, rejected slots, texts that leave, cut distributions: every path of the readers."""
    same_texts(tiny_pair, place, method, batch, sampling)


def same_texts(pair: ModelPair, place: str, method: Method, batch: int, sampling: Sampling) -> None:
    options: dict[str, Any] = {"tokens": 6, "sampling": sampling, "batch": batch, "chunk": 4}
    here = decode(pair, PROMPTS, method, **options)
    with TwoDevices():
        there = decode(spread(pair, place), PROMPTS, method, **options)
    assert [one.output_ids.tolist() for one in here] == [one.output_ids.tolist() for one in there]


@pytest.mark.usefixtures("without_inference_mode")
def test_texts_read_again_are_those_of_the_cpu(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models whose cache is of no use."""
    monkeypatch.setattr(readers, "takes", lambda model, option: option == "logits_to_keep")
    same_texts(tiny_pair, "far target", Method("race", KAry((2, 2))), 2, Sampling())


@pytest.mark.parametrize("place", ["far target", "far draft"])
@pytest.mark.usefixtures("without_inference_mode")
def test_expected_calls_are_those_of_the_cpu(place: str, tiny_pair: ModelPair) -> None:
    """Every column of the teacher-forced reading, the dear ones too; and a latency table."""
    prompt, text = PROMPTS[1], torch.tensor([4, 9, 9, 1, 33])
    options: dict[str, Any] = {"sampled": True, "chunk": 3}
    here = teacher_forced(tiny_pair, prompt, text, Sampling(0.8), **options)
    with TwoDevices():
        pair = spread(tiny_pair, place)
        there = teacher_forced(pair, prompt, text, Sampling(0.8), **options)
        assert measure_latency(pair, context=8, tokens=(1, 3), rounds=1, warm_up=0).target_step().best > 0
    assert set(here) == set(there)
    for name, column in here.items():
        np.testing.assert_allclose(there[name], column, rtol=ROUNDING, atol=ROUNDING, err_msg=name)


class Busy:
    """A device that works on while the program goes on, with a clock of its own."""

    def __init__(self) -> None:
        self.now, self.left = 0.0, 0.0

    def wait(self, device: torch.device) -> None:
        """Let the clock go on until the device is done."""
        self.now, self.left = self.now + self.left, 0.0


@pytest.mark.parametrize("module", [readers, latency])
def test_a_pass_takes_its_own_time_alone(module: Any, tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """5 s that an earlier call left to the device are none of the pass's; the 3 s that it starts are."""
    busy = Busy()
    monkeypatch.setattr(module, "wait_for", busy.wait)
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: busy.now))

    def started(*_: Any) -> None:
        busy.left += 3.0

    busy.left = 5.0
    if module is latency:
        seconds = latency.seconds_of(started, torch.device("cpu"))
    else:
        hook = tiny_pair.target.network.register_forward_pre_hook(started)
        _, seconds = readers.forward(tiny_pair.target, torch.tensor([[1, 2]]), keep=1)
        hook.remove()
    assert (seconds, busy.now) == (3.0, 8.0)


def test_waiting_is_for_the_device_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several the right one."""
    waited: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waited.append(str(device)))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waited.append("mps"))
    for name in ("cuda:1", "cpu", "mps"):
        machine.wait_for(torch.device(name))
    assert waited == ["cuda:1", "mps"]


@pytest.mark.parametrize("where", ["_move_to", "_compact"])
def test_memory_that_ends_between_passes(where: str, tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving a cache takes memory too."""

    def fails(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(readers, where, fails)
    with pytest.raises(ModelError, match=r"ran out of memory on 3 texts.*use batch=1"):
        decode(tiny_pair, PROMPTS, Method("token", Chain(2)), tokens=5, batch=3)
    with pytest.raises(ModelError, match=r"ran out of memory on 1 texts.*use fewer drafts"):
        decode(tiny_pair, PROMPTS[:1], Method("token", Chain(2)), tokens=5)


def flash_like(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any) -> Any:
    """Attention of a GPU's kind: from the first token on, without masks of its caller's making."""
    assert attention_mask is None or attention_mask.ndim == 2
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


def test_attention_without_masks(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its models read their texts again."""
    method = Method("race", KAry((2, 2)))
    expected = decode(tiny_pair, PROMPTS, method, tokens=10, batch=2)
    monkeypatch.setitem(transformers.AttentionInterface._global_mapping, "flash_like", flash_like)
    monkeypatch.setitem(transformers.AttentionMaskInterface._global_mapping, "flash_like", flash_attention_mask)
    for model in (tiny_pair.target, tiny_pair.draft):
        monkeypatch.setattr(model.network.config, "_attn_implementation", "flash_like")
    texts = decode(tiny_pair, PROMPTS, method, tokens=10, batch=2)
    assert [one.output_ids.tolist() for one in texts] == [one.output_ids.tolist() for one in expected]
    assert "without masks for trees (flash_like): every call reads" in texts[0].remarks[0]


def test_padding_in_half_precision(tiny_pair: ModelPair) -> None:
    """Every score is below -16: in float16 a row that sees nothing is -inf throughout, and NaN goes from it to all."""
    config = transformers.LlamaConfig(
        vocab_size=64, num_hidden_layers=2, num_attention_heads=2, hidden_size=32, intermediate_size=64,
        max_position_embeddings=128, initializer_range=0.5, eos_token_id=0, attn_implementation="eager",
        dtype=torch.float16, rope_parameters={"rope_type": "default", "rope_theta": 1e30},
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = transformers.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    for layer in network.model.layers:
        layer.self_attn.q_proj.weight.copy_(-3 * layer.self_attn.k_proj.weight)
    model = Model("half", None, network, 64, 128, "")
    texts = [[0, 0], [0, 0, 0, 0, 0, 0]]
    reader = KeptReader(model, 64, Sampling(), texts)
    reader.prefill(8)
    rows = reader.read({row: (DraftTree(), [ROOT]) for row in (0, 1)})
    assert all(np.isfinite(rows[row][0]).all() for row in (0, 1))
