"""What B7 says of whole decodings, in fractions: optimum, regret, longer chains, drafts and costs by text."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts
from proofs_check.agreement.path_cases import CHAINS, edge_chains, random_chains
from proofs_check.prelude import *
from proofs_check.twins.block_values import *
from proofs_check.twins.block_values import fewest_calls
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import PathRule

# Cases for statements on whole decodings (B7): random models with ends, lengths and costs; one-hot ones by length.


Sizes = tuple[tuple[int, int, int], ...]
"""Tokens, length of the text, drafts of a call."""

SMALL: Sizes = ((2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 1), (3, 2, 2))
LONG: Sizes = ((2, 4, 1), (2, 4, 2), (2, 4, 3), (2, 5, 2), (3, 3, 1), (3, 3, 2))


def problem(target: Table, draft: Table, k: int, length: int, end: int | None) -> Problem:
    """The decoding that a case describes."""
    return texts(target.__getitem__, draft.__getitem__, k, length, end)


def going_on(given: Problem) -> Iterator[Prefix]:
    """Every text that has not ended, impossible ones too."""
    layer: list[Prefix] = [()]
    while layer:
        layer = [text for text in layer if not given.ended(text)]
        yield from layer
        layer = [(*text, z) for text in layer for z in range(given.tokens)]


def ending(sizes: Sizes, rounds: int) -> Callable[[Effort], Iterator[Case]]:
    """Edges, then random models; every other one ends at the token 0 too."""

    def draw(effort: Effort) -> Iterator[Case]:
        for number, case in enumerate((*edge_chains(), *random_chains(effort, sizes, rounds))):
            yield {**case, "end": 0 if number % 2 else None}

    return draw


def whole(effort: Effort) -> Iterator[Case]:
    """Random models whose texts end at a length alone."""
    return random_chains(effort, SMALL, 2)


# Drafts and costs that depend on the text

Numbers = Mapping[Prefix, Fraction]


def varied(steepest: int, rounds: int) -> Callable[[Effort], Iterator[Case]]:
    """Random numbers of drafts by text, up to 3, that fall by `steepest` at most from a token to the next."""

    def draw(effort: Effort) -> Iterator[Case]:
        rng = random.Random(f"lengths {effort.seed}")
        for case in random_chains(effort, ((2, 4, 3), (2, 5, 3), (3, 3, 3)), rounds):
            drafts: dict[Prefix, int] = {(): rng.randint(0, 3)}
            for text in _texts(case):
                fewest = max(drafts[text] - steepest, 0)
                drafts |= {(*text, z): rng.randint(fewest, 3) for z in range(len(case["target"][()]))}
            yield {**case, "drafts": drafts, "costs": {}}

    return draw


def priced(rounds: int) -> Callable[[Effort], Iterator[Case]]:
    """Random costs by text, so many times as often in a deep run."""

    def draw(effort: Effort) -> Iterator[Case]:
        """Random models and costs that the next token of the draft does not raise in the mean."""
        rng = random.Random(f"costs {effort.seed}")
        for case in random_chains(effort, ((2, 4, 2), (2, 4, 3), (3, 3, 2)), rounds):
            costs: dict[Prefix, Fraction] = {(): Fraction(1)}
            for text in _texts(case):
                q = case["draft"][text]
                factors = [Fraction(rng.choice((0, 1, 2, 3, 6)), 2) for _ in q]
                mean = sum((share * factor for share, factor in zip(q, factors, strict=True)), Fraction(0))
                costs |= {(*text, z): costs[text] * f / max(mean, 1) for z, f in enumerate(factors)}
            yield {**case, "drafts": {}, "costs": costs}

    return draw


def _texts(case: Case) -> Iterator[Prefix]:
    tokens = range(len(case["target"][()]))
    return (text for n in range(case["length"]) for text in product(tokens, repeat=n))


def by_text(target: Table, draft: Table, k: int, length: int, drafts: Mapping[Prefix, int], costs: Numbers) -> Problem:
    """The decoding of a case with drafts or costs by text."""
    made = problem(target, draft, k, length, None)
    if drafts:
        made = replace(made, drafts=drafts.__getitem__)
    return replace(made, cost=costs.__getitem__) if costs else made


SOLVED = Fraction(1, 10**8)
"""What the optimum of a linear programme, solved in floats, may be off."""


def near(found: float, exact: Fraction) -> Iterator[Compared]:
    """A solver's optimum and the exact one."""
    yield at_most(abs(Fraction(found) - exact), SOLVED)


def optimal(of: MassesOf, target: Table, draft: Table, k: int, length: int, end: int | None) -> Iterator[Compared]:
    """The fewest expected calls of any policy, with and without a memory of the calls before."""
    given = problem(target, draft, k, length, end)
    stated = expected_calls(given, of)(())
    yield from near(fewest_calls(given), stated)
    if length < 4:
        yield from near(fewest_calls(given, remember=True), stated)


def optimal_by_text(of: MassesOf, **case: Any) -> Iterator[Compared]:
    """The same with drafts or costs by text; and D is non-negative."""
    given = by_text(**case)
    value = expected_calls(given, of)
    fall = drop(given, value)
    yield from near(fewest_calls(given), value(()))
    for text in going_on(given):
        yield at_most(Fraction(0), fall(text))


def decoded(names: Sequence[str], sign: int, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """Whole decodings run through: none takes fewer calls, and what it loses is the sum over its calls (the regret)."""
    given = problem(target, draft, k, length, None)
    p, q = given.target, given.draft_from(())
    value = expected_calls(given)
    fall = drop(given, value)
    for name in names:
        rule = CHAINS[name].algorithm

        def loss(text: Any, rule: Any = rule) -> Fraction:
            masses = masses_of_law(given, rule(p, q, text, k), k)
            return weighed(text, block_masses(given, text), fall) - weighed(text, masses, fall)

        calls, lost = Fraction(0), Fraction(0)
        for (text, accepted), share in Decoding(rule, k, length).law(p, q).items():
            calls += len(accepted) * share
            starts = [sum(accepted[:call]) + call for call in range(len(accepted))]
            lost += share * sum((loss(text[:n]) for n in starts), Fraction(0))
        yield at_most(value(()), calls)
        yield equal(calls, value(()) + sign * lost)


def longer(
    of: MassesOf, more: int, target: Table, draft: Table, k: int, length: int, end: int | None
) -> Iterator[Compared]:
    """V with `more` drafts a call than k - 1 is at most V with k - 1, at every text."""
    given = problem(target, draft, k, length, end)
    few, many = (expected_calls(given.drafting(max(drafts, 0)), of) for drafts in (k - 1, k - 1 + more))
    for text in going_on(given):
        yield at_most(many(text), few(text))


def own_family(of: MassesOf, accepts: Callable[[Any, Any], Sequence[Any]], **case: Any) -> Iterator[Compared]:
    """s_i^w(zx) <= c(z) s_(i-1)^(wz)(x) with the shares c, which sum to at most 1; the rule's own D is 0 or more."""
    given = problem(**case)
    fall = drop(given, expected_calls(given, of))
    for text in going_on(given):
        masses = of(given, text)
        shares = accepts(given.target(text), case["draft"][text])
        yield at_most(sum(shares, Fraction(0)), Fraction(1))
        yield at_most(Fraction(0), fall(text))
        for z, c in enumerate(shares):
            if given.ended((*text, z)):
                continue
            for i, depth in enumerate(of(given, (*text, z))[: given.drafts(text)]):
                for run, mass in depth.items():
                    yield at_most(masses[i + 1][z, *run], c * mass)


def run_through_masses(name: str) -> MassesOf:
    """The masses of a rule of the library, from its algorithm."""

    def masses(given: Problem, text: Any) -> Any:
        k = given.drafts(text)
        return masses_of_law(given, CHAINS[name].algorithm(given.target, given.draft_from(text), text, k), k)

    return masses


def library(rule: PathRule, target: Table, draft: Table, k: int, length: int) -> Iterator[Compared]:
    """The library's expected calls along texts, in the mean over the target's texts, are the least of any policy."""
    texts = Texts(target, draft, length)
    survival = rule.path_survival(texts.trace().columns, k)
    calls = calls_of_texts(survival, texts.lengths).expected
    shares = list(text_law(target.__getitem__, length).values())
    yield computed(np.dot(floats(shares), calls), expected_calls(problem(target, draft, k, length, None))(()))
