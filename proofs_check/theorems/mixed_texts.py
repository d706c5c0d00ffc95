"""T1/mixture: the channel limit fails with the marginal rank law of texts that differ."""

from __future__ import annotations

from math import gcd

from proofs_check.forms.divergences import entropy
from proofs_check.forms.exits import channel, log_exits
from proofs_check.prelude import *
from proofs_check.twins.rank_trees import Nodes, RankPmf, all_trees, tokens


def marginal(shares: RankPmf, laws: Sequence[RankPmf]) -> tuple[Real, ...]:
    """The rank law of a position of a text drawn at random."""
    return tuple(sum(s * pi[r] for s, pi in zip(shares, laws, strict=True)) for r in range(len(laws[0])))


def mixed(shares: RankPmf, laws: Sequence[RankPmf], tree: Nodes) -> Compared:
    """The false reading: T1 with the entropy of the marginal law, for texts each of which has its own law."""
    mean = sum(s * tokens(pi, tree) for s, pi in zip(shares, laws, strict=True))
    law = marginal(shares, laws)
    return at_most(mean * entropy(law), log_exits(law, tree))


def one_law(shares: RankPmf, laws: Sequence[RankPmf], tree: Nodes) -> Iterator[Compared]:
    """T1 where it is stated: within each text, and for i.i.d. ranks of the marginal law."""
    yield from (channel(pi, tree) for pi in (*laws, marginal(shares, laws)))


def mixtures(most: int, letters: int, denominator: int) -> Iterator[Case]:
    """Two kinds of text: by nodes, then ranks, then the common denominator of shares and laws; every tree."""
    sizes = product(range(1, most + 1), range(2, letters + 1), range(1, denominator + 1))
    for nodes, ranks, d in sizes:
        laws = list(cases.grid(ranks, d))
        for part, (first, second), tree in product(range(1, d), combinations(laws, 2), all_trees(nodes, ranks)):
            if gcd(d, part, *(int(share * d) for share in (*first, *second))) == 1:
                yield {"shares": (Fraction(part, d), 1 - Fraction(part, d)), "laws": (first, second), "tree": tree}


def certain_or_uniform(ranks: int, k: int) -> Case:
    """Half the texts with R = 1 always, half with equally likely ranks, and a chain of k."""
    laws = ((Fraction(1), *(Fraction(0),) * (ranks - 1)), (Fraction(1, ranks),) * ranks)
    return {"shares": (Fraction(1, 2),) * 2, "laws": laws, "tree": tuple((1,) * i for i in range(1, k + 1))}


MIXED = Claim("E[tokens] H(marginal R) <= log((k+1)(A-1)+1) for a mixture of texts", mixed)

ONE_LAW = Claim("T1 within each text and for i.i.d. ranks of the marginal law", one_law)

ENTRIES = (
    Entry(
        id="T1/mixture",
        title="T1 with the marginal entropy of a mixture of texts",
        kind="refuted",
        plain="E[tokens] <= log((k+1)(A-1)+1)/H(marginal R) where each text has a rank law of its own",
        latex=r"\sum_i s_i E_i[\text{tokens}] \le \frac{\log\big((k+1)(A-1)+1\big)}{H(\sum_i s_i\pi_i)}",
        assumptions=("within a text the ranks are i.i.d., but texts differ",),
        evidence=(
            counterexample(
                MIXED,
                lambda _: mixtures(2, 2, 3),
                over="first by nodes, ranks, and common denominator, among all mixtures of two laws and all trees; one "
                "node cannot fail, being linear in the law",
                true=ONE_LAW,
                kind="certified",
            ),
            counterexample(
                MIXED,
                lambda _: (certain_or_uniform(ranks, k) for k in range(1, 5) for ranks in range(2, 9)),
                over="half the texts certain, half uniform, a chain: the shortest chain, then the fewest ranks",
                true=ONE_LAW,
                kind="certified",
            ),
            counterexample(
                MIXED,
                lambda _: (certain_or_uniform(2, k) for k in range(1, 5)),
                over="the same with two ranks, the shortest chain",
                true=ONE_LAW,
                kind="certified",
            ),
            counterexample(
                MIXED,
                lambda _: [certain_or_uniform(4, 16)],
                over="half certain, half uniform on 4 ranks, k = 16: 9.17 tokens where T1 would say 3.68",
                true=ONE_LAW,
                kind="certified",
            ),
        ),
        without={"exact": "logarithms enter"},
    ),
)
