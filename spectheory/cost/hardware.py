"""C3: accelerators with the numbers of their data sheets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spectheory.checks import BEYOND, amount, choice, instance

_LONGEST = 1e3
"""Overheads are below it, seconds."""


@dataclass(frozen=True)
class Accelerator:
    """The data sheet of an accelerator: the two slopes of its roofline (C3).

    `peak` gives dense operations per second by type (``bf16``, ``fp8``); data sheets often print twice as many, for
    weights of which half are zero. `bandwidth` is bytes per second from its memory. `overhead` is the seconds of a pass
    besides reading and computing (launches, sampling, scheduling); no data sheet has it, so measure a pass of a very
    small model. With 0 every time is a lower limit. `source` says where the numbers were printed.

    Examples
    --------
    >>> Accelerator("mine", {"bf16": 1e14}, bandwidth=1e12, overhead=2e-3).peak_of("bf16")
    100000000000000.0
    """

    name: str
    peak: Mapping[str, float]
    bandwidth: float
    overhead: float = 0.0
    source: str = ""

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), ("source", self.source)):
            instance(what, text, str, remedy="pass a text")
        instance("peak", self.peak, Mapping, remedy='{"bf16": 312e12} is one')
        for what, value in [*self.peak.items(), ("bandwidth", self.bandwidth)]:
            amount(f"{what} of {self.name}", value, positive=True, below=BEYOND, remedy="see a data sheet")
        amount(f"the overhead of {self.name}", self.overhead, below=_LONGEST, remedy="0 if unknown, else seconds")

    def peak_of(self, dtype: str) -> float:
        """Operations per second in one type."""
        known = sorted(self.peak)
        return self.peak[choice(f"the type on {self.name}", dtype, known, remedy="make an Accelerator with its peak")]


ACCELERATORS: dict[str, Accelerator] = {
    "A100-80GB-SXM": Accelerator(
        "NVIDIA A100 80GB SXM",
        {"bf16": 312e12},
        bandwidth=2039e9,
        source="NVIDIA A100 Tensor Core GPU data sheet: 312 TFLOPS (624 with sparsity), 2,039 GB/s",
    ),
    "H100-SXM": Accelerator(
        "NVIDIA H100 SXM",
        {"bf16": 1979e12 / 2, "fp8": 3958e12 / 2},
        bandwidth=3.35e12,
        source="NVIDIA H100 Tensor Core GPU data sheet: 1,979 and 3,958 TFLOPS with sparsity, halved; 3.35 TB/s",
    ),
    "H200": Accelerator(
        "NVIDIA H200 SXM",
        {"bf16": 1979e12 / 2, "fp8": 3958e12 / 2},
        bandwidth=4.8e12,
        source="NVIDIA H200 Tensor Core GPU data sheet: 1,979 and 3,958 TFLOPS with sparsity, halved; 4.8 TB/s",
    ),
    "L4": Accelerator(
        "NVIDIA L4",
        {"bf16": 242e12 / 2, "fp8": 485e12 / 2},
        bandwidth=300e9,
        source="NVIDIA L4 Tensor Core GPU data sheet: 242 and 485 TFLOPS with sparsity, halved; 300 GB/s",
    ),
    "RTX-4090": Accelerator(
        "NVIDIA GeForce RTX 4090",
        {"bf16": 165.2e12, "fp8": 330.3e12},
        bandwidth=1008e9,
        source="NVIDIA Ada GPU architecture white paper, appendix: dense, accumulated in FP32; 1,008 GB/s",
    ),
    "MI300X": Accelerator(
        "AMD Instinct MI300X",
        {"bf16": 1307.4e12, "fp8": 2614.9e12},
        bandwidth=5.3e12,
        source="AMD Instinct MI300X accelerator data sheet: dense; 5.3 TB/s",
    ),
}
"""Accelerators by name: dense peaks and peak bandwidths from the makers' data sheets, overhead 0."""
