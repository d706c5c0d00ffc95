"""R7: the draft's most probable tokens against a sampled output; the rank is the place of the output among them."""

from __future__ import annotations

from proofs_check.algorithms import rank_laws
from proofs_check.prelude import *
from proofs_check.statement.arithmetic import is_term
from proofs_check.theorems.candidates.rank_rules import ranks_computed
from spectheory import entropy
from spectheory.verification import TopKMatch


def holds_as_number(condition: Any) -> Real:
    """1 where the condition holds and 0 where it does not, of numbers or a solver's terms."""
    if is_term(condition):
        import z3

        return z3.If(condition, z3.RealVal(1, condition.ctx), z3.RealVal(0, condition.ctx))
    return int(bool(condition))


def before(a: Real, i: Real, b: Real, j: Real) -> Real:
    """1 if token i of probability a stands before token j of b, else 0: the larger first, then the lower index."""
    larger, tied, lower = (holds_as_number(condition) for condition in (a > b, a == b, i < j))
    return larger + tied * lower


def places(q: AnyPmf, sign: int = 1) -> list[int]:
    """The place of each token, 1 and the tokens before it; with sign -1 the highest index goes first among equals."""
    return [1 + sum(before(b, sign * j, a, sign * i) for j, b in enumerate(q)) for i, a in enumerate(q)]


def first_choices(q: AnyPmf) -> Iterator[int]:
    """The tokens as the draft picks them: again and again the most probable one that is left, lowest index first."""
    left = list(range(len(q)))
    while left:
        choice = next(x for x in left if all(q[x] >= q[y] for y in left))
        left.remove(choice)
        yield choice


def at_place(p: AnyPmf, place: Sequence[int], rank: int) -> Real:
    """P(R = rank): what the target has at that place."""
    return sum((share for share, at in zip(p, place, strict=True) if at == rank), 0 * p[0])


def top(p: AnyPmf, q: AnyPmf, *, sign: int = 1) -> Iterator[Compared]:
    """P(R <= k) of the places, of the draft's picks one after another, and of its sorted list."""
    place, picked = places(q, sign), list(first_choices(q))
    yield equal(tuple(sorted(place)), tuple(range(1, len(q) + 1)))
    for k in range(1, len(p) + 1):
        within = sum(at_place(p, place, rank) for rank in range(1, k + 1))
        yield equal(within, sum(p[x] for x in picked[:k]))
        listed = rank_laws.top_k(tuple(p), tuple(q), k)
        yield equal(within, sum(share for (rank, _), share in listed.items() if rank > 0))
        yield equal(place.index(k), picked[k - 1])


def information(p: AnyPmf, place: Sequence[int]) -> Compared:
    """H(R) = H(p)."""
    law = [at_place(p, place, rank) for rank in range(1, len(p) + 1)]
    return equal(*(sum(-share * log(share) for share in pmf if not is_zero(share)) for pmf in (law, p)))


def library_information(p: AnyPmf, q: AnyPmf, of: AnyPmf) -> Compared:
    """The library's entropy of the library's law of the rank is that of a pmf."""
    law = TopKMatch().rank_pmf(floats(p), floats(q), len(p))
    return computed(entropy(law), sum(-share * log(share) for share in of if not is_zero(share)))


def calculated(p: AnyPmf, q: AnyPmf, *, sign: int = 1) -> Iterator[Compared]:
    """The library's law of the rank, given the output or not, and acceptance; places are those of the doubles."""
    place, ranks = places(floats(q).tolist(), sign), range(1, len(p) + 2)
    return ranks_computed(TopKMatch(), p, q, {x: [int(at == rank) for rank in ranks] for x, at in enumerate(place)})


ORDER: tuple[Step, ...] = (
    valid(
        "of two tokens exactly one stands before the other, also where their probabilities are equal",
        lambda a, i, b, j: equal(before(a, i, b, j) + before(b, j, a, i), 1),
        lambda a, i, b, j: [i != j],
    ),
    valid(
        "what stands before x stands before all that x is before: x before y has the lower place, so each place 1 to V "
        "is one token's, the law of R is p in another order, P(R <= k) = p(k tokens) and H(R) = H(p)",
        lambda a, i, b, j, c, k: at_most(before(a, i, b, j), before(a, i, c, k)),
        lambda a, i, b, j, c, k: [before(b, j, c, k) == 1],
    ),
    valid(
        "the first k places are a set of k most probable tokens: who stands before is at least as probable",
        lambda a, i, b, j: at_most(b, a),
        lambda a, i, b, j: [before(a, i, b, j) == 1],
    ),
)
"""The places are an order of all tokens, ties included."""

TOP = Claim(
    "P(R <= k) = p(top_k(q)) by places, by picking the draft's first choice k times, and by sorting; a token per place",
    top,
)

LAST_FIRST = Claim("the same with the highest index first among equals", lambda p, q: top(p, q, sign=-1))

SHARED = Claim(
    "H(R) = H(p) when equals share a place",
    lambda p, q: information(p, [1 + sum(holds_as_number(b > a) for b in q) for a in q]),
)

LIBRARY = Claim("the library's rank_pmf, rank_pmf_given and acceptance are R7's", calculated)

LIBRARY_LAST = Claim("they take the highest index first among equals", lambda p, q: calculated(p, q, sign=-1))

LIBRARY_ENTROPY = Claim("the library's entropy of its rank_pmf is H(p)", lambda p, q: library_information(p, q, p))

DRAFT_ENTROPY = Claim("the library's entropy of its rank_pmf is H(q)", lambda p, q: library_information(p, q, q))

R7 = Entry(
    id="R7",
    title="Top-k drafts against a sampled output",
    kind="identity",
    plain="R is the place of the output in q's descending order, lowest index first among equals: P(R <= k) = "
    "p(top_k(q)), H(R) = H(p); a greedy target is its one-hot pmf",
    latex=r"P(R \le k) = p(\mathrm{top}_k(q)),\quad H(R) = H(p)",
    assumptions=(
        "p and q are pmfs on one finite vocabulary",
        "the candidates are the draft's k most probable tokens, the output is drawn from p on its own",
    ),
    calculators=("spectheory.verification.TopKMatch",),
    evidence=(
        proof("the places are a total order of the tokens, for any number of tokens", ORDER),
        exact(
            TOP,
            lambda effort: cases.all_pairs(3, effort.pick(5, 8)),
            over="every pair on 2 and 3 tokens of denominator up to 5, ties and one-hot targets among them",
            wrong=LAST_FIRST,
        ),
        certified(Claim("H(R) = H(p)", lambda p, q: information(p, places(q))), cases.every_pair(3, 5), wrong=SHARED),
        agreement(LIBRARY, cases.every_pair(4, 7), wrong=LIBRARY_LAST),
        agreement(LIBRARY_ENTROPY, cases.every_pair(3, 5), wrong=DRAFT_ENTROPY),
        searched(TOP, lambda: exact_pairs(max_tokens=4), over="2 to 4 tokens, with ties and zeros", wrong=LAST_FIRST),
        searched(
            LIBRARY, lambda: exact_pairs(max_tokens=4), over="2 to 4 tokens, with ties and zeros", wrong=LIBRARY_LAST
        ),
        simulated(
            "the sampled output's place in the draft's order",
            at(("top-k",), (TURNED, LACKING), max_rank=3),
            stated("R7", "lossless"),
            wrong=("the ranks of recursive rejection (R3)", stated("R3", kind="recursive-distinct")),
        ),
    ),
)
