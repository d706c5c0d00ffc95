"""A1 for drafts with another tokenizer: the draft's pmf on the common tokens, renormalised (TLI)."""

from __future__ import annotations

from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *
from spectheory.verification import TokenVerification

Common = frozenset[int]


def cut(draft: AnyPmf, common: Common) -> Pmf:
    """The draft's pmf on the common tokens, under the target's ids; 0 elsewhere."""
    return normalised(tuple(share if x in common else 0 * share for x, share in enumerate(draft)))


def commons(draft: AnyPmf) -> list[Common]:
    """Every set of tokens that may be common, of which the draft drafts one."""
    sets = [frozenset(some) for n in range(1, len(draft) + 1) for some in combinations(range(len(draft)), n)]
    return [some for some in sets if any(not is_zero(draft[x]) for x in some)]


def mass(pmf: AnyPmf, common: Common) -> Real:
    """Probability of the common tokens."""
    return sum(pmf[x] for x in common)


def one_call(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """One draft for every set of common tokens: what is accepted, and that the output is the target's."""
    for common in commons(q):
        after: dict[Prefix, Pmf] = {(): cut(q, common)}
        whole = token_verification(lambda _: tuple(p), after.__getitem__, (), 1)
        accepted = sum(share for (_, taken), share in whole.items() if taken)
        outputs = law((tokens[0], share) for (tokens, _), share in whole.items())
        yield equal([outputs.get(x, 0) for x in range(len(p))], list(p))
        yield equal(accepted, sum(smaller(p[x], q[x] / mass(q, common)) for x in common))


def not_renormalised(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """Tokens drafted from the cut pmf and verified against the whole one."""
    for common in commons(q):
        drawn = cut(q, common)
        taken = [drawn[x] * smaller(1, p[x] / q[x]) if not is_zero(q[x]) else 0 for x in range(len(p))]
        rest = [positive_part(p[x] - q[x]) for x in range(len(p))]
        over = sum(rest)
        again = [share / over * (1 - sum(taken)) if not is_zero(over) else 0 for share in rest]
        yield equal([a + b for a, b in zip(taken, again, strict=True)], list(p))


Random = dict[tuple[int, ...], Pmf]
"""A pmf after every prefix."""


def texts(target: Random, draft: Random, common: Common) -> Iterator[Compared]:
    """Two drafts a call, texts of three tokens."""
    restricted = {prefix: cut(pmf, common) for prefix, pmf in draft.items()}
    for rule in (token_verification, block_verification):
        whole = Decoding(rule, 2, 3, spare=1).law(target.__getitem__, restricted.__getitem__)
        yield equal(output_law(whole), text_law(target.__getitem__, 3))


def random_texts(effort: Effort) -> Iterator[Case]:
    """Random models on 3 tokens, with every two common tokens that the draft always drafts one of."""
    rng = random.Random(effort.seed)
    for _ in range(effort.pick(10, 30)):
        target, draft = (random_model(rng, 3, 3) for _ in range(2))
        for common in map(frozenset, combinations(range(3), 2)):
            if not any(is_zero(mass(pmf, common)) for pmf in draft.values()):
                yield {"target": target, "draft": draft, "common": common}


def library(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The library's acceptance of the cut draft."""
    for common in commons(q):
        formula = sum(smaller(p[x], q[x] / mass(q, common)) for x in common)
        yield computed(TokenVerification().acceptance(floats(p), floats(cut(q, common))), formula)


def bounds(p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The bounds of the formula, for every set of common tokens."""
    for common in commons(q):
        formula = sum(smaller(p[x], q[x] / mass(q, common)) for x in common)
        yield at_most(formula, mass(p, common))
        yield at_least(formula, sum(smaller(p[x], q[x]) for x in common))


STEPS: tuple[Step, ...] = (
    valid(
        "q is at most q/Q with Q = q(common) <= 1: renormalising accepts no less of any token",
        lambda p, q, Q: at_most(smaller(p, q), smaller(p, q / Q)),
        lambda p, q, Q: [p >= 0, q >= 0, Q > 0, Q <= 1],
    ),
    valid(
        "a common token adds min(p, q/Q) <= p to the acceptance of A1, another min(p, 0) = 0: at most p(common) in all",
        lambda p, q, Q: [at_most(smaller(p, q / Q), p), equal(smaller(p, 0), 0)],
        lambda p, q, Q: [p >= 0, q >= 0, Q > 0],
    ),
)

TLI = Entry(
    id="A1/common",
    title="Drafts with another tokenizer, on the tokens in common",
    kind="identity",
    plain="with C the common tokens and Q the draft's mass on them, token verification of the draft q/Q on C accepts "
    "the sum over C of min(p, q/Q), at most p(C) and at least the sum over C of min(p, q); the output has law p over "
    "the target's whole vocabulary, and so have texts of token and block verification",
    latex=r"\alpha = \sum_{x \in C} \min(p_x, q_x / q(C)) \le p(C)",
    source=("timor2025vocabularies",),
    calculators=("spectheory.verification.TokenVerification",),
    assumptions=("q(C) > 0", "the draft reads a text that the target's tokens decide"),
    evidence=(
        proof("term by term, for any number of tokens", STEPS),
        exact(
            Claim("one call with every coin, for every set of common tokens", one_call),
            every_pair(5, 8, others=(30, 60, 5)),
            wrong=Claim("drafts from q/Q verified against q leave the output as it is", not_renormalised),
        ),
        agreement(
            Claim("the library's acceptance, for every set of common tokens", library),
            every_pair(4, 5, others=(30, 60, 5)),
            wrong=Claim(
                "it is that of the draft as it is",
                lambda p, q: [
                    computed(
                        TokenVerification().acceptance(floats(p), floats(cut(q, common))),
                        sum(smaller(p[x], q[x]) for x in common),
                    )
                    for common in commons(q)
                ],
            ),
        ),
        searched(
            Claim("at most p(C), at least the sum over C of min(p, q)", bounds),
            exact_pairs,
            over="2 to 5 tokens",
            wrong=Claim(
                "at most the sum over C of min(p, q)",
                lambda p, q: [
                    at_most(
                        sum(smaller(p[x], q[x] / mass(q, common)) for x in common),
                        sum(smaller(p[x], q[x]) for x in common),
                    )
                    for common in commons(q)
                ],
            ),
        ),
        exact(
            Claim("texts of two drafts a call have the target's law, by token and by block verification", texts),
            random_texts,
            wrong=Claim(
                "they have the law of the draft on the common tokens",
                lambda target, draft, common: equal(
                    text_law(target.__getitem__, 1),
                    text_law(lambda prefix: cut(draft[prefix], common), 1),
                ),
            ),
        ),
    ),
)
