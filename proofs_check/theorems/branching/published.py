"""B1: the published branching bound, what its constant may be, and its slack."""

from __future__ import annotations

from proofs_check.evidence.judge import judge_all
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import TANGENT
from proofs_check.statement.calculus import algebra
from proofs_check.theorems.branching.branching_forms import *
from proofs_check.theorems.branching.random_pmf_trees import Ensemble, moments, visits
from proofs_check.theorems.branching.steps import growth

# The prefixes of probability >= c = e^-t in a random tree: E[Z N] of their weight Z and number N, bounded and exact.


def squares(w: Any, a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """E of sum_y (w p_y)^2 over a random pmf of two tokens, and r w^2 with r = E sum p^2."""
    each = [chance * sum((w * p) ** 2 for p in (x, 1 - x)) for x, chance in ((a, s), (b, 1 - s))]
    return sum(each), w**2 * (s * (a**2 + (1 - a) ** 2) + (1 - s) * (b**2 + (1 - b) ** 2))


HEAVY_PAIRS: tuple[Step, ...] = (
    valid(
        "N(w), the mean number of prefixes of T below a node of weight w: T asks for w W_n >= c, c = e^-t, and there "
        "1/W_n <= w/c; by many-to-one (B2) N(w) = sum_n E[1/W_n; w W_n >= c] <= w U/c, U = U(t)",
        lambda W, w, c, heavy: at_most(heavy / W, heavy * w / c),
        lambda W, w, c, heavy: [W > 0, w > 0, c > 0, heavy * (1 - heavy) == 0, heavy * (c - w * W) <= 0],
    ),
    valid(
        "with the node itself, which is in T if w >= c: [w >= c](1 + N(w)) <= w (1 + U)/c",
        lambda w, c, U, N, heavy: at_most(heavy * (1 + N), w * (1 + U) / c),
        lambda w, c, U, N, heavy: [
            c > 0,
            w >= 0,
            U >= 0,
            w * U / c >= N,
            heavy * (1 - heavy) == 0,
            heavy * (c - w) <= 0,
        ],
    ),
    same(
        "Z N sums pi(v) over pairs v, u of T; below a node with children of weights x and y in T, and Z', N', Z'', N'' "
        "below them: u is v, or below v, or v below u, or both are below one child, or they part here",
        lambda x, y, Z, N, z, n: (
            (x + Z + y + z) * (1 + N + 1 + n),
            (x + x * N + Z + Z * N) + (y + y * n + z + z * n) + (x + Z) * (1 + n) + (y + z) * (1 + N),
        ),
    ),
    valid(
        "u = v makes sum_v pi(v), in the mean U by many-to-one; v below u makes the weight below u, in the mean pi(u) "
        "U(t - S) <= pi(u) U: together at most U (1 + U)",
        lambda Z, below, U: at_most(Z + below, U * (1 + U)),
        lambda Z, below, U: [Z == U, U >= 0, below <= U * Z],
    ),
    same("the squares of the weights: E sum_y (w p_y)^2 = r w^2 with r = E sum p^2; at length n, r^n", squares),
    same(
        "1 + r + ... + r^k grows by r^k, as (1 - r^k)/(1 - r) does: at most 1/(1 - r)",
        lambda r, k: ((1 - r ** (k + 1)) / (1 - r) - (1 - r**k) / (1 - r), r**k),
        integers=("k",),
    ),
    valid(
        "u below v: pi(v) N(pi(v)) <= pi(v)^2 U/c, in all at most (r + r^2 + ...) U/c = r U/(c (1 - r))",
        lambda w, N, U, c: at_most(w * N, w * w * U / c),
        lambda w, N, U, c: [w >= 0, c > 0, U >= 0, w * U / c >= N],
    ),
    valid(
        "pairs that part at a node, v at or below its child of weight x, u at or below that of weight y: means "
        "V <= x (1 + U) and M <= y (1 + U)/c, which multiply: V M <= x y (1 + U)^2/c",
        lambda V, M, x, y, g, c: at_most(V * M, x * g * (y * g / c)),
        lambda V, M, x, y, g, c: [V >= 0, x * g >= V, M >= 0, c * M <= y * g, x >= 0, y >= 0, g >= 1, c > 0],
    ),
    same(
        "two children of a node of weight w: w^2 times sum_{y != z} p_y p_z = 1 - sum p^2, for a pmf of three tokens",
        lambda a, b: (2 * (a * b + a * (1 - a - b) + b * (1 - a - b)), 1 - a**2 - b**2 - (1 - a - b) ** 2),
    ),
    valid(
        "so at the nodes of length n they make r^n (1 - r) (1 + U)^2/c at most, in all (1 + U)^2/c; and U (1 + U) + "
        "r U/(c (1 - r)) + (1 + U)^2/c <= U (1 + U) + e^t (1 + U)^2/(1 - r): that bounds E[Z N]",
        lambda U, r, c: at_most(r * U / (c * (1 - r)) + (1 + U) * (1 + U) / c, (1 + U) * (1 + U) / (c * (1 - r))),
        lambda U, r, c: [U >= 0, r > 0, r < 1, c > 0],
    ),
)
"""E[Z N] <= U (1 + U) + e^t (1 + U)^2/(1 - r)."""


def pairs_of_heavy(pmfs: Ensemble, c: Fraction) -> tuple[Fraction, Fraction]:
    """E Z and E[Z N]: weight and number of the prefixes of probability >= c, one generation after the other."""
    known: dict[Fraction, tuple[Fraction, Fraction, Fraction]] = {}

    def at(weight: Fraction) -> tuple[Fraction, Fraction, Fraction]:
        """E Z, E N, E[Z N] below a node of that weight."""
        if weight not in known:
            whole = [Fraction(0)] * 3
            for pmf in pmfs:
                below = [(*at(weight * share), weight * share) for share in pmf if weight * share >= c]
                z = [w + inner for inner, _, _, w in below]
                n = [1 + inner for _, inner, _, _ in below]
                both = [w + inner_z + w * inner_n + inner for inner_z, inner_n, inner, w in below]
                cross = sum(z) * sum(n) - sum(a * b for a, b in zip(z, n, strict=True))
                whole = [a + b for a, b in zip(whole, (sum(z), sum(n), sum(both) + cross), strict=True)]
            known[weight] = (whole[0] / len(pmfs), whole[1] / len(pmfs), whole[2] / len(pmfs))
        return known[weight]

    z, _, both = at(Fraction(1))
    return z, both


NUMBERS = Claim(
    "0.69 < log 2 < 0.7 and log 3 > 1",
    lambda two, three: [at_least(100 * log(two), 69), at_most(10 * log(two), 7), at_least(log(three), 1)],
)


def from_below_at_best(mu: Any, K: Any, k: Any) -> tuple[Any, Any]:
    """The lower bound at e^t = P/log^3 P over L = log P as P grows, k = 1/(1 - r) and U as it allows; and 1/mu."""
    L = algebra().Symbol("L", positive=True)
    t = L - 3 * algebra().log(L)
    lower = t / mu - 1 - (t / mu + K + 1) ** 2 * (algebra().exp(-L) + k / L**3)
    return limit(lower / L, L, math.inf), 1 / mu


PUBLISHED: tuple[Step, ...] = (
    valid(
        "B2 is below B1 with the constant mu2/mu^2: L/mu + mu2/mu^2 <= (mu + mu2) L/mu^2 + mu2/mu^2, L = log P >= 0",
        lambda mu, mu2, L: at_most(L / mu + mu2 / (mu * mu), (mu + mu2) * L / (mu * mu) + mu2 / (mu * mu)),
        lambda mu, mu2, L: [mu > 0, mu2 >= mu * mu, L >= 0],
    ),
    valid(
        "for P >= 3 no constant is needed, as L >= 1: L/mu + mu2/mu^2 <= (mu + mu2) L/mu^2",
        lambda mu, mu2, L: at_most(L / mu + mu2 / (mu * mu), (mu + mu2) * L / (mu * mu)),
        lambda mu, mu2, L: [mu > 0, mu2 >= mu * mu, L >= 1],
    ),
    *TANGENT,
    same(
        "log y = 2 log 2 + log(y/4), so log y <= 2 log 2 + y/4 - 1",
        lambda y: (2 * algebra().log(2) + algebra().log(y / 4), algebra().log(y)),
    ),
    valid(
        "nor for P = 2 >= K: with B2' and the line above K + (2L + (1 + mu (2 - K))/4 - 1)/mu <= (1/mu + K + 1) L, "
        "L = log 2",
        lambda mu, K, L: at_most(K + (2 * L + (1 + mu * (2 - K)) / 4 - 1) / mu, (1 / mu + K + 1) * L),
        lambda mu, K, L: [mu > 0, K >= 0, K <= 2, 100 * L >= 69, 10 * L <= 7],
    ),
    valid(
        "nor for P = 2 < K, where X <= 2 <= (1/mu + K + 1) L",
        lambda mu, K, L: at_most(2, (1 / mu + K + 1) * L),
        lambda mu, K, L: [mu > 0, K >= 2, 100 * L >= 69],
    ),
    Step(
        NUMBERS.says,
        "intervals",
        lambda _: judge_all(NUMBERS, [{"two": Fraction(2), "three": Fraction(3)}]),
        damaged=lambda _: [("3 for 2", judge_all(NUMBERS, [{"two": Fraction(3), "three": Fraction(3)}]))],
    ),
)
"""B1 with its constant, and without."""

TRUE_SLOPE: tuple[Step, ...] = (
    same("B2' is log P/mu to first order, B1's slope 1 + mu2/mu times that", growth),
    valid(
        "a drafter may take T = {v: pi(v) >= e^-t} if it has at most P prefixes: with Z its weight, of mean U(t), and "
        "N its number [N <= P] Z >= Z - Z N/P, so E[X] >= U(t) - E[Z N]/P",
        lambda Z, N, P, fits: at_least(fits * Z, Z - Z * N / P),
        lambda Z, N, P, fits: [Z >= 0, N >= 0, P > 0, fits * (1 - fits) == 0, (1 - fits) * (P - N) <= 0],
    ),
    *HEAVY_PAIRS,
    same(
        "at e^t = P/log^3 P, with t/mu - 1 <= U(t) <= t/mu + K (Wald, Lorden: B2): E[X] >= log P/mu to first order",
        from_below_at_best,
    ),
)
"""The slope 1/mu is attained by every target with i.i.d. pmfs."""

LESS_CERTAIN = Assumption(
    "no token is certain, nor nearly so",
    lambda pmfs, **_: all(share <= Fraction(9, 10) for pmf in pmfs for share in pmf),
)


def from_below(pmfs: Ensemble, capacity: Fraction, value: Fraction, c: Fraction, power: int = 2) -> Iterator[Compared]:
    """The lower bound on E[X], step by step; `power` of 1 + U is the control's."""
    weight, both = pairs_of_heavy(pmfs, c)
    U = total(visits(pmfs, c).values())
    collision = total(share * share for pmf in pmfs for share in pmf) / len(pmfs)
    yield equal(weight, U)
    yield at_most(both, U * (1 + U) + (1 + U) ** power / (1 - collision) / c if power else U * (1 + U))
    yield at_least(value, U - both / capacity)


def lower_cases(effort: Effort) -> Iterator[Case]:
    """One or two pmfs, P up to 8, e^t up to 20."""
    ensembles = [pmfs for pmfs in small_ensembles() if LESS_CERTAIN.met(pmfs)]
    for pmfs in ensembles:
        for capacity in (1, 3, effort.pick(8, 12)):
            for c in (Fraction(1, 2), Fraction(1, 5), Fraction(1, 20)):
                yield {**with_value(pmfs, capacity), "c": c}


def published(pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real, constant: int = 1) -> Compared:
    """E[X] against B1's leading term, and mu2/mu^2 times `constant`."""
    mu, mu2 = moments(pmfs)
    return at_most(value, leading(mu, mu2, capacity) + constant * mu2 / (mu * mu))


SEVERAL = Assumption("P >= 2", lambda capacity, **_: capacity >= 2)

WITH_CONSTANT = Claim("E[X] <= (mu + mu2) log P/mu^2 + mu2/mu^2", published, (UNCERTAIN,))
LEADING = Claim("E[X] <= (mu + mu2) log P/mu^2", lambda **case: published(**case, constant=0), (UNCERTAIN,))
LEADING_FROM_TWO = Claim("E[X] <= (mu + mu2) log P/mu^2 for P >= 2", LEADING.holds, (UNCERTAIN, SEVERAL))


def leading_library(mu: Real, mu2: Real, capacity: Real, shift: int = 0) -> Compared:
    """The library's leading term, cut at P; `shift` is the control's."""
    form = library_form(mu, mu2, capacity, "published")
    return computed(form, smaller(leading(mu, mu2, capacity + shift), capacity + shift))


B1 = Entry(
    id="B1",
    title="The published branching bound, its constant and its slack",
    kind="asymptotic",
    plain="E[X] <= (mu + mu2) log P/mu^2 + O(1): with the constant mu2/mu^2 for every P, with none for P >= 2 "
    "(nats). The true slope is 1/mu, for every target of i.i.d. pmfs: B1's is 1 + mu2/mu times that",
    latex=r"E[X] \le \frac{(\mu + \mu_2)\log P}{\mu^2} + O(1),\qquad E[X] = \frac{\log P}{\mu}(1 + o(1))",
    source=("pankratov2026",),
    assumptions=(
        "conditional pmfs i.i.d. across prefixes, mu > 0, mu2 finite",
        "all logarithms natural; the paper's base and constant are unknown",
    ),
    calculators=("spectheory.limits.branching_bound",),
    evidence=(
        proof(
            "B1 from B2 and B2'; the slope 1/mu from below, by the prefixes above a threshold. Left to words: pmfs "
            "below different children are independent, so means multiply, and terms >= 0 may be summed over nodes "
            "in any order (docs/branching_limits.md argues along one path instead); what comes of it is checked "
            "exactly on ensembles below",
            (*PUBLISHED, *TRUE_SLOPE),
        ),
        exact(
            Claim("E[X] >= U(t) - E[Z N]/P and E[Z N] <= U(1+U) + e^t (1+U)^2/(1-r)", from_below, (LESS_CERTAIN,)),
            lower_cases,
            wrong=Claim("E[Z N] <= U (1 + U)", lambda **case: from_below(**case, power=0), (LESS_CERTAIN,)),
        ),
        certified(WITH_CONSTANT, ensemble_cases, over="E[X] in fractions, 1 to 3 pmfs, P up to 6", wrong=LEADING),
        agreement(
            Claim("the library's leading term", leading_library),
            setting_cases,
            over="mu from 0.001 to 20, mu2/mu^2 up to 90, P up to 10^4",
            wrong=Claim("the library's leading term, P one too large", lambda **case: leading_library(**case, shift=1)),
        ),
        searched(
            LEADING_FROM_TWO,
            drawn_ensembles,
            over="1 to 3 pmfs",
            spaces=(ensemble_space(1, 3, 2), ensemble_space(2, 2, 3)),
            wrong=Claim(
                "E[X] is at most half of it for P >= 2",
                lambda pmfs, capacity, value: at_most(value, leading(*moments(pmfs), capacity) / 2),
                (UNCERTAIN, SEVERAL),
            ),
        ),
    ),
)

B1_LEADING = Entry(
    id="B1/leading",
    title="B1 without its O(1)",
    kind="refuted",
    plain="E[X] <= (mu + mu2) log P/mu^2 for every P >= 1; it fails at P = 1, where it is 0, and only there",
    latex=r"E[X] \le \frac{(\mu + \mu_2)\log P}{\mu^2}",
    source=("pankratov2026",),
    assumptions=("conditional pmfs i.i.d. across prefixes, logarithms natural",),
    evidence=(
        counterexample(
            LEADING,
            ensemble_cases,
            over="first among pmfs on 2 tokens by their denominator and P",
            true=LEADING_FROM_TWO,
            kind="certified",
        ),
    ),
    without={"exact": "moments are logarithms"},
)
