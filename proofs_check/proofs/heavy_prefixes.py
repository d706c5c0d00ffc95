"""The prefixes of probability >= c = e^-t in a random tree: E[Z N] of their weight Z and number N, bounded and exact.

T is the set of them, U = U(t) the expected number of n >= 1 with S_n <= t, r = E sum p^2. With E[Z N] a drafter that
takes T where it fits is judged from below (B1).
"""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.twins.random_pmf_trees import Ensemble


def longer(r: Any, k: Any) -> tuple[Any, Any]:
    """What the k-th power adds to the partial sum (1 - r^k)/(1 - r), and that power."""
    return (1 - r ** (k + 1)) / (1 - r) - (1 - r**k) / (1 - r), r**k


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
    same("1 + r + ... + r^k grows by r^k, as (1 - r^k)/(1 - r) does: at most 1/(1 - r)", longer, integers=("k",)),
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
            total = [Fraction(0)] * 3
            for pmf in pmfs:
                below = [(*at(weight * share), weight * share) for share in pmf if weight * share >= c]
                z = [w + inner for inner, _, _, w in below]
                n = [1 + inner for _, inner, _, _ in below]
                both = [w + inner_z + w * inner_n + inner for inner_z, inner_n, inner, w in below]
                cross = sum(z) * sum(n) - sum(a * b for a, b in zip(z, n, strict=True))
                total = [a + b for a, b in zip(total, (sum(z), sum(n), sum(both) + cross), strict=True)]
            known[weight] = (total[0] / len(pmfs), total[1] / len(pmfs), total[2] / len(pmfs))
        return known[weight]

    z, _, both = at(Fraction(1))
    return z, both
