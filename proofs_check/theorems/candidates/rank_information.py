"""Entropies of ranks: laws in fractions, logarithms of them in floats or certified intervals.

Which token has which ratio, and where a probability is zero, has to be decided exactly; the logarithm alone needs an
interval. So the cases here are objects that stay what they are when a claim goes on with intervals, and each term
-p log p is enclosed as it is made. Whole ranks have no end: of R1 the entropy is enclosed by the chain rule after any
number of ranks, that of R3 ends in a geometric law.
"""

from __future__ import annotations

from proofs_check.library import strategies
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import TANGENT
from proofs_check.statement import calculus
from proofs_check.statement.claims import shown


@dataclass(frozen=True)
class Pair:
    """A target and a draft, of fractions or of floats."""

    p: AnyPmf
    q: AnyPmf

    def __str__(self) -> str:
        return f"p = {shown(self.p)}, q = {shown(self.q)}"

    @property
    def ratios(self) -> list[tuple[Real, Real]]:
        """(p, p/q) of the tokens that the target can say; the draft must not lack one."""
        return [(a, a / b) for a, b in zip(self.p, self.q, strict=True) if a > 0]

    @property
    def odds(self) -> list[tuple[Real, Real]]:
        """(p, g), g the sum of (q_y p/q - p_y)+, of these tokens."""
        pairs = list(zip(self.p, self.q, strict=True))
        return [(mass, sum(positive_part(c * b - a) for a, b in pairs)) for mass, c in self.ratios]


@dataclass(frozen=True)
class Selection:
    """Any rule that picks one of n i.i.d. candidates: a draft, and for every list of candidates a law of the rank."""

    q: AnyPmf
    choice: Sequence[AnyPmf]

    def __str__(self) -> str:
        return f"q = {shown(self.q)}, choice = {shown(self.choice)}"

    def joint(self) -> dict[tuple[int, int], Real]:
        """P(R = r, X = x) of the rank and the token picked."""
        law: dict[tuple[int, int], Real] = {}
        lists = product(range(len(self.q)), repeat=len(self.choice[0]))
        for drawn, choice in zip(lists, self.choice, strict=True):
            weight = math.prod(self.q[x] for x in drawn)
            for rank, (x, share) in enumerate(zip(drawn, choice, strict=True), 1):
                law[rank, x] = law.get((rank, x), 0) + weight * share
        return law


@dataclass(frozen=True)
class Ranks:
    """A law of a rank: P(R = 1), P(R = 2), ..."""

    shares: AnyPmf

    def __str__(self) -> str:
        return shown(self.shares)


FINITE = Assumption(
    "the draft lacks no token of the target",
    lambda pair: all(b > 0 or not a for a, b in zip(pair.p, pair.q, strict=True)),
)
"""R is finite, and so is KL."""


def weighed(weight: Real, x: Real) -> Real:
    """The weighted log x, 0 without weight; of fractions an interval at the precision in force."""
    if not weight:
        return 0
    if isinstance(weight, float) or isinstance(x, float):
        return weight * math.log(x)
    return interval(Fraction(weight)) * log(interval(Fraction(x)))


def entropy(law: Iterable[Real]) -> Real:
    """The sum of -p log p."""
    return -sum(weighed(share, share) for share in law)


def divergence(pair: Pair) -> Real:
    """KL, the sum of p log(p/q)."""
    return sum(weighed(a, ratio) for a, ratio in pair.ratios)


def geometric(weight: Real, g: Real) -> Real:
    """The weighted entropy of the geometric law of success 1/(1 + g): (1+g) log(1+g) - g log g."""
    return weighed(weight * (1 + g), 1 + g) - weighed(weight * g, g)


def marginals(joint: dict[tuple[int, int], Real]) -> tuple[dict[int, Real], dict[int, Real]]:
    """The laws of the rank and of the token."""
    ranks: dict[int, Real] = {}
    tokens: dict[int, Real] = {}
    for (rank, x), share in joint.items():
        ranks[rank] = ranks.get(rank, 0) + share
        tokens[x] = tokens.get(x, 0) + share
    return ranks, tokens


def poisson_given(pair: Pair) -> Real:
    """R1: H(R|X), the mean of geometric laws' entropies."""
    return sum(geometric(mass, g) for mass, g in pair.odds)


def poisson_law(pair: Pair, ranks: int) -> list[Real]:
    """R1: P(R = r), r = 1..ranks."""
    return [sum(mass * g ** (r - 1) / (1 + g) ** r for mass, g in pair.odds) for r in range(1, ranks + 1)]


def poisson_beyond(pair: Pair, ranks: int) -> list[tuple[Real, Real]]:
    """R1: (P(X = x, R > ranks), g): given these, R - ranks is geometric as R was."""
    return [(mass * (g / (1 + g)) ** ranks, g) for mass, g in pair.odds]


def poisson_entropy(pair: Pair, ranks: int) -> tuple[Real, Real]:
    """R1: two ends around H(R), closer with more ranks: beyond them, H(R|X) and the geometric law of the same mean."""
    law, tail = poisson_law(pair, ranks), poisson_beyond(pair, ranks)
    beyond = sum(mass for mass, _ in tail)
    lumped = entropy([*law, beyond])
    if not beyond:
        return lumped, lumped
    mean = sum(mass * g for mass, g in tail) / beyond
    return lumped + sum(geometric(mass, g) for mass, g in tail), lumped + geometric(beyond, mean)


def poisson_log_rank(pair: Pair, ranks: int) -> tuple[Real, Real]:
    """R1: two ends around E log R: beyond, log R is at least log(ranks + 1), given x at most the log of its mean."""
    within = sum(weighed(share, Fraction(r)) for r, share in enumerate(poisson_law(pair, ranks), 1))
    tail = poisson_beyond(pair, ranks)
    low = weighed(sum(mass for mass, _ in tail), Fraction(ranks + 1))
    return within + low, within + sum(weighed(mass, ranks + 1 + g) for mass, g in tail)


def log_bound(pair: Pair) -> Real:
    """The sum of p log(1 + p/q)."""
    return sum(weighed(mass, 1 + ratio) for mass, ratio in pair.ratios)


def two(shares: AnyPmf) -> Real:
    """The logarithm of 2, a float where the shares are, else enclosed at the precision in force."""
    return math.log(2) if any(isinstance(share, float) for share in shares) else log(interval(Fraction(2)))


def rank_bound(mean: Real, unit: Real = 1) -> Real:
    """E + log(E + 1) + 1, E and the result in units of so many nats."""
    return mean / unit + log(1 + mean / unit) / unit + 1


def recursive_entropies(pair: Pair) -> tuple[Real, Real]:
    """R3: H(R|X) and H(R), to the end of the rank.

    P(R = r, X = x) = min((p - s q)+, G q), s the sum of the G so far, G = P(R > r - 1). Once s has passed all ratios
    but the largest, c, G falls by the factor 1 - b a rank, b the draft's mass of ratio c.
    """
    pairs = [(a, b) for a, b in zip(pair.p, pair.q, strict=True) if a > 0]
    largest = max(a / b for a, b in pairs)
    s: Real = Fraction(0)
    left: Real = Fraction(1)
    given: Real = 0
    whole: Real = 0
    while any(s * b < a and a / b < largest for a, b in pairs):
        law = [smaller(positive_part(a - s * b), left * b) for a, b in pairs]
        whole += entropy([sum(law)])
        given -= sum(weighed(share, share / a) for share, (a, _) in zip(law, pairs, strict=True))
        s += left
        left = sum(positive_part(a - s * b) for a, b in pairs)
    top = [(a, b) for a, b in pairs if a / b == largest]
    share = sum(b for _, b in top)
    whole += endless(left, share)
    return given + sum(endless(left * b / share, share, a) for a, b in top), whole


def endless(mass: Real, share: Real, whole: Real = 1) -> Real:
    """The sum of -w log(w/whole) over w = mass share (1-share)^j, j = 0, 1, ...: a geometric law of so much mass."""
    if not mass:
        return 0
    rest = (1 - share) / share
    return -weighed(mass, mass * share / whole) - weighed(mass * rest, 1 - share)


RANKS = 4
"""Ranks before the rest is enclosed."""


def wrapped(pairs: Iterable[Case]) -> Iterator[Case]:
    """Pairs as objects."""
    return ({"pair": Pair(**pair)} for pair in pairs)


def pairs() -> st.SearchStrategy[Case]:
    """Pairs on 2 to 5 tokens."""
    return strategies.exact_pairs().map(lambda pair: {"pair": Pair(**pair)})


# Proofs about the entropy of a rank: at least KL, E log R, and the entropy of any rank from its E log R.


AT_LEAST_KL: tuple[Step, ...] = (
    valid(
        "the r-th candidate is x with probability q_x, so P(R = r, X = x) <= q_x, and given x no rank is likelier than "
        "q_x/p_x, whatever the rule",
        lambda joint, p, q: at_most(joint / p, q / p),
        lambda joint, p, q: [joint >= 0, joint <= q, p > 0],
    ),
    valid(
        "so -log P(r|x) >= l = log(p_x/q_x) for every r, and the mean over r too, as P(r|x) sums to 1: rank by rank, "
        "two that have this have it together. Over x ~ p the mean of l is KL: KL <= H(R|X)",
        lambda a, b, s, t, low: at_most((a + b) * low, a * s + b * t),
        lambda a, b, s, t, low: [a >= 0, b >= 0, s >= low, t >= low],
    ),
    *TANGENT,
    same(
        "H(R) - H(R|X) is the sum of j log(j/m) over r and x, j = P(r, x), m = p_x P(r)",
        lambda j, p, w: (j * calculus.log(j / p) - j * calculus.log(w), j * calculus.log(j / (p * w))),
    ),
    valid(
        "and j log(m/j) <= j (m/j - 1) = m - j, which sum to 0: H(R|X) <= H(R)",
        lambda j, m, log_ratio: at_most(j * log_ratio, m - j),
        lambda j, m, log_ratio: [j > 0, m >= 0, log_ratio <= m / j - 1],
    ),
)
"""For every selection from i.i.d. candidates, on any number of tokens."""

LOG_RANK: tuple[Step, ...] = (
    *TANGENT,
    valid(
        "with m = E[R|x]: log r - log m <= r/m - 1, which has mean 0, here for two ranks: E[log R|x] <= log E[R|x], "
        "which is log(1 + g) for the Poisson race",
        lambda a, b, r, s, k, n, m: at_most(a * k + b * n, 0),
        lambda a, b, r, s, k, n, m: [
            a >= 0,
            b >= 0,
            a + b == 1,
            m > 0,
            m == a * r + b * s,
            k * m <= r - m,
            n * m <= s - m,
        ],
    ),
    valid(
        "(c q - p)+ <= c q, summed over y: g <= c = p_x/q_x, so E log R <= sum p log(1 + p/q)",
        lambda c, p, q: at_most(positive_part(c * q - p), c * q),
        lambda c, p, q: [c >= 0, p >= 0, q >= 0],
    ),
    same(
        "log(1 + p/q) = log(p/q) + log 2 + log((1 + q/p)/2)",
        lambda p, q: (calculus.log(1 + p / q), calculus.log(p / q) + calculus.log(2) + calculus.log((1 + q / p) / 2)),
    ),
    same(
        "by the tangent p times the last is at most (q - p)/2, which sum to 0 or less: at most KL + log 2",
        lambda p, q: (p * ((1 + q / p) / 2 - 1), (q - p) / 2),
    ),
)
"""E log R of the Poisson race."""

FROM_THE_LOG: tuple[Step, ...] = (
    *TANGENT,
    valid(
        "any law w on the ranks: the sum of P log(w/P) is at most that of w - P, 0: H(R) <= the sum of -P log w",
        lambda P, w, log_ratio: at_most(P * log_ratio, w - P),
        lambda P, w, log_ratio: [P > 0, w >= 0, log_ratio <= w / P - 1],
    ),
    same(
        "take w = r^(-s)/Z, s = 1 + 1/E, E = E log R > 0 (R = 1 for sure at E = 0): H(R) <= s E + log Z",
        lambda r, s, Z: (-calculus.log(r ** (-s) / Z), s * calculus.log(r) + calculus.log(Z)),
    ),
    same(
        "Z is the sum of r^(-s); each term from r = 2 on is at most the integral over the step before r, where the "
        "power is larger: Z <= 1 + the integral from 1 of t^(-s), which is 1 + E",
        lambda t, E: (calculus.integral(calculus.exp(-(1 + 1 / E) * calculus.log(t)), t, 1, math.inf), E),
    ),
    same(
        "so H(R) <= E + 1 + log(1 + E). In another unit of b nats, E = b F, take s = 1 + 1/F: H(R)/b <= F + 1 + "
        "log(1 + F)/b, another bound",
        lambda F, b: ((1 + 1 / F) * (b * F) / b, F + 1),
    ),
)
"""The entropy of any rank from E log R."""
