"""C4: throughput at batch B under the roofline: the knee, the break-even, and a table."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from spectheory.checks import MOST_EXACT, instance, real, several, whole
from spectheory.cost.model import check_share
from spectheory.cost.roofline import Roofline, RooflineTime
from spectheory.drafting import Shape
from spectheory.drafting.tree import a_shape

Term = tuple[float, RooflineTime, int]
"""A factor, and the pass it multiplies: the model's times and the number of tokens."""


_RESOLVED = 1e-9
"""Relative width to which a break-even with experts is found."""


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
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
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
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
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

    With experts the batches that pay may have gaps: at a small batch verification reads more experts than a plain step,
    at a larger one both read almost all. The result is the upper end of the last of them, certified to a relative
    1e-9: each pass takes longer the larger the batch, which bounds the gain between two batches.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS, ModelShape
    >>> from spectheory.drafting import Chain
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> card = ACCELERATORS["H100-SXM"]
    >>> [round(break_even_batch(Roofline(large, None, card, n), Chain(4), 2.0), 1) for n in (0, 512, 1024)]
    [118.2, 241.3, inf]
    """
    _check_tokens(cost, tokens_per_call, shape)
    check_share(full_share)
    terms = _terms(cost, shape, tokens_per_call, full_share)
    return _last_gain(terms) if any(time.experts for _, time, _ in terms) else _upper_end(terms)


def _upper_end(terms: list[Term]) -> float | None:
    """The upper end where passes are convex and piecewise linear in the batch."""
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


def _last_gain(terms: list[Term]) -> float | None:
    """The upper end of the last batches that pay, with experts."""

    def total(batch: float, sign: int) -> float:
        return sum(sign * factor * time.seconds(tokens, batch) for factor, time, tokens in terms if sign * factor > 0)

    limits = [(factor, _at_limit(time, tokens, most=factor > 0), tokens) for factor, time, tokens in terms]
    last = _upper_end(limits)  # with all experts in what is gained, and the fewest in what is paid
    if last is None or last == math.inf:
        return last
    cells = [(1.0, max(last, 1.0))]
    while cells:
        left, right = cells.pop()
        if total(right, 1) > total(right, -1):
            return right
        if total(right, 1) <= total(left, -1):
            continue
        if right - left <= _RESOLVED * right:
            if total(left, 1) > total(left, -1):
                return left
            continue
        middle = math.sqrt(left * right)
        cells += [(left, middle), (middle, right)]
    return None


def _at_limit(time: RooflineTime, tokens: int, *, most: bool) -> RooflineTime:
    """A pass with constant reading of experts: the most at any batch, or those of a batch of one."""
    read = sum(each.most if most else each.reading(tokens, 1.0) for each in time.experts)
    return replace(time, weights=time.weights + read, experts=())


def _line(terms: list[Term], batch: float) -> tuple[float, float]:
    """Constant and slope in the batch of a sum of passes, near `batch`."""
    constant = slope = 0.0
    for factor, time, tokens in terms:
        computing = batch > time.knee(tokens)
        constant += factor * ((0.0 if computing else time.weights) + time.overhead)
        reading = time.cache + tokens * time.state
        slope += factor * ((tokens * time.token if computing else reading) + tokens * time.link)
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
