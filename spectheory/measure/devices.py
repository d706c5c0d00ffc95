"""The devices of this machine, and waiting for them."""

from __future__ import annotations

import torch
from torch import Tensor

from spectheory.errors import ModelError


def widest(values: Tensor) -> torch.dtype:
    """float64 on devices that have it; float32 on Apple's."""
    return torch.float32 if values.device.type == "mps" else torch.float64


def find_device(name: str | None) -> torch.device:
    """The device of that name, or the best device of this machine if no name is given."""
    counts = {"cpu": 1, "mps": int(torch.backends.mps.is_available()), "cuda": torch.cuda.device_count()}
    kinds = [kind for kind, count in counts.items() if count]
    if name is None:
        return torch.device(kinds[-1])
    try:
        device = torch.device(name)
    except RuntimeError:  # torch knows no device of that name
        device = None
    if device is None or (device.index or 0) >= counts.get(device.type, 0):
        there = [kind if counts[kind] == 1 else f"{kind}:{i}" for kind in kinds for i in range(counts[kind])]
        raise ModelError(f"device is {name!r}", limit=f"this machine has {', '.join(there)}", remedy="use one of them")
    return device


def wait_for(device: torch.device) -> None:
    """Wait until a device has finished all its work; a CPU has when a call returns."""
    if device.type == "mps":
        torch.mps.synchronize()
    elif device.type in ("cuda", "xpu"):
        getattr(torch, device.type).synchronize(device)
