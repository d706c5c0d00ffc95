"""Y1: the rejections and calls of token verification along a text that is drafted to its horizon."""

from __future__ import annotations

from proofs_check.algorithms.rejection_algorithms import (
    Chain,
    Pmf,
    Table,
    array_of,
    chains,
    decoded,
    distance,
    drawn_tables,
    excess,
    followed,
    model_of,
    start_of,
    steps_of,
    table_of,
    tables,
)
from proofs_check.prelude import *
from proofs_check.twins.batch_recursion import y1_profile
from spectheory.limits import expected_calls, expected_rejections, rejection_profile, rejections_of_text

HALF_DIGIT = Fraction(1, 2000)
"""Half a unit of the last digit of the test bed's numbers, 16.405 and 33.535."""


def paper_chains(steps: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The paper's chains, target and draft: 7 states, rows of RandomState(10) normalised, the draft's drawn first."""
    rng = np.random.RandomState(10)
    draft, target = (rows / rows.sum(axis=-1, keepdims=True) for rows in (rng.rand(steps, 7, 7) for _ in range(2)))
    return target, draft


def _y1(target: Table, draft: Table, along: str = "target") -> Iterator[Compared]:
    profile, calls, outputs = decoded(token_verification, target, draft)
    stated = y1_profile(target, draft, steps_of(target), along=draft if along == "draft" else target)
    yield equal(profile, stated)
    yield equal(calls, 1 + sum(stated[:-1]))
    yield equal(outputs, text_law(model_of(target), steps_of(target)))


def _computed(target: Chain, draft: Chain, initial: Pmf, along: str = "target") -> Iterator[Compared]:
    p, q, reach, steps = table_of(target), table_of(draft), start_of(initial), len(target)
    stated = y1_profile(p, q, steps, reach, q if along == "draft" else p)
    given = array_of(target), array_of(draft), floats(initial)
    yield computed(expected_rejections(*given), sum(stated))
    yield computed(expected_calls(*given), 1 + sum(stated[:-1]))
    yield from map(computed, rejection_profile(*given), stated)
    texts = reach
    for _ in range(steps):
        texts = followed(texts, p)
    along_texts = [distance(p[text[:n]], q[text[:n]]) for text in texts for n in range(1, steps + 1)]
    per_text = rejections_of_text(floats(along_texts), [steps] * len(texts))
    yield computed(per_text @ floats(texts.values()), sum(stated))


def _test_bed(steps: int, printed: Fraction, roles: int = 1) -> Iterator[Compared]:
    target, draft = paper_chains(steps)[::roles]
    uniform = np.full(7, 1 / 7)
    total: Real = 0
    reach: list[Real] = _exactly(uniform)
    for p, q in zip(map(_rows, target), map(_rows, draft), strict=True):
        total += sum(mass * distance(a, b) for mass, a, b in zip(reach, p, q, strict=True))
        reach = [sum(mass * row[y] for mass, row in zip(reach, p, strict=True)) for y in range(7)]
    yield computed(expected_rejections(*paper_chains(steps), uniform), total)
    yield at_most(absolute(total - printed), HALF_DIGIT)


def _rows(matrix: NDArray[np.float64]) -> list[list[Real]]:
    return [_exactly(row) for row in matrix]


def _exactly(values: NDArray[np.float64]) -> list[Real]:
    return [Fraction(float(value)) for value in values]


def _one_position(p: Pmf, q: Pmf) -> Iterator[Compared]:
    yield equal(sum(b - smaller(a, b) for a, b in zip(p, q, strict=True)), distance(p, q))
    yield equal(sum(excess(p, q)), distance(p, q))


PROOF = (
    valid(
        "token x is drafted and rejected with probability q(1 - min(1, p/q)) = (q - p)+",
        lambda p, q: equal(q * (1 - smaller(1, p / q)), positive_part(q - p)),
        lambda p, q: [p >= 0, q > 0],
    ),
    valid(
        "(q - p)+ + (p - q)+ = |p - q| and (q - p)+ - (p - q)+ = q - p, which sums to 0 over the tokens: both positive "
        "parts sum to TV, so a position rejects with probability TV",
        lambda p, q: [
            equal(positive_part(q - p) + positive_part(p - q), absolute(p - q)),
            equal(positive_part(q - p) - positive_part(p - q), q - p),
        ],
    ),
    valid(
        "accepted, q min(1, p/q), or recovered, TV times (p - q)+/TV, token x is output with probability p: so the "
        "prefixes follow the target",
        lambda p, q, tv: equal(q * smaller(1, p / q) + tv * (positive_part(p - q) / tv), p),
        lambda p, q, tv: [p >= 0, q > 0, tv > 0],
    ),
    valid(
        "let D be the rejections expected after output x: it does not depend on whether the round goes on, as each "
        "round drafts to the horizon, so x adds min(p, q) D + (p - q)+ (1 + D) = (p - q)+ + pD; summed over x, from "
        "the last position back, C_n = TV + E C_{n+1} and C_{T+1} = 0: Y1. Calls after the first obey the same "
        "recursion, but for a rejection at T, which starts none",
        lambda p, q, D: equal(smaller(p, q) * D + positive_part(p - q) * (1 + D), positive_part(p - q) + p * D),
    ),
)

Y1 = Claim("P(reject at n) = E TV over target prefixes, calls = 1 + its sum over n < T, output law the target's", _y1)
DRAFT_PREFIXES = Claim("the same with prefixes from the draft", lambda target, draft: _y1(target, draft, "draft"))
COMPUTED = Claim("the library's rejections, calls, profile and mean over sampled texts are those of Y1", _computed)

ENTRIES = (
    Entry(
        id="Y1",
        title="Rejections of token verification along a text",
        kind="identity",
        plain="E[rejections] = sum over n of E TV(P_n, Q_n), prefixes drawn from the target; "
        "calls = 1 + sum over n < T of P(reject at n)",
        latex=r"E[N_{rej}] = \sum_{n=1}^T E_{x_{<n}\sim P}\,TV(P_n, Q_n)(x_{<n}),\quad "
        r"E[\text{calls}] = 1 + \sum_{n<T} P(\text{reject at } n)",
        source=("yin2024", "leviathan2023"),
        assumptions=(
            "every round drafts to the horizon T, so that every position has a draft",
            "P_n and Q_n are functions of the text before n, of any kind",
        ),
        calculators=tuple(
            f"spectheory.limits.{name}"
            for name in ("expected_rejections", "expected_calls", "rejection_profile", "rejections_of_text")
        ),
        evidence=(
            proof(
                "one position term by term, then from the last position back, for any vocabulary, horizon and models",
                PROOF,
            ),
            solved(
                Claim("sum (q - min(p, q)) = sum (p - q)+ = TV", _one_position),
                (2, 3),
                wrong=Claim(
                    "sum |p - q| in place of its half", lambda p, q: equal(sum(excess(p, q)), 2 * distance(p, q))
                ),
            ),
            exact(
                Y1,
                lambda effort: tables(1, ((2, 1), (2, 2), (3, 2), (2, 3), (4, 2), (3, 3), (2, 5)), effort.pick(10, 60)),
                over="the whole algorithm enumerated, random models of the whole prefix, up to 4 tokens and 5 steps",
                wrong=DRAFT_PREFIXES,
            ),
            agreement(
                COMPUTED,
                lambda effort: chains(2, ((1, 2), (2, 1), (2, 6), (3, 4), (5, 3)), effort.pick(4, 40)),
                over="random non-stationary chains, zeros among their entries",
                wrong=Claim(
                    "the same with prefixes from the draft",
                    lambda target, draft, initial: _computed(target, draft, initial, "draft"),
                ),
            ),
            agreement(
                Claim("the paper's test bed: Y1 is 16.405 at T = 50 and 33.535 at T = 100", _test_bed),
                lambda effort: (
                    {"steps": 50, "printed": Fraction("16.405")},
                    {"steps": 100, "printed": Fraction("33.535")},
                ),
                over="the chains' own floats as fractions, no rounding along the way",
                wrong=Claim("target and draft exchanged", lambda steps, printed: _test_bed(steps, printed, -1)),
            ),
            searched(
                Y1, lambda: drawn_tables(2, 2), over="2 tokens, 2 steps, entries of all sizes", wrong=DRAFT_PREFIXES
            ),
            simulated(
                "rejections on the paper's test bed, T = 20, in all and by position; draws apart, and at once",
                (
                    ("batch", {"chains": "yin2024", "length": 20, "drafts": 1}),
                    ("rejections", {"chains": "yin2024", "length": 20}),
                ),
                stated("Y1"),
                wrong=("those of a batch of two (Y3)", stated("Y3", kind="batch", drafts=2)),
            ),
        ),
    ),
)
