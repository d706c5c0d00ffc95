"""Waiting for a device: kernels may still run after the call that started them."""

from __future__ import annotations

import torch


def wait_for(device: torch.device) -> None:
    """Wait until a device has finished all its work; a CPU has when a call returns."""
    if device.type == "mps":
        torch.mps.synchronize()
    elif device.type in ("cuda", "xpu"):
        getattr(torch, device.type).synchronize(device)
