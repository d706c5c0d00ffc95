"""C3: the time of a pass from a data sheet, for hardware you do not have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from spectheory.checks import BEYOND, MOST_EXACT, amount, choice, instance, whole
from spectheory.cost.architecture import ModelShape
from spectheory.cost.model import PassCost
from spectheory.intervals import Interval

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


@dataclass(frozen=True)
class RooflineTime:
    r"""Seconds of a pass on m tokens of each of B sequences: the longer of reading and computing (C3).

    .. math:: t(m, B) = \max(\text{weights} + B\,\text{cache},\; B\,m\,\text{token}) + \text{overhead}

    All in seconds: `weights` to read the weights and `cache` to read the keys and values of one sequence, once per
    pass; `token` to compute one token; `overhead` is added to every pass.

    Examples
    --------
    >>> time = RooflineTime(weights=8e-3, cache=1e-4, token=2e-5)
    >>> round(time.seconds(5), 6), round(time.seconds(512), 6)
    (0.0081, 0.01024)
    >>> round(time.knee(5 + 5), 6)
    80.0
    """

    weights: float
    cache: float
    token: float
    overhead: float = 0.0

    def __post_init__(self) -> None:
        for name, seconds in vars(self).items():
            checked = amount(name, seconds, positive=name in ("weights", "token"), below=BEYOND, remedy="give seconds")
            object.__setattr__(self, name, checked)

    @classmethod
    def of(cls, model: ModelShape, accelerator: Accelerator, context: int, dtype: str = "bf16") -> RooflineTime:
        """The coefficients of a model after `context` tokens on an accelerator.

        The pass is short against the context: each of its tokens attends to `context` tokens.
        """
        instance("model", model, ModelShape, remedy="ModelShape.from_config makes one")
        instance("accelerator", accelerator, Accelerator, remedy="ACCELERATORS has some by name")
        length = amount("context", context, below=MOST_EXACT, remedy="count cached tokens")
        return cls(
            weights=model.read_bytes / accelerator.bandwidth,
            cache=length * model.kv_bytes_per_token / accelerator.bandwidth,
            token=model.operations_per_token(length) / accelerator.peak_of(dtype),
            overhead=accelerator.overhead,
        )

    def seconds(self, tokens: float, batch: float = 1) -> float:
        """Seconds of a pass on `tokens` tokens of each of `batch` sequences."""
        tokens, batch = (
            amount(name, value, below=BEYOND, remedy="count tokens and sequences")
            for name, value in (("tokens", tokens), ("batch", batch))
        )
        return max(self.weights + batch * self.cache, batch * tokens * self.token) + self.overhead

    def knee(self, tokens: float) -> float:
        """The batch at which computing takes as long as reading; infinite if reading a cache takes as long."""
        gain = amount("tokens", tokens, below=BEYOND, remedy="count tokens") * self.token - self.cache
        return self.weights / gain if gain > 0 else math.inf


@dataclass(frozen=True)
class Roofline(PassCost):
    """C3: the cost of a pair of dense models on an accelerator, from sizes and a data sheet (estimate).

    Both models run one after the other; without a draft, drafts are free. Times are optimistic: each pass takes at
    least as long as its reading and computing at peak speed. The speed-up is a ratio of such times, and its error may
    have either sign: shares of the peak that are equal in all passes cancel, overheads do not. Weights are read once
    per pass, the cache once per sequence and pass; tokens of a draft tree cost the same as those of a chain. It is not
    checked that all fits into memory. Mixtures of experts are not modelled (:class:`ModelShape`).

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS
    >>> from spectheory.drafting import Chain
    >>> small = ModelShape(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    >>> large = ModelShape(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> cost = Roofline(large, small, ACCELERATORS["H100-SXM"], context=1024)
    >>> round(1e3 * cost.target_step().best, 3), round(1e3 * cost.draft_pass(1).best, 3)
    (4.521, 0.748)
    >>> print(cost.speedup(Interval.exact(3.0), Chain(4)))
    1.805
    """

    target: ModelShape
    draft: ModelShape | None
    accelerator: Accelerator
    context: int
    batch: int = 1
    dtype: str = "bf16"
    target_time: RooflineTime = field(init=False, repr=False, compare=False)
    draft_time: RooflineTime | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("batch", self.batch, most=MOST_EXACT, remedy="count sequences")
        instance("target", self.target, ModelShape, remedy="ModelShape.from_config makes one")
        times = [
            None if model is None else RooflineTime.of(model, self.accelerator, self.context, self.dtype)
            for model in (self.target, self.draft)
        ]
        object.__setattr__(self, "target_time", times[0])
        object.__setattr__(self, "draft_time", times[1])

    @property
    def reads_accepted(self) -> bool:
        """Whether the draft is a head."""
        return self.draft is not None and self.draft.fusion > 0

    def target_pass(self, tokens: int) -> Interval:
        """Seconds of the target on that many tokens of every sequence."""
        return Interval.exact(self.target_time.seconds(tokens, self.batch))

    def draft_pass(self, tokens: int) -> Interval:
        """Seconds of the draft on that many tokens of every sequence; 0 without a draft."""
        return Interval.exact(self.draft_time.seconds(tokens, self.batch) if self.draft_time else 0.0)
