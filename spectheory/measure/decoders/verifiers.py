"""How a call decides which drafts are output: pure functions of the target's pmfs, the draft tree and randomness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from spectheory.measure.decoders.tree import ROOT, DraftTree, Floats, Source
from spectheory.verification import (
    ArgmaxDraft,
    BlockVerification,
    CopiedFirst,
    GreedyMatch,
    GrownMatch,
    IndependentMatch,
    LossyRule,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    Rule,
    TokenVerification,
    TopKMatch,
)
from spectheory.verification.copied import CopiedMatch

Verdict: TypeAlias = tuple[list[int], int]
"""Accepted nodes from the root down, and the token after them."""


class _Pmfs(Protocol):
    """The target's pmf ``[V]`` after each node, :data:`~spectheory.measure.decoders.tree.ROOT` included."""

    def __getitem__(self, node: int) -> Floats:
        """The pmf after a node."""


Verifier: TypeAlias = Callable[[DraftTree, _Pmfs, Source], Verdict]


def _match_target_draw(tree: DraftTree, target: _Pmfs, source: Source) -> Verdict:
    """A token is drawn from the target, independently of the drafts, which are accepted while equal to it (A4, R7)."""
    return _descend(tree, lambda node: source.chance.categorical(target[node]))


def _race(tree: DraftTree, target: _Pmfs, source: Source) -> Verdict:
    """The winner of the target's race is output; drafts are accepted while they equal it (A2, R1, R2; kobus2025)."""
    return _descend(tree, lambda node: _winner(source.clocks.at(tree, node), target[node]))


def _winner(clocks: Floats, pmf: Floats) -> int:
    """The token whose clock, divided by its probability, rings first; ties go to the lowest index.

    Examples
    --------
    >>> _winner(np.array([1.0, 1.5]), np.array([0.3, 0.7]))
    1
    """
    return int(arrivals(clocks, pmf).argmin())


def arrivals(clocks: Floats, pmf: Floats) -> Floats:
    """Arrival times ``[V]`` of the tokens, infinite where the probability is 0."""
    return np.divide(clocks, pmf, out=np.full_like(clocks, np.inf), where=pmf > 0)


def _descend(tree: DraftTree, output: Callable[[int], int]) -> Verdict:
    path: list[int] = []
    while True:
        node = path[-1] if path else ROOT
        token = output(node)
        child = tree.child(node, token)
        if child is None:
            return path, token
        path.append(child)


def _recursive_rejection(tree: DraftTree, target: _Pmfs, source: Source, *, distinct: bool = False) -> Verdict:
    """Recursive rejection of i.i.d. candidates (R3, miao2024specinfer); on a chain it is token verification (A1).

    Of `distinct` candidates a rejected token leaves the draft (R3, chen2024sequoia).
    """
    path: list[int] = []
    while True:
        node = path[-1] if path else ROOT
        p = target[node]
        accepted = None
        if tree.children(node):
            accepted, p = _first_accepted(tree, node, p, source, distinct=distinct)
        if accepted is None:
            return path, source.chance.categorical(p)
        path.append(accepted)


def _first_accepted(
    tree: DraftTree, node: int, p: Floats, source: Source, *, distinct: bool
) -> tuple[int | None, Floats]:
    """The first accepted child, or None and the residual target after all rejections."""
    q, rejected = tree.pmfs[node], []
    for child in tree.children(node):
        token = tree.tokens[child]
        residual = np.maximum(p - q, 0.0)
        total = float(residual.sum())
        # Where p = q no residual is left: a coin that fails by rounding must not leave a call without an output.
        if total == 0.0 or source.chance.coin(p[token] / q[token]):
            return child, p
        p = residual / total
        if distinct:
            rejected.append(token)
            q = without(q, rejected)
    return None, p


def without(q: Floats, tokens: list[int]) -> Floats:
    """A pmf without some tokens, normalised; uniform over the others if nothing is left of it.

    Examples
    --------
    >>> without(np.array([0.5, 0.25, 0.25]), [0]), without(np.array([1.0, 0.0, 0.0]), [0])
    (array([0. , 0.5, 0.5]), array([0. , 0.5, 0.5]))
    """
    shorter = q.copy()
    shorter[tokens] = 0.0
    if not shorter.any():
        shorter = np.ones_like(q)
        shorter[tokens] = 0.0
    total = float(shorter.sum())
    return shorter / total if total > 0 else shorter


def _block_verification(tree: DraftTree, target: _Pmfs, source: Source) -> Verdict:
    """Block verification of a chain (sun2024block, Algorithm 2): the deepest depth whose coin succeeds is accepted."""
    chain, drafts = tree.nodes, tree.pmfs
    nodes, running, accepted, weight = [ROOT, *chain], 1.0, 0, 1.0
    for depth, node in enumerate(chain, start=1):
        before, token = nodes[depth - 1], tree.tokens[node]
        running = min(1.0, running * float(target[before][token]) / float(drafts[before][token]))
        if depth == len(chain):
            mark = running
        else:
            above = float(np.maximum(running * target[node] - drafts[node], 0.0).sum())
            mark = above / (above + 1.0 - running) if above > 0 else 0.0
        if source.chance.coin(mark):
            accepted, weight = depth, running
    p = target[nodes[accepted]]
    if accepted < len(chain):
        excess = np.maximum(weight * p - drafts[nodes[accepted]], 0.0)
        p = excess if excess.any() else p  # rounding may leave nothing
    return chain[:accepted], source.chance.categorical(p)


def _by_masses(tree: DraftTree, target: _Pmfs, source: Source, *, rule: LossyRule) -> Verdict:
    """The chain is judged position by position with the masses of a rule that changes the text (Y7)."""
    path: list[int] = []
    for node in tree.nodes:
        above = path[-1] if path else ROOT
        q, token = tree.pmfs[above], tree.tokens[node]
        accepted, recovered, _ = rule.masses(target[above], q)
        chance = accepted[token] / q[token] if rule.drafts == "drawn" else accepted[token]
        # Where nothing is recovered: a coin that fails by rounding must not leave a call without an output.
        if recovered.any() and not source.chance.coin(float(chance)):
            return path, source.chance.categorical(recovered)
        path.append(node)
    p = target[path[-1] if path else ROOT]
    return path, source.chance.categorical(rule.masses(p, p).bonus)


def _of_either(tree: DraftTree, target: _Pmfs, source: Source, *, other: Verifier) -> tuple[list[int], int]:
    """A hybrid's call: copied drafts match the target's draw, those of a model are verified by its rule (§10)."""
    return (_match_target_draw if tree.copied else other)(tree, target, source)


VERIFIERS: Mapping[Rule, Verifier] = {
    TokenVerification(): _recursive_rejection,
    BlockVerification(): _block_verification,
    RaceVerification(): _race,
    PoissonRace(): _race,
    RecursiveRejection(): _recursive_rejection,
    RecursiveRejection(replacement=False): partial(_recursive_rejection, distinct=True),
    IndependentMatch(): _match_target_draw,
    ArgmaxDraft(): _match_target_draw,
    GreedyMatch(): _match_target_draw,
    TopKMatch(): _match_target_draw,
    GrownMatch(): _match_target_draw,
}
"""What carries out each rule."""


def _verifier_of(rule: Rule) -> Verifier | None:
    """What carries out a rule; None if nothing does."""
    if isinstance(rule, CopiedMatch):
        return _match_target_draw if rule.copies else None
    if isinstance(rule, CopiedFirst):
        other = _verifier_of(rule.other)
        return other and partial(_of_either, other=other)
    if isinstance(rule, LossyRule):
        return partial(_by_masses, rule=rule)
    return next((verifier for known, verifier in VERIFIERS.items() if known == rule), None)
