"""Y3: the rejections of a batch of M i.i.d. drafts, all of which are tried where a round starts."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import *
from proofs_check.prelude import *
from proofs_check.theorems.rejections.batch_recursion import *
from simulations.counts import Mean
from simulations.verdicts.predictions import Predicted
from spectheory.intervals import Interval
from spectheory.limits import batch_expected_rejections, batch_limit, expected_calls, rejection_profile


def batches(effort: Effort) -> Iterator[Case]:
    """Random models of the whole prefix and M = 1 to 4, as far as all batches of whole drafts can be enumerated."""
    sizes = [(2, 1, 4), (3, 1, 4), (4, 1, 3), (2, 2, 4), (3, 2, 2), (2, 3, 2), (3, 2, 3), (2, 3, 3), (2, 4, 2)]
    for tokens, steps, most in sizes:
        small = tokens ** (steps * most) <= 300
        models = tables(31, ((tokens, steps),), effort.pick(10 if small else 2, 40 if small else 8))
        yield from with_each(models, drafts=range(1, most + 1))


def drawn_batches(least: int, most: int) -> st.SearchStrategy[Case]:
    """2 tokens, 2 steps, entries of all sizes."""
    drafts = st.fixed_dictionaries({"drafts": st.integers(least, most)})
    return st.tuples(drawn_tables(2, 2), drafts).map(lambda parts: {**parts[0], **parts[1]})


def one_position(effort: Effort) -> Iterator[Case]:
    """Uniform on V' against uniform on rV' tokens; Bernoulli(v) against Bernoulli(u), u >= v."""
    for inner, ratio, drafts in product((1, 2, 4), (1, 2, 3), (1, 2, 3, effort.pick(6, 20))):
        size = inner * ratio
        p = tuple(Fraction(int(x < inner), inner) for x in range(size))
        gap = 1 - Fraction(1, ratio)
        yield {"p": p, "q": (Fraction(1, size),) * size, "drafts": drafts, "gain": gap - gap**drafts}
    for high, low, drafts in product((1, 2, 5), (0, 1, 2), (1, 2, 3, effort.pick(6, 20))):
        u, v = Fraction(high, 5), Fraction(low, 5)
        if u >= v:
            gain = (u - v) * (1 - u ** (drafts - 1))
            yield {"p": (1 - v, v), "q": (1 - u, u), "drafts": drafts, "gain": gain}


def _y3(target: Table, draft: Table, drafts: int, left: Callable[[int], Left] = left_after) -> Iterator[Compared]:
    shares, calls, outputs = enumerated(target, draft, drafts)
    stated = profile(target, draft, left(drafts))
    yield equal(shares, stated)
    yield equal(calls, 1 + sum(stated[:-1]))
    yield equal(outputs, text_law(model_of(target), steps_of(target)))


def _computed(
    target: Chain, draft: Chain, initial: Pmf, drafts: int, left: Callable[[int], Left] = left_after
) -> Iterator[Compared]:
    stated = profile(table_of(target), table_of(draft), left(drafts), reach=start_of(initial), steps=len(target))
    given = array_of(target), array_of(draft), floats(initial)
    yield computed(batch_expected_rejections(*given, drafts=drafts), sum(stated))
    yield computed(expected_calls(*given, drafts=drafts), 1 + sum(stated[:-1]))
    yield from map(computed, rejection_profile(*given, drafts=drafts), stated)


def _gain(p: Pmf, q: Pmf, drafts: int, gain: Real, more: int = 0) -> Iterator[Compared]:
    missed, _ = tried(p, q, drafts + more)
    yield equal(sum(excess(p, q)) - missed, gain)
    rows = array_of(((p,) * len(p),)), array_of(((q,) * len(q),)), floats([1] + [0] * (len(p) - 1))
    saved = batch_expected_rejections(*rows, drafts=1) - batch_expected_rejections(*rows, drafts=drafts)
    yield computed(saved, gain)


PROOF = (
    valid(
        "a try of p^m outputs x with probability q min(1, p^m/q) = min(p^m, q) and leaves (p^m - q)+ = r_m p^{m+1}: "
        "min(p^m, q) + r_m p^{m+1} = p^m, so by induction over the tries a round's start outputs x with probability p, "
        "and u(x) = r_1...r_M p^{M+1}(x) of it is recovered after M rejections",
        lambda p, q, r: equal(q * smaller(1, p / q) + r * (positive_part(p - q) / r), p),
        lambda p, q, r: [p >= 0, q > 0, r > 0],
    ),
    same(
        "further into a round its one draft is verified as in Y1, so the text has the target's law, and x is recovered "
        "with probability h = (p - q)+. A round starts after x_{<=n} if x_n was recovered: with probability f(x_{<n}) "
        "where a round had started, with P - f where one was running: h(P - f) + uf = hP - [h - u]f, the recursion; "
        "f(empty) = P(empty) = 1, as the text begins with a round",
        lambda h, u, P, f: (h * (P - f) + u * f, h * P - (h - u) * f),
    ),
    same(
        "its sum over x_n is the probability of a rejection at n after x_{<n}: with TV = sum h and r_1...r_M = sum u, "
        "TV (P - f) + r_1...r_M f = P TV - f [TV - r_1...r_M]; summed over prefixes and positions that is Y3",
        lambda TV, r, P, f: (TV * (P - f) + r * f, P * TV - f * (TV - r)),
    ),
    in_words("with one draft u = h, so the bracket is 0 and Y1 remains", lambda h, P, f: (h * P - (h - h) * f, h * P)),
)

GAINS = (
    same(
        "uniform on n tokens against uniform on rn: p - q = 1/n - 1/(rn) on the n, so TV = 1 - 1/r",
        lambda n, r: (n * (1 / n - 1 / (r * n)), 1 - 1 / r),
    ),
    same(
        "and p^2 = (p - q)+/TV = 1/n = p: every try has the same TV, the gain is (1 - 1/r) - (1 - 1/r)^M",
        lambda n, r: ((1 / n - 1 / (r * n)) / (1 - 1 / r), 1 / n),
    ),
    valid(
        "draft Bernoulli(u), target Bernoulli(v), u >= v: (p - q)+ is u - v on the token 0 and 0 on 1, so TV = u - v "
        "and p^2 = (1, 0)",
        lambda u, v: [equal(positive_part((1 - v) - (1 - u)), u - v), equal(positive_part(v - u), 0)],
        lambda u, v: [u >= v, v >= 0, u <= 1],
    ),
    valid(
        "then (p^2 - q)+ = (u, 0): TV(p^2, q) = u, p^3 = p^2, and so on: r_1...r_M = (u - v) u^{M-1}",
        lambda u: [equal(positive_part(1 - (1 - u)), u), equal(positive_part(0 - u), 0)],
        lambda u: [u >= 0, u <= 1],
    ),
    same(
        "and the gain is (u - v) - (u - v) u^{M-1} = (u - v)(1 - u^{M-1})",
        lambda u, v, M: ((u - v) - (u - v) * u ** (M - 1), (u - v) * (1 - u ** (M - 1))),
        integers=("M",),
    ),
)

Y3 = Claim("Y3 is what the algorithm that tries all M drafts does, its text the target's", _y3)


# Y4: what a batch's rejections tend to as the number of drafts grows, and how fast.


def models_and_drafts(effort: Effort) -> Iterator[Case]:
    """Random models of the whole prefix, drafts that lack tokens among them, M up to 40."""
    sizes = (2, 1), (3, 1), (5, 1), (2, 2), (3, 2), (2, 4)
    return with_each(tables(41, sizes, effort.pick(6, 40)), drafts=(1, 2, 3, 8, effort.pick(40, 200)))


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


def _computed_limit(target: Chain, draft: Chain, initial: Pmf, left: Left = uncovered) -> Iterator[Compared]:
    terms = profile(table_of(target), table_of(draft), left, reach=start_of(initial), steps=len(target))
    given = array_of(target), array_of(draft), floats(initial)
    yield computed(batch_limit(*given), sum(terms))
    yield computed(batch_expected_rejections(*given, drafts=math.inf), sum(terms))
    yield from map(computed, rejection_profile(*given, drafts=math.inf), terms)


LIMIT = (
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


# Three forms of Y3 and Y4 that are false: the algorithm as printed, f(empty) = 0, the limit without a condition.


def by_size(effort: Effort) -> Iterator[Case]:
    """By T, then V, then M, then denominator."""
    for steps, tokens, drafts in product((1, 2), (2, 3), (1, 2)):
        yield from with_each(one_model(tokens, steps, effort.pick(3, 4)), drafts=(drafts,))


def _algorithm(target: Table, draft: Table, drafts: int, *, printed: bool, first: int = 1) -> Compared:
    """The enumerated algorithm against the formula."""
    shares, _, _ = enumerated(target, draft, drafts, printed=printed)
    return equal(shares, profile(target, draft, left_after(drafts), first=first))


def _truth(target: Table, draft: Table, drafts: int) -> Iterator[Compared]:
    """What holds in place of the first two: the formula for the one algorithm, Y1 for the other."""
    yield _algorithm(target, draft, drafts, printed=False)
    shares, _, _ = enumerated(target, draft, drafts, printed=True)
    yield equal(shares, y1_profile(target, draft, steps_of(target)))


def _limit(target: Table, draft: Table, drafts: int, left: Left = nothing) -> Iterator[Compared]:
    """The product of the TVs where the text starts, and Y3, within what a geometric approach leaves at M."""
    p, q = target[()], draft[()]
    room = (1 - rarest(target, draft)) ** drafts
    yield at_most(sum(left_after(drafts)(p, q)), sum(left(p, q)) + room)
    rejections: Pmf = profile(target, draft, left_after(drafts))
    yield at_most(sum(rejections), sum(profile(target, draft, left)) + steps_of(target) * room)


BATCH = "M i.i.d. drafts to the horizon T in each round"
FIRST = "first among pairs that serve every prefix, by T, then the number of tokens, then M, then denominator"
TRUE = Claim("Y3 is what the intended algorithm does, and Y1 what the printed one does", _truth)

Y3_ENTRY = Entry(
    id="Y3",
    title="Rejections of a batch of drafts",
    kind="identity",
    plain="E[rejections] = sum over n of E_P TV - sum over n and prefixes of f [TV(p, q) - prod over m <= M of "
    "TV(p^m, q)], p^{m+1} = norm (p^m - q)+, f(empty) = 1, f(x_{<=n}) = h(x_n) P(x_{<n}) - [h(x_n) - "
    "(prod TV(p^m, q)) p^{M+1}(x_n)] f(x_{<n}), h = (p - q)+",
    latex=r"E[N_{rej}] = \sum_n E_P TV - \sum_n\sum_{x_{<n}} f(x_{<n})\Big[TV(p,q) - "
    r"\prod_{m\le M} TV(p^m,q)\Big],\quad "
    r"f(x_{\le n}) = h(x_n)P(x_{<n}) - \Big[h(x_n) - \prod_m TV(p^m,q)\,p^{M+1}(x_n)\Big] f(x_{<n})",
    source=("yin2024",),
    number="Theorem 3",
    assumptions=(
        "M i.i.d. drafts to the horizon T in each round",
        "all M first tokens are tried where a round starts (the paper's Algorithm 4 as printed tries one); then "
        "the accepted draft is followed alone",
        "where TV(p^m, q) = 0 the product is 0 and p^{M+1} is unused",
    ),
    calculators=public("limits", "batch_expected_rejections expected_calls rejection_profile"),
    evidence=(
        proof("the law of where rounds start, for any M, vocabulary, horizon and models", PROOF),
        proof("the gain of one position in closed form, for any M", GAINS),
        exact(
            Y3,
            batches,
            over="every draft of every batch and every coin enumerated, random models of the whole prefix, M = 1 "
            "to 4, up to 4 tokens and 4 steps",
            wrong=Claim("the same with recovery from p^M", lambda **case: _y3(**case, left=left_early)),
        ),
        agreement(
            Claim("the library's rejections, calls and profile are those of Y3", _computed),
            lambda effort: with_each(
                chains(32, ((2, 1), (2, 6), (3, 4), (5, 3)), effort.pick(2, 20)), drafts=range(1, 7)
            ),
            over="random non-stationary chains, zeros among their entries, M = 1 to 6",
            wrong=Claim("the same with recovery from p^M", lambda **case: _computed(**case, left=left_early)),
        ),
        agreement(
            Claim("one position saves (1-1/r) - (1-1/r)^M, or (u-v)(1-u^{M-1}); the library's too", _gain),
            one_position,
            wrong=Claim("the saving of M + 1 drafts", lambda **case: _gain(**case, more=1)),
        ),
        searched(
            Y3,
            lambda: drawn_batches(2, 3),
            over="2 tokens, 2 steps, M = 2 or 3, entries of all sizes",
            wrong=Claim("the same with one draft fewer", lambda **case: _y3(**case, left=left_with_one_fewer)),
        ),
        simulated(
            "rejections on the paper's test bed, T = 20, M = 2 and 5, in all and by position",
            [("batch", {"chains": "yin2024", "length": 20, "drafts": drafts}) for drafts in (2, 5)],
            stated("Y3"),
            wrong=("the rejections of M + 1 drafts", stated("Y3", drafts=lambda drafts: drafts + 1)),
        ),
    ),
)

Y4 = Entry(
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
    calculators=public("limits", "batch_limit batch_expected_rejections rejection_profile"),
    evidence=(
        proof("the rest on supp q shrinks geometrically; two batches are compared from the last position back", LIMIT),
        exact(APPROACHED, models_and_drafts, wrong=PAPER),
        exact(
            Claim("at T = 1 the limit is o", _one_position),
            lambda effort: (
                {name: {(): table[()]} for name, table in case.items()}
                for case in tables(42, ((2, 1), (3, 1), (5, 1)), effort.pick(30, 300))
            ),
            over="random pairs, up to 5 tokens",
            wrong=Claim("the limit is 0 for every o", lambda **case: _one_position(**case, left=nothing)),
        ),
        agreement(
            Claim("the library's limit, also as a batch of infinitely many, and its profile", _computed_limit),
            lambda effort: chains(43, ((2, 1), (2, 6), (3, 4), (5, 3)), effort.pick(6, 60)),
            over="random non-stationary chains whose drafts lack tokens",
            wrong=Claim("the same without o", lambda **case: _computed_limit(**case, left=nothing)),
        ),
        searched(
            APPROACHED,
            lambda: drawn_batches(1, 4),
            over="2 tokens, 2 steps, M = 1 to 4, entries of all sizes",
            wrong=PAPER,
        ),
        simulated(
            "rejections of 4 and of 200 drafts, T = 6, drafts that lack tokens and such as lack none",
            SETTINGS,
            nearing,
            wrong=("the limit is 0, as at T = 1 without o", lambda kind, given: nearing(kind, given, kept=0.0)),
        ),
    ),
)

Y3_PRINTED = Entry(
    id="Y3/printed",
    title="The batch algorithm as printed",
    kind="refuted",
    plain="Algorithm 4 as printed, whose round ends at the first rejected first token, has the rejections of Y3 "
    "(it has those of Y1, for every M)",
    latex=r"E[N_{rej}^{\text{Algorithm 4 as printed}}] = \sum_n E_P TV - \sum_n\sum_{x_{<n}} f(x_{<n})"
    r"\Big[TV(p,q) - \prod_{m\le M} TV(p^m,q)\Big]",
    source=("yin2024",),
    number="Algorithm 4 and Theorem 3",
    assumptions=(BATCH,),
    evidence=(
        counterexample(
            Claim(
                "Y3 is what Algorithm 4 as printed does",
                lambda target, draft, drafts: _algorithm(target, draft, drafts, printed=True),
            ),
            by_size,
            over=FIRST,
            true=TRUE,
        ),
        simulated(
            "as printed it rejects as Y3 says, on the paper's test bed, T = 20, M = 4",
            (("batch", {"chains": "yin2024", "length": 20, "drafts": 4, "printed": True}),),
            stated("Y3", printed=False),
            wrong=("it has the rejections of Y1, for every M", stated("Y3/printed")),
        ),
    ),
)

Y3_EMPTY = Entry(
    id="Y3/empty",
    title="Y3 from f(empty) = 0",
    kind="refuted",
    plain="Y3 holds with f(empty) = 0 (the gain of the first round is lost)",
    latex=r"f(\emptyset) = 0",
    assumptions=(BATCH, "all M first tokens are tried where a round starts"),
    evidence=(
        counterexample(
            Claim(
                "Y3 with f(empty) = 0 is what the intended algorithm does",
                lambda target, draft, drafts: _algorithm(target, draft, drafts, printed=False, first=0),
            ),
            by_size,
            over=FIRST,
            true=TRUE,
        ),
    ),
)

Y4_SUPPORT = Entry(
    id="Y4/support",
    title="The limit without a condition on supports",
    kind="refuted",
    plain="the product of the TV(p^m, q) tends to 0 and Y3 to sum of E_P TV - E_f TV, f(x_{<=n}) = "
    "h(x_n)[P(x_{<n}) - f(x_{<n})], whatever p and q",
    latex=r"\prod_{m\le M} TV(p^m, q) \to 0",
    source=("yin2024",),
    assumptions=(BATCH, "all M first tokens are tried where a round starts"),
    evidence=(
        counterexample(
            Claim("prod TV <= (1 - d)^M and Y3 <= its limit without o + T (1 - d)^M", _limit),
            by_size,
            over=FIRST,
            true=Claim(
                "prod TV <= o + (1 - d)^M and Y3 <= Y4 + T (1 - d)^M", lambda **case: _limit(**case, left=uncovered)
            ),
        ),
    ),
)
