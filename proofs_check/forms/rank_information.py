"""Entropies of ranks: laws in fractions, logarithms of them in floats or certified intervals.

Which token has which ratio, and where a probability is zero, has to be decided exactly; the logarithm alone needs an
interval. So the cases here are objects that stay what they are when a claim goes on with intervals, and each term
-p log p is enclosed as it is made. Whole ranks have no end: of R1 the entropy is enclosed by the chain rule after any
number of ranks, that of R3 ends in a geometric law.
"""

from __future__ import annotations

from proofs_check.library import strategies
from proofs_check.prelude import *
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
