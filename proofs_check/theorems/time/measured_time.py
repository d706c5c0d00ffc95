"""C2: the speed-up from seconds of single passes, against calls played out one after the other."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from proofs_check.prelude import *
from spectheory.cost import FREE_DRAFTS, LATENCY_SCHEMA, ConstantRatio, LatencyTable, LoopTime
from spectheory.drafting import Chain, Tree
from spectheory.errors import TraceError
from spectheory.intervals import Interval

Node = tuple[int, ...]
"""A node of a draft tree: the ranks on the way to it."""

STEP, VERIFY = Fraction(1), Fraction(13, 10)
"""Seconds of the target on one token, and on a whole call."""

ONE, TWO = Fraction(1, 7), Fraction(1, 5)
"""Seconds of the draft on one token and on two."""

AROUND = {
    "plain": Fraction(1, 20),
    "call": Fraction(1, 9),
    "draft_pass": Fraction(1, 30),
    "node": Fraction(1, 70),
    "tree": Fraction(1, 6),
}
"""Seconds of a loop around a plain step, and around a call by its draft passes, its nodes, and whether it branches."""


def played_out(k: int, accepted: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Seconds of plain and speculative decoding; after a full acceptance the draft's first pass is on two tokens."""
    clock, output, unread = Fraction(0), 0, 1
    for right in accepted:
        for _ in range(k):
            clock += ONE if unread == 1 else TWO
            unread = 1
        clock += VERIFY
        output += right + 1
        unread = 2 if right == k else 1
    return output * STEP, clock


def speedup(k: int, accepted: Sequence[int], full_share: Real) -> Real:
    """Tokens per call, times a step, over the mean call."""
    tokens = Fraction(sum(accepted) + len(accepted), len(accepted))
    return tokens * STEP / (k * ONE + full_share * (TWO - ONE) + VERIFY)


def full(k: int, accepted: Sequence[int]) -> Fraction:
    """Share of calls that follow a full acceptance."""
    return Fraction(sum(right == k for right in accepted[:-1]), len(accepted))


def identity(k: int, accepted: Sequence[int], second: bool = True) -> Compared:
    """The speed-up played out is the formula's; not `second`: with every draft pass on one token."""
    plain, speculative = played_out(k, accepted)
    return equal(plain / speculative, speedup(k, accepted, full(k, accepted) if second else Fraction(0)))


def runs(effort: Effort) -> Iterator[Case]:
    """Every run of up to 4 calls of chains up to 3."""
    for k, calls in product(range(1, 4), range(1, effort.pick(4, 6) + 1)):
        yield from ({"k": k, "accepted": accepted} for accepted in product(range(k + 1), repeat=calls))


def spread(seconds: Fraction) -> Interval:
    """The value with a tenth on either side."""
    return Interval(float(seconds * 9 / 10), float(seconds), float(seconds * 11 / 10), "statistical")


def library_speedups(k: int, accepted: Sequence[int]) -> Iterator[Compared]:
    """A measured table, a constant ratio and free drafts at the tokens per call and full share of the run."""
    tokens, share = Fraction(sum(accepted) + len(accepted), len(accepted)), full(k, accepted)
    table = LatencyTable({1: spread(STEP), k + 1: spread(VERIFY)}, {1: spread(ONE), 2: spread(TWO)}, context=0)
    gain = table.speedup(Interval.exact(float(tokens)), Chain(k), float(share))
    for value, factor in ((gain.low, Fraction(9, 11)), (gain.best, 1), (gain.high, Fraction(11, 9))):
        yield computed(value, factor * speedup(k, accepted, share))
    yield computed(table.ratio, ONE / STEP)
    constant = ConstantRatio(float(ONE)).speedup(Interval.exact(float(tokens)), Chain(k), float(share))
    yield computed(constant.best, tokens / (k * ONE + 1))
    yield computed(FREE_DRAFTS.speedup(Interval.exact(float(tokens)), Chain(k)).best, tokens)


def affine(fixed: Fraction, slope: Fraction, tokens: int) -> Fraction:
    """Seconds of a pass that grow evenly with its tokens: what a table interpolates without error."""
    return fixed + slope * tokens


def tree_call(nodes: frozenset[Node]) -> Fraction:
    """Seconds of a call: a draft pass for every depth that has nodes with children, the target on all and the root."""
    parents = {node[:-1] for node in nodes}
    drafting = total(
        affine(ONE, TWO, sum(len(node) == depth for node in parents)) for depth in {len(node) for node in parents}
    )
    return drafting + affine(STEP, VERIFY, len(nodes) + 1)


def table() -> LatencyTable:
    """A table measured at few lengths, with the loop around its passes."""
    target = {m: Interval.exact(float(affine(STEP, VERIFY, m))) for m in (1, 3, 20)}
    draft = {m: Interval.exact(float(affine(ONE, TWO, m))) for m in (1, 2, 9)}
    return LatencyTable(target, draft, 0, loop=LoopTime(**{name: float(value) for name, value in AROUND.items()}))


def interpolated(nodes: frozenset[Node]) -> float:
    """The library's call, from a table measured at few lengths."""
    return table().call(Tree.from_paths(sorted(nodes))).best


def looped(nodes: frozenset[Node]) -> float:
    """The library's speed-up at one token per call, with the loop counted on both sides."""
    return table().looped.speedup(Interval.exact(1.0), Tree.from_paths(sorted(nodes))).best


def around(nodes: frozenset[Node]) -> Fraction:
    """Seconds of the loop in a call, thing by thing."""
    clock = AROUND["call"]
    for depth in {len(node) for node in nodes}:
        level = [node for node in nodes if len(node) == depth]
        clock += AROUND["draft_pass"] + total(AROUND["node"] for _ in level)
    below: dict[Node, int] = {}
    for node in nodes:
        below[node[:-1]] = below.get(node[:-1], 0) + 1
    return clock + (AROUND["tree"] if max(below.values()) > 1 else 0)


def looped_by_hand(nodes: frozenset[Node], *, plain: Fraction = AROUND["plain"]) -> Fraction:
    """A plain step over a call, each with the loop around it."""
    return (affine(STEP, VERIFY, 1) + plain) / (tree_call(nodes) + around(nodes))


def trees(effort: Effort) -> Iterator[Case]:
    """Trees of ranks 1 and 2, up to 4 nodes."""
    grown: set[frozenset[Node]] = {frozenset([(1,)]), frozenset([(2,)])}
    for _ in range(effort.pick(4, 6)):
        yield from ({"nodes": nodes} for nodes in sorted(grown, key=sorted))
        places = [(nodes, (*parent, rank)) for nodes in grown for parent in ((), *nodes) for rank in (1, 2)]
        grown = {nodes | {node} for nodes, node in places if node not in nodes and len(node) <= 3}


def _read(tokens: int, schema: int) -> bool:
    passes = {1: spread(STEP), tokens: spread(VERIFY)}, {1: spread(ONE), 2: spread(TWO)}
    kept = LatencyTable(*passes, context=7, loop=table().loop)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "latency.json"
        kept.write(path)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": schema}))
        try:
            return LatencyTable.read(path) == kept
        except TraceError:
            return False


def inside(lows: Sequence[Real], widths: Sequence[Real], places: Sequence[Real]) -> Iterator[Compared]:
    """Tokens per call, step and call within their ranges give a speed-up within the product of the ranges."""
    highs = [low + width for low, width in zip(lows, widths, strict=True)]
    tokens, step, call = (low + place * width for low, place, width in zip(lows, places, widths, strict=True))
    yield at_most(lows[0] * lows[1] / highs[2], tokens * step / call)
    yield at_most(tokens * step / call, highs[0] * highs[1] / lows[2])


def too_narrow(lows: Sequence[Real], widths: Sequence[Real], places: Sequence[Real]) -> Compared:
    """The low end with the low end of the call."""
    tokens, step, call = (low + place * width for low, place, width in zip(lows, places, widths, strict=True))
    return at_most(lows[0] * lows[1] / lows[2], tokens * step / call)


def ranges() -> Any:
    """Any ranges of positive numbers."""
    share = st.integers(1, 1000).flatmap(lambda n: st.integers(0, n).map(lambda i: Fraction(i, n)))
    three = st.tuples(share, share, share)
    positive = three.map(lambda values: tuple(value + Fraction(1, 1000) for value in values))
    return st.fixed_dictionaries({"lows": positive, "widths": three, "places": three})


def range_space() -> Space:
    """Every three ranges of positive numbers and places in them."""

    def floats(x: NDArray[np.float64]) -> Case:
        sizes, shares = np.exp(np.clip(x[:6], -20, 20)), 1 / (1 + np.exp(-np.clip(x[6:], -40, 40)))
        values = [float(value) for value in (*sizes, *shares)]
        return {"lows": tuple(values[:3]), "widths": tuple(values[3:6]), "places": tuple(values[6:])}

    return Space(9, floats)


MEAN_CALL: tuple[Step, ...] = (
    same(
        "of C calls F follow a full acceptance and make their first draft pass on one token more (d2, not d1 seconds); "
        "with D for drafting and V for verifying all take C (D + V + (F/C)(d2 - d1)) seconds",
        lambda C, F, D, V, d1, d2: ((C - F) * (D + V) + F * (D - d1 + d2 + V), C * (D + V + (F / C) * (d2 - d1))),
    ),
    in_words(
        "plain decoding of the same N tokens takes N steps: the ratio is tokens per call N/C times a step over the "
        "mean call",
        lambda N, C, step, call: (N * step / (C * call), (N / C) * step / call),
    ),
    valid(
        "with every factor in its range the speed-up is at least the product of the low ends over the high end of a "
        "call, and at most the reverse",
        lambda n, t, c, n0, t0, c0, n1, t1, c1: (at_most(n0 * t0 * c, n * t * c1), at_most(n * t * c0, n1 * t1 * c)),
        lambda n, t, c, n0, t0, c0, n1, t1, c1: [
            *(n0 > 0, n0 <= n, n <= n1),
            *(t0 > 0, t0 <= t, t <= t1),
            *(c0 > 0, c0 <= c, c <= c1),
        ],
    ),
    same(
        "between two measured lengths u and v the line through affine times is the affine time itself",
        lambda a, b, m, u, v: (((v - m) * (a + b * u) + (m - u) * (a + b * v)) / (v - u), a + b * m),
    ),
    valid(
        "and above a time max(w, bm) of a roofline: interpolated tables do not flatter",
        lambda w, b, m, u, v: at_least(
            (v - m) * larger(w, b * u) + (m - u) * larger(w, b * v), (v - u) * larger(w, b * m)
        ),
        lambda w, b, m, u, v: [w >= 0, b >= 0, u >= 0, u <= m, m <= v],
    ),
)
"""The speed-up of C2, its range, and what interpolation does."""

C2 = Entry(
    id="C2",
    title="Speed-up from measured passes",
    kind="identity",
    plain="speed-up = tokens per call * t_target(1) / (t_draft(shape) + t_target(nodes + 1)); the draft makes a "
    "pass for every depth with children, the first on one token more in the calls after a full acceptance",
    latex=r"\frac{\tau\,t_{target}(1)}{\sum_{passes}t_{draft}(m)+f\,(t_{draft}(2)-t_{draft}(1))+t_{target}(nodes+1)}",
    assumptions=(
        "the time of a pass depends only on the model and its number of tokens",
        "the prompt's own pass is left out on both sides",
        "the first call of a text follows no full acceptance",
        "a draft pass on more tokens is no faster",
    ),
    calculators=public(
        "cost",
        "FREE_DRAFTS LATENCY_SCHEMA ConstantRatio CostModel LatencyTable LoopTime LoopedTable PassCost TimedGroup",
    ),
    evidence=(
        proof("seconds of all calls added up", MEAN_CALL),
        exact(
            Claim("calls simulated one after the other take the time of the formula", identity),
            runs,
            wrong=Claim("every draft pass is on one token", partial(identity, second=False)),
        ),
        agreement(
            Claim("a table's speed-up with its range, a constant ratio's and that of free drafts", library_speedups),
            runs,
            wrong=Claim(
                "a table gives the tokens per call themselves",
                lambda k, accepted: computed(
                    LatencyTable({1: spread(STEP), k + 1: spread(VERIFY)}, {1: spread(ONE), 2: spread(TWO)}, 0)
                    .speedup(Interval.exact(1.0), Chain(k))
                    .best,
                    Fraction(1),
                ),
            ),
        ),
        agreement(
            Claim(
                "a tree's call is the sum of its passes, interpolated between measured lengths",
                lambda nodes: computed(interpolated(nodes), tree_call(nodes)),
            ),
            trees,
            wrong=Claim(
                "a tree's call drafts one token per pass",
                lambda nodes: computed(
                    interpolated(nodes),
                    max(map(len, nodes)) * affine(ONE, TWO, 1) + affine(STEP, VERIFY, len(nodes) + 1),
                ),
            ),
        ),
        agreement(
            Claim(
                "with the loop around passes both plain steps and calls take longer by it",
                lambda nodes: computed(looped(nodes), looped_by_hand(nodes)),
            ),
            trees,
            wrong=Claim(
                "calls alone take longer by the loop",
                lambda nodes: computed(looped(nodes), looped_by_hand(nodes, plain=Fraction(0))),
            ),
        ),
        agreement(
            Claim("a table survives its file", lambda tokens: equal(int(_read(tokens, LATENCY_SCHEMA)), 1)),
            lambda effort: [{"tokens": tokens} for tokens in (2, 5)],
            over="two tables",
            wrong=Claim(
                "a file of the next schema is read as well",
                lambda tokens: equal(int(_read(tokens, LATENCY_SCHEMA + 1)), 1),
            ),
        ),
        searched(
            Claim("any values within their ranges give a speed-up within its range", inside),
            ranges,
            spaces=(range_space(),),
            wrong=Claim("the low ends of step and call belong together", too_narrow),
        ),
    ),
)
