"""C3: accelerators by their data sheets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from spectheory.checks import BEYOND, amount, choice, instance, real, shown, whole
from spectheory.errors import SettingError

_LONGEST = 1.0
"""Overheads of a pass are below it, seconds; longer ones are in another unit."""


@dataclass(frozen=True)
class Accelerator:
    """The data sheet of an accelerator: the two slopes of its roofline (C3).

    `peak` gives dense operations per second by type (``bf16``, ``fp8``); data sheets often print twice as many, for
    weights of which half are zero. `bandwidth` is bytes per second from its memory. `overhead` is the seconds of a pass
    besides reading and computing (launches, sampling, scheduling); no data sheet has it, so measure a pass of a very
    small model. With 0 every time is a lower limit. `memory` is in bytes. `link` is bytes per second between one device
    and the others, both directions together as data sheets print it; 0 is unknown. `link_latency` is the seconds of an
    all-reduce besides moving bytes, which no data sheet has either. Without a switch a device has a link of its own to
    each of so many `peers`: N devices then have (N - 1) / peers of the bandwidth. `source` says where the numbers were
    printed.

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
    memory: float = math.inf
    link: float = 0.0
    link_latency: float = 0.0
    peers: int = 0

    def __post_init__(self) -> None:
        for what, text in (("name", self.name), ("source", self.source)):
            instance(what, text, str, remedy="pass a text")
        instance("peak", self.peak, Mapping, remedy='{"bf16": 312e12} is one')
        for what, value in [*self.peak.items(), ("bandwidth", self.bandwidth)]:
            amount(f"{what} of {self.name}", value, positive=True, below=BEYOND, remedy="see a data sheet")
        for what in ("overhead", "link_latency"):
            amount(
                f"the {what} of {self.name}",
                getattr(self, what),
                below=_LONGEST,
                remedy="0 if unknown, else seconds: 1e-5 is ten microseconds",
            )
        whole(f"the peers of {self.name}", self.peers, least=0, remedy="0 if there is a switch")
        amount(f"the link of {self.name}", self.link, below=BEYOND, remedy="0 if unknown, else bytes per second")
        real(
            f"the memory of {self.name}",
            self.memory,
            lambda size: size > 0,
            limit="needs bytes > 0",
            remedy="see a data sheet",
        )

    def peak_of(self, dtype: str) -> float:
        """Operations per second in one type."""
        known = sorted(self.peak)
        return self.peak[choice(f"the type on {self.name}", dtype, known, remedy="make an Accelerator with its peak")]

    @staticmethod
    def named(name: str) -> Accelerator:
        """The one of that name in :data:`ACCELERATORS`, in capital or small letters.

        Examples
        --------
        >>> Accelerator.named("h100-sxm").name
        'NVIDIA H100 SXM'
        """
        known = {each.casefold(): each for each in ACCELERATORS}
        written = instance("the accelerator", name, str, remedy="H100-SXM is one").casefold()
        if written in known:
            return ACCELERATORS[known[written]]
        near = [each for each in known if written and written in each] or get_close_matches(written, known)
        raise SettingError(
            f"accelerator {shown(name)} is unknown",
            limit=f"there are {', '.join(ACCELERATORS)}",
            remedy=f"write {' or '.join(known[each] for each in near)}" if near else "name one, or measure latencies",
        )


ACCELERATORS: dict[str, Accelerator] = {
    "A100-80GB-SXM": Accelerator(
        "NVIDIA A100 80GB SXM",
        {"bf16": 312e12},
        bandwidth=2039e9,
        source="NVIDIA A100 Tensor Core GPU data sheet: 312 TFLOPS (624 with sparsity), 2,039 GB/s, 80 GB, "
        "NVLink 600 GB/s",
        memory=80e9,
        link=600e9,
    ),
    "H100-SXM": Accelerator(
        "NVIDIA H100 SXM",
        {"bf16": 1979e12 / 2, "fp8": 3958e12 / 2},
        bandwidth=3.35e12,
        source="NVIDIA H100 Tensor Core GPU data sheet: 1,979 and 3,958 TFLOPS with sparsity, halved; 3.35 TB/s, "
        "80 GB, NVLink 900 GB/s",
        memory=80e9,
        link=900e9,
    ),
    "H200": Accelerator(
        "NVIDIA H200 SXM",
        {"bf16": 1979e12 / 2, "fp8": 3958e12 / 2},
        bandwidth=4.8e12,
        source="NVIDIA H200 Tensor Core GPU data sheet: 1,979 and 3,958 TFLOPS with sparsity, halved; 4.8 TB/s, "
        "141 GB, NVLink 900 GB/s",
        memory=141e9,
        link=900e9,
    ),
    "L4": Accelerator(
        "NVIDIA L4",
        {"bf16": 242e12 / 2, "fp8": 485e12 / 2},
        bandwidth=300e9,
        source="NVIDIA L4 Tensor Core GPU data sheet: 242 and 485 TFLOPS with sparsity, halved; 300 GB/s, 24 GB, "
        "PCIe Gen4 x16 64 GB/s",
        memory=24e9,
        link=64e9,
    ),
    "RTX-4090": Accelerator(
        "NVIDIA GeForce RTX 4090",
        {"bf16": 165.2e12, "fp8": 330.3e12},
        bandwidth=1008e9,
        source="NVIDIA Ada GPU architecture white paper, appendix: dense, accumulated in FP32; 1,008 GB/s, 24 GB, "
        "PCIe Gen 4 (x16: 64 GB/s)",
        memory=24e9,
        link=64e9,
    ),
    "MI300X": Accelerator(
        "AMD Instinct MI300X",
        {"bf16": 1307.4e12, "fp8": 2614.9e12},
        bandwidth=5.3e12,
        source="AMD Instinct MI300X accelerator data sheet: dense; 5.3 TB/s, 192 GB, Infinity Fabric 128 GB/s a link, "
        "7 to other devices: 896 GB/s",
        memory=192e9,
        link=7 * 128e9,
        peers=7,
    ),
}
"""Accelerators by name: dense peaks, peak bandwidths, memory and links from the makers' data sheets, overhead 0."""
