"""A second device on machines that have none: tensors of its own that refuse to meet those of the CPU."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from spectheory.measure import Model

FAR = torch.device("meta")
"""What the device calls itself; torch knows the name, and neither it nor this package takes it for a CPU."""
_CROSSING = ("aten::_to_copy", "aten::copy_")
_INDEXING = ("aten::index.Tensor", "aten::index_put_", "aten::index_put")
"""Operations that take tensors of two devices; the latter, as on a GPU, indices on the CPU."""
_WHOLE: set[Any] = set()
"""Operations known not to be made of others."""


class FarTensor(torch.Tensor):
    """A tensor on the far device; its numbers are in `inner`, where only this file looks."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> FarTensor:
        """A far tensor of these numbers."""
        far = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, inner.stride(), inner.storage_offset(), dtype=inner.dtype, device=FAR
        )
        far.inner = inner
        return far

    def __repr__(self) -> str:
        return f"FarTensor({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _carried_out(func, args, kwargs or {})


class TwoDevices(TorchDispatchMode):
    """While this is entered, what is made on the far device or sent there is there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _carried_out(func, args, kwargs or {})


def _carried_out(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """An operation on the numbers, after a look at where they are."""
    if func not in _WHOLE:
        with TwoDevices():
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        _WHOLE.add(func)
    name, device = func.name(), kwargs.get("device")
    args, kwargs = tree_map(_wrapped_empty, (args, kwargs))
    tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
    far = any(isinstance(one, FarTensor) for one in tensors)
    near = any(not isinstance(one, FarTensor) and one.ndim > 0 for one in tensors)
    indexed = name in _INDEXING and isinstance(args[0], FarTensor)
    if far and near and name not in _CROSSING and not indexed:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device")
    if device is not None:
        kwargs, far = {**kwargs, "device": torch.device("cpu")}, device == FAR
    args_within, kwargs_within = tree_map(lambda one: one.inner if isinstance(one, FarTensor) else one, (args, kwargs))
    result = func(*args_within, **kwargs_within)
    if args and name.split(".")[0].endswith("_"):  # in place
        return args[0]
    return tree_map(lambda one: FarTensor(one) if far and isinstance(one, Tensor) else one, result)


def _wrapped_empty(one: Any) -> Any:
    """``torch.tensor([], device=...)`` is made without asking; it has no numbers to lose."""
    strays = isinstance(one, Tensor) and not isinstance(one, FarTensor) and one.device == FAR and one.numel() == 0
    return FarTensor(torch.empty(one.shape, dtype=one.dtype)) if strays else one


def moved(model: Model) -> Model:
    """The model on the far device."""
    network, there = copy.deepcopy(model.network), dict[int, torch.nn.Parameter]()
    for module in network.modules():
        for name, weights in module._parameters.items():
            if weights is not None:  # tied weights stay tied
                far = torch.nn.Parameter(FarTensor(weights.detach()), requires_grad=False)
                module._parameters[name] = there.setdefault(id(weights), far)
        for name, values in module._buffers.items():
            module._buffers[name] = None if values is None else FarTensor(values)
    return dataclasses.replace(model, network=network)
