"""What lists of largest probabilities leave open (§9), in exact arithmetic: the completion that is best, and the ends.

Nothing here calls the library: where it finds the best completion by bisection, this solves a linear equation between
two neighbouring kinks.
"""

from __future__ import annotations

from functools import lru_cache

from proofs_check.library.strategies import Floats
from proofs_check.prelude import *
from spectheory.truncated import TopLogProbs

Pairs = list[tuple[Real, Real]]
"""Tokens as (target probability, draft probability)."""

Lengths = tuple[int, int]
"""How many of the largest probabilities are known of target and draft."""

Extras = tuple[tuple[int, ...], tuple[int, ...]]
"""Tokens known besides, of target and draft; they do not lower the cap."""

NO_EXTRAS: Extras = ((), ())


class Seen(NamedTuple):
    """What two lists tell: tokens known to both, to the target, to the draft, the number known to none; caps, masses.

    ours, theirs: target probabilities of tokens the draft's list lacks, and the reverse.
    outside: tokens known to none, n.
    a, s, b, t: cap and unseen mass of the target, and of the draft.
    """

    both: Pairs
    ours: list[Real]
    theirs: list[Real]
    outside: int
    a: Real
    s: Real
    b: Real
    t: Real


def listed(pmf: AnyPmf, m: int, extra: Sequence[int] = ()) -> tuple[list[int], list[int]]:
    """The m most probable tokens, ties to the lowest index, and those asked for besides."""
    rounded = floats(pmf)
    top = sorted(range(len(pmf)), key=lambda x: (-rounded[x], x))[:m]
    return top, [x for x in dict.fromkeys(extra) if x not in top]


def seen(p: AnyPmf, q: AnyPmf, m: Lengths, extra: Extras = NO_EXTRAS) -> Seen:
    """What the lists of a pair tell."""
    (top, more), (other_top, other_more) = listed(p, m[0], extra[0]), listed(q, m[1], extra[1])
    known, others = {*top, *more}, {*other_top, *other_more}
    return Seen(
        both=[(p[x], q[x]) for x in range(len(p)) if x in known & others],
        ours=[p[x] for x in range(len(p)) if x in known - others],
        theirs=[q[x] for x in range(len(p)) if x in others - known],
        outside=len(p) - len(known | others),
        a=p[top[-1]],
        s=sum((p[x] for x in range(len(p)) if x not in known), 0 * p[0]),
        b=q[other_top[-1]],
        t=sum((q[x] for x in range(len(q)) if x not in others), 0 * q[0]),
    )


def best(known: Seen) -> Pairs:
    """The completion that is best for every hockey stick at once, token by token.

    Where one side alone knows a token the other follows it in proportion, up to its cap; on tokens known to none both
    lie in one ratio. Mass beyond all caps goes where the other side has none.
    """
    p_out, q_out = meeting(known)
    on_theirs = _in_proportion(known.s - p_out, known.a, known.theirs)  # target mass on tokens of the draft's list
    on_ours = _in_proportion(known.t - q_out, known.b, known.ours)
    n = known.outside
    ours, theirs = list(zip(known.ours, on_ours, strict=True)), list(zip(on_theirs, known.theirs, strict=True))
    outside = [(p_out / n, q_out / n)] * n if n else []
    p_left = known.s - p_out - sum(on_theirs)
    q_left = known.t - q_out - sum(on_ours)
    p_places = [i for i, (_, q) in enumerate(theirs) if q == 0]
    q_places = [i for i, (p, _) in enumerate(ours) if p == 0]
    p_each = _each(p_left, len(p_places) + (n if p_out == 0 else 0))
    q_each = _each(q_left, len(q_places) + (n if q_out == 0 else 0))
    for i in p_places:
        theirs[i] = (theirs[i][0] + p_each, theirs[i][1])
    for i in q_places:
        ours[i] = (ours[i][0], ours[i][1] + q_each)
    if p_out == 0:
        outside = [(p + p_each, q + q_each) for p, q in outside]
    return [*known.both, *ours, *theirs, *outside]


def most_minima(known: Seen) -> Real:
    """The largest sum of min(p, q) over all completions, in one line and without one."""
    a, s, b, t = known.a, known.s, known.b, known.t
    u = smaller(t, sum(smaller(p, b) for p in known.ours))
    w = smaller(s, sum(smaller(q, a) for q in known.theirs))
    both = sum(smaller(p, q) for p, q in known.both)
    return both + u + w + smaller(smaller(t - u, s - w), known.outside * smaller(a, b))


def disjoint(known: Seen) -> Pairs:
    """The tails as two tokens that the other side lacks: no completion is worse."""
    p_tail, q_tail = known.s + sum(known.ours), known.t + sum(known.theirs)
    return [*known.both, (p_tail, 0 * p_tail), (0 * q_tail, q_tail)]


def meeting(known: Seen) -> tuple[Real, Real]:
    """Target and draft mass on tokens known to none, at the best completion.

    With the ratio rho of draft to target there, the draft offers what tokens of the target's list leave of its mass
    and the target wants rho times what tokens of the draft's list leave of its own; both up to the caps. The first
    falls in rho, the second rises, and both are linear between kinks.
    """
    n, a, s, b, t = known.outside, known.a, known.s, known.b, known.t
    nothing = 0 * s, 0 * t
    if n == 0 or s == 0 or t == 0:
        return nothing

    def offered(rho: Real) -> Real:
        return t - sum(smaller(b, rho * p) for p in known.ours)

    def wanted(rho: Real) -> Real:
        return rho * s - sum(smaller(rho * a, q) for q in known.theirs)

    def excess(rho: Real) -> Real:
        return smaller(n * b, offered(rho)) - smaller(rho * n * a, wanted(rho))

    kinks = sorted({0 * s, *(b / p for p in known.ours if p > 0), *(q / a for q in known.theirs)})
    low = max(kink for kink in kinks if excess(kink) >= 0)
    high = min((kink for kink in kinks if kink > low), default=2 * low + 1)
    sides = [
        (_line(draft, low, high), _line(target, low, high))
        for draft in (offered, lambda rho: n * b + 0 * rho)
        for target in (wanted, lambda rho: rho * n * a)
    ]
    crossings = [(y - x) / (u - v) for (u, x), (v, y) in sides if u != v]
    rho = min((rho for rho in crossings if rho > 0), key=lambda rho: abs(excess(rho)))
    mass = smaller(n * b, offered(rho))
    return (mass / rho, mass) if mass > 0 else nothing


def _line(side: Callable[[Real], Real], low: Real, high: Real) -> tuple[Real, Real]:
    """Slope and constant of a side that is linear between these."""
    slope = (side(high) - side(low)) / (high - low)
    return slope, side(low) - slope * low


def _in_proportion(mass: Real, cap: Real, like: Sequence[Real]) -> list[Real]:
    """Shares min(cap, x * like) that sum to `mass`, or the cap wherever like > 0 if they cannot reach it."""
    falling = sorted((share for share in like if share > 0), reverse=True)
    for full in range(len(falling)):
        level = (mass - full * cap) / sum(falling[full:])
        if level * falling[full] <= cap:
            return [smaller(cap, larger(0, level) * share) for share in like]
    return [cap if share > 0 else 0 * cap for share in like]


def _each(mass: Real, places: int) -> Real:
    return mass / places if places else 0 * mass


# Pairs of pmfs cut to lists (§9): a grid in fractions, and draws over thirty orders of magnitude.


LAST = -1
"""The last token, of either size of vocabulary."""

SETTINGS: tuple[tuple[Lengths, Extras], ...] = (
    ((1, 1), NO_EXTRAS),
    ((1, 2), NO_EXTRAS),
    ((2, 1), NO_EXTRAS),
    ((1, 1), ((LAST,), ())),
    ((1, 1), ((), (0,))),
    ((2, 1), ((), (LAST,))),
)
"""Lengths of the lists and tokens asked for by name."""


@lru_cache(maxsize=4)
def grid(most: int, four: int) -> tuple[Case, ...]:
    """Pairs, p falling, on 3 tokens of denominator up to `most` and on 4 up to `four`, each with a random setting."""
    rng = random.Random(9)
    falling = (
        pair for pair in (*cases.pairs(3, most), *cases.pairs(4, four)) if [*pair["p"]] == sorted(pair["p"])[::-1]
    )
    return tuple(_with(pair, rng.choice(SETTINGS)) for pair in falling)


def _with(pair: Case, setting: tuple[Lengths, Extras]) -> Case:
    tokens, (m, extra) = len(pair["p"]), setting
    return {**pair, "m": m, "extra": (tuple(x % tokens for x in extra[0]), tuple(x % tokens for x in extra[1]))}


def pairs(effort: Effort) -> Iterable[Case]:
    """The grid of default and deep checks."""
    return grid(*effort.pick((4, 4), (7, 6)))


def few_pairs(effort: Effort) -> Iterable[Case]:
    """A smaller grid, for what takes long."""
    return grid(*effort.pick((4, 3), (6, 5)))


def every_setting(effort: Effort) -> Iterator[Case]:
    """The pairs of the grid with every setting."""
    return (_with({"p": pair["p"], "q": pair["q"]}, setting) for pair in pairs(effort) for setting in SETTINGS)


def any_pairs() -> Any:
    """A Hypothesis strategy of pairs over thirty orders of magnitude, on 2 to 4 tokens, with lists and extra tokens."""
    token = st.integers(0, 3)
    extra = st.one_of(st.just(()), st.tuples(token))
    setting = st.tuples(st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(extra, extra))
    return st.tuples(exact_pairs(4), setting).map(lambda pair_and_setting: _with(*pair_and_setting))


# In double precision


def small_pairs(seed: int, count: int, most: int) -> list[tuple[TopLogProbs, TopLogProbs]]:
    """Lists of 1 to 3 of pairs on 2 to `most` tokens: random and rounded pmfs (ties, zeros), some extra tokens."""
    rng = np.random.default_rng(seed)
    pairs_of_lists: list[tuple[TopLogProbs, TopLogProbs]] = []
    while len(pairs_of_lists) < count:
        tokens = int(rng.integers(2, most + 1))
        tops = []
        for _ in range(2):
            p = rng.dirichlet(np.full(tokens, 10.0 ** rng.uniform(-0.7, 1)))
            if rng.random() < 0.3:
                p = np.floor(p * 8) + (np.arange(tokens) == 0)
                p /= p.sum()
            extra = rng.integers(0, tokens, size=int(rng.random() < 0.3))
            tops.append(TopLogProbs.from_pmf(p, min(tokens, int(rng.integers(1, 4))), extra))
        pairs_of_lists.append((tops[0], tops[1]))
    return pairs_of_lists


def vertices(tokens: int, cap: float, mass: float) -> Iterator[Floats]:
    """The extreme points of {0 <= z <= cap, sum z = mass}: all but one token at 0 or at the cap."""
    full = min(math.floor(mass / cap), tokens) if cap > 0 else 0
    for chosen in permutations(range(tokens), full + (full < tokens)):
        if list(chosen[:full]) == sorted(chosen[:full]):
            z = np.zeros(tokens)
            z[list(chosen[:full])] = cap
            z[list(chosen[full:])] = max(0.0, mass - full * cap)
            yield z


def spread(top: TopLogProbs, tail: Floats) -> Floats:
    """The full pmf with this tail on the unseen tokens."""
    p = np.zeros(top.vocabulary)
    p[top.known] = top.probabilities
    p[np.setdiff1d(np.arange(top.vocabulary), top.known)] = tail
    return p


def corners(top: TopLogProbs) -> list[Floats]:
    """The full pmfs with extreme tails."""
    return [spread(top, tail) for tail in vertices(top.hidden, top.cap, top.unseen)]
