"""Lorden's inequality, U(t) <= t/mu + mu2/mu^2 - 1: its proof in steps, and walks on a lattice in fractions.

The steps X_i >= 0 of a walk are i.i.d. and not all 0; U(t) is the expected number of n >= 1 with S_n <= t, N(t) the
first n with S_n > t, R(t) = S_N - t the overshoot and r(t) its mean. The proof is the short one by subadditivity
(Carlsson and Nerman, 1986).
"""

from __future__ import annotations

from proofs_check.library.strategies import rank_laws
from proofs_check.prelude import *

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
    found: list[Real] = []
    for j in range(reach + 1):
        arrived = sum(found[j - i] * steps[i] for i in range(1, min(j, len(steps) - 1) + 1))
        found.append((arrived + (j == 0)) / (1 - steps[0]))
    return found


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
        yield from ({"steps": law} for law in cases.grid(size, 4))
    rng = random.Random(effort.seed)
    for _ in range(effort.pick(30, 300)):
        yield {"steps": cases.random_pmf(rng, rng.randint(2, 7), 6)}


def drawn_steps() -> st.SearchStrategy[Case]:
    """Laws of a step of 0 to 4."""
    return rank_laws().map(lambda law: {"steps": law})


def step_space(size: int) -> Space:
    """Laws of a step of 0, 1, ..., as the softmax of a vector."""

    def weights(x: NDArray[np.float64]) -> Case:
        grown = np.exp(x - x.max())
        return {"steps": tuple(map(float, grown / grown.sum()))}

    return Space(size, weights, lambda x: {"steps": rational(weights(x)["steps"])})
