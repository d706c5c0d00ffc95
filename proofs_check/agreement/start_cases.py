"""Drafts that depend on where the call starts (§10) in fractions: whole calls beside the survival stated.

A head is a table of a pmf for each text before a call and each run of its drafts: nothing ties the pmfs of two calls
together, not even where they draft for the same position after the same text.
"""

from __future__ import annotations

from proofs_check.agreement.path_cases import CHAINS, RANKED, TREES, PathTwin, SurvivalOf, survival_by_tree
from proofs_check.algorithms.enumeration import output_law
from proofs_check.prelude import *
from proofs_check.twins.path_theorem import Survival, all_calls_law
from proofs_check.twins.tree_theorem import depth

HeadTable = Mapping[tuple[Prefix, Prefix], Pmf]
"""A pmf for each text before a call and each run of drafts in it."""

Reading = Callable[[SurvivalOf, Model, HeadTable, Prefix], Survival]
"""From a survival of drafts by position to that of a head's."""


def random_head(rng: random.Random, tokens: int, length: int, deepest: int, spread: int = 8) -> HeadTable:
    """Random pmfs for every text shorter than `length` and every run of drafts up to its end and `deepest` beyond."""
    starts = [start for n in range(length) for start in product(range(tokens), repeat=n)]
    return {
        (start, run): random_pmf(rng, tokens, spread)
        for start in starts
        for n in range(length - len(start) + deepest)
        for run in product(range(tokens), repeat=n)
    }


def from_start(head: HeadTable, start: Prefix) -> Model:
    """The draft of the call after `start`; of shorter texts the first drafts, which the call does not read."""
    return lambda prefix: head[prefix[: len(start)], prefix[len(start) :]]


def headed(rule: Rule, head: HeadTable) -> Rule:
    """A whole call whose drafts come from the head."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        return rule(target, from_start(head, prefix), prefix, k)

    return call


def by_start(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """§10: the survival with the pmfs of the call's own start."""
    return lambda n, i: of(target, from_start(head, text[:n]), text)(n, i)


def by_position(of: SurvivalOf, target: Model, head: HeadTable, text: Prefix) -> Survival:
    """The per-position reading: every draft has the pmf of a first draft at its position."""
    return of(target, lambda prefix: head[prefix, ()], text)


TREE = TREES[1]


def random_heads(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int) -> Iterator[Case]:
    """Random targets and heads {target, head, k, length}, for each (tokens, length, k)."""
    rng = random.Random(f"heads {effort.seed}")
    for _ in range(effort.pick(rounds, 8 * rounds)):
        for tokens, length, k in sizes:
            deepest = max(k, depth(TREE))
            target = random_model(rng, tokens, length + deepest, 8)
            yield {"target": target, "head": random_head(rng, tokens, length, deepest), "k": k, "length": length}


CALLED: dict[str, PathTwin] = {
    **{name: CHAINS[name] for name in ("token", "block", "argmax", "race", "independent", "recursive")},
    **{
        f"{name}, tree": PathTwin(RANKED[name].call(TREE, len), survival_by_tree(RANKED[name].given, TREE))
        for name in ("race", "recursive", "topk")
    },
}
"""Whole calls, by rules of the library's names: chains, and a tree of two levels."""


def head_calls(reading: Reading, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The text is the target's; given all of it the calls are independent with the survival of the reading."""
    p = target.__getitem__
    texts = text_law(p, length)
    for name, twin in CALLED.items():
        drafts = depth(TREE) if name.endswith("tree") else k
        law = Decoding(headed(twin.algorithm, head), drafts, length).law(p, p)
        yield equal(output_law(law), texts)
        for text in texts:
            survival = reading(twin.survival, p, head, text)
            yield equal(given_text(law, text), all_calls_law(survival, drafts, length))
