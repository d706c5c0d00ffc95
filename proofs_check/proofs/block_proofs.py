"""Block verification over a whole decoding in steps (B7): masses, what a call costs, renewal, induction, optimality."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import LARGEST

MASSES: tuple[Step, ...] = (
    *LARGEST,
    valid(
        "so s_i <= mu_i at every depth, with mu_0 = 1 and mu_(i+1)(xz) = min(p mu_i(x), Q(xz)); if mu_i is the least "
        "of terms, here two, mu_(i+1) is the least of p times each of them and of Q: mu_i(x) = min over j of "
        "Q(x_1..x_j) P(x_(j+1)..x_i)",
        lambda p, a, b, Q: equal(smaller(p * smaller(a, b), Q), smaller(smaller(p * a, p * b), Q)),
        lambda p, a, b, Q: [p >= 0],
    ),
)
"""(i): no lossless call with a fresh later text has more mass anywhere than block verification."""

COST: tuple[Step, ...] = (
    same(
        "a call stops after the i drafts x with the token z with p(z) s - t(z), s = s_i(x), t(z) = s_(i+1)(xz). What "
        "comes after costs V(z): over z, here two tokens, that is s E V - sum t(z) V(z)",
        lambda p, r, s, t, u, v, w: ((p * s - t) * v + (r * s - u) * w, s * (p * v + r * w) - (t * v + u * w)),
    ),
    same(
        "so every s_i(x) with i >= 1 stands once with E V(xz) and once, from the depth before, with -V(x): together "
        "-s D(x), D = V - E V; s_0 = 1 leaves E V(z). C_s = 1 + E V(z) - sum_(i>=1) s_i(x) D(x), here with two runs",
        lambda v, a, b, s, t, e, f: ((1 + v + s * e + t * f) - (s * a + t * b), 1 + v - (s * (a - e) + t * (b - f))),
    ),
    valid(
        "for block verification C = V, so with mu_0 = 1 the sum of mu D over all depths is D(w) + sum_(i>=1) mu_i(x) "
        "D(wx) = 1 where the text goes on, here with two runs; where it has ended V and D are 0",
        lambda V, v, m, n, D, E: equal((V - v) + (m * D + n * E), 1),
        lambda V, v, m, n, D, E: [1 + v - (m * D + n * E) == V],
    ),
)
"""(ii): this call now and block verification afterwards; the renewal identity."""

SHIFT: tuple[Step, ...] = (
    valid(
        "from w, a run that begins with z: the terms j >= 1 of its mass's minimum are q(z) times those of the rest "
        "from wz, the term j = 0 is p(z) P. One token y more: min(p(y) min(p P, q m), q Q) = min(p P p(y), q min(p(y) "
        "m, Q))",
        lambda y, p, P, q, m, Q: equal(
            smaller(y * smaller(p * P, q * m), q * Q), smaller(p * P * y, q * smaller(y * m, Q))
        ),
        lambda y, p, P, q, m, Q: shares(y, p, P, q, m, Q),
    ),
    valid(
        "leaving the term j = 0 out only raises it: mu_i^w(zx) <= q(z) mu_(i-1)^(wz)(x)",
        lambda p, P, q, m: at_most(smaller(p * P, q * m), q * m),
        lambda p, P, q, m: shares(p, P, q, m),
    ),
)
"""(iii): masses of one call against those of the call after one token more."""

INDUCTION: tuple[Step, ...] = (
    valid(
        "let D >= 0 at all longer texts. From w, the runs that begin with z have sum_(i=1..k) mu_i^w(zx) D(wzx) = a(z) "
        "<= q(z) r(z), r(z) = sum_(i=0..k-1) mu_i^(wz)(x) D(wzx), at most the renewal sum R(z) with k in place of "
        "k - 1, which is 1 or 0: D(w) = 1 - sum a(z) >= 1 - sum q(z) R(z) >= 0, here with two tokens",
        lambda q, r, a, b, m, n, more, R, S: [at_most(1 - (q * R + r * S), 1 - (a + b)), at_most(0, 1 - (a + b))],
        lambda q, r, a, b, m, n, more, R, S: [
            *shares(q, r, R, S, m, n),
            q + r <= 1,
            more >= 0,
            a <= q * m,
            b <= r * n,
            m + more <= R,
            n <= S,
        ],
    ),
    valid(
        "and D(w) = 1 - sum mu D <= 1, mu and D being non-negative",
        lambda m, D, n, E: at_most(1 - (m * D + n * E), 1),
        lambda m, D, n, E: [m >= 0, D >= 0, n >= 0, E >= 0],
    ),
)
"""(iv): 0 <= D <= 1, backwards from the texts that have ended."""

OPTIMAL: tuple[Step, ...] = (
    valid(
        "s <= mu and D >= 0: C_s(w) = 1 + E V - sum s D is at least 1 + E V - sum mu D = V(w), here with two runs",
        lambda v, s, t, m, n, D, E: at_most(1 + v - (m * D + n * E), 1 + v - (s * D + t * E)),
        lambda v, s, t, m, n, D, E: [s >= 0, t >= 0, s <= m, t <= n, D >= 0, E >= 0],
    ),
    valid(
        "a policy: after every history its call has some s, and if what comes after costs J >= V at all longer texts "
        "(whatever the history), J(w) = 1 + sum a J >= 1 + sum a V = C_s(w) >= V(w), here with two outputs",
        lambda a, b, J, K, v, w, V: at_most(V, 1 + a * J + b * K),
        lambda a, b, J, K, v, w, V: [a >= 0, b >= 0, v <= J, w <= K, 1 + a * v + b * w >= V],
    ),
)
"""No policy needs fewer."""

THEOREM: tuple[Step, ...] = (*MASSES, *COST, *SHIFT, *INDUCTION, *OPTIMAL)
"""B7, whole."""

REGRET: tuple[Step, ...] = (
    *COST,
    same(
        "so one call with s costs C_s(w) - V(w) = sum (mu - s) D more than block verification's, here with two runs",
        lambda v, s, t, m, n, D, E: ((1 + v - (s * D + t * E)) - (1 + v - (m * D + n * E)), (m - s) * D + (n - t) * E),
    ),
    same(
        "let L be the mean loss of a policy from a text on, J = V + L. With g = C_s(w) - V(w), J(w) = 1 + sum a (V + "
        "L) = C_s(w) + sum a L, so L(w) = g + sum a L: the losses of all its calls, added up, here with two outputs",
        lambda a, b, v, w, L, M, V: ((1 + a * (v + L) + b * (w + M)) - V, (1 + a * v + b * w - V) + (a * L + b * M)),
    ),
)
"""What a policy loses, exactly."""

FAMILY: tuple[Step, ...] = (
    *COST,
    valid(
        "any rule with masses s and its own V, D: with a(z) the sum over the runs of its call that begin with z, "
        "s_i^w(zx) <= c(z) s_(i-1)^(wz)(x) gives a(z) <= c(z) R(z), R = 1 or 0, and sum c <= 1 gives D(w) >= 0",
        lambda c, d, a, b, R, S: at_most(0, 1 - (a + b)),
        lambda c, d, a, b, R, S: [*shares(c, d, R, S), c + d <= 1, a <= c * R, b <= d * S],
    ),
    valid(
        "token verification is one with equality: s_i^w(zx) = min(p, q)(z) s_(i-1)^(wz)(x), and sum min(p, q) <= 1, "
        "here with two tokens",
        lambda p, q, P, Q: at_most(smaller(p, q) + smaller(P, Q), 1),
        lambda p, q, P, Q: [*shares(p, q, P, Q), q + Q <= 1],
    ),
    valid(
        "longer chains: a call of k drafts has the same masses but for depth k+1. With k+1 drafts and their D >= 0, "
        "V' = 1 + E V' - sum mu D over k+1 depths, no more than over k: one call of k and k+1 drafts afterwards. "
        "Where V' <= V at all longer texts, that is 1 + sum a V' <= 1 + sum a V = V(w)",
        lambda e, m, D, n, E, a, b, v, w, V, W: at_most(1 + e - (m * D + n * E), 1 + a * V + b * W),
        lambda e, m, D, n, E, a, b, v, w, V, W: [
            *(each >= 0 for each in (a, b, n, E)),
            v <= V,
            w <= W,
            1 + a * v + b * w == 1 + e - m * D,
        ],
    ),
)
"""Monotone families: their own D is non-negative, and longer chains never cost calls."""

LENGTHS: tuple[Step, ...] = (
    valid(
        "k(wz) >= k(w) - 1: the sum over i < k(w) of the call after wz is a part of its renewal sum R, as its terms "
        "are non-negative: a <= q (R - rest) <= q R; nothing else changes",
        lambda q, a, R, rest, part: at_most(a, q * R),
        lambda q, a, R, rest, part: [*shares(q), rest >= 0, part + rest == R, a <= q * part],
    ),
    valid(
        "costs c(w) of a call: V = c + E V - sum mu D, so the renewal sum is c(w) where the text goes on, and D(w) = "
        "c(w) - sum a(z) >= c(w) - sum q(z) c(wz) >= 0, here with two tokens; the rest is unchanged with c(w) for 1",
        lambda c, d, e, q, r, a, b: at_most(0, c - (a + b)),
        lambda c, d, e, q, r, a, b: [*shares(q, r), d >= 0, e >= 0, a <= q * d, b <= r * e, q * d + r * e <= c],
    ),
)
"""Drafts and costs that depend on the text."""
