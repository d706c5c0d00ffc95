"""C3: the time of a pass from a data sheet, for hardware you do not have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from spectheory.checks import BEYOND, MOST_EXACT, amount, instance, whole
from spectheory.cost.accelerators import Accelerator
from spectheory.cost.architecture import ModelShape
from spectheory.cost.experts import Routing, independent
from spectheory.cost.model import Ends, PassCost
from spectheory.drafting import Shape
from spectheory.errors import SettingError
from spectheory.intervals import Interval, weakest

_MOST_DEVICES = 1024
VERIFYING_OFF = 0.04
"""By which the time of a pass on several tokens is off, in plain steps. From published timings: the speeds of a model
with multi-token prediction on an RTX 5090 (qwen38-mtp, ``sweeps/``) at n = 1 and 6 drafts give the time of a step for n
= 2 to 5 within 4%, by a straight line as a roofline has.
"""
DRAFTING_OFF = 2.0
"""Factor by which the time of a draft pass is off, as for a ratio c that is guessed."""
_SUM_BYTES = 2
"""All-reduces after attention and after the MLP of a layer are of 16-bit hidden states."""


@dataclass(frozen=True)
class ExpertTime:
    """Seconds of a pass that routed experts take, of all layers that have as many.

    `seconds` is the time to read one expert of each of these layers, on one device. Experts are divided among `devices`
    each, or whole experts among `places`: then the device with the most distinct experts decides. `alike` says how the
    tokens of a sequence route: 1 all to the same experts, 0 independently. A routing log, where there is one, decides
    in its place.
    """

    experts: int
    chosen: int
    seconds: float
    devices: int = 1
    places: int = 1
    alike: float = 0.5
    routing: Routing | None = None

    def distinct(self, tokens: float, batch: float) -> float:
        """Distinct experts of a layer, by a log or between the bounds of C7; concave in `batch`."""
        if self.routing is not None and tokens == int(tokens):
            return self.routing.distinct(int(tokens), batch)
        apart, same = (independent(self.experts, self.chosen, count) for count in (tokens * batch, batch))
        return self.alike * same + (1 - self.alike) * apart

    def reading(self, tokens: float, batch: float) -> float:
        """Seconds to read what the busiest device reads."""
        distinct = self.distinct(tokens, batch)
        if self.places == 1:
            return distinct * self.seconds / self.devices
        held, touched = self.experts / self.places, min(distinct / self.experts, 1.0)
        spread = math.sqrt((self.places - 1) * held * touched * (1 - touched))
        return min(held, distinct, touched * held + spread) * self.seconds

    @property
    def most(self) -> float:
        """Seconds to read every expert of the busiest device."""
        return self.experts * self.seconds / (self.devices * self.places)


@dataclass(frozen=True)
class RooflineTime:
    r"""Seconds of a pass on m tokens of each of B sequences: the longer of reading and computing (C3).

    .. math:: t(m, B) = \max(\text{weights} + \text{experts}(m, B) + B\,\text{cache} + B\,m\,\text{state},\;
        B\,m\,\text{token}) + B\,m\,\text{link} + \text{overhead}

    All in seconds: `weights` to read the weights that every pass reads and `cache` to read the keys and values of one
    sequence, once per pass; `experts` to read distinct experts, a concave function of the batch; `state` to write the
    states of one token, which a rejection goes back to; `token` to compute one token, `link` to exchange its sums
    between devices; `overhead` is added to every pass.

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
    state: float = 0.0
    experts: tuple[ExpertTime, ...] = ()

    def __post_init__(self) -> None:
        instance("experts", self.experts, tuple, remedy="spectheory.cost.RooflineTime.of makes them")
        for name, seconds in vars(self).items():
            if name != "experts":
                positive = name in ("weights", "token")
                checked = amount(name, seconds, positive=positive, below=BEYOND, remedy="give seconds")
                object.__setattr__(self, name, checked)
        for each in self.experts:
            instance("experts", each, ExpertTime, remedy="spectheory.cost.RooflineTime.of makes them")

    @classmethod
    def of(
        cls,
        model: ModelShape,
        accelerator: Accelerator,
        context: int,
        dtype: str = "bf16",
        devices: int = 1,
        *,
        expert_parallel: bool = False,
        routing: Routing | None = None,
        alike: float = 0.5,
    ) -> RooflineTime:
        r"""The coefficients of a model after `context` tokens on an accelerator, or on several `devices` of it.

        The pass is short against the context: each of its tokens attends to `context` tokens. N devices read and
        compute an Nth each (tensor parallelism), caches at least one head of keys and values each; every device keeps a
        latent cache whole. With `expert_parallel`, each holds an Nth of the experts, and the device that reads most of
        them decides: at most D/N + sqrt((N - 1) E/N q (1 - q)) in the mean for D = qE distinct of E experts that are
        used equally. They then add their sums, two all-reduces a layer of 16-bit hidden states, along a ring:

        .. math:: \text{link} = 2\,\text{layers} \cdot \frac{2(N-1)}{N} \cdot
            \frac{2\,\text{hidden}}{\text{bandwidth of the link}/2}

        and as many latencies of the link in the overhead. Exchanges of embeddings and logits are left out.
        """
        instance("model", model, ModelShape, remedy="spectheory.cost.ModelShape.from_config makes one")
        instance("accelerator", accelerator, Accelerator, remedy="ACCELERATORS has some by name")
        length = amount("context", context, below=MOST_EXACT, remedy="count cached tokens")
        instance("expert_parallel", expert_parallel, bool, remedy="leave it out")
        _check_devices(devices, model, accelerator)
        check_routing(model, routing)
        link, latency = _exchange(model, accelerator, devices)
        experts = tuple(
            ExpertTime(
                part.experts,
                part.chosen,
                count * model.bytes_of_expert(part) / accelerator.bandwidth,
                devices=1 if expert_parallel else devices,
                places=min(devices, part.experts) if expert_parallel else 1,
                alike=alike,
                routing=routing,
            )
            for count, part in model.routed
        )
        return cls(
            weights=model.read_bytes / devices / accelerator.bandwidth,
            cache=model.cache_read(length, devices) / accelerator.bandwidth,
            token=model.operations_per_token(length) / devices / accelerator.peak_of(dtype),
            overhead=accelerator.overhead + latency,
            link=link,
            state=model.state_bytes / devices / accelerator.bandwidth,
            experts=experts,
        )

    def reading(self, tokens: float, batch: float = 1) -> float:
        """Seconds to read weights, experts and caches, and to write states."""
        routed = sum(each.reading(tokens, batch) for each in self.experts)
        return self.weights + batch * self.cache + batch * tokens * self.state + routed

    def seconds(self, tokens: float, batch: float = 1) -> float:
        """Seconds of a pass on `tokens` tokens of each of `batch` sequences."""
        tokens, batch = (
            amount(name, value, below=BEYOND, remedy="count tokens and sequences")
            for name, value in (("tokens", tokens), ("batch", batch))
        )
        exchange = batch * tokens * self.link
        return max(self.reading(tokens, batch), batch * tokens * self.token) + exchange + self.overhead

    def knee(self, tokens: float) -> float:
        """The batch at which computing takes as long as reading; infinite if reading a cache takes as long.

        With experts it is solved numerically: reading is concave in the batch, so there is one.
        """
        tokens = amount("tokens", tokens, below=BEYOND, remedy="count tokens")
        gain = tokens * self.token - self.cache - tokens * self.state
        if gain <= 0:
            return math.inf
        if not self.experts:
            return self.weights / gain
        from scipy.optimize import brentq

        most = sum(each.most for each in self.experts)
        ends = self.weights / gain, (self.weights + most) / gain * (1 + 1e-9)
        return float(brentq(lambda batch: batch * tokens * self.token - self.reading(tokens, batch), *ends))


def _check_devices(devices: int, model: ModelShape, accelerator: Accelerator) -> None:
    """Check that a model divides among devices, and that their link is known."""
    whole("devices", devices, most=_MOST_DEVICES, remedy="1 is no tensor parallelism")
    if model.heads and model.heads % devices:
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


def check_routing(model: ModelShape, routing: Routing | None) -> None:
    """Check that a routing log is of a model with these experts."""
    if routing is None:
        return
    instance("routing", routing, Routing, remedy="Routing.read makes one")
    found = (routing.layers, routing.experts, routing.chosen)
    wanted = [(count, part.experts, part.chosen) for count, part in model.routed]
    if len(wanted) != 1 or wanted[0] != found:
        has = "; ".join("{} layers with {} experts, {} of each token".format(*each) for each in wanted) or "no experts"
        raise SettingError(
            "the routing log has {} layers with {} experts, {} of each token".format(*found),
            limit=f"the target has {has}",
            remedy="give the log of this target, or none",
        )


def _exchange(model: ModelShape, accelerator: Accelerator, devices: int) -> tuple[float, float]:
    """Seconds of the all-reduces for one token, and of their latencies in a pass."""
    if devices == 1:
        return 0.0, 0.0
    moved = 2 * (devices - 1) / devices * _SUM_BYTES * model.hidden
    reached = min((devices - 1) / accelerator.peers, 1.0) if accelerator.peers else 1.0
    link = accelerator.link * reached / 2
    return model.sums * moved / link, model.sums * accelerator.link_latency


@dataclass(frozen=True)
class Roofline(PassCost):
    """C3: the cost of a pair of models on an accelerator, from sizes and a data sheet (estimate).

    Both models run one after the other; without a draft, drafts are free. Times are optimistic: each pass takes at
    least as long as its reading and computing at peak speed. The speed-up is a ratio of such times, and its error may
    have either sign: shares of the peak that are equal in all passes cancel, overheads do not. The stated error
    (:meth:`errors`) is :data:`VERIFYING_OFF` of verification and :data:`DRAFTING_OFF` of draft passes, either way;
    overheads that are not given are not in it. Weights are read once
    per pass, the cache once per sequence and pass; tokens of a draft tree cost the same as those of a chain. The target
    computes in the type `dtype`, the draft in `draft_dtype`, without one in the same. Both
    models are divided among all `devices`, experts whole with `expert_parallel`. :attr:`room` says how many sequences
    fit into memory.

    Of a mixture of experts a pass reads the distinct experts that its tokens touch, :func:`distinct_experts`. By a
    `routing` log of the target they are known; otherwise times are midway between both bounds, and the bounds are one
    of the errors. Of layers with a state (linear attention, state-space layers) verification writes a copy of the state
    per token, to go back to after a rejection. Engines that compute a second pass over the accepted tokens instead take
    longer.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS
    >>> from spectheory.drafting import Chain
    >>> small = ModelShape.dense(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
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
    routing: Routing | None = None
    expert_parallel: bool = False
    target_time: RooflineTime = field(init=False, repr=False, compare=False)
    draft_time: RooflineTime | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("batch", self.batch, most=MOST_EXACT, remedy="count sequences")
        instance("target", self.target, ModelShape, remedy="spectheory.cost.ModelShape.from_config makes one")
        target, draft = self._times()
        object.__setattr__(self, "target_time", target)
        object.__setattr__(self, "draft_time", draft)

    def _times(self, **routes: float) -> list[RooflineTime | None]:
        """Times of target and draft."""
        of = ((self.target, self.dtype, self.routing), (self.draft, self._draft_dtype, None))
        return [
            None
            if model is None
            else RooflineTime.of(
                model,
                self.accelerator,
                self.context,
                dtype,
                self.devices,
                expert_parallel=self.expert_parallel,
                routing=routing,
                **routes,
            )
            for model, dtype, routing in of
        ]

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
        """The stated errors, of verification and of draft passes, and the bounds of the experts that tokens touch; each
        end is taken as that of a 95% interval.
        """
        given: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        for name, factor in (("verifying", 1 + VERIFYING_OFF), *([("drafting", DRAFTING_OFF)] if self.draft else [])):
            yield _Off(**(given | {name: 1 / factor})), _Off(**(given | {name: factor}))
        if self.target.routed and self.routing is None:
            yield _Off(**given, alike=1.0), _Off(**given, alike=0.0)

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
        each = sum(model.cache_bytes(self.context, self.devices) for model in models)
        if left < 0:
            return 0.0
        return left / each if each else math.inf

    def prompt_pass(self, tokens: int, *, drafted: bool = False) -> float:
        """Seconds of the pass over the prompt of one sequence; with drafts the draft reads it too.

        The longer of reading the weights and computing, as any pass; keys and values that it writes are not counted.
        """
        tokens = whole("tokens of the prompt", tokens, least=0, most=MOST_EXACT, remedy="count tokens")
        models = [(self.target, self.target_time, self.dtype)]
        if drafted and self.draft and self.draft_time:
            models.append((self.draft, self.draft_time, self._draft_dtype))
        return sum(self._over_prompt(*model, tokens) for model in models) if tokens else 0.0

    def _over_prompt(self, model: ModelShape, time: RooflineTime, dtype: str, tokens: int) -> float:
        card = self.accelerator
        experts = sum(replace(each, routing=None, alike=0.0).reading(tokens, 1) for each in time.experts)
        computing = model.operations_of_prompt(tokens) / self.devices / card.peak_of(dtype)
        return max(time.weights + experts, computing) + tokens * time.link + time.overhead


@dataclass(frozen=True)
class _Off(Roofline):
    """A roofline at one end of an error: passes on several tokens, or draft passes, take a factor longer, or tokens
    route alike or independently; it has no error more.
    """

    verifying: float = 1.0
    drafting: float = 1.0
    alike: float = 0.5

    def _times(self, **routes: float) -> list[RooflineTime | None]:
        return super()._times(alike=self.alike, **routes)

    def target_pass(self, tokens: int) -> Interval:
        return super().target_pass(tokens) * (self.verifying if tokens > 1 else 1.0)

    def draft_pass(self, tokens: int) -> Interval:
        return super().draft_pass(tokens) * self.drafting

    def errors(self) -> Iterator[Ends]:
        return iter(())
