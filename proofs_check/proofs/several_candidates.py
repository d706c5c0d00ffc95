"""Steps about several candidates for one token that several statements share."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.twins.list_transport import lists

ROUND: tuple[Step, ...] = (
    valid(
        "one candidate of any draft q: x is drawn and accepted with q min(1, p/q) = min(p, q), drawn and rejected with "
        "q - min(p, q) = (q - p)+",
        lambda p, q: [equal(q * smaller(1, p / q), smaller(p, q)), equal(q - smaller(p, q), positive_part(q - p))],
        lambda p, q: [p >= 0, q > 0],
    ),
    valid(
        "(p - q)+ - (q - p)+ = p - q, together they are |p - q|: both sum to TV(p, q), the probability of a rejection",
        lambda p, q: [
            equal(positive_part(p - q) - positive_part(q - p), p - q),
            equal(positive_part(p - q) + positive_part(q - p), absolute(p - q)),
        ],
    ),
    valid(
        "min(p, q) + (p - q)+ = p: what is accepted, and the residual norm (p - q)+ with probability TV, are p again; "
        "so the output law is p whatever the drafts: it is if no candidate is left, and with m of them as with m - 1",
        lambda p, q: equal(smaller(p, q) + positive_part(p - q), p),
    ),
)
"""One round, of any draft that the rejections so far may have led to."""

BELOW_EVERY_CUT = valid(
    "for a set H take the events A: accepted, D: all k candidates in H, O: the output in H. What is accepted is a "
    "candidate, so A and D without O cannot be; whatever law the seven other cases have, P(A) <= 1 - P(D) + P(O)",
    lambda none, o, d, do, a, ao, ado: at_most(a + ao + ado, 1 - (d + do + ado) + (o + do + ao + ado)),
    lambda none, o, d, do, a, ao, ado: [
        *(share >= 0 for share in (none, o, d, do, a, ao, ado)),
        none + o + d + do + a + ao + ado == 1,
    ],
)
"""What every rule of i.i.d. candidates obeys, whatever it does."""

ALL_INSIDE = same(
    "P(D) = q(H)^k, the sum over the lists inside H; here of two tokens at k = 3. And P(O) = p(H), the rule being "
    "lossless: P(A) <= 1 + p(H) - q(H)^k",
    lambda q1, q2: (sum(lists((q1, q2), 3).values()), (q1 + q2) ** 3),
)
"""The law of the candidates, and that of the output."""

CONVEX = same(
    "(Q+h)^k >= Q^k + k Q^(k-1) h for Q, Q + h >= 0, by induction: multiplied by Q + h, the right side exceeds the "
    "next one's by k Q^(k-1) h^2 >= 0 (A = Q^(k-1))",
    lambda A, Q, h, k: ((A * Q + k * A * h) * (Q + h) - (A * Q * Q + (k + 1) * A * Q * h), k * A * h * h),
)
"""The tangent of a power."""
