"""Y4: what a batch's rejections tend to as the number of drafts grows, and how fast."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import (
    Chain,
    Pmf,
    Table,
    array_of,
    chains,
    drawn_tables,
    start_of,
    steps_of,
    table_of,
    tables,
)
from proofs_check.prelude import *
from proofs_check.twins.batch_recursion import Left, left_after, nothing, profile, rarest, uncovered
from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted
from spectheory.intervals import Interval
from spectheory.limits import batch_expected_rejections, batch_limit, rejection_profile


def with_drafts(cases: Iterator[Case], counts: tuple[int, ...]) -> Iterator[Case]:
    """Each case with each number of drafts."""
    for case in cases:
        yield from ({**case, "drafts": drafts} for drafts in counts)


def models_and_drafts(effort: Effort) -> Iterator[Case]:
    """Random models of the whole prefix, M up to 40."""
    sizes = (2, 1), (3, 1), (5, 1), (2, 2), (3, 2), (2, 4)
    return with_drafts(tables(41, sizes, effort.pick(6, 40)), (1, 2, 3, 8, effort.pick(40, 200)))


def drawn_models() -> st.SearchStrategy[Case]:
    """Models on 2 tokens over 2 steps with extreme entries, M = 1 to 4."""
    drafts = st.fixed_dictionaries({"drafts": st.integers(1, 4)})
    return st.tuples(drawn_tables(2, 2), drafts).map(lambda drawn: {**drawn[0], **drawn[1]})


def _approached(target: Table, draft: Table, drafts: int, left: Left = uncovered) -> Iterator[Compared]:
    now, more = (sum(profile(target, draft, left_after(count))) for count in (drafts, drafts + 1))
    limit = sum(profile(target, draft, left))
    yield at_least(limit, 0)
    yield at_most(limit, more)
    yield at_most(more, now)
    yield at_most(now - limit, steps_of(target) * (1 - rarest(target, draft)) ** drafts)


def _one_position(target: Table, draft: Table, left: Left = uncovered) -> Iterator[Compared]:
    (limit, *_) = profile(target, draft, left)
    yield equal(limit, sum(uncovered(target[()], draft[()])))


def _computed(target: Chain, draft: Chain, initial: Pmf, left: Left = uncovered) -> Iterator[Compared]:
    terms = profile(table_of(target), table_of(draft), left, reach=start_of(initial), steps=len(target))
    given = array_of(target), array_of(draft), floats(initial)
    yield computed(batch_limit(*given), sum(terms))
    yield computed(batch_expected_rejections(*given, drafts=math.inf), sum(terms))
    yield from map(computed, rejection_profile(*given, drafts=math.inf), terms)


PROOF = (
    valid(
        "let u be what M rejected drafts leave, r_1...r_M p^{M+1}, and U its sum; one more leaves U (p^{M+1} - q)+ = "
        "(u - Uq)+: no more than u, and u = p for ever where q = 0",
        lambda U, a, q: [
            equal(U * positive_part(a - q), positive_part(U * a - U * q)),
            at_most(positive_part(U * a - U * q), U * a),
            equal(positive_part(U * a - U * 0), U * a),
        ],
        lambda U, a, q: shares(U, a, q),
    ),
    valid(
        "let W be the part of U on supp q and d the least q there. If some x has u >= Uq, one more draft leaves at "
        "most W - Ud <= (1 - d) W of W, else nothing; so W <= (1 - d)^M, and U tends to o",
        lambda u, U, q, rest, d: at_most(positive_part(u - U * q) + rest, (1 - d) * (u + rest)),
        lambda u, U, q, rest, d: [*shares(q), d > 0, d <= q, u >= 0, rest >= 0, u >= U * q, u + rest <= U],
    ),
    same(
        "let C be the rejections to come where a round starts, C' where one is running; token x adds "
        "u(1 + C) + (p - u)C' to the first and h(1 + C) + (p - h)C' to the second: (h - u)(1 - D) more, D = C' - C",
        lambda u, h, p, C, E: ((h * (1 + C) + (p - h) * E) - (u * (1 + C) + (p - u) * E), (h - u) * (1 - (E - C))),
    ),
    valid(
        "so if 0 <= D <= 1 after every x, then 0 <= D <= sum h <= 1 before it: from the last position back, always",
        lambda u, h, D: [at_least((h - u) * (1 - D), 0), at_most((h - u) * (1 - D), h)],
        lambda u, h, D: [u >= 0, u <= h, *shares(D)],
    ),
    same(
        "compare two batches that leave u and v, with C, E = C' and F, G = F': after x the first costs more by "
        "A = C - F and B = E - G, and token x adds (u - v)(1 - (E - C)) + vA + (p - v)B to the difference at a start",
        lambda u, v, p, C, E, F, G: (
            (u * (1 + C) + (p - u) * E) - (v * (1 + F) + (p - v) * G),
            (u - v) * (1 - (E - C)) + v * (C - F) + (p - v) * (E - G),
        ),
    ),
    valid(
        "if v <= u that is at least 0 and at most (u - v) + p max(A, B): with v for one more draft, Y3 falls in M; "
        "with v the limit, u - v sums to W, and T positions give Y3 - Y4 <= T (1 - d)^M, which tends to 0",
        lambda u, v, p, D, A, B, K: [
            at_least((u - v) * (1 - D) + v * A + (p - v) * B, 0),
            at_most((u - v) * (1 - D) + v * A + (p - v) * B, (u - v) + p * K),
        ],
        lambda u, v, p, D, A, B, K: [*shares(D), v >= 0, v <= u, u <= p, A >= 0, B >= 0, A <= K, B <= K],
    ),
    same(
        "Y3 with u = 1[q = 0] p, whose sum is o, is Y4: TV (P - f) + o f = P TV - f (TV - o); at T = 1 it is o",
        lambda TV, o, P, f: (TV * (P - f) + o * f, P * TV - f * (TV - o)),
    ),
)

APPROACHED = Claim("0 <= Y4 <= Y3 at M + 1 <= Y3 at M <= Y4 + T (1 - d)^M", _approached)
PAPER = Claim("the same without o", lambda **case: _approached(**case, left=nothing))


def _first_position(case: Mapping[str, Table]) -> Case:
    return {name: {(): table[()]} for name, table in case.items()}


TARGET = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]]
DRAFTS = {
    "covering": [[0.2, 0.2, 0.6], [0.5, 0.3, 0.2], [0.2, 0.6, 0.2]],
    "lacking": [[0.0, 0.4, 0.6], [0.7, 0.3, 0.0], [0.2, 0.6, 0.2]],
}
SETTINGS = [
    ("batch", {"target": TARGET, "draft": draft, "initial": [1.0, 0.0, 0.0], "length": 6, "drafts": drafts})
    for draft in DRAFTS.values()
    for drafts in (4, 200)
]


def nearing(kind: str, given: Parameters, kept: float = 1.0) -> Iterator[Predicted]:
    """Between the limit and T (1 - d)^M more; `kept` is how much of the limit is, the control's."""
    steps, drafts = given["length"], given["drafts"]
    limit = kept * float(batch_limit(given["target"], given["draft"], given["initial"], horizon=steps))
    rarest_draft = min(share for row in given["draft"] for share in row if share > 0)
    most = limit + steps * (1 - rarest_draft) ** drafts
    yield Predicted("rejections per text", "Y4", Mean("rejections", 0, steps), Interval(limit, limit, most, "bound"))


ENTRIES = (
    Entry(
        id="Y4",
        title="Rejections of a batch as M grows",
        kind="asymptotic",
        plain="as M grows Y3 falls to sum over n of E_P TV - E_f (TV - o), f(x_{<=n}) = h(x_n)[P(x_{<n}) - f(x_{<n})] "
        "+ 1[q(x_n) = 0] p(x_n) f(x_{<n}), o = p(outside supp q), f(empty) = 1; at M it is above it by at most "
        "T (1 - d)^M, d the least positive q of a token the target can output",
        latex=r"f^\infty(x_{\le n}) = h(x_n)\,[P(x_{<n}) - f^\infty(x_{<n})] + 1[x_n\notin\mathrm{supp}\,q]\,p(x_n)\,"
        r"f^\infty(x_{<n}),\quad E[N_{rej}] \downarrow \sum_n E_P TV - E_{f^\infty}(TV - o)",
        source=("yin2024",),
        assumptions=("the batch of Y3", "o = 0 is the paper's case: the draft can draw what the target can output"),
        calculators=tuple(
            f"spectheory.limits.{name}" for name in ("batch_limit", "batch_expected_rejections", "rejection_profile")
        ),
        evidence=(
            proof(
                "the rest on supp q shrinks geometrically; two batches are compared from the last position back", PROOF
            ),
            exact(
                APPROACHED,
                models_and_drafts,
                over="random models of the whole prefix, drafts that lack tokens among them, M up to 40",
                wrong=PAPER,
            ),
            exact(
                Claim("at T = 1 the limit is o", _one_position),
                lambda effort: map(_first_position, tables(42, ((2, 1), (3, 1), (5, 1)), effort.pick(30, 300))),
                over="random pairs, up to 5 tokens",
                wrong=Claim("the limit is 0 for every o", lambda **case: _one_position(**case, left=nothing)),
            ),
            agreement(
                Claim("the library's limit, also as a batch of infinitely many, and its profile", _computed),
                lambda effort: chains(43, ((2, 1), (2, 6), (3, 4), (5, 3)), effort.pick(6, 60)),
                over="random non-stationary chains whose drafts lack tokens",
                wrong=Claim("the same without o", lambda **case: _computed(**case, left=nothing)),
            ),
            searched(APPROACHED, drawn_models, over="2 tokens, 2 steps, M = 1 to 4, entries of all sizes", wrong=PAPER),
            simulated(
                "rejections of 4 and of 200 drafts, T = 6, drafts that lack tokens and such as lack none",
                SETTINGS,
                nearing,
                wrong=("the limit is 0, as at T = 1 without o", lambda kind, given: nearing(kind, given, kept=0.0)),
            ),
        ),
    ),
)
