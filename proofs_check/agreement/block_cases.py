"""Cases for statements on whole decodings (B7): random models with ends, lengths and costs; one-hot ones by length."""

from __future__ import annotations

from proofs_check.agreement.path_cases import edge_chains, random_chains
from proofs_check.prelude import *
from proofs_check.twins.block_values import Problem, texts

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
    """Random costs by text that the draft's next token does not raise in the mean."""

    def draw(effort: Effort) -> Iterator[Case]:
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
