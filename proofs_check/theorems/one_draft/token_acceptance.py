"""A1: what token verification accepts, whose law its output has, and that no rule with a draft from q accepts more."""

from __future__ import annotations

from proofs_check.forms.divergences import overlap, total_variation
from proofs_check.forms.ranks import race
from proofs_check.prelude import *
from spectheory.verification import RaceVerification, TokenVerification

Joint = Sequence[Sequence[Real]]
"""P(draft = i, output = j), row i, column j: all that a rule with one candidate is, seen from outside."""


def given(p: AnyPmf, q: AnyPmf) -> dict[int, Real]:
    """Acceptance given the output, min(1, q/p), where the output occurs."""
    return {x: smaller(1, q[x] / p[x]) for x in range(len(p)) if not is_zero(p[x])}


def call(p: AnyPmf, q: AnyPmf) -> dict[tuple[int, bool], Real]:
    """One draft run through with every coin: (output, whether it is the accepted draft) to probability."""
    whole = token_verification(lambda _: tuple(p), lambda _: tuple(q), (), 1)
    return law(((tokens[0], accepted == 1), share) for (tokens, accepted), share in whole.items())


def enumerated(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The law of one call: acceptance, output, and acceptance given the output."""
    whole = call(p, q)
    outputs = {x: whole.get((x, True), 0) + whole.get((x, False), 0) for x in range(len(p))}
    accepted = {x: whole.get((x, True), 0) / outputs[x] for x in outputs if not is_zero(outputs[x])}
    yield equal(outputs, dict(enumerate(p)))
    yield equal(sum(share for (_, taken), share in whole.items() if taken), overlap(p, q))
    yield equal(overlap(p, q), 1 - total_variation(p, q))
    yield equal(accepted, given(p, q))


def diagonal(joint: Joint) -> Real:
    """P(draft = output)."""
    return sum(joint[x][x] for x in range(len(joint)))


def marginals(joint: Joint) -> tuple[list[Real], list[Real]]:
    """Target and draft pmf of a rule."""
    return [sum(column) for column in zip(*joint, strict=True)], [sum(row) for row in joint]


def corner(p: AnyPmf, q: AnyPmf, rows: Sequence[int], columns: Sequence[int]) -> Joint:
    """The joint law filled from the corner of these orders: every draft as early, every output as late as fits."""
    joint = [[0 * p[0]] * len(p) for _ in q]
    left, wanted = list(q), list(p)
    for i in rows:
        for j in columns:
            joint[i][j] = smaller(left[i], wanted[j])
            left[i], wanted[j] = left[i] - joint[i][j], wanted[j] - joint[i][j]
    return joint


def vertices(p: AnyPmf, q: AnyPmf) -> list[Joint]:
    """Every vertex of the polytope of joint laws, of up to 3 tokens.

    A vertex has the support of a forest of drafts and outputs. With three of each, every tree is a caterpillar: in some
    order of the rows and of the columns its edges are a staircase, which the corner rule fills.
    """
    orders = list(permutations(range(len(p))))
    return [corner(p, q, rows, columns) for rows in orders for columns in orders]


def token_library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's acceptance, and its law given the output."""
    target, draft = floats(p), floats(q)
    yield computed(TokenVerification().acceptance(target, draft), overlap(p, q))
    acceptance = TokenVerification().acceptance_given(target, draft)
    for x, share in given(p, q).items():
        yield computed(acceptance[x], share)


def joint_laws() -> Any:
    """2 to 4 tokens."""
    return st.integers(2, 4).flatmap(lambda n: exact_pmfs(n * n).map(lambda law: {"joint": _rows(law, n)}))


def joint_space(tokens: int) -> Space:
    """The optimiser's walk over joint laws."""
    return Space(
        tokens * tokens,
        lambda x: {"joint": _rows(softmax(x), tokens)},
        exactly=lambda x: {"joint": _rows(rational(softmax(x)), tokens)},
    )


def _rows(law: Sequence[Real], tokens: int) -> tuple[tuple[Real, ...], ...]:
    return tuple(tuple(law[i * tokens : (i + 1) * tokens]) for i in range(tokens))


STEPS: tuple[Step, ...] = (
    valid(
        "a token is drafted and accepted with probability q min(1, p/q) = min(p, q)",
        lambda p, q: equal(q * smaller(1, p / q), smaller(p, q)),
        lambda p, q: [p >= 0, q > 0],
    ),
    valid(
        "min(p, q) = (p + q - |p - q|)/2: the acceptance sums to 1 - TV",
        lambda p, q: equal(smaller(p, q), (p + q - absolute(p - q)) / 2),
    ),
    valid(
        "p - min(p, q) = (p - q)+: these sum to 1 - acceptance, the probability of a rejection",
        lambda p, q: equal(p - smaller(p, q), positive_part(p - q)),
    ),
    in_words(
        "so recovery from norm (p - q)+ adds R h/R = h = (p - q)+ to min(p, q), R the probability of a rejection: the "
        "output is drawn from p",
        lambda h, R, a: (a + R * (h / R), a + h),
    ),
    valid(
        "a draft that may be rejected has p < q, so recovery never gives it back: output = draft only if accepted",
        lambda p, q: equal(positive_part(p - q), 0),
        lambda p, q: [p >= 0, q > 0, smaller(1, p / q) < 1],
    ),
    valid(
        "given the output x, acceptance is min(p, q)/p = min(1, q/p)",
        lambda p, q: equal(smaller(p, q) / p, smaller(1, q / p)),
        lambda p, q: [p > 0, q >= 0],
    ),
    valid(
        "any rule: d = P(draft = x = output) with what else is drafted with output x, and output at draft x, makes p "
        "and q, so d <= min(p, q): no rule with one draft from q and output from p accepts more than the sum of minima",
        lambda d, row, column: at_most(d, smaller(d + column, d + row)),
        lambda d, row, column: [d >= 0, row >= 0, column >= 0],
    ),
)

A1 = Entry(
    id="A1",
    title="Acceptance of token verification",
    kind="identity",
    plain="accept the draft x with probability min(1, p/q), else recover from norm (p-q)+: acceptance is sum min(p, q) "
    "= 1 - TV, given the output min(1, q/p); the output has law p; no rule with one draft from q accepts more",
    latex=r"\alpha = \sum_x \min(p_x, q_x) = 1 - TV,\quad a(x) = \min(1, q_x/p_x),\quad "
    r"P(X = Y) \le \alpha \text{ for all } X \sim q,\ Y \sim p",
    source=("leviathan2023", "chen2023"),
    assumptions=("the draft is drawn from q and the output has law p", "given the output: p_x > 0"),
    calculators=("spectheory.verification.TokenVerification",),
    evidence=(
        proof("term by term, for any number of tokens", STEPS),
        exact(
            Claim(
                "one call with every coin: output law p, acceptance 1 - TV, given the output min(1, q/p)", enumerated
            ),
            every_pair(7, 10, others=(100, 100, 6)),
            wrong=Claim(
                "the output is drawn from the draft",
                lambda p, q: equal(
                    {x: call(p, q).get((x, True), 0) + call(p, q).get((x, False), 0) for x in range(len(p))},
                    dict(enumerate(q)),
                ),
            ),
        ),
        exact(
            Claim(
                "the most of all vertices of the joint laws is sum min(p, q)",
                lambda p, q: equal(max(map(diagonal, vertices(p, q))), overlap(p, q)),
            ),
            every_pair(4, 6),
            wrong=Claim(
                "it is what the race accepts", lambda p, q: equal(max(map(diagonal, vertices(p, q))), race(p, q))
            ),
        ),
        agreement(
            Claim("the library's acceptance, and that given the output", token_library),
            every_pair(5, 5, others=(200, 2000, 8)),
            wrong=Claim(
                "the library's acceptance is the sum of pq",
                lambda p, q: computed(
                    TokenVerification().acceptance(floats(p), floats(q)), sum(a * b for a, b in zip(p, q, strict=True))
                ),
            ),
        ),
        searched(
            Claim(
                "P(draft = output) <= sum min(p, q) for every joint law",
                lambda joint: at_most(diagonal(joint), overlap(*marginals(joint))),
            ),
            joint_laws,
            spaces=(joint_space(2), joint_space(3)),
            wrong=Claim(
                "P(draft = output) is at most what the race accepts",
                lambda joint: at_most(diagonal(joint), race(*marginals(joint))),
            ),
        ),
        simulated(
            "acceptance and output of token verification, drafts that lack a token and p/q = 1e10 among the pairs",
            at(("single",), (TURNED, LACKING, RARE), rule="token"),
            stated("A1", "lossless"),
            wrong=(
                "the race's acceptance (A2)",
                instead(stated("A1"), lambda pair, _: RaceVerification().acceptance(pair["target"], pair["draft"])),
            ),
        ),
        proved_in_coq(
            "token verification has both marginals, accepts sum min(p, q), and no rule accepts more, over any finite "
            "vocabulary",
            ("A1_lossless", "A1_acceptance", "A1_most"),
            wrong=("no rule accepts more, whatever its drafts are drawn from", "not_without_the_draft"),
        ),
    ),
)
