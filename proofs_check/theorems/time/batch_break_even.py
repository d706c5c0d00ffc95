"""C4: the knee of verifying and the batch beyond which drafts no longer pay; neither decides the other."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.time.closed_forms import CARD, DRAFT, TARGET, seconds, shape_of, times
from spectheory.cost import Roofline, batch_table, break_even_batch, knee_batch
from spectheory.drafting import Chain

# Many sequences at once (C4): what a call gains over plain steps, the knee and the break-even, in fractions.


Times = Sequence[Real]
"""Seconds to read the weights, to read a sequence's cache, to compute a token, and beside; empty for free drafts."""


def gain(target: Times, draft: Times, k: int, tokens: Real, batch: Real) -> Real:
    """Tokens per call times a plain step, minus a call of a chain: above 0 where speculative decoding pays."""
    drafting = k * seconds(draft, 1, batch) if draft else 0
    return tokens * seconds(target, 1, batch) - seconds(target, k + 1, batch) - drafting


def knee(time: Times, tokens: int) -> Any:
    """The batch at which computing takes as long as reading; None if it never does."""
    weights, cache, token, _ = time
    excess = tokens * token - cache
    return weights / excess if excess > 0 else None


def end(target: Times, draft: Times, k: int, tokens: Real) -> Any:
    """The upper end of the batches that pay: None if none does, infinite if there is no end; linear between knees."""
    knees = {knee(target, 1), knee(target, k + 1), *([knee(draft, 1)] if draft else [])} - {None}
    corners = [Fraction(1), *sorted(at for at in knees if at > 1)]
    corners.append(2 * corners[-1])
    gains = [gain(target, draft, k, tokens, at) for at in corners]
    if gains[-1] > gains[-2] or gains[-1] == gains[-2] > 0:
        return math.inf
    last = max((i for i, value in enumerate(gains) if value > 0), default=None)
    if last is None:
        return None
    left = min(last, len(corners) - 2)  # beyond the last corner the last line goes on
    (a, b), (x, y) = corners[left : left + 2], gains[left : left + 2]
    return a + x * (b - a) / (x - y)


def small_times(effort: Effort) -> Iterator[Case]:
    """Small whole times, every batch up to 50."""
    highest = effort.pick(2, 4)
    drafts = [(), *product((1,), range(highest + 1), (1,), (0, 2))]
    for cache, overhead, draft, k, weights in product(range(5), (0, 1), drafts, (1, 3), (3, 20)):
        for share in (0, 1, 2, 3):
            target = tuple(map(Fraction, (weights, cache, 1, overhead)))
            tokens = 1 + Fraction(share * k, 3)
            yield {"target": target, "draft": tuple(map(Fraction, draft)), "k": k, "tokens": tokens}


INDEPENDENT: tuple[Case, ...] = (
    {
        "target": tuple(map(Fraction, (10, 2, 1, 0))),
        "draft": tuple(map(Fraction, (1, 2, 1, 0))),
        "k": 1,
        "tokens": Fraction(3, 2),
        "has_knee": 0,
        "has_end": 1,
    },
    {
        "target": (Fraction(10), Fraction(3, 2), Fraction(1), Fraction(0)),
        "draft": (),
        "k": 1,
        "tokens": Fraction(3, 2),
        "has_knee": 1,
        "has_end": 0,
    },
)
"""A break-even without a knee, where the draft's cache weighs as much as the target's, and a knee without an end."""

BATCHES = (1, 2, 5, 13, 55, 987)
"""Batches at which searches compare."""

LAST = 50
"""The last batch of those tried one by one."""


def together(target: Times, draft: Times, k: int, tokens: Real) -> Iterator[Compared]:
    """The batches that pay have no gap: between two others no batch gains less than both."""
    gains = [gain(target, draft, k, tokens, batch) for batch in BATCHES]
    highest_before = list(accumulate(gains, larger))
    highest_after = list(accumulate(reversed(gains), larger))[::-1]
    for i in range(1, len(gains) - 1):
        yield at_most(smaller(highest_before[i - 1], highest_after[i + 1]), gains[i])


def separates(target: Times, draft: Times, k: int, tokens: Fraction) -> Iterator[Compared]:
    """Batches beyond the end do not pay, below it they pay from the first that does; at the end the gain is 0."""
    at = end(target, draft, k, tokens)
    pays = [batch for batch in range(1, LAST + 1) if gain(target, draft, k, tokens, batch) > 0]
    yield equal(tuple(pays), tuple(range(pays[0], pays[0] + len(pays))) if pays else ())
    if at is None:
        yield equal(len(pays), 0)
    elif at == math.inf:
        yield at_least(gain(target, draft, k, tokens, 10**9), 0)
    else:
        yield equal(gain(target, draft, k, tokens, at), 0)
        yield at_least(at, max(pays, default=0))
        yield at_most(gain(target, draft, k, tokens, 2 * at), 0)


def _has_knee(target: Times, k: int) -> int:
    return int(knee(target, k + 1) is not None)


def _has_end(target: Times, draft: Times, k: int, tokens: Real) -> int:
    batch = end(target, draft, k, tokens)
    return int(batch is not None and batch < math.inf)


def made_up(effort: Effort) -> Iterator[Case]:
    """Tiny models on a slow card, six contexts, chains of 1, 2 and 4, free drafts and others."""
    contexts, lengths = effort.pick((0, 1, 4, 9, 30, 300), tuple(range(0, 300, 7))), (1, 2, 4)
    for context, k, share, free in product(contexts, lengths, (1, 2, 3), (False, True)):
        yield {"context": context, "k": k, "tokens": 1 + Fraction(share * k, 4), "free": free}


def library_batches(context: int, k: int, tokens: Fraction, free: bool) -> Iterator[Compared]:
    """The library's knee, break-even and table."""
    target, draft = times(TARGET, context), () if free else times(DRAFT, context)
    cost = Roofline(shape_of(TARGET), None if free else shape_of(DRAFT), CARD, context)
    stated, at = knee(target, k + 1), end(target, draft, k, tokens)
    library_knee, found_end = knee_batch(cost, Chain(k)), break_even_batch(cost, Chain(k), float(tokens))
    yield equal(int(library_knee == math.inf), int(stated is None))
    yield equal(int(found_end is None), int(at is None))
    yield equal(int(found_end == math.inf), int(at == math.inf))
    if stated is not None:
        yield computed(library_knee, stated)
    if at is not None and found_end is not None and at < math.inf:
        yield computed(found_end, at)
    for point in batch_table(cost, Chain(k), float(tokens), (1, 50)):
        plain = seconds(target, 1, point.batch)
        call = tokens * plain - gain(target, draft, k, tokens, point.batch)
        yield computed(point.plain, plain)
        yield computed(point.call, call)
        yield computed(point.speedup, tokens * plain / call)
        yield computed(point.tokens_per_second, point.batch * tokens / call)
        yield equal(int(point.compute_bound), int(stated is not None and point.batch > stated))


def tied_to_the_knee(context: int, k: int, tokens: Fraction, free: bool) -> Compared:
    """The library finds an end iff it finds a knee."""
    cost = Roofline(shape_of(TARGET), None if free else shape_of(DRAFT), CARD, context)
    batch = break_even_batch(cost, Chain(k), float(tokens))
    return equal(int(batch is not None and batch < math.inf), int(knee_batch(cost, Chain(k)) < math.inf))


def any_times() -> Any:
    """Any times, batches up to 987."""
    positive, share = (st.integers(low, 2000).map(lambda i: Fraction(i, 20)) for low in (1, 0))
    time = st.tuples(positive, share, positive, share)
    tokens = st.integers(20, 140).map(lambda i: Fraction(i, 20))
    return st.fixed_dictionaries(
        {"target": time, "draft": st.one_of(st.just(()), time), "k": st.integers(1, 4), "tokens": tokens}
    )


def time_space() -> Space:
    """Every pair's times but for overheads, the target's reading as unit; a chain of two, 1 to 4 tokens per call."""

    def floats(x: NDArray[np.float64]) -> dict[str, Any]:
        cache, token, weights, other, small = (float(value) for value in np.exp(np.clip(x[:5], -20, 20)))
        tokens = 1 + 3 / (1 + float(np.exp(-np.clip(x[5], -40, 40))))
        return {"target": (1.0, cache, token, 0.0), "draft": (weights, other, small, 0.0), "k": 2, "tokens": tokens}

    return Space(6, floats)


PAYS_AT_ONE = Assumption("it pays at batch 1", lambda target, draft, k, tokens: gain(target, draft, k, tokens, 1) > 0)

AT_MOST_ALL = Assumption("tokens per call are at most k + 1", lambda target, draft, k, tokens: tokens <= k + 1)

NO_GAP = Claim("the batches that pay have no gap", together, (AT_MOST_ALL,))
FOR_ANY_TOKENS = Claim("the batches that pay have no gap for any tokens per call", together)

KNEE: tuple[Step, ...] = (
    same(
        "verifying d = (k+1)c per sequence computes Bd and reads W + Bx seconds; the difference is B(d - x) - W: with "
        "d > x it computes longer beyond the knee B = W/(d - x)",
        lambda W, x, d, B: (B * d - (W + B * x), B * (d - x) - W),
    ),
    valid(
        "with d <= x there is no knee: verifying takes as long as a plain step of c <= d at every batch, so with free "
        "drafts the speed-up is the tokens per call",
        lambda W, x, d, c, B: (equal(larger(W + B * x, B * d), W + B * x), equal(larger(W + B * x, B * c), W + B * x)),
        lambda W, x, d, c, B: [W > 0, x >= d, d >= c, c > 0, B > 0],
    ),
)
"""The knee."""

NO_GAP_STEPS: tuple[Step, ...] = (
    valid(
        "a pass is convex in the batch: max(W + Bx, Bd) lies below its chords",
        lambda W, x, d, A, B, C: at_most(
            (C - A) * larger(W + B * x, B * d), (C - B) * larger(W + A * x, A * d) + (B - A) * larger(W + C * x, C * d)
        ),
        lambda W, x, d, A, B, C: [W >= 0, x >= 0, d >= 0, A >= 0, A <= B, B <= C],
    ),
    valid(
        "up to the knee of the plain step, which is affine there, the gain is an affine minus a convex function and "
        "lies above its chords: at B between A and C it is no less than at both",
        lambda D, E, F, A, B, C: at_most(smaller(D, F), E),
        lambda D, E, F, A, B, C: [A <= B, B <= C, A < C, (C - A) * E >= (C - B) * D + (B - A) * F],
    ),
    valid(
        "where a plain step computes, Bc >= W + Bx, verifying does too",
        lambda W, x, c, k, B: at_least(B * (k + 1) * c, W + B * x),
        lambda W, x, c, k, B: [W > 0, x >= 0, c > 0, k >= 1, B > 0, B * c >= W + B * x],
    ),
    valid(
        "so beyond that knee the gain falls: tokens per call are at most k+1, and drafting takes f at B, no less than "
        "e at A",
        lambda tau, c, k, A, B, e, f: at_least(tau * A * c - A * (k + 1) * c - e, tau * B * c - B * (k + 1) * c - f),
        lambda tau, c, k, A, B, e, f: [tau <= k + 1, c > 0, A >= 0, B >= A, f >= e],
    ),
    valid(
        "with A before, B before and C beyond the knee K: no less than at both A and K, hence than at A and C",
        lambda D, E, G, F: at_most(smaller(D, F), E),
        lambda D, E, G, F: [smaller(D, G) <= E, F <= G],
    ),
)
"""Batches that pay have no gap."""

FOR_EVER: tuple[Step, ...] = (
    valid(
        "a pass takes between B max(x, d) and W more, so at large batches the gain is, per sequence, tau max(x, c) - "
        "max(x, (k+1)c) - k max(x', c'): above 0 it pays at all larger batches, below 0 there is an end; a knee asks "
        "whether (k+1)c > x, which is another question",
        lambda W, x, d, B: (
            at_least(larger(W + B * x, B * d), B * larger(x, d)),
            at_most(larger(W + B * x, B * d), W + B * larger(x, d)),
        ),
        lambda W, x, d, B: [W >= 0, x >= 0, d >= 0, B >= 0],
    ),
    valid(
        "with free drafts and no knee it pays at all larger batches: tau > 1 plain steps against one",
        lambda tau, W, x, d, B: at_least(tau * (W + B * x) - larger(W + B * x, B * d), (tau - 1) * W),
        lambda tau, W, x, d, B: [tau >= 1, W > 0, d > 0, x >= d, B > 0],
    ),
)
"""What happens at large batches."""

# Without a knee


def no_end(target: Times, draft: Times, k: int, tokens: Real) -> Compared:
    """There is no batch at which speculative decoding stops to pay."""
    return equal(_has_end(target, draft, k, tokens), 0)


NO_KNEE = Assumption(
    "verifying reads at least as long as it computes at every batch",
    lambda target, draft, k, tokens: knee(target, k + 1) is None,
)

FREE = Assumption("drafts are free", lambda target, draft, k, tokens: not draft)


def without_knee(_: Effort) -> Iterator[Case]:
    """Whole times to read, the longest first by 1, then by 2, ...; a draft reads no more, free ones among them."""
    for longest in range(1, 5):
        for weights, cache in product(range(1, longest + 1), range(longest + 1)):
            if longest == max(weights, cache):
                drafts = product(range(1, weights + 1), range(cache + 1))
                times_of = [(), *((Fraction(w), Fraction(x), Fraction(1, 4), Fraction(0)) for w, x in drafts)]
                for draft, k, share in product(times_of, (1, 2), (1, 2, 3)):
                    target = tuple(map(Fraction, (weights, cache, 1, 0)))
                    yield {"target": target, "draft": draft, "k": k, "tokens": 1 + Fraction(share * k, 4)}


C4 = Entry(
    id="C4",
    title="Throughput at batch B: the knee and the break-even",
    kind="identity",
    plain="with W seconds to read the weights, x a sequence's cache and c to compute a token, verifying computes "
    "longer than it reads beyond the knee W/((k+1)c - x), at no batch if x >= (k+1)c; the batches at which "
    "speculative decoding pays have no gap, and no upper end if at large batches tau plain steps take longer than "
    "a call. Knee and upper end may each exist without the other",
    latex=r"B_{knee}=\frac{W}{(k+1)c-x},\qquad \{B\ge1:\tau\,t(1,B)>t_{call}(B)\}\text{ is an interval}",
    assumptions=(
        "times of the roofline (C3), all sequences at one context",
        "tokens per call do not depend on the batch and are at most k + 1",
    ),
    calculators=public("cost", "BatchPoint batch_table break_even_batch knee_batch"),
    evidence=(
        proof("the knee, and what its absence means", KNEE),
        proof("batches that pay have no gap", NO_GAP_STEPS),
        proof("at large batches", FOR_EVER),
        exact(
            Claim("the end found from the knees separates batches that pay from those that do not", separates),
            small_times,
            wrong=Claim(
                "where it pays at batch 1 it does not lose at batch 50",
                lambda target, draft, k, tokens: at_least(gain(target, draft, k, tokens, LAST), 0),
                (PAYS_AT_ONE,),
            ),
        ),
        exact(
            Claim(
                "there is an end without a knee, and a knee without an end",
                lambda target, draft, k, tokens, has_knee, has_end: (
                    at_least(gain(target, draft, k, tokens, 1), 0),
                    equal(_has_knee(target, k), has_knee),
                    equal(_has_end(target, draft, k, tokens), has_end),
                ),
            ),
            lambda effort: INDEPENDENT,
            over="times W, x, c = 10, 2, 1 with a draft of 1, 2, 1; and 10, 3/2, 1 with free drafts; k = 1",
            wrong=Claim(
                "an end exists iff a knee does",
                lambda target, draft, k, tokens, has_knee, has_end: equal(
                    _has_end(target, draft, k, tokens), _has_knee(target, k)
                ),
            ),
        ),
        agreement(
            Claim("the library's knee, break-even and table", library_batches),
            made_up,
            wrong=Claim("the library finds an end iff it finds a knee", tied_to_the_knee),
        ),
        searched(NO_GAP, any_times, spaces=(time_space(),), wrong=FOR_ANY_TOKENS),
    ),
)

C4_NO_KNEE = Entry(
    id="C4/no-knee",
    title="No break-even where there is no knee",
    kind="refuted",
    plain="where reading a sequence's cache takes as long as computing its k + 1 tokens, x >= (k+1)c, there is no "
    "knee and no break-even either: what pays at one batch pays at every larger one (false for drafts that read a "
    "cache of their own)",
    latex=r"x \ge (k+1)c \;\Rightarrow\; \sup\{B \ge 1 : \tau\,t(1,B) > t_{call}(B)\} = \infty",
    assumptions=("times of the roofline (C3), all sequences at one context", "some batch pays"),
    evidence=(
        counterexample(
            Claim("without a knee there is no break-even", no_end, (NO_KNEE,)),
            without_knee,
            over="first by the longest time to read; a token computes in 1, a draft's in 1/4",
            true=Claim("with free drafts there is none", no_end, (NO_KNEE, FREE)),
        ),
    ),
)
