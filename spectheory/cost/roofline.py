"""C3: the time of a pass from a data sheet, for hardware you do not have.

C4: throughput at batch B under the roofline: the knee, the break-even batch, and a table.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from spectheory.checks import BEYOND, MOST_EXACT, amount, choice, instance, real, several, shown, whole
from spectheory.cost.architecture import ModelShape
from spectheory.cost.model import Ends, PassCost, check_share
from spectheory.drafting import Shape
from spectheory.drafting.tree import a_shape
from spectheory.errors import SettingError
from spectheory.intervals import Interval, weakest

_LONGEST = 1.0
"""Overheads of a pass are below it, seconds; longer ones are in another unit."""
_MOST_DEVICES = 1024
VERIFYING_OFF = 0.04
"""By which the time of a pass on several tokens is off, in plain steps. From published timings: the speeds of a model
with multi-token prediction on an RTX 5090 (qwen38-mtp, ``sweeps/``) at n = 1 and 6 drafts give the time of a step for n
= 2 to 5 within 4%, by a straight line as a roofline has.
"""
DRAFTING_OFF = 2.0
"""Factor by which the time of a draft pass is off, as for a ratio c that is guessed."""
_REDUCES, _SUM_BYTES = 2, 2
"""All-reduces of a layer, after attention and after the MLP, of 16-bit hidden states."""


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


@dataclass(frozen=True)
class RooflineTime:
    r"""Seconds of a pass on m tokens of each of B sequences: the longer of reading and computing (C3).

    .. math:: t(m, B) = \max(\text{weights} + B\,\text{cache},\; B\,m\,\text{token}) + B\,m\,\text{link} +
        \text{overhead}

    All in seconds: `weights` to read the weights and `cache` to read the keys and values of one sequence, once per
    pass; `token` to compute one token, `link` to exchange its sums between devices; `overhead` is added to every pass.

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
    link: float = 0.0

    def __post_init__(self) -> None:
        for name, seconds in vars(self).items():
            checked = amount(name, seconds, positive=name in ("weights", "token"), below=BEYOND, remedy="give seconds")
            object.__setattr__(self, name, checked)

    @classmethod
    def of(
        cls, model: ModelShape, accelerator: Accelerator, context: int, dtype: str = "bf16", devices: int = 1
    ) -> RooflineTime:
        r"""The coefficients of a model after `context` tokens on an accelerator, or on several `devices` of it.

        The pass is short against the context: each of its tokens attends to `context` tokens. N devices read and
        compute an Nth each (tensor parallelism), caches at least one head of keys and values each. They then add their
        sums, two all-reduces a layer of 16-bit hidden states, along a ring:

        .. math:: \text{link} = 2\,\text{layers} \cdot \frac{2(N-1)}{N} \cdot
            \frac{2\,\text{hidden}}{\text{bandwidth of the link}/2}

        and as many latencies of the link in the overhead. Exchanges of embeddings and logits are left out.
        """
        instance("model", model, ModelShape, remedy="spectheory.cost.ModelShape.from_config makes one")
        instance("accelerator", accelerator, Accelerator, remedy="ACCELERATORS has some by name")
        length = amount("context", context, below=MOST_EXACT, remedy="count cached tokens")
        _check_devices(devices, model, accelerator)
        link, latency = _exchange(model, accelerator, devices)
        return cls(
            weights=model.read_bytes / devices / accelerator.bandwidth,
            cache=length * _cache_of_device(model, devices) / accelerator.bandwidth,
            token=model.operations_per_token(length) / devices / accelerator.peak_of(dtype),
            overhead=accelerator.overhead + latency,
            link=link,
        )

    def seconds(self, tokens: float, batch: float = 1) -> float:
        """Seconds of a pass on `tokens` tokens of each of `batch` sequences."""
        tokens, batch = (
            amount(name, value, below=BEYOND, remedy="count tokens and sequences")
            for name, value in (("tokens", tokens), ("batch", batch))
        )
        exchange = batch * tokens * self.link
        return max(self.weights + batch * self.cache, batch * tokens * self.token) + exchange + self.overhead

    def knee(self, tokens: float) -> float:
        """The batch at which computing takes as long as reading; infinite if reading a cache takes as long."""
        gain = amount("tokens", tokens, below=BEYOND, remedy="count tokens") * self.token - self.cache
        return self.weights / gain if gain > 0 else math.inf


def _check_devices(devices: int, model: ModelShape, accelerator: Accelerator) -> None:
    """Check that a model divides among devices, and that their link is known."""
    whole("devices", devices, most=_MOST_DEVICES, remedy="1 is no tensor parallelism")
    if model.heads % devices:
        raise SettingError(
            f"devices is {devices}",
            limit=f"must divide the attention heads of each model, {model.heads} of one",
            remedy=f"use {math.gcd(devices, model.heads)}",
        )
    if devices > 1 and not accelerator.link:
        raise SettingError(
            f"{devices} devices of {accelerator.name}",
            limit="the bandwidth of their link is unknown",
            remedy="make an Accelerator with its link",
        )


def _cache_of_device(model: ModelShape, devices: int) -> float:
    """Bytes of keys and values of a token that one device stores: at least one head of them."""
    return model.kv_bytes_per_token * math.ceil(model.kv_heads / devices) / model.kv_heads


def _exchange(model: ModelShape, accelerator: Accelerator, devices: int) -> tuple[float, float]:
    """Seconds of the all-reduces for one token, and of their latencies in a pass."""
    if devices == 1:
        return 0.0, 0.0
    moved = 2 * (devices - 1) / devices * _SUM_BYTES * model.hidden
    reached = min((devices - 1) / accelerator.peers, 1.0) if accelerator.peers else 1.0
    link = accelerator.link * reached / 2
    return _REDUCES * model.layers * moved / link, _REDUCES * model.layers * accelerator.link_latency


@dataclass(frozen=True)
class Roofline(PassCost):
    """C3: the cost of a pair of dense models on an accelerator, from sizes and a data sheet (estimate).

    Both models run one after the other; without a draft, drafts are free. Times are optimistic: each pass takes at
    least as long as its reading and computing at peak speed. The speed-up is a ratio of such times, and its error may
    have either sign: shares of the peak that are equal in all passes cancel, overheads do not. The stated error
    (:meth:`errors`) is :data:`VERIFYING_OFF` of verification and :data:`DRAFTING_OFF` of draft passes, either way;
    overheads that are not given are not in it. Weights are read once
    per pass, the cache once per sequence and pass; tokens of a draft tree cost the same as those of a chain. The target
    computes in the type `dtype`, the draft in `draft_dtype`, without one in the same. Both
    models are divided among all `devices`. :attr:`room` says how many sequences fit into memory. Mixtures of experts
    are not modelled (:class:`ModelShape`).

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
    1.805 [1.290, 2.526]
    """

    target: ModelShape
    draft: ModelShape | None
    accelerator: Accelerator
    context: int
    batch: int = 1
    dtype: str = "bf16"
    devices: int = 1
    draft_dtype: str | None = None
    target_time: RooflineTime = field(init=False, repr=False, compare=False)
    draft_time: RooflineTime | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("batch", self.batch, most=MOST_EXACT, remedy="count sequences")
        instance("target", self.target, ModelShape, remedy="spectheory.cost.ModelShape.from_config makes one")
        times = [
            None if model is None else RooflineTime.of(model, self.accelerator, self.context, dtype, self.devices)
            for model, dtype in ((self.target, self.dtype), (self.draft, self._draft_dtype))
        ]
        object.__setattr__(self, "target_time", times[0])
        object.__setattr__(self, "draft_time", times[1])

    @property
    def _draft_dtype(self) -> str:
        return self.dtype if self.draft_dtype is None else self.draft_dtype

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

    def errors(self) -> Iterator[Ends]:
        """The stated errors, of verification and of draft passes; each end is taken as that of a 95% interval."""
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        for name, factor in (("verifying", 1 + VERIFYING_OFF), *([("drafting", DRAFTING_OFF)] if self.draft else [])):
            yield _Off(**(given | {name: 1 / factor})), _Off(**(given | {name: factor}))

    def speedup(self, tokens_per_call: Interval, shape: Shape, full_share: float = 0.0) -> Interval:
        """Tokens per second relative to plain decoding (C2); the range is an outer one, with the stated error."""
        known = super().speedup(tokens_per_call, shape, full_share)
        call = self.call(shape, full_share).best
        off = [max(abs(math.log(end.call(shape, full_share).best / call)) for end in ends) for ends in self.errors()]
        wider = math.exp(math.hypot(*off))
        return Interval(known.low / wider, known.best, known.high * wider, weakest(known.kind, "statistical"))

    @property
    def room(self) -> float:
        """Sequences whose caches fit into memory beside the weights; an upper limit, as engines use some memory too."""
        models = [model for model in (self.target, self.draft) if model is not None]
        left = self.accelerator.memory - sum(model.weight_bytes for model in models) / self.devices
        each = self.context * sum(_cache_of_device(model, self.devices) for model in models)
        if left < 0:
            return 0.0
        return left / each if each else math.inf

    def prompt_pass(self, tokens: int, *, drafted: bool = False) -> float:
        """Seconds of the pass over the prompt of one sequence; with drafts the draft reads it too.

        The longer of reading the weights and computing, as any pass; keys and values that it writes are not counted.
        """
        tokens = whole("tokens of the prompt", tokens, least=0, most=MOST_EXACT, remedy="count tokens")
        models = [(self.target, self.dtype)]
        models += [(self.draft, self._draft_dtype)] if drafted and self.draft else []
        return sum(self._over_prompt(model, tokens, dtype) for model, dtype in models) if tokens else 0.0

    def _over_prompt(self, model: ModelShape, tokens: int, dtype: str) -> float:
        card, (link, latency) = self.accelerator, _exchange(model, self.accelerator, self.devices)
        reading = model.read_bytes / self.devices / card.bandwidth
        computing = model.operations_of_prompt(tokens) / self.devices / card.peak_of(dtype)
        return max(reading, computing) + tokens * link + latency + card.overhead


@dataclass(frozen=True)
class _Off(Roofline):
    """A roofline whose passes on several tokens, or whose draft passes, take a factor longer; it has no error more."""

    verifying: float = 1.0
    drafting: float = 1.0

    def target_pass(self, tokens: int) -> Interval:
        return super().target_pass(tokens) * (self.verifying if tokens > 1 else 1.0)

    def draft_pass(self, tokens: int) -> Interval:
        return super().draft_pass(tokens) * self.drafting

    def errors(self) -> Iterator[Ends]:
        return iter(())


Term = tuple[float, RooflineTime, int]
"""A factor, and the pass it multiplies: the model's times and the number of tokens."""


@dataclass(frozen=True)
class BatchPoint:
    """Decoding `batch` sequences together (C4, values of the roofline).

    `plain` and `call` are seconds of a plain step and of a call (drafting and verifying) for all sequences together;
    `tokens_per_second` counts all sequences, with speculative decoding; `speedup` compares with plain decoding at the
    same batch; `compute_bound` says whether verifying is beyond its knee.
    """

    batch: int
    plain: float
    call: float
    tokens_per_second: float
    speedup: float
    compute_bound: bool


def batch_table(
    cost: Roofline, shape: Shape, tokens_per_call: float, batches: Iterable[int], full_share: float = 0.0
) -> list[BatchPoint]:
    r"""Throughput at several batches (C4, values of the roofline): :math:`B\,\tau/t_{call}(B)` tokens per second.

    `tokens_per_call` counts recovered and bonus tokens and does not depend on the batch; `full_share` is the share of
    calls that follow a full acceptance, of a head the tokens that it reads besides one. All sequences make their calls
    together and have the same context; `cost.batch` is not used. Where drafts vary in length, all sequences are assumed
    to draft equally many at a time. With independent lengths, and no padding, they are at least as fast: the work of a
    pass evens out, and its time is convex in the work.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS, ModelShape
    >>> from spectheory.drafting import Chain
    >>> large = ModelShape(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> free = Roofline(large, None, ACCELERATORS["H100-SXM"], context=512)
    >>> [(p.batch, round(p.speedup, 2)) for p in batch_table(free, Chain(4), 2.0, [1, 64, 256, 1024])]
    [(1, 2.0), (64, 2.0), (256, 0.97), (1024, 0.63)]
    """
    _check_tokens(cost, tokens_per_call, shape)
    points = []
    for batch in several("batches", batches, remedy="[1, 8, 64] is one"):
        whole("batch", batch, most=MOST_EXACT, remedy="count sequences")
        at = replace(cost, batch=batch)
        plain, call = at.target_step().best, at.call(shape, full_share).best
        points.append(
            BatchPoint(
                batch=batch,
                plain=plain,
                call=call,
                tokens_per_second=batch * tokens_per_call / call,
                speedup=tokens_per_call * plain / call,
                compute_bound=batch > knee_batch(cost, shape),
            )
        )
    return points


def knee_batch(cost: Roofline, shape: Shape) -> float:
    r"""The batch, not rounded, at which verifying computes as long as it reads (C4, exact for the roofline).

    .. math:: B = \frac{\text{seconds to read the weights}}{(\text{nodes} + 1) \cdot \text{seconds to compute a token} -
        \text{seconds to read a sequence's cache}}

    Infinite if reading the cache of one sequence takes at least as long as computing its nodes + 1 tokens: then no
    batch makes verifying compute-bound, and it takes as long as a plain step at every batch.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS, ModelShape
    >>> from spectheory.drafting import Chain
    >>> large = ModelShape(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> card = ACCELERATORS["H100-SXM"]
    >>> [round(knee_batch(Roofline(large, None, card, context=n), Chain(4)), 1) for n in (0, 1024, 4096)]
    [59.1, 116.4, inf]
    """
    return _a_roofline(cost).target_time.knee(a_shape(shape).nodes + 1)


def break_even_batch(cost: Roofline, shape: Shape, tokens_per_call: float, full_share: float = 0.0) -> float | None:
    """The batch, not rounded, beyond which speculative decoding is no faster (C4, exact for the roofline).

    Arguments as in :func:`batch_table`. None if the speed-up is above 1 at no batch, ``math.inf`` if it is above 1 at
    every large batch.

    The batches B >= 1 with a speed-up above 1 are an interval: up to the knee of the plain step, tokens per call times
    plain step minus call is concave in B (the step is affine there, each pass of the call convex); beyond it, the
    speed-up falls, as tokens per call are at most nodes + 1 (exchanges between devices, proportional to B and to the
    tokens of a pass, change neither). The result is the upper end of that interval. Its lower
    end may exceed 1, where overheads of the draft dominate at small batches.

    There is no upper end if, per sequence, tokens per call times the seconds to read the cache are at least those of
    the call: max(cache, (nodes + 1) token) of the target and max(cache, tokens · token) of each draft pass, with those
    of exchanges on both sides. With free
    drafts this holds wherever verifying has no knee (:func:`knee_batch`) and tokens per call exceed 1, and in some
    cases with a knee. A draft with a cache to read may have an upper end even without a knee.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS, ModelShape
    >>> from spectheory.drafting import Chain
    >>> large = ModelShape(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> card = ACCELERATORS["H100-SXM"]
    >>> [round(break_even_batch(Roofline(large, None, card, n), Chain(4), 2.0), 1) for n in (0, 512, 1024)]
    [118.2, 241.3, inf]
    """
    _check_tokens(cost, tokens_per_call, shape)
    check_share(full_share)
    terms = _terms(cost, shape, tokens_per_call, full_share)
    knees = {time.knee(tokens) for _, time, tokens in terms}
    corners = [1.0, *sorted(knee for knee in knees if 1 < knee < math.inf), math.inf]
    for left, right in reversed(list(itertools.pairwise(corners))):
        constant, slope = _line(terms, (left + right) / 2 if right < math.inf else 2 * left)
        if right == math.inf and slope > 0:
            return math.inf
        if constant + slope * left > 0:  # positive at the left end, and not at the right one unless that is infinite
            return min(-constant / slope, right) if slope < 0 else right
    return None


def _terms(cost: Roofline, shape: Shape, tokens_per_call: float, full_share: float) -> list[Term]:
    """Tokens per call times plain step, minus call."""
    terms: list[Term] = [(tokens_per_call, cost.target_time, 1)]
    terms += [(-share, cost.target_time, tokens) for tokens, share in shape.verified.items()]
    if cost.draft_time:
        passes: dict[int, float] = dict(Counter(shape.passes))
        for first in shape.passes[:1]:
            fewer = int(full_share)
            passes[first] -= 1
            for extra, share in ((fewer, fewer + 1 - full_share), (fewer + 1, full_share - fewer)):
                passes[first + extra] = passes.get(first + extra, 0.0) + share
        terms += [(-count, cost.draft_time, tokens) for tokens, count in passes.items()]
    return terms


def _line(terms: list[Term], batch: float) -> tuple[float, float]:
    """Constant and slope in the batch of a sum of passes, near `batch`."""
    constant = slope = 0.0
    for factor, time, tokens in terms:
        computing = batch > time.knee(tokens)
        constant += factor * ((0.0 if computing else time.weights) + time.overhead)
        slope += factor * ((tokens * time.token if computing else time.cache) + tokens * time.link)
    return constant, slope


def _a_roofline(cost: Roofline) -> Roofline:
    """Check that an argument is a roofline."""
    return instance("cost", cost, Roofline, remedy="batches are compared by a roofline")


def _check_tokens(cost: Roofline, tokens_per_call: float, shape: Shape) -> None:
    _a_roofline(cost)
    most = a_shape(shape).depth + 1
    real(
        "the number of tokens per call",
        tokens_per_call,
        lambda tokens: 1 <= tokens <= most,
        limit=f"must be in 1..{most} with {shape}",
        remedy="count the recovered or bonus token too",
    )
