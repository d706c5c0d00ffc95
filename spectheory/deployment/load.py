"""A server under load: prompts and outputs of given lengths, times to tokens, and what meets a target (C3, C4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from spectheory.checks import MOST_EXACT, amount, instance, instances, several, whole
from spectheory.cost import Roofline
from spectheory.deployment.batches import BATCHES, BatchChoice, ChainCalls, lengths_of
from spectheory.errors import SettingError, argument

_DEFAULT_CONTEXT = 1024
"""Cached tokens of a sequence, where none are named."""
_LARGEST_BATCH = 10**6
_LONGEST_TARGET = 1e9
"""Milliseconds."""


@dataclass(frozen=True)
class Load:
    """What is asked of a server: sizes of batches, contexts, lengths of requests, and targets on times.

    A request has `prompt_tokens` and outputs `output_tokens`, all requests alike; then the context is their mean, the
    prompt and half of the output. `tpot` and `ttft` are the longest times that are allowed, in milliseconds: per output
    token after the first, and to the first token, which needs the lengths.

    Examples
    --------
    >>> Load(prompt_tokens=1000, output_tokens=200).contexts
    (1100,)
    """

    batches: Sequence[int] = BATCHES
    contexts: Sequence[int] = ()
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    tpot: float | None = None
    ttft: float | None = None

    def __post_init__(self) -> None:
        batches, contexts = (
            [whole(name, each, least=least, most=MOST_EXACT, remedy="name sizes") for each in values]
            for name, values, least in (
                (argument("batches", "--batch"), several("batches", self.batches, remedy="[1, 8, 64] is one"), 1),
                (argument("contexts", "--context"), several("contexts", self.contexts, remedy="[0, 1024] is one"), 0),
            )
        )
        for name in ("tpot", "ttft"):
            if getattr(self, name) is not None:
                amount(
                    argument(name),
                    getattr(self, name),
                    positive=True,
                    below=_LONGEST_TARGET,
                    remedy="give milliseconds",
                )
        self._check_lengths(contexts)
        if self.prompt_tokens is not None and self.output_tokens is not None:
            contexts = [self.prompt_tokens + self.output_tokens // 2]
        object.__setattr__(self, "batches", tuple(batches))
        object.__setattr__(self, "contexts", tuple(contexts) or (_DEFAULT_CONTEXT,))

    @property
    def longest(self) -> list[int]:
        """The contexts at which sequences end."""
        lengths = (self.prompt_tokens or 0) + (self.output_tokens or 0)
        return [lengths] if lengths else list(self.contexts)

    def _check_lengths(self, contexts: Sequence[int]) -> None:
        """Both lengths or none, which replace a context, and a time to the first token with them alone."""
        given = [name for name in ("prompt_tokens", "output_tokens") if getattr(self, name) is not None]
        for name in given:
            least = {"prompt_tokens": 1, "output_tokens": 2}[name]
            whole(argument(name), getattr(self, name), least=least, most=MOST_EXACT, remedy="count tokens")
        if len(given) == 1 or (self.ttft is not None and not given):
            raise SettingError(
                f"{argument(given[0] if given else 'ttft')} is given alone",
                limit="times of requests need both lengths",
                remedy=f"give {argument('prompt_tokens')} and {argument('output_tokens')}",
            )
        if given and contexts:
            raise SettingError(
                f"{argument('contexts', '--context')} is given with lengths of requests",
                limit="the context is then the prompt and half of the output",
                remedy="leave one out",
            )

    @property
    def targeted(self) -> bool:
        """Whether a time is limited."""
        return self.tpot is not None or self.ttft is not None


@dataclass(frozen=True)
class LoadPoint:
    r"""A chain of k drafts, or plain decoding, with `batch` requests at a time (values of the cost model).

    `tpot` is milliseconds per output token of a request after its first, `ttft` to the first.

    The place of an ended request is filled at once. A request of P prompt and N output tokens takes one pass over its
    prompt, p seconds, in which no other request decodes, and :math:`(N-1)/\tau` calls of t seconds; its first token is
    that of the prompt's pass:

    .. math:: \text{tpot} = \frac{(B-1)\,p + (N-1)\,t/\tau}{N-1},\quad \text{ttft} = p + t,\quad
        \text{tokens per second} = \frac{B N}{B p + (N-1)\,t/\tau}

    the times in seconds. ttft waits for the step under way and in no queue. Engines that read prompts in the same steps
    as they decode (chunked prefill) take less. `prompt_share` is :math:`B p` over
    that denominator. `speedup` compares tokens per second with plain decoding of as many requests, whose prompts take
    the target's pass alone; a draft model reads the prompt too. Without lengths p = 0 and N is without end: `ttft` and
    `prompt_share` are None.
    """

    batch: int
    k: int
    tokens_per_call: float
    tpot: float
    ttft: float | None
    tokens_per_second: float
    requests_per_second: float | None
    prompt_share: float | None
    speedup: float


@dataclass(frozen=True)
class LoadAnswer:
    """Chains under a load: the best length `batches` by batch and context, and what requests take.

    `requests` has the most tokens per second at each batch that fits into memory, where lengths are known. `targets`
    has for plain decoding and for each chain the largest batch that meets the targets and fits; a chain that meets them
    at no batch is not there. As tokens per second grow with the batch and times do too, that batch gives the *goodput*:
    the most tokens per second within the targets. `least_tpot` is the least time per token of all at a batch of one,
    milliseconds, where that misses the target.
    """

    load: Load
    batches: Sequence[BatchChoice]
    requests: Sequence[LoadPoint] = ()
    targets: Sequence[LoadPoint] = ()
    least_tpot: float | None = None

    @property
    def fits(self) -> bool:
        """Whether the first batch at the first context, which settings are for, fits into memory."""
        first = self.load.batches[0], self.load.contexts[0]
        return all(each.fits for each in self.batches if (each.batch, each.context) == first)

    @property
    def goodput(self) -> LoadPoint | None:
        """The most tokens per second within the targets; None if nothing meets them."""
        return max(self.targets, key=lambda point: point.tokens_per_second, default=None)


def under_load(chains: Sequence[ChainCalls], cost: Roofline, load: Load) -> LoadAnswer:
    """What chains give under a load, by a roofline, whose own batch and context do not matter (C3, C4; estimate).

    Targets are met at the load's first context.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS, ModelShape
    >>> from spectheory.drafting import Chain
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> free = Roofline(large, None, ACCELERATORS["H100-SXM"], context=0)
    >>> load = Load(prompt_tokens=500, output_tokens=500, tpot=8, ttft=50)
    >>> answer = under_load([ChainCalls(Chain(2), 2.5)], free, load)
    >>> [(point.k, point.batch, round(point.tpot, 2), round(point.tokens_per_second)) for point in answer.targets]
    [(0, 81, 8.0, 10128), (2, 239, 7.99, 29905)]
    >>> answer.goodput.k, round(answer.goodput.speedup, 2)
    (2, 1.86)
    """
    chains = instances("chains", chains, ChainCalls, remedy="spectheory.deployment.chain_calls makes them")
    instance("cost", cost, Roofline, remedy="a load is planned by a roofline")
    instance("load", load, Load, remedy="spectheory.deployment.Load() is one")
    sizes, contexts = sorted(set(load.batches)), sorted(set(load.contexts))
    lengths = lengths_of(chains, cost, sizes, contexts)
    best = [max(choices, key=lambda choice: choice.speedup) for choices in lengths]
    at, every = replace(cost, context=load.contexts[0]), [ChainCalls(), *chains]
    requests, targets = [], []
    if load.output_tokens is not None:
        for batch in sizes:
            points = [_point(chain, replace(at, batch=batch), load) for chain in every if batch <= chain.room(at)]
            requests += [max(points, key=lambda point: point.tokens_per_second)] if points else []
    if load.targeted:
        largest = [(chain, _largest(chain, at, load)) for chain in every]
        targets = [_point(chain, replace(at, batch=batch), load) for chain, batch in largest if batch]
    least = min(_point(chain, replace(at, batch=1), load).tpot for chain in every)
    return LoadAnswer(load, best, requests, targets, least if load.tpot is not None and least > load.tpot else None)


def _point(chain: ChainCalls, cost: Roofline, load: Load) -> LoadPoint:
    per_second, tpot, prompt, decoding = _times(chain, cost, load)
    plain, *_ = _times(ChainCalls(), cost, load)
    known = load.output_tokens is not None
    return LoadPoint(
        batch=cost.batch,
        k=chain.k,
        tokens_per_call=chain.tokens,
        tpot=1e3 * tpot,
        ttft=1e3 * (prompt + chain.seconds(cost)) if known else None,
        tokens_per_second=per_second,
        requests_per_second=per_second / load.output_tokens if load.output_tokens else None,
        prompt_share=cost.batch * prompt / (cost.batch * prompt + decoding) if known else None,
        speedup=per_second / plain,
    )


def _times(chain: ChainCalls, cost: Roofline, load: Load) -> tuple[float, float, float, float]:
    """Tokens per second of all, and seconds: per token of one request, of its prompt's pass, of its decoding."""
    step = chain.seconds(cost) / chain.tokens
    if load.output_tokens is None or load.prompt_tokens is None:
        return cost.batch / step, step, 0.0, math.inf
    further = load.output_tokens - 1
    prompt, decoding = cost.prompt_pass(load.prompt_tokens, drafted=chain.drafted), further * step
    per_second = cost.batch * load.output_tokens / (cost.batch * prompt + decoding)
    return per_second, ((cost.batch - 1) * prompt + decoding) / further, prompt, decoding


def _largest(chain: ChainCalls, cost: Roofline, load: Load) -> int:
    """The largest batch within memory and the targets, by bisection, as all times grow with the batch; 0 if none is."""
    most = int(min(chain.room(cost), _LARGEST_BATCH))

    def meets(batch: int) -> bool:
        point = _point(chain, replace(cost, batch=batch), load)
        times = ((point.tpot, load.tpot), (point.ttft, load.ttft))
        return all(limit is None or (time is not None and time <= limit) for time, limit in times)

    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low
