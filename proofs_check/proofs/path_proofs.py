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
