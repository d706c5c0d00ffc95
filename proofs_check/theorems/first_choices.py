"""A4 from the target's entropy alone: how often one token that is not sampled can be right."""

from __future__ import annotations

import spectheory
from proofs_check.forms.divergences import entropy
from proofs_check.library.cases import grid, random_pairs
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import ENTROPY, LOGARITHM
from proofs_check.statement.calculus import log as log_of
from spectheory.limits import first_choice_at_least, first_choice_at_most

STEPS: tuple[Step, ...] = (
    valid(
        "with m the largest probability, p u >= p v where u = -log p >= v = -log m: summed, H >= -log m",
        lambda p, u, v: at_least(p * u, p * v),
        lambda p, u, v: [*shares(p), u >= v],
    ),
    *LOGARITHM,
    *ENTROPY,
    same(
        "with e = 1 - m the rest is e times a pmf w on V - 1 tokens, and -e w log(e w) = w(-e log e) + e(-w log w): H "
        "is h(e) plus e times the entropy of w, at most log(V - 1)",
        lambda e, w: (-e * w * log_of(e * w), w * (-e * log_of(e)) + e * (-w * log_of(w))),
    ),
    valid(
        "another token that is drafted has e no less, and h(e) + e log(V - 1) rises up to e = 1 - 1/V: with slope s at "
        "a mean e' it is below the line there (KL of two coins is not negative), so the means obey it too",
        lambda w, x, y, f, g, s, F: at_most(w * f + (1 - w) * g, F),
        lambda w, x, y, f, g, s, F: [
            *shares(w),
            f <= F + s * (x - (w * x + (1 - w) * y)),
            g <= F + s * (y - (w * x + (1 - w) * y)),
        ],
    ),
    valid(
        "and e^-H: log x <= x - 1 at x = e^(m-k), y = e^(m-n), with k and n entropies and m their mean",
        lambda w, x, y, k, n, m: at_least(w * x + (1 - w) * y, 1),
        lambda w, x, y, k, n, m: [*shares(w), m == w * k + (1 - w) * n, m - k <= x - 1, m - n <= y - 1],
    ),
)
"""At one position, then for means over positions."""


def misses(e: Real, tokens: int) -> Real:
    """h(e) + e log(V - 1)."""
    rest = 0 if is_zero(e) else -e * log(e / (tokens - 1))
    return rest + (0 if is_zero(1 - e) else -(1 - e) * log(1 - e))


def most(pmf: AnyPmf) -> Real:
    """The largest probability."""
    found = pmf[0]
    for share in pmf[1:]:
        found = larger(found, share)
    return found


def between(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """e^-H and Fano's bound for two positions with pmfs p and q."""
    best, h = (most(p) + most(q)) / 2, (entropy(p) + entropy(q)) / 2
    yield at_least(best, exp(-h))
    yield at_most(h, misses(1 - best, len(p)))


def library(extra: int, p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library: e^-H, and the inverse of Fano's bound at the value that a share of misses gives."""
    for pmf in (p, q):
        yield computed(first_choice_at_least(float(spectheory.entropy(floats(pmf)))), exp(-entropy(pmf)))
        share = 1 - float(floats(pmf).max())
        if 0 < share < 0.9 * (1 - 1 / len(pmf)):  # the inverse is steep at the uniform pmf
            yield computed(first_choice_at_most(misses(share, len(pmf)), len(pmf) + extra), most(pmf))


def pmfs(effort: Effort) -> Iterator[Case]:
    """Every pmf on 2 and 3 tokens beside the next of its grid; random pairs on up to 5."""
    for tokens in (2, 3):
        for d in range(1, effort.pick(5, 8)):
            yield from ({"p": p, "q": q} for p, q in pairwise(grid(tokens, d)))
    yield from random_pairs(effort.seed, effort.pick(20, 200), 5, 6)


def small_pmfs() -> Any:
    """A Hypothesis strategy of two pmfs on 2 to 4 tokens."""
    from hypothesis import strategies as st

    def pair(tokens: int) -> Any:
        weights = st.lists(st.integers(0, 99), min_size=tokens, max_size=tokens).filter(any)
        pmf = weights.map(lambda w: tuple(Fraction(each, sum(w)) for each in w))
        return st.fixed_dictionaries({"p": pmf, "q": pmf})

    return st.integers(2, 4).flatmap(pair)


BETWEEN = Claim("e^-H <= max p, and H <= h(e) + e log(V-1) with e = 1 - max p, for means", between)
TIGHTER = Claim(
    "H <= h(e) + e log(V-1) - e/10", lambda p, q: at_most(entropy(p), misses(1 - most(p), len(p)) - (1 - most(p)) / 10)
)

ENTRIES = (
    Entry(
        id="A4-entropy",
        title="The best first choice from the entropy",
        kind="bounds",
        plain="the mean of max p is at least e^-H and at most 1 - e with h(e) + e log(V-1) = H, H the mean entropy of "
        "the target: a draft token that is not sampled is accepted no more often, a perfect one at least e^-H",
        latex=r"e^{-\mathbb E H} \le \mathbb E\max_x p_x \le 1-e,\qquad h(e)+e\log(V-1)=\mathbb E H",
        assumptions=("one vocabulary of V tokens", "h(e) = -e log e - (1-e) log(1-e)", "0 <= e <= 1 - 1/V"),
        evidence=(
            proof("the largest term of the entropy, Fano's inequality, and the means", STEPS),
            certified(BETWEEN, pmfs, over="pmfs on 2 and 3 tokens, random ones on up to 5", wrong=TIGHTER),
            agreement(
                Claim("the library's e^-H and the inverse of Fano's bound", lambda p, q: library(0, p, q)),
                pmfs,
                over="the same pmfs",
                wrong=Claim("with one token more", lambda p, q: library(1, p, q)),
            ),
            searched(BETWEEN, small_pmfs, over="2 to 4 tokens", wrong=TIGHTER),
        ),
        calculators=("spectheory.limits.first_choice_at_least", "spectheory.limits.first_choice_at_most"),
        without={"exact": "logarithms enter"},
    ),
    Entry(
        id="A4-entropy/upper",
        title="The perplexity as a limit of first choices",
        kind="refuted",
        plain="the target's first choice is right at most once in as many tokens as its perplexity says, max p <= e^-H "
        "(it is at least that)",
        latex=r"\max_x p_x \le e^{-H}",
        assumptions=("one position",),
        evidence=(
            counterexample(
                Claim("max p <= e^-H", lambda p, q: at_most(most(p), exp(-entropy(p)))),
                pmfs,
                over="first by tokens and denominator",
                true=Claim("max p >= e^-H", lambda p, q: at_least(most(p), exp(-entropy(p)))),
                kind="certified",
            ),
        ),
        without={"exact": "a logarithm enters"},
    ),
)
"""What this file states by itself."""
