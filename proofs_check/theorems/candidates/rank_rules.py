"""The library's rules with ranks (R1, R2, R3, R7) against the exact law of the rank given each output."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.statement.calculus import exp
from proofs_check.twins.list_transport import lists
from spectheory.verification import PoissonRace, RaceVerification, RankRule


def ranks_computed(
    rule: RankRule, p: AnyPmf, q: AnyPmf, given: Mapping[int, Sequence[Real]], least: Real = 0
) -> Iterator[Compared]:
    """The law of the rank and the acceptance, given the output or not; ``given[x][r - 1]`` is P(R = r | x).

    Given an output that is rarer than `least`, only the product with its probability is compared.
    """
    target, draft, ranks = floats(p), floats(q), len(next(iter(given.values())))
    law = [sum(p[x] * shares[r] for x, shares in given.items()) for r in range(ranks)]
    for share, exact in zip(rule.rank_pmf(target, draft, ranks), law, strict=True):
        yield computed(share, exact)
    for k, within in enumerate(accumulate(law), 1):
        yield computed(rule.acceptance(target, draft, k), within)
    first = rule.acceptance_given(target, draft)
    for x, shares in given.items():
        yield computed(first[x], shares[0])
        scale, weight = (target[x], p[x]) if p[x] < least else (1, 1)
        for share, exact in zip(rule.rank_pmf_given(target, draft, x, ranks), shares, strict=True):
            yield computed(share * scale, exact * weight)


def given_outputs(law: Sequence[Sequence[Real]], p: AnyPmf) -> dict[int, list[Real]]:
    """P(R = r | x) of a joint law ``law[r - 1][x]``, for the outputs that the target can have."""
    return {x: [row[x] / share for row in law] for x, share in enumerate(p) if not is_zero(share)}


def mean_computed(rule: PoissonRace | RaceVerification, p: AnyPmf, q: AnyPmf, mean: Real) -> Compared:
    """The mean rank: infinite where the draft lacks a token of the target."""
    rank = rule.expected_rank(floats(p), floats(q))
    lacks = any(is_zero(b) and not is_zero(a) for a, b in zip(p, q, strict=True))
    return equal(int(math.isinf(rank)), 1) if lacks else computed(rank, mean)


# Rules of two candidates on few tokens: strategies and the space that the optimiser walks.


def rules(tokens: int) -> st.SearchStrategy[Case]:
    """A draft, and any rule for two candidates: a law of the output for every list."""
    return st.fixed_dictionaries({"q": exact_pmfs(tokens), "rule": st.tuples(*[exact_pmfs(tokens)] * tokens**2)})


def rules_of_two() -> Space:
    """The same on two tokens, for the optimiser: logits of the first token."""

    def weights(x: Any) -> dict[str, Any]:
        rows = [(float(share), float(1 - share)) for share in 1 / (1 + np.exp(-np.clip(x, -700, 700)))]
        return {"q": rows[0], "rule": tuple(rows[1:])}

    return Space(5, weights, "q rule")


# Steps about several candidates for one token that several statements share.


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


# Steps about races of exponential clocks that several statements share.


def over_all(weight: Real, u: Real) -> Real:
    """The integral over all times u > 0."""
    return integral(weight, u, 0, math.inf)


WINNER = same(
    "clocks E_y are Exp(1); i rings first for the target at u = E_i/p_i with density p_i e^(-p_i u), and the others, "
    "E_y > u p_y, are later with e^(-u(1 - p_i)): together p_i e^(-u), so winner i ~ p and time u ~ Exp(1) are "
    "independent",
    lambda p, u: (p * exp(-p * u) * exp(-u * (1 - p)), p * exp(-u)),
)
"""Winner and winning time of a race."""

LOSSLESS = in_words(
    "x's clock of race j wins the output if all others, of k races, are beyond t p_y/p_x: D = k/p_x, and over the k "
    "races p_x: the output has law p. Within one race D = 1/q_x: drafts have law q, and are independent",
    lambda k, p: (k / (k * (1 / p)), p),
)
"""The laws of output and drafts."""
