"""B8: trees that a drafter ranks by a model of its own, and what they lose to the target's best tree."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.branching.random_pmf_trees import grown
from spectheory.limits import imperfect_tree

Weights = Mapping[Prefix, Fraction]

LENGTH = 3
"""Tokens of the texts that are run."""


def path_weights(model: Table) -> Weights:
    """The probability of every prefix of up to :data:`LENGTH` tokens, zeros included."""
    runs = prefixes(len(model[()]), LENGTH + 1)[1:]
    return {run: probability(model.__getitem__, (), run) for run in runs}


def chosen(weights: Weights, capacity: int) -> set[Prefix]:
    """The heaviest prefixes; of equal ones the shorter, then the lower: a tree."""
    return set(sorted(weights, key=lambda prefix: (-weights[prefix], len(prefix), prefix))[:capacity])


def along_texts(model: Table, tree: set[Prefix]) -> Fraction:
    """E[X]: the depth to which each text lies in the tree, times its probability."""
    texts = ((text, chance) for text, chance in path_weights(model).items() if len(text) == LENGTH)
    ends = ((next((n for n in range(LENGTH) if text[: n + 1] not in tree), LENGTH), chance) for text, chance in texts)
    return total(accepted * chance for accepted, chance in ends)


def identity(target: Table, draft: Table, capacity: int, wrong: bool = False) -> Compared:
    """E[X] of T_q, run on every text, against its probability under the target; under the draft for the control."""
    p, q = path_weights(target), path_weights(draft)
    tree = chosen(q, capacity)
    return equal(along_texts(target, tree), total((q if wrong else p)[v] for v in tree))


def bound_of(p: Weights, q: Weights, capacity: int) -> tuple[Fraction, Fraction, Fraction]:
    """The loss, and the parts of its bound over T_p without T_q and over T_q without T_p."""
    of_target, of_draft = chosen(p, capacity), chosen(q, capacity)
    loss = total(p[v] for v in of_target) - total(p[v] for v in of_draft)
    missed = total(positive_part(p[v] - q[v]) for v in of_target - of_draft)
    mistaken = total(positive_part(q[v] - p[v]) for v in of_draft - of_target)
    return loss, missed, mistaken


def losses(target: Table, draft: Table, capacity: int, half: bool = False) -> Iterator[Compared]:
    """The loss is not negative, and at most the bound; of its first part alone for the control."""
    p, q = path_weights(target), path_weights(draft)
    yield from loss_of_weights([p[v] for v in p], [q[v] for v in p], capacity, half)


def table_cases(effort: Effort) -> Iterator[Case]:
    """Two models with a pmf of their own after every prefix, on 2 or 3 tokens, P = 1 to 6."""
    rng = random.Random(effort.seed)
    for number in range(effort.pick(90, 600)):
        tokens = 2 + number % 2
        target, draft = random_model(rng, tokens, LENGTH), random_model(rng, tokens, LENGTH)
        yield {"target": target, "draft": draft, "capacity": 1 + number % 6}


def drawn_weights() -> st.SearchStrategy[Case]:
    """Any six path probabilities under both models, P up to 5."""
    row = st.lists(st.integers(0, 20), min_size=6, max_size=6).map(lambda parts: [Fraction(n, 20) for n in parts])
    return st.fixed_dictionaries({"p": row, "q": row, "capacity": st.integers(1, 5)})


def loss_of_weights(
    p: Sequence[Fraction], q: Sequence[Fraction], capacity: int, half: bool = False
) -> Iterator[Compared]:
    """The loss of any six prefixes."""
    named: list[Weights] = [{(v,): weight for v, weight in enumerate(row)} for row in (p, q)]
    loss, missed, mistaken = bound_of(named[0], named[1], capacity)
    yield at_most(Fraction(0), loss)
    yield at_most(loss, missed + (0 if half else mistaken))


def library_tree(target: Table, draft: Table, capacity: int, wrong: bool = False) -> Iterator[Compared]:
    """The library's value, best, loss and bound; trees may differ where two prefixes weigh the same."""
    p, q = path_weights(target), path_weights(draft)
    order = sorted(p, key=lambda prefix: (len(prefix), prefix))
    imperfect = imperfect_tree([float(p[v]) for v in order], [float(q[v]) for v in order], capacity)
    loss, missed, mistaken = bound_of(p, q, capacity)
    yield computed(imperfect.loss, loss)
    yield computed(imperfect.bound, missed + (0 if wrong else mistaken))
    yield computed(imperfect.value, along_texts(target, chosen(q, capacity)))
    yield computed(imperfect.best, along_texts(target, chosen(p, capacity)))
    yield computed(imperfect.claimed, total(q[v] for v in chosen(q, capacity)))


STEPS: tuple[Step, ...] = (
    valid(
        "X counts the prefixes of the text that stand in T_q with all those before them; T_q is a tree, as q falls "
        "along a path, so for two of them (a before ab) X = a + a b with ab <= a: each counts with its chance p",
        lambda a, ab: [equal(a + a * ab, a + ab), at_most(ab, a)],
        lambda a, ab: [a * (1 - a) == 0, ab * (1 - ab) == 0, ab <= a],
    ),
    valid(
        "what both trees have cancels: with A = T_p without T_q, B = T_q without T_p and C in both, the loss is "
        "p(A) - p(B)",
        lambda pa, pb, pc: equal((pa + pc) - (pb + pc), pa - pb),
    ),
    valid(
        "both have P prefixes, so |A| = |B| = m; those of B are the heavier under q, those of A at most as heavy as a "
        "number s: q(A) <= m s <= q(B)",
        lambda qa, qb, m, s: at_most(qa, qb),
        lambda qa, qb, m, s: [m >= 0, qa <= m * s, m * s <= qb],
    ),
    valid(
        "adding q(B) - q(A) >= 0: p(A) - p(B) <= (p - q)(A) + (q - p)(B)",
        lambda pa, pb, qa, qb: at_most(pa - pb, (pa - qa) + (qb - pb)),
        lambda pa, pb, qa, qb: [qa <= qb],
    ),
    valid(
        "each difference is at most its positive part",
        lambda p, q: [at_most(p - q, positive_part(p - q)), at_most(q - p, positive_part(q - p))],
    ),
)


def one_step(p: Pmf, q: Pmf, capacity: int, bound: bool = False) -> Compared:
    """The loss for i.i.d. tokens against the total variation of one token, or against B8."""
    target, draft = (dict.fromkeys(prefixes(len(p), LENGTH), pmf) for pmf in (p, q))
    loss, missed, mistaken = bound_of(path_weights(target), path_weights(draft), capacity)
    if bound:
        return at_most(loss, missed + mistaken)
    return at_most(loss, total(positive_part(a - b) for a, b in zip(p, q, strict=True)))


def pair_cases(effort: Effort) -> Iterator[Case]:
    """First among pairs on 2 tokens by their denominator and P."""
    return with_each(cases.pairs(2, effort.pick(4, 6)), capacity=range(1, 5))


def claimed(target: Table, draft: Table, capacity: int, bound: bool = False) -> Compared:
    """What the drafter expects, against what it gets; or, true, against the tree that is best for the target."""
    p, q = path_weights(target), path_weights(draft)
    tree = chosen(q, capacity)
    expected = total(p[v] for v in tree)
    if bound:
        return at_most(
            expected, sum((weight for weight, _ in grown(lambda v: target.get(v, (Fraction(0),)), capacity)))
        )
    return at_most(total(q[v] for v in tree), expected)


def claim_cases(effort: Effort) -> Iterator[Case]:
    """First among pairs on 2 tokens by their denominator and P."""
    for case in pair_cases(effort):
        target, draft = (dict.fromkeys(prefixes(2, LENGTH), case[name]) for name in ("p", "q"))
        yield {"target": target, "draft": draft, "capacity": case["capacity"]}


BOUND = Claim("0 <= loss <= sum_A (p - q)+ + sum_B (q - p)+", losses)
BOUND_WRONG = Claim("loss <= sum_A (p - q)+", lambda **case: losses(**case, half=True))

B8 = Entry(
    id="B8",
    title="Draft trees from imperfect knowledge",
    kind="bounds",
    plain="a drafter that does not sample and ranks prefixes by its own model q drafts T_q, its P heaviest: E[X] = "
    "sum over T_q of p(v), and sum_{T_p} p - sum_{T_q} p <= sum_A (p - q)+ + sum_B (q - p)+ with A = T_p without "
    "T_q, B = T_q without T_p (path probabilities)",
    latex=r"E[X] = \sum_{v\in T_q} p(v),\qquad 0 \le \sum_{T_p} p - \sum_{T_q} p \le "
    r"\sum_{T_p\setminus T_q}(p-q)_+ + \sum_{T_q\setminus T_p}(q-p)_+",
    assumptions=("given the text so far, drafts are independent of the target's sampling of what follows (B4)",),
    calculators=("spectheory.limits.imperfect_tree", "spectheory.limits.ImperfectTree"),
    evidence=(
        proof("what both trees share cancels; T_q is heavier under q; positive parts", STEPS),
        exact(
            Claim("E[X] of T_q is its probability under the target", identity),
            table_cases,
            over="every text of 3 tokens, two models with a pmf of their own after every prefix, P up to 6",
            wrong=Claim("it is its probability under the draft", lambda **case: identity(**case, wrong=True)),
        ),
        exact(BOUND, table_cases, over="two models, 2 or 3 tokens, P up to 6", wrong=BOUND_WRONG),
        agreement(
            Claim("the library's value, best value, loss, bound and the drafter's own claim", library_tree),
            table_cases,
            over="two models, 2 or 3 tokens, P up to 6",
            wrong=Claim("with the first part of the bound alone", lambda **case: library_tree(**case, wrong=True)),
        ),
        searched(
            Claim("0 <= loss <= sum_A (p - q)+ + sum_B (q - p)+", loss_of_weights),
            drawn_weights,
            wrong=Claim("loss <= sum_A (p - q)+", lambda **case: loss_of_weights(**case, half=True)),
        ),
    ),
)

B8_ONE_STEP = Entry(
    id="B8/one-step",
    title="The loss of a tree by the distance of one token",
    kind="refuted",
    plain="for i.i.d. tokens the loss of T_q is at most TV(p, q) of one token; it grows with P, as errors of one "
    "token repeat at every depth",
    latex=r"\sum_{T_p} p - \sum_{T_q} p \le TV(p, q)",
    assumptions=("every prefix has the same pair of pmfs",),
    evidence=(
        counterexample(
            Claim("loss <= TV of one token", one_step),
            pair_cases,
            true=Claim("loss <= the bound of B8", lambda **case: one_step(**case, bound=True)),
        ),
    ),
)

B8_CLAIMED = Entry(
    id="B8/claimed",
    title="What a drafter expects of its tree",
    kind="refuted",
    plain="the probability of T_q under the draft is at most E[X]: a drafter's own confidence is no lower bound on "
    "what its tree predicts",
    latex=r"\sum_{v\in T_q} q(v) \le E[X]",
    assumptions=("every prefix has the same pair of pmfs",),
    evidence=(
        counterexample(
            Claim("sum over T_q of q <= E[X]", claimed),
            claim_cases,
            true=Claim("E[X] is at most that of the target's own tree", lambda **case: claimed(**case, bound=True)),
        ),
    ),
)
