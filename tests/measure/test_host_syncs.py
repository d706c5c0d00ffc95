"""What makes a device wait for the CPU: as often for many rows as for few, in every column and in sampling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from spectheory.distributions import Sampling
from spectheory.measure.columns.statistics import position_statistics
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
