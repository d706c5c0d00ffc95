"""What D1 rests on, in steps: log x <= x - 1, and from it the signs and the order of the divergences."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.statement.calculus import log, some_function


def _remainder(s: Real, x: Real) -> Real:
    return s * (x - 1) * (x - 1) / (1 + s * (x - 1))


def _slope_over_t(t: Real) -> tuple[Real, Real]:
    f = some_function("f", t)
    return slope(f / t, t), (t * slope(f, t) - f) / (t * t)


def _half() -> Real:
    import sympy

    return sympy.Rational(1, 2)


TANGENT: tuple[Step, ...] = (
    same(
        "x - 1 - log x is the integral of s(x-1)^2/(1 + s(x-1)) over 0 <= s <= 1",
        lambda x, s: (x - 1 - log(x), integral(_remainder(s, x), s, 0, 1)),
    ),
    valid(
        "whose integrand is not negative: log x <= x - 1 for every x > 0",
        lambda x, s: at_least(_remainder(s, x), 0),
        lambda x, s: [x > 0, s >= 0, s <= 1],
    ),
)
"""log x <= x - 1."""

LOGARITHM: tuple[Step, ...] = (
    *TANGENT,
    same(
        "at x = q/p, p(x - 1) = q - p, so p log(p/q) >= p - q where p > 0; these sum to 1 - q(supp p): KL >= 0",
        lambda p, q: (p * (q / p - 1), q - p),
    ),
)
"""KL >= 0."""

ENTROPY: tuple[Step, ...] = (
    valid(
        "at x = p <= 1, -p log p >= -p(p - 1) >= 0: H >= 0",
        lambda p: at_least(-p * (p - 1), 0),
        lambda p: [p > 0, p <= 1],
    ),
    same(
        "against the uniform pmf 1/V, p log(p/(1/V)) = p log p + p log V: KL is log V - H, so H <= log V",
        lambda p, V: (p * log(p / (1 / V)), p * log(p) + p * log(V)),
    ),
    valid(
        "y^2 >= 2hy - h^2; the mean over p with y = -log p and h = H is M2 >= 2H H - H^2 = H^2",
        lambda y, h: at_most(2 * h * y - h * h, y * y),
    ),
)
"""0 <= H <= log V, and H^2 <= M2."""

PINSKER: tuple[Step, ...] = (
    same(
        "p log(p/q) - p + q is the integral of (1-s)(p-q)^2/m over 0 <= s <= 1, m = q + s(p-q) a mixture of p and q",
        lambda p, q, s: (p * log(p / q) - p + q, integral((1 - s) * (p - q) * (p - q) / (q + s * (p - q)), s, 0, 1)),
    ),
    same(
        "so is the q of a token with p = 0, where m = (1-s)q; summed over the tokens the left is KL",
        lambda q, s: (q, integral((1 - s) * q * q / ((1 - s) * q), s, 0, 1)),
    ),
    valid(
        "d^2/m >= 2td - t^2 m with d = |p - q|: summed, as m sums to 1 and d to 2TV, at t = 2TV the right is 4TV^2",
        lambda d, m, t: at_most(2 * t * d - t * t * m, d * d / m),
        lambda d, m, t: [m > 0],
    ),
    same(
        "so KL is at least the integral of (1-s)(2t(2TV) - t^2) at t = 2TV, which is 2TV^2",
        lambda TV, s: (integral((1 - s) * (2 * (2 * TV) * (2 * TV) - (2 * TV) * (2 * TV)), s, 0, 1), 2 * TV * TV),
    ),
)
"""KL >= 2TV^2."""

RENYI: tuple[Step, ...] = (
    same(
        "p^(1+t) q^(-t) = p(p/q)^t has the derivative p(p/q)^t log(p/q) in t: with f(t) = log sum p(p/q)^t and the pmf "
        "w = p(p/q)^t/e^f, f'(t) is the mean of log(p/q) over w",
        lambda p, q, t: (slope(p * (p / q) ** t, t), p * (p / q) ** t * log(p / q)),
    ),
    same(
        "log(w/p) = t log(p/q) - f, of mean t f' - f over w: that is the KL of w from p, not negative",
        lambda p, q, t, F: (log(p * (p / q) ** t / F / p), t * log(p / q) - log(F)),
    ),
    same(
        "the Rényi divergence of order 1 + t is f(t)/t, of slope (t f' - f)/t^2 >= 0: it does not fall where t < 0, "
        "nor where t > 0",
        _slope_over_t,
    ),
    same(
        "(x^t - 1)/t tends to log x as t -> 0: if q covers p, f(t)/t tends to the mean of log(p/q), KL, from both "
        "sides; if not, f(0-) = log p(supp q) < 0: from below the limit is infinite, as KL and all orders t > 0 are",
        lambda x, t: (limit((x**t - 1) / t, t, 0), log(x)),
    ),
    same(
        "with M the largest ratio, the sum of p(p/q)^t, t > 0, lies between the p M^t of its token and M^t: f(t)/t is "
        "at most log(M^t)/t = log M",
        lambda M, t: (log(M**t) / t, log(M)),
    ),
    same("and at least log(p M^t)/t = log(p)/t + log M", lambda p, M, t: (log(p * M**t) / t, log(p) / t + log(M))),
    same(
        "which tends to log M as t grows: that is order infinity",
        lambda p, M, t: (limit(log(p) / t + log(M), t, math.inf), log(M)),
    ),
)
"""The Rényi divergence does not fall with its order, and is KL at 1."""

CHI_SQUARE: tuple[Step, ...] = (
    same(
        "(p-q)^2/q = p^2/q - 2p + q: the two forms of chi-square",
        lambda p, q: ((p - q) * (p - q) / q, p * p / q - 2 * p + q),
    ),
    same(
        "p(p/q) = (p-q)^2/q + 2p - q, which sums to chi-square + 1: Rényi of order 2, the log of the sum of p(p/q), is "
        "log(1 + chi-square), and by the steps above at least that of order 1",
        lambda p, q: (p * (p / q), (p - q) * (p - q) / q + 2 * p - q),
    ),
    same(
        "or by log x <= x - 1 alone: log x - log m = log(x/m) <= x/m - 1; at x = p/q, m = 1 + chi-square, the mean of "
        "x/m over p is 1: KL <= log(1 + chi-square)",
        lambda x, m: (log(x) - log(m), log(x / m)),
    ),
)
"""KL <= log(1 + chi-square)."""

BRETAGNOLLE_HUBER: tuple[Step, ...] = (
    in_words(
        "p(p/q)^(-1/2) = sqrt(pq): Rényi of order 1/2 is -2 log B with B = sum sqrt(pq); it is at most KL: "
        "e^-KL <= B^2",
        lambda p, q: (p * (p / q) ** (-_half()), (p * q) ** _half()),
    ),
    valid(
        "2xy <= t x^2 + y^2/t with x^2 = min(p, q), y^2 = max(p, q), so that xy = sqrt(pq): "
        "2B <= t(1 - TV) + (1 + TV)/t for every t > 0",
        lambda x, y, t: at_most(2 * x * y, t * x * x + y * y / t),
        lambda x, y, t: [t > 0],
    ),
    in_words(
        "at t = sqrt(v/u), u = 1 - TV, v = 1 + TV, the right is 2 sqrt(uv): B^2 <= 1 - TV^2; where u = 0, B = 0",
        lambda u, v: ((v / u) ** _half() * u + v / (v / u) ** _half(), 2 * (u * v) ** _half()),
    ),
)
"""TV^2 <= 1 - e^-KL."""
