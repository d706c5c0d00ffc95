"""Steps of the branching bounds: many-to-one, thresholds, and the dual form (B)."""

from __future__ import annotations

from proofs_check.forms.branching_forms import excess
from proofs_check.prelude import *
from proofs_check.proofs import lorden
from proofs_check.statement import calculus
from proofs_check.statement.calculus import algebra


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
    *lorden.PROOF,
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
