"""§7: tokens per call are not the mean of accepted drafts over uniform starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod

from proofs_check.agreement.call_counts import reading
from proofs_check.evidence.entries import Entry
from proofs_check.evidence.makers import counterexample
from proofs_check.statement.claims import Case, Claim, Compared, at_most, equal
from proofs_check.statement.findings import Effort
from proofs_check.twins import path_theorem
from proofs_check.twins.path_theorem import Survival
from proofs_check.twins.tree_theorem import visits


def along(accept: Sequence[int]) -> Survival:
    """The survival of a rule that accepts at each position by itself."""
    return lambda n, i: Fraction(prod(accept[n : n + i]))


def per_call(weighted: bool, accept: Sequence[int], k: int) -> Iterator[Compared]:
    """N/C(0) against the reading over uniform starts, or over the starts that calls have."""
    survival, length = along(accept), len(accept)
    weights = visits(survival, k, length) if weighted else [Fraction(1)] * length
    yield equal(length / path_theorem.calls(survival, k, length)[0], reading(survival, k, length, weights))


def bounded(weighted: bool, accept: Sequence[int], k: int) -> Iterator[Compared]:
    """N/C(0) no more than the reading."""
    for each in per_call(weighted, accept, k):
        yield at_most(each.left, each.right)


def patterns(_: Effort) -> Iterator[Case]:
    """Positions where a draft is always or never accepted, the shortest text and chain first."""
    for length in range(1, 6):
        for k, accept in product(range(1, length + 1), product((0, 1), repeat=length)):
            yield {"accept": accept, "k": k}


def alternating(difference: bool, a: Fraction, b: Fraction) -> Iterator[Compared]:
    """A long text of two positions in turn, k = 1: a call that starts at one of them stays there if its draft holds."""
    shares = [Fraction(1, 2), Fraction(1, 2)] if a == b == 1 else [(1 - b) / (2 - a - b), (1 - a) / (2 - a - b)]
    yield equal(shares[0], shares[0] * a + shares[1] * (1 - b))
    long_run = 1 + shares[0] * a + shares[1] * b
    off = (a - b) ** 2 / (2 * (2 - a - b)) if difference and a != b else Fraction(0)
    yield equal(long_run - (1 + (a + b) / 2), off)


def two_positions(_: Effort) -> Iterator[Case]:
    """Acceptances in halves, thirds, ..."""
    for d in range(1, 9):
        for a, b in product(range(d + 1), repeat=2):
            yield {"a": Fraction(a, d), "b": Fraction(b, d)}


MEAN = Claim("N/C(0) = 1 + mean over starts of the accepted drafts", partial(per_call, False))

VISITED = Claim(
    "N/C(0) = 1 + mean accepted drafts over starts weighted by the calls that start there", partial(per_call, True)
)

ENTRIES = (
    Entry(
        id="§7/mean",
        title="Tokens per call as a mean over starts",
        kind="refuted",
        plain="tokens per call are 1 + the accepted drafts of a call averaged over uniform starts (calls start where "
        "the last one ended, so the starts are not uniform: N/C(0) is right)",
        latex=r"\frac{N}{C(0)} = 1 + \frac1N \sum_n \sum_i P(\tau_n \ge i \mid x)",
        assumptions=("only drafts before the text's last token are counted, which excludes end effects",),
        evidence=(
            counterexample(
                MEAN,
                patterns,
                over="first at the shortest text and chain of drafts that always or never hold (accept)",
                true=VISITED,
            ),
            counterexample(
                Claim("N/C(0) is at most the mean over starts of the one-call bound", partial(bounded, False)),
                patterns,
                over="the same texts: where ratios are 0 or 1 the bound's terms are the survival",
                true=Claim("it is at most the mean over the starts that calls have", partial(bounded, True)),
            ),
            counterexample(
                Claim("in a long text of two positions in turn with k = 1 the two agree", partial(alternating, False)),
                two_positions,
                over="first by the denominator of the positions' acceptances a and b",
                true=Claim("the calls' own mean is larger by (a-b)^2/(2(2-a-b))", partial(alternating, True)),
            ),
        ),
        calculators=("spectheory.prediction.paths.calls_and_visits",),
    ),
)
"""What this file states by itself."""
