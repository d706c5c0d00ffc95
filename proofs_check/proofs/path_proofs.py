"""The path theorem in steps (§7): one lemma for every rule, then each rule's own masses."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.statement.calculus import exp

TELESCOPE: tuple[Step, ...] = (
    same(
        "let M be the probability that a call accepts i drafts or more and outputs x_1..x_i, and m the same at i+1. "
        "If it stops after x_1..x_i with the token x_(i+1) with probability M p - m, and later text has target "
        "probability R, the share W_i of the text x that comes from tau >= i is W_(i+1) + (M p - m) R = M p R, as "
        "W_(i+1) = m R; at i = k the call stops with the bonus token, W_k = M p R",
        lambda M, m, p, R: (m * R + (M * p - m) * R, M * p * R),
    ),
    in_words(
        "so W_0 is the target's probability of the text (M = 1 at i = 0): lossless; and P(tau >= i | text) = "
        "M_i/(p_1..p_i), with A = p_1..p_i and B the target's probability of what follows",
        lambda M, A, B: ((M * B) / (A * B), M / A),
    ),
)
"""One lemma for every rule: a call that stops with M p - m."""

POSITIONS: tuple[Step, ...] = (
    *TELESCOPE,
    valid(
        "token verification draws and accepts x with q min(1, p/q) = min(p, q)",
        lambda p, q: equal(q * smaller(1, p / q), smaller(p, q)),
        lambda p, q: [p >= 0, q > 0],
    ),
    valid(
        "rejects it with q - min(p, q) = (q-p)+, and p - min(p, q) = (p-q)+: both sum to the same D = 1 - sum min",
        lambda p, q: [equal(q - smaller(p, q), positive_part(q - p)), equal(p - smaller(p, q), positive_part(p - q))],
        lambda p, q: shares(p, q),
    ),
    valid(
        "so it stops at x with M D (p-q)+/D = M p - m, m = M min(p, q): each accepted token is a factor min(p, q)/p = "
        "min(1, q/p); with D = 0 it never stops there, and p = q",
        lambda M, D, p, q: [
            equal(M * D * (positive_part(p - q) / D), M * p - M * smaller(p, q)),
            equal(M * smaller(p, q) / p, M * smaller(1, q / p)),
        ],
        lambda M, D, p, q: [*shares(M, q), D > 0, p > 0, p <= 1],
    ),
    same(
        "a rule that draws draft d and output x of a position jointly from J(d, x), whatever it does: with o the sum "
        "of J(d, x) over d != x the output has p = J(x, x) + o, and it stops at x with M o = M p - M J(x, x)",
        lambda M, J, o: (M * o, M * (J + o) - M * J),
    ),
    valid(
        "the race, given that x wins for the target at time u: it wins for the draft too iff every other clock, beyond "
        "u p_y already, is beyond u max(p_y, c q_y) = u (p_y + (c q_y - p_y)+), c = p_x/q_x",
        lambda p, q, c: equal(larger(p, c * q), p + positive_part(c * q - p)),
        lambda p, q, c: [*shares(p, q), c > 0],
    ),
    same(
        "clocks have no memory, so that has e^(-u g), g = sum_y (c q_y - p_y)+; u ~ Exp(1) is independent of x (R2), "
        "so a(x) = J(x, x)/p = 1/(1+g)",
        lambda g, u: (integral(exp(-u) * exp(-u * g), u, 0, math.inf), 1 / (1 + g)),
    ),
    same(
        "a tree: M is a sum over the nodes of depth i. One more node, accepted with w on the text's tokens, whose "
        "children's ranks have s of the joint law J(r, x) at x, adds w to M and w s to m, and stops with w (p - s): "
        "the sum stays M p - m",
        lambda M, m, p, w, s: ((M * p - m) + w * (p - s), (M + w) * p - (m + w * s)),
    ),
)
"""Token verification, rules that decide each position by itself, trees."""

BLOCK: tuple[Step, ...] = (
    valid(
        "with r the running ratio of the drafts X_1..X_i, r' = min(1, r p/q) at the next: q r' = r p - (r p - q)+, so "
        "E[r' | X_1..X_i] = r - S, S = sum (r p - q)+ (a token with q = 0 adds 0 to both)",
        lambda r, p, q: equal(q * smaller(1, r * p / q), r * p - positive_part(r * p - q)),
        lambda r, p, q: [*shares(r, p), q > 0],
    ),
    in_words(
        "P(tau >= i | X_1..X_i) = r, downwards from i = k, marked with r: a deeper depth is marked with E[r'] = r - S, "
        "and if none is, depth i is with h = S/(S + 1 - r)",
        lambda r, S: ((r - S) + (1 - (r - S)) * S / (S + 1 - r), r),
    ),
    valid(
        "h divides by 0 only if r = 1 and S = 0, and then a deeper mark is certain, r - S = 1",
        lambda r, S: [equal(r, 1), equal(S, 0), equal(r - S, 1)],
        lambda r, S: [r <= 1, S >= 0, S + 1 - r == 0],
    ),
    valid(
        "so with G = q(x_1..x_i) it stops at x with G (1 - r + S) h (r p - q)+/S = G (r p - q)+, 0 where S = 0",
        lambda r, S: equal((1 - r + S) * (S / (S + 1 - r)) / S, 1),
        lambda r, S: [r >= 0, r <= 1, S > 0],
    ),
    valid(
        "with M = G r that is M p - m, m = min(G q, M p) = G q r', the lemma's form",
        lambda G, r, p, q: [
            equal(G * positive_part(r * p - q), G * r * p - smaller(G * q, G * r * p)),
            equal(G * q * smaller(1, r * p / q), smaller(G * q, G * r * p)),
        ],
        lambda G, r, p, q: [*shares(G, r, p), q > 0],
    ),
    valid(
        "divided by the target's A = p(x_1..x_i) times p: m/(A p) = min(rho_1..rho_(i+1), M/A), the running minimum",
        lambda G, M, A, p, q: equal(smaller(G * q, M * p) / (A * p), smaller((G * q) / (A * p), M / A)),
        lambda G, M, A, p, q: [*shares(G, M, q), A > 0, p > 0],
    ),
    *TELESCOPE,
)
"""Block verification."""

LARGEST: tuple[Step, ...] = (
    same(
        "any lossless call after which the target goes on: text x_1..x_(i+1) has probability A p, of which tau < i has "
        "(A - M) p, its x_(i+1) being drawn afresh; so tau >= i has the rest, M p",
        lambda A, M, p: (A * p - (A - M) * p, M * p),
    ),
    valid(
        "tau >= i+1 is part of that, m <= M p, and its drafts were drawn, m <= Q = q(x_1..x_(i+1)); with M at most "
        "block verification's B, m <= min(Q, B p), which is block verification's m",
        lambda m, M, B, Q, p: at_most(m, smaller(Q, B * p)),
        lambda m, M, B, Q, p: [*shares(p), m <= M * p, m <= Q, M <= B, m >= 0],
    ),
)
"""No lossless rule accepts more than block verification, text by text and depth by depth."""


# Block verification over a whole decoding in steps (B7): masses, what a call costs, renewal, induction, optimality.


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
    same(
        "a policy: a call starts after w with probability v(w), and given that has some s and a. As v(wy) gathers v(w) "
        "a(y), calls that cost e and f have sum v e - V = sum over w of v(w) (C_s(w) - V(w)), here with v(w) = 1 and "
        "one output of it, which ends",
        lambda a, e, f, U, W: ((e + a * f) - W, (e + a * U - W) + a * (f - U)),
    ),
    valid(
        "so it costs V or more, as C_s(w) >= V(w) at every text, here with two of them",
        lambda v, u, C, D, V, W: at_most(0, v * (C - V) + u * (D - W)),
        lambda v, u, C, D, V, W: [v >= 0, u >= 0, C >= V, D >= W],
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
    OPTIMAL[1],
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

PRICED: tuple[Step, ...] = (
    *LARGEST[:1],
    valid(
        "tau >= i+1 is part of that, m <= p M, and its drafts were drawn, which after x goes on with R(x): m <= Q R; "
        "with M at most mu_i(x) = B, m <= min(p B, Q R), block verification's against the law of drafts that stop",
        lambda m, M, B, p, Q, R: at_most(m, smaller(p * B, Q * R)),
        lambda m, M, B, p, Q, R: [*shares(p), m <= p * M, m <= Q * R, M <= B],
    ),
    *COST[:2],
    in_words(
        "with c a drafted token: C = 1 + E V(z) + c sum Q R - sum s D, here with two runs of drafts",
        lambda v, c, Q, R, S, T, s, t, D, E: (
            (1 + c * (Q * R + S * T)) + (v - (s * D + t * E)),
            1 + v - ((s * D + t * E) - c * (Q * R + S * T)),
        ),
    ),
    valid(
        "from w, r the probability that anything is drafted and R' = R/r afterwards: mu^w(zx) <= q(z) r mu^(wz)(x) "
        "with the stops R', by induction over x: a <= q r m gives min(p a, q Q r R') <= q r min(p m, Q R')",
        lambda a, p, q, Q, r, m, R: at_most(smaller(p * a, q * Q * r * R), q * r * smaller(p * m, Q * R)),
        lambda a, p, q, Q, r, m, R: [*shares(p, q, Q, r, m, R), a <= q * r * m],
    ),
    valid(
        "the stops R' are allowed at wz, where V is the least: D(wz) + sum mu^(wz) D - c sum Q R' = S <= 1, or 0 if wz "
        "has ended. So from w calls save at most sum_z q(z) r S(z) - c r, and D(w) >= 1 - r (1 - c) >= min(c, 1), "
        "here with two tokens",
        lambda q, u, r, c, S, T: at_most(smaller(c, 1), 1 - (q * r * S + u * r * T - c * r)),
        lambda q, u, r, c, S, T: [*shares(q, u, r), q + u <= 1, S <= 1, T <= 1],
    ),
    valid(
        "a call that drafts nothing saves nothing, so the most that one saves, m, is 0 or more: D(w) = 1 - m <= 1",
        lambda m: at_most(1 - m, 1),
        lambda m: [m >= 0],
    ),
    *OPTIMAL[1:],
)
"""B10: masses under stops at a price, the shift, D between min(c, 1) and 1, every policy."""
