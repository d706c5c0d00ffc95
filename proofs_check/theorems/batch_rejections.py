"""Y3: the rejections of a batch of M i.i.d. drafts, all of which are tried where a round starts."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import (
    Chain,
    Pmf,
    Table,
    array_of,
    chains,
    drawn_tables,
    excess,
    model_of,
    start_of,
    steps_of,
    table_of,
    tables,
)
from proofs_check.prelude import *
from proofs_check.twins.batch_recursion import (
    Left,
    enumerated,
    left_after,
    left_early,
    left_with_one_fewer,
    profile,
    tried,
)
from spectheory.limits import batch_expected_rejections, expected_calls, rejection_profile


def batches(effort: Effort) -> Iterator[Case]:
    """Random models of the whole prefix and M = 1 to 4, as far as all batches of whole drafts can be enumerated."""
    sizes = [(2, 1, 4), (3, 1, 4), (4, 1, 3), (2, 2, 4), (3, 2, 2), (2, 3, 2), (3, 2, 3), (2, 3, 3), (2, 4, 2)]
    for tokens, steps, most in sizes:
        small = tokens ** (steps * most) <= 300
        for case in tables(31, ((tokens, steps),), effort.pick(10 if small else 2, 40 if small else 8)):
            yield from ({**case, "drafts": drafts} for drafts in range(1, most + 1))


def batch_chains(effort: Effort) -> Iterator[Case]:
    """Random chains and M = 1 to 6."""
    for case in chains(32, ((2, 1), (2, 6), (3, 4), (5, 3)), effort.pick(2, 20)):
        yield from ({**case, "drafts": drafts} for drafts in range(1, 7))


def drawn_batches() -> st.SearchStrategy[Case]:
    """Models on 2 tokens over 2 steps with extreme entries, M = 2 or 3."""
    drafts = st.fixed_dictionaries({"drafts": st.integers(2, 3)})
    return st.tuples(drawn_tables(2, 2), drafts).map(lambda drawn: {**drawn[0], **drawn[1]})


def one_position(effort: Effort) -> Iterator[Case]:
    """Uniform on V' against uniform on r V' tokens, and two Bernoulli laws of which the draft's is the larger."""
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
EARLY = Claim("the same with recovery from p^M", lambda **case: _y3(**case, left=left_early))

ENTRIES = (
    Entry(
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
        calculators=tuple(
            f"spectheory.limits.{name}" for name in ("batch_expected_rejections", "expected_calls", "rejection_profile")
        ),
        evidence=(
            proof("the law of where rounds start, for any M, vocabulary, horizon and models", PROOF),
            proof("the gain of one position in closed form, for any M", GAINS),
            exact(
                Y3,
                batches,
                over="every draft of every batch and every coin enumerated, random models of the whole prefix, M = 1 "
                "to 4, up to 4 tokens and 4 steps",
                wrong=EARLY,
            ),
            agreement(
                Claim("the library's rejections, calls and profile are those of Y3", _computed),
                batch_chains,
                over="random non-stationary chains, zeros among their entries, M = 1 to 6",
                wrong=Claim("the same with recovery from p^M", lambda **case: _computed(**case, left=left_early)),
            ),
            agreement(
                Claim("one position saves (1-1/r) - (1-1/r)^M, or (u-v)(1-u^{M-1}); the library's too", _gain),
                one_position,
                over="uniform on V' against uniform on rV' tokens; Bernoulli(v) against Bernoulli(u), u >= v",
                wrong=Claim("the saving of M + 1 drafts", lambda **case: _gain(**case, more=1)),
            ),
            searched(
                Y3,
                drawn_batches,
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
    ),
)
