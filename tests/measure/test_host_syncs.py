"""Large pairs: as few waits of a device for many rows as for few, and no copy of the output matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from torch.utils._pytree import tree_leaves

from spectheory.distributions import Sampling
from spectheory.measure import Model, ModelPair, load_pair, measure_latency, teacher_forced
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.reading import Reading, read_last
from spectheory.measure.sampling import draw
from tests import far_device
from tests.far_device import FAR, FarTensor, TwoDevices

READ_HERE = ("aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::_unique2")
"""Operations whose result, or its size, the CPU waits for; beside copies from the device."""
FEW, MANY = 64, 160
"""Rows; where work is done in parts of a block, both make all of them."""
SETTINGS = [Sampling(), Sampling(0.7, top_k=5, top_p=0.9), Sampling(0)]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts what waits for the far device."""
    waits: Counter[str] = Counter()
    carry_out = far_device._carried_out

    def listened(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        result, name = carry_out(func, args, kwargs), func.name()
        far = any(isinstance(one, FarTensor) for one in tree_leaves((args, kwargs)))
        copied = name == "aten::_to_copy" and isinstance(result, Tensor) and not isinstance(result, FarTensor)
        taken = name == "aten::copy_" and not isinstance(args[0], FarTensor)
        if far and (name in READ_HERE or copied or taken):
            waits[name] += 1
        return result

    with monkeypatch.context() as patch:
        patch.setattr(far_device, "_carried_out", listened)
        yield waits


def rows(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same two rows of both models again and again, so that nothing but their number differs."""
    made = torch.Generator().manual_seed(1)
    target = 3 * torch.randn(2, 40, generator=made)
    draft = target + torch.randn(2, 40, generator=made)
    return tuple(one.repeat(count // 2, *[1] * (one.ndim - 1)) for one in (target, draft, target.argmax(dim=1)))  # type: ignore[return-value]


def waits_of_columns(count: int, sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    with TwoDevices():
        target, draft, tokens = (one.to(FAR) for one in rows(count))
        with counted(monkeypatch) as waits:
            position_statistics(target, draft, tokens, sampling, sampled=True)
    return waits


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_columns_wait_no_more_often_for_more_rows(sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (waits_of_columns(count, sampling, monkeypatch) for count in (FEW, MANY))
    assert many.total() <= few.total() < MANY, many - few


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_a_draw_waits_no_more_often_for_more_rows(sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    for count in (FEW, MANY):
        with TwoDevices():
            logits = rows(count)[0].to(FAR)
            with counted(monkeypatch) as counts:
                draw(logits, torch.full((count,), 0.3, dtype=torch.float64), sampling)
        waits.append(counts.total())
    assert waits[1] <= waits[0]
    assert waits[0] > 0, "the tokens come to the CPU"


def test_a_loop_over_rows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    with TwoDevices():
        logits = rows(8)[0].to(FAR)
        with counted(monkeypatch) as waits:
            assert len([float(row.sum()) for row in logits]) == 8
    assert waits == {"aten::_local_scalar_dense": 8}


SINGLE = 1e-5
MANY_TOKENS = 151_936
"""The outputs of a large pair in use."""
COPIES = ("aten::clone", "aten::copy_", "aten::_to_copy")


@pytest.fixture(scope="module")
def wide_pair(save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> ModelPair:
    """A pair of two thin layers each with the outputs of a large one, in bfloat16, as such pairs are stored."""
    root = tmp_path_factory.mktemp("wide")
    sizes = {"outputs": MANY_TOKENS, "tokens": MANY_TOKENS, "dtype": "bfloat16"}
    target = save_model(root / "target", seed=1, **sizes)
    return load_pair(target, save_model(root / "draft", seed=2, like=target, **sizes), device="cpu")


def copied(model: Model, texts: int, tokens: int) -> list[int]:
    """Elements of every tensor that is copied in a pass on `tokens` tokens of each text with one row of logits."""
    reading = Reading(model, model.outputs)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        reading.read(torch.arange(tokens).expand(texts, -1), keep=1)
    return [prod(event.input_shapes[0]) for event in recorded.events() if event.name in COPIES]


def matrix(model: Model) -> int:
    """Elements of the output matrix."""
    return model.network.get_output_embeddings().weight.numel()


@pytest.mark.parametrize("tokens", [1, 2, 5])
@pytest.mark.parametrize("texts", [1, 2])
def test_the_output_matrix_is_never_copied(texts: int, tokens: int, wide_pair: ModelPair) -> None:
    """One row of logits after several tokens is a strided input, for which torch may copy the matrix."""
    for model in (wide_pair.target, wide_pair.draft):
        assert max(copied(model, texts, tokens), default=0) < matrix(model)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="other kernels need no copy")
def test_a_copy_would_be_seen(wide_pair: ModelPair) -> None:
    """Negative control: torch copies the matrix if the weights require no gradients."""
    network = wide_pair.draft.network
    network.requires_grad_(False)
    try:
        assert max(copied(wide_pair.draft, 1, 2)) == matrix(wide_pair.draft)
    finally:
        network.requires_grad_(True)


def test_columns_of_many_outputs(wide_pair: ModelPair) -> None:
    """Against NumPy in double precision on the same logits; `SINGLE` is the rounding of sums in single precision."""
    prompt, text = torch.arange(1, 9), torch.arange(100_000, 100_006)
    columns = teacher_forced(wide_pair, prompt, text, Sampling(), race=False)
    ids = torch.cat([prompt, text[:-1]])
    target, draft = (
        softmax(next(read_last(Reading(model, wide_pair.vocabulary), ids, len(text), 256)).double().numpy(), axis=1)
        for model in (wide_pair.target, wide_pair.draft)
    )
    assert target.shape == (len(text), wide_pair.target.outputs)
    np.testing.assert_allclose(columns["total_variation"], abs(target - draft).sum(axis=1) / 2, rtol=SINGLE)
    masses = target[np.arange(len(text)), text.numpy()]
    np.testing.assert_allclose(columns["log_target"], np.log(masses), rtol=SINGLE)


def test_a_table_of_passes_on_many_outputs(wide_pair: ModelPair) -> None:
    table = measure_latency(wide_pair, context=8, tokens=(1, 2, 4), rounds=1, warm_up=1)
    assert table.provenance["target"]["dtype"] == "bfloat16"
    assert table.provenance["hardware"]["threads"] == torch.get_num_threads()
    assert set(table.draft) == {1, 2, 4}
