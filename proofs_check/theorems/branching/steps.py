"""Lorden's inequality, U(t) <= t/mu + mu2/mu^2 - 1: its proof in steps, and walks on a lattice in fractions.

The steps X_i >= 0 of a walk are i.i.d. and not all 0; U(t) is the expected number of n >= 1 with S_n <= t, N(t) the
first n with S_n > t, R(t) = S_N - t the overshoot and r(t) its mean. The proof is the short one by subadditivity
(Carlsson and Nerman, 1986).
"""

from __future__ import annotations

from proofs_check.library.strategies import rank_laws
from proofs_check.prelude import *
from proofs_check.statement import calculus
from proofs_check.statement.calculus import algebra
from proofs_check.theorems.branching.branching_forms import *

REACH = 12
"""Lattice points looked at."""

PROOF: tuple[Step, ...] = (
    valid(
        "E N is finite: [S <= t] <= e^(t - S), so U(t) <= e^t (m + m^2 + ...) with m = E e^-X < 1",
        lambda early, w, c: at_most(early, w / c),
        lambda early, w, c: [w >= 0, c > 0, early * (1 - early) == 0, early * (c - w) <= 0],
    ),
    same(
        "step i counts if S_{i-1} <= t, in which X_i has no part (chance h): E[1 g(X_i)] = h E g(X_i), for X of two "
        "values s, 1-s and, term by term, of any; so E sum_{i<=N} g(X_i) = E[N] E g(X) (Wald)",
        lambda h, s, g, k: (h * s * g + h * (1 - s) * k, h * (s * g + (1 - s) * k)),
    ),
    same(
        "g(x) = x gives mu E N = t + r; as E N = 1 + U(t), the inequality says that r <= mu2/mu",
        lambda t, mu, mu2: ((t + mu2 / mu) / mu - 1, t / mu + mu2 / mu**2 - 1),
    ),
    valid(
        "beyond s the walk starts afresh at S_N >= s, so N(s+t) <= N(s) + N'(t); with mu E N = t + r: r(s+t) <= "
        "r(s) + r(t)",
        lambda mu, s, t, rs, rt, rst, ns, nt, nst: at_most(rst, rs + rt),
        lambda mu, s, t, rs, rt, rst, ns, nt, nst: [
            mu > 0,
            mu * ns == s + rs,
            mu * nt == t + rt,
            mu * nst == s + t + rst,
            nst <= ns + nt,
        ],
    ),
    valid(
        "R <= X_N, so R^2 <= X_N^2 <= sum_{i<=N} X_i^2 and E R^2 <= mu2 E N (Wald): r and E R^2 are finite",
        lambda R, x, before: at_most(R * R, before + x * x),
        lambda R, x, before: [R >= 0, x >= R, before >= 0],
    ),
    same(
        "within a step x the overshoot falls from x to 0, with area x^2/2; so the area of R over [0, S_N] is sum "
        "X_i^2/2, in the mean mu2 E N/2 (Wald), of which R(t)^2/2 lies beyond t",
        lambda x, u: (integral(x - u, u, 0, x), x**2 / 2),
    ),
    valid(
        "E R^2 >= r^2, here for two values: (sv + (1-s)w)^2 <= sv^2 + (1-s)w^2; so the area of r over [0, t] is at "
        "most mu2 E N/2 - r^2/2",
        lambda s, v, w: at_most((s * v + (1 - s) * w) * (s * v + (1 - s) * w), s * v * v + (1 - s) * w * w),
        lambda s, v, w: [s >= 0, s <= 1],
    ),
    valid(
        "r(t) <= r(u) + r(t-u), integrated over 0 < u < t, gives t r <= 2 area <= m (t + r) - r^2 with m = mu2/mu: "
        "r <= m",
        lambda t, r, m, area: at_most(r, m),
        lambda t, r, m, area: [t >= 0, r >= 0, m >= 0, t * r <= 2 * area, 2 * area <= m * (t + r) - r * r],
    ),
)
"""For every law of a step."""


def stays(steps: Sequence[Real], reach: int) -> list[Real]:
    """Expected number of n >= 0 with S_n = 0, 1, ..., reach; `steps` holds the chances of a step 0, 1, ..."""
    visits: list[Real] = []
    for j in range(reach + 1):
        arrived = sum(visits[j - i] * steps[i] for i in range(1, min(j, len(steps) - 1) + 1))
        visits.append((arrived + (j == 0)) / (1 - steps[0]))
    return visits


def crossing(steps: Sequence[Real], t: int) -> tuple[Real, Real, Real]:
    """E N(t), E R(t) and E R(t)^2: from each point up to t beyond it in one step."""
    visited = stays(steps, t)
    over = [(i + x - t, visited[i] * steps[x]) for i in range(t + 1) for x in range(t - i + 1, len(steps))]
    return sum(visited), sum(r * share for r, share in over), sum(r * r * share for r, share in over)


def step_moments(steps: Sequence[Real]) -> tuple[Real, Real]:
    """The first two moments of a step."""
    return sum(x * share for x, share in enumerate(steps)), sum(x * x * share for x, share in enumerate(steps))


def below(steps: Sequence[Real], divisor: int = 1) -> Iterator[Compared]:
    """The inequality at lattice points, between which U is constant; mu2 over `divisor`."""
    mu, mu2 = step_moments(steps)
    total: Real = -1
    for t, number in enumerate(stays(steps, REACH)):
        total = total + number
        yield at_most(total, t / mu + mu2 / divisor / (mu * mu) - 1)


def in_steps(steps: Sequence[Real], beyond: int = 1) -> Iterator[Compared]:
    """Wald's identity, subadditivity, the area of the overshoot; of what lies beyond t, `beyond` times."""
    mu, mu2 = step_moments(steps)
    known = [crossing(steps, t) for t in range(REACH + 1)]
    area: Real = 0
    for t, (number, r, square) in enumerate(known):
        yield equal(mu * number, t + r)
        yield equal(area, mu2 * number / 2 - beyond * square / 2)
        yield from (at_most(r, known[s][1] + known[t - s][1]) for s in range(t + 1))
        area = area + r - Fraction(1, 2)  # R falls by one from t to t + 1


MOVES = Assumption("some step is not 0", lambda steps: steps[0] < 1)

INEQUALITY = Claim("U(t) <= t/mu + mu2/mu^2 - 1 on a lattice", below, (MOVES,))
HALVED = Claim("U(t) <= t/mu + mu2/(2 mu^2) - 1, the limit without a lattice", lambda steps: below(steps, 2), (MOVES,))

STEPS = Claim("Wald's identity, subadditivity and the area of the overshoot on a lattice", in_steps, (MOVES,))
STEPS_WRONG = Claim("the area of the overshoot without what lies beyond t", lambda steps: in_steps(steps, 0), (MOVES,))


def step_cases(effort: Effort) -> Iterator[Case]:
    """Step laws on 0 to 3 in quarters, and random ones on 0 to 6."""
    for size in (2, 3, 4):
        yield from all_of(steps=cases.grid(size, 4))
    rng = random.Random(effort.seed)
    for _ in range(effort.pick(30, 300)):
        yield {"steps": cases.random_pmf(rng, rng.randint(2, 7), 6)}


def drawn_steps() -> st.SearchStrategy[Case]:
    """Laws of a step of 0 to 4."""
    return rank_laws().map(lambda law: {"steps": law})


def step_space(size: int) -> Space:
    """Laws of a step of 0, 1, ..., as the softmax of a vector."""
    return Space(size, lambda x: {"steps": softmax(x)}, "steps")


# Steps of the branching bounds: many-to-one, thresholds, and the dual form (B).


def any_model(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Prefixes of two tokens under a target with three pmfs of its own, and the law of the text they come from."""
    f = algebra().Function("f")
    first, second = (a, 1 - a), ((b, 1 - b), (c, 1 - c))
    prefixes = sum(first[y] * second[y][z] * f(first[y] * second[y][z]) for y in (0, 1) for z in (0, 1))
    text = sum(first[y] * sum(second[y][z] * f(first[y] * second[y][z]) for z in (0, 1)) for y in (0, 1))
    return prefixes, text


def shared_by_depth(a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """As :func:`two_generations`, but all prefixes of one length share their pmf, which ties them to the text."""
    f = algebra().Function("f")
    pmfs = (((a, 1 - a), s), ((b, 1 - b), 1 - s))
    tree = walk = algebra().Integer(0)
    for (first, chance), (second, part) in product(pmfs, repeat=2):
        tree += chance * part * any_model(first[0], second[0], second[0])[0]
    law = {a: s * a, 1 - a: s * (1 - a), b: (1 - s) * b, 1 - b: (1 - s) * (1 - b)}
    for (x, share), (y, part) in product(law.items(), repeat=2):
        walk += share * part * f(x * y)
    return tree, walk


def one_generation(w: Any, a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """E of sum_y w p_y f(w p_y) over a random pmf of two tokens, and w E f(w W_1)."""
    f = algebra().Function("f")
    children = s * (w * a * f(w * a) + w * (1 - a) * f(w * (1 - a)))
    children += (1 - s) * (w * b * f(w * b) + w * (1 - b) * f(w * (1 - b)))
    law = {a: s * a, 1 - a: s * (1 - a), b: (1 - s) * b, 1 - b: (1 - s) * (1 - b)}
    return children, w * sum(part * f(w * chance) for chance, part in law.items())


def two_generations(a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """E of the sum over |v| = 2 of pi(v) f(pi(v)), over all pmfs of root and children, and E f(W_2)."""
    f = algebra().Function("f")
    pmfs = (((a, 1 - a), s), ((b, 1 - b), 1 - s))
    tree = walk = algebra().Integer(0)
    for root, *children in product(pmfs, repeat=3):
        chance = root[1] * children[0][1] * children[1][1]
        for y, z in product((0, 1), repeat=2):
            weight = root[0][y] * children[y][0][z]
            tree += chance * weight * f(weight)
    for first, second in product(pmfs, repeat=2):
        for y, z in product((0, 1), repeat=2):
            weight = first[0][y] * second[0][z]
            walk += first[1] * second[1] * weight * f(weight)
    return tree, walk


ANY_TARGET: Step = same(
    "a text sampled from the target runs through v with probability pi(v), whatever the target: sum_{|v|=n} pi(v) "
    "f(pi(v)) = E f(e^-S_n), here for two tokens and a pmf of its own at each prefix",
    any_model,
)
"""Many-to-one without any independence."""

MANY_TO_ONE: tuple[Step, ...] = (
    ANY_TARGET,
    same(
        "so for a random target, in the mean over targets; where the surprisals along the text are i.i.d., e^-S_n is "
        "W_n, a product of n independent steps, however prefixes beside the text depend on it: here all prefixes of "
        "one length share their pmf, (a, 1-a) with chance s, else (b, 1-b), and E sum_{|v|=2} pi(v) f(pi(v)) = "
        "E f(W_2)",
        shared_by_depth,
    ),
    same(
        "pmfs i.i.d. across prefixes are a case of it, by generations: below a node of weight w whose pmf is (a, 1-a) "
        "with chance s, else (b, 1-b), E sum_y w p_y f(w p_y) = w E f(w W_1) for any f >= 0; pmfs and tokens are terms "
        "of a sum, so for any number of them",
        one_generation,
    ),
    same(
        "two generations, all 8 ways to give root and children their pmfs: E sum_{|v|=2} pi(v) f(pi(v)) = E f(W_2); "
        "with f replaced by w -> E f(w W_1) the step above leads from n to n+1: E sum_{|v|=n} pi(v) f(pi(v)) = "
        "E f(W_n)",
        two_generations,
    ),
)
"""The expected weight of the prefixes of length n with some property is the chance that a text has it."""


def at_threshold(t: Any, P: Any, mu: Any, K: Any) -> Any:
    """t/mu + K + P e^-t."""
    return t / mu + K + P * algebra().exp(-t)


def slope_in_t(P: Any, mu: Any, K: Any) -> tuple[Any, Any]:
    """The derivative of t/mu + K + P e^-t, and (e^-t* - e^-t) P, t* = log(P mu)."""
    t = algebra().Symbol("t", real=True)
    best = algebra().log(P * mu)
    return calculus.slope(at_threshold(t, P, mu, K), t), P * (algebra().exp(-best) - algebra().exp(-t))


TWO_THRESHOLDS: tuple[Step, ...] = (
    valid(
        "for a set of P prefixes (i = 1 inside, 0 outside) and c = e^-t: i w <= [w >= c] w + c i; summed over all "
        "prefixes, in the mean and by many-to-one: E[X] <= sum_n P(S_n <= t) + P e^-t = U(t) + P e^-t",
        lambda w, c, i, heavy: at_most(i * w, heavy * w + c * i),
        lambda w, c, i, heavy: [w >= 0, i * (1 - i) == 0, heavy * (1 - heavy) == 0, (1 - heavy) * (w - c) <= 0, c >= 0],
    ),
    *PROOF,
    in_words(
        "at t = log P: t/mu + K + P e^-t = log P/mu + mu2/mu^2",
        lambda P, mu, mu2: (
            at_threshold(algebra().log(P), P, mu, excess(mu, mu2)),
            algebra().log(P) / mu + mu2 / mu**2,
        ),
    ),
    same(
        "the slope in t is P (e^-t* - e^-t): negative before t* = log(P mu), positive after; t* >= 0 if P mu >= 1",
        slope_in_t,
    ),
    same(
        "the value at t* is (log P + log mu + 1)/mu + K",
        lambda P, mu, K: (
            at_threshold(algebra().log(P * mu), P, mu, K),
            (algebra().log(P) + algebra().log(mu) + 1) / mu + K,
        ),
    ),
)
"""From many-to-one to the two forms."""


def decay(t: Any, d: Any) -> tuple[Any, Any]:
    """The integral of e^-(t-s) over the last d before t, and 1 - e^-d."""
    s = algebra().Symbol("s", real=True)
    return integral(algebra().exp(s - t), s, t - d, t), 1 - algebra().exp(-d)


DUALITY: tuple[Step, ...] = (
    valid(
        "for a set of P prefixes (i = 1 inside, 0 outside) and c = e^-t: i w <= (w - c)+ + c i; summed: "
        "sum_{v in T} pi(v) <= sum_v (pi(v) - c)+ + P c",
        lambda w, c, i: at_most(i * w, positive_part(w - c) + c * i),
        lambda w, c, i: [w >= 0, c >= 0, i * (1 - i) == 0],
    ),
    valid(
        "(w - c)+ = w (1 - c/w)+, so by many-to-one the mean of the first sum is sum_n E(1 - e^-(t - S_n))+",
        lambda w, c: [
            at_most(positive_part(w - c), w * positive_part(1 - c / w)),
            at_most(w * positive_part(1 - c / w), positive_part(w - c)),
        ],
        lambda w, c: [w > 0, c >= 0],
    ),
    same(
        "(1 - e^-(t-S))+ is the integral of [S <= s] e^-(t-s) over 0 < s < t; summed over n (all terms >= 0): "
        "E[X] <= integral of U(s) e^-(t-s) + P e^-t",
        decay,
    ),
)
"""From the P heaviest prefixes to the walk."""


def dual_at(t: Any, P: Any, mu: Any, K: Any) -> Any:
    """t/mu + K - 1/mu + (P - K + 1/mu) e^-t."""
    return t / mu + K - 1 / mu + (P - K + 1 / mu) * algebra().exp(-t)


def integrated(t: Any, P: Any, mu: Any, K: Any) -> tuple[Any, Any]:
    """The integral of (s/mu + K) e^-(t-s) over 0 < s < t, with P e^-t; and what it comes to."""
    s = algebra().Symbol("s", real=True)
    inside = integral((s / mu + K) * algebra().exp(s - t), s, 0, t)
    return inside + P * algebra().exp(-t), dual_at(t, P, mu, K)


def growth(mu: Any, K: Any) -> tuple[Any, Any]:
    """B2' over log P as P grows, and 1/mu."""
    P = algebra().Symbol("P", positive=True)
    return limit((K + algebra().log(1 + mu * (P - K)) / mu) / algebra().log(P), P, math.inf), 1 / mu
