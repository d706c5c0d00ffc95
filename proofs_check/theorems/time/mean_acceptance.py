"""C6: tokens per call from the mean acceptance alone, however acceptances are spread over the text."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.time.closed_forms import tokens
from spectheory.limits import least_tokens_per_call, most_tokens_per_call, tokens_per_call_between

Shares = tuple[Fraction, ...]


def calls(acceptances: Shares, k: int) -> Fraction:
    """Expected calls of k drafts over a text whose tokens are accepted with these probabilities, each alone."""
    length = len(acceptances)
    left = [Fraction(0)] * (length + k + 2)
    for start in reversed(range(length)):
        inside, reached, value = acceptances[start : start + k], Fraction(1), Fraction(1)
        for depth, share in enumerate(inside):
            value += reached * (1 - share) * left[start + depth + 1]
            reached *= share
        left[start] = value + reached * left[start + len(inside) + 1]
    return left[0]


def mean(acceptances: Shares) -> Fraction:
    """The mean acceptance of a text."""
    return sum(acceptances, Fraction(0)) / len(acceptances)


def between(acceptances: Shares, k: int) -> Iterator[Compared]:
    """Both bounds on expected calls, with less than one call for the end of the text."""
    length, refused = len(acceptances), 1 - mean(acceptances)
    expected = calls(acceptances, k)
    yield at_most(expected, length * (1 + k * refused) / (k + 1) + Fraction(k, k + 1))
    yield at_least(expected, length * refused)


def of_two(acceptances: Shares, k: int) -> Iterator[Compared]:
    """Longer chains need at most as many calls, and a call of k + 2 drafts at most two of k: k + 3 <= 2 (k + 1)."""
    shorter, longer = calls(acceptances, k), calls(acceptances, k + 2)
    yield at_most(longer, shorter)
    yield at_most(shorter, 2 * longer)


def computed_ends(acceptances: Shares, k: int) -> Iterator[Compared]:
    """The library's bounds, and that those from another k hold every text, but for its end."""
    share = float(mean(acceptances))
    yield computed(least_tokens_per_call(share, k), (k + 1) / (1 + k * (1 - mean(acceptances))))
    refused = 1 - mean(acceptances)
    yield computed(most_tokens_per_call(share, k), min(Fraction(k + 1), 1 / refused) if refused else Fraction(k + 1))
    low, high = tokens_per_call_between(float(1 + k * Fraction(1, 2)), k, k)
    yield computed(low, 1 + Fraction(k, 2))
    yield computed(high, 1 + Fraction(k, 2))


def reached(refused: int, whole: int, k: int) -> Iterator[Compared]:
    """The extremes: refusals that follow each other, then full calls; and refusals that end a full call each."""
    clustered = (Fraction(0),) * refused + (Fraction(1),) * (whole * (k + 1))
    length, share = len(clustered), 1 - mean(clustered)
    yield equal(calls(clustered, k), length * (1 + k * share) / (k + 1))
    spread = ((Fraction(1),) * k + (Fraction(0),)) * refused
    yield equal(calls(spread, k), len(spread) * (1 - mean(spread)))


def iid_reached(refused: int, whole: int, k: int) -> Iterator[Compared]:
    """False: that the i.i.d. formula at the mean acceptance gives the calls of clustered refusals."""
    clustered = (Fraction(0),) * refused + (Fraction(1),) * (whole * (k + 1))
    yield equal(calls(clustered, k), len(clustered) / tokens(mean(clustered), k))


def extremes(effort: Effort) -> Iterator[Case]:
    """Some refusals and full calls."""
    most = effort.pick(4, 7)
    for refused, whole, k in product(range(1, most), range(1, most), range(1, most + 2)):
        yield {"refused": refused, "whole": whole, "k": k}


def texts(effort: Effort) -> Iterator[Case]:
    """Every text of acceptances 0, 1/2 and 1, chains of 1 to 3 drafts."""
    for length, k in product(range(1, effort.pick(6, 8)), range(1, 4)):
        for shares in product((Fraction(0), Fraction(1, 2), Fraction(1)), repeat=length):
            yield {"acceptances": shares, "k": k}


COUNTED: tuple[Step, ...] = (
    same(
        "a call ends at a rejection, or outputs k + 1 tokens; with R rejections in N tokens, of one token or more, "
        "there are at most (N - R)/(k + 1) full calls, and R + (N - R)/(k + 1) = (N + kR)/(k + 1) calls in all",
        lambda N, R, k: (R + (N - R) / (k + 1), (N + k * R) / (k + 1)),
    ),
    valid(
        "this grows with R, and the expected rejections are at most the positions that would be refused, N (1 - a): "
        "the expected calls are at most N (1 + k (1 - a))/(k + 1)",
        lambda N, R, a, k: at_most((N + k * R) / (k + 1), N * (1 + k * (1 - a)) / (k + 1)),
        lambda N, R, a, k: [N >= 0, k >= 0, *shares(a), N * (1 - a) >= R],
    ),
)
"""The lower bound, where no text ends within a call."""


def any_acceptances() -> Any:
    """Texts of up to 12 tokens with any acceptances, chains of up to 6 drafts."""
    share = st.integers(1, 100).flatmap(lambda n: st.integers(0, n).map(lambda i: Fraction(i, n)))
    return st.fixed_dictionaries(
        {"acceptances": st.lists(share, min_size=1, max_size=12).map(tuple), "k": st.integers(1, 6)}
    )


BETWEEN = Claim("expected calls lie between those of both bounds", between)
IID = Claim(
    "the i.i.d. formula at the mean acceptance bounds calls from above",
    lambda acceptances, k: at_most(
        calls(acceptances, k), len(acceptances) / tokens(mean(acceptances), k) + Fraction(k, k + 1)
    ),
)
REACHED = Claim("clustered refusals reach the most calls, spread ones the fewest", reached)
TWO_LENGTHS = Claim("calls of two lengths of chains bound each other", of_two)

C6 = Entry(
    id="C6",
    title="Tokens per call from the mean acceptance alone",
    kind="bounds",
    plain="for a rule that decides position by position, in the same way at every depth, tokens per call of chains of "
    "k are at least (k+1)/(1+k(1-a)) and at most min(k+1, 1/(1-a)), a the mean acceptance of the text's positions; "
    "both are reached",
    latex=r"\frac{k+1}{1+k(1-\bar a)}\le\tau\le\min\Big(k+1,\frac1{1-\bar a}\Big)",
    source=(),
    assumptions=(
        "the text's token at each position is accepted with a probability of its own, given the text",
        "a call that the end of the text cuts short is left out: less than one call",
    ),
    calculators=public("limits", "least_tokens_per_call most_tokens_per_call tokens_per_call_between"),
    evidence=(
        proof("the calls of a text by how they end", COUNTED),
        exact(
            BETWEEN,
            texts,
            over="texts of up to 5 tokens, acceptances 0, 1/2 and 1, k up to 3",
            wrong=IID,
        ),
        searched(BETWEEN, any_acceptances, wrong=IID),
        exact(
            REACHED,
            extremes,
            over="1 to 3 refusals in a row before full calls, and one at the end of each full call, k up to 5",
            wrong=Claim("clustered refusals need the calls of the i.i.d. formula", iid_reached),
        ),
        exact(
            TWO_LENGTHS,
            texts,
            over="texts of up to 5 tokens, acceptances 0, 1/2 and 1, k up to 3",
            wrong=Claim(
                "two more drafts never save a call",
                lambda acceptances, k: at_least(calls(acceptances, k + 2), calls(acceptances, k)),
            ),
        ),
        agreement(
            Claim("the library's bounds", computed_ends),
            texts,
            over="texts of up to 5 tokens, acceptances 0, 1/2 and 1, k up to 3",
            wrong=Claim(
                "the upper bound is the i.i.d. formula",
                lambda acceptances, k: computed(
                    most_tokens_per_call(float(mean(acceptances)), k), tokens(mean(acceptances), k)
                ),
            ),
        ),
        proved_in_coq(
            "N <= (k+1) C, N(1-a) <= C and (k+1) C <= N + k N(1-a) + k, C the expected calls of any text",
            ("C6_least", "C6_most", "C6_full"),
            wrong=("the i.i.d. formula bounds calls from above", "not_iid"),
        ),
    ),
)
