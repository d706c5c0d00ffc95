"""Whole texts by every rule and every draft tree, as the algorithms are written: a trial is a text.

Parameters are ``rule``, ``paths`` of the draft tree, a chain of 2 as [[1], [1, 1]], ``length``, and the chains
(:mod:`simulations.models.recipes`). Counted are ``texts``, ``[length + 1]``, texts by their number of calls, whose
moments are ``calls``, and ``accepted``, ``[depth + 1]``, calls by their accepted drafts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulations.counts.moments import Moments
from simulations.counts.tally import Tally
from simulations.draws.streams import Stream, Words
from simulations.experiments.registry import simulator
from simulations.models.chains import checked_chains, checked_stream
from simulations.models.positions import whole_number
from simulations.models.recipes import chains_of
from simulations.reference.any_rule import ALGORITHMS, DraftTree, decoded_text
from simulations.reference.drawing import from_table
from simulations.reference.markov import Pair
from spectheory.errors import SettingError


@simulator("decode", version="1")
def decode(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by any rule and draft tree, readably and slowly (§7)."""
    length = whole_number("length", parameters["length"])
    chains = checked_chains(*chains_of(parameters), length=length)
    pair = Pair(*(chain if len(chain) > 1 else chain[0] for chain in (chains.target, chains.draft)))
    rule, tree = parameters["rule"], DraftTree(parameters["paths"])
    _check(rule, tree)
    texts, accepted = np.zeros(length + 1, dtype=np.int64), np.zeros(tree.depth + 1, dtype=np.int64)
    stream = Stream(checked_stream(state))
    for _ in range(trials):
        calls = decoded_text(rule, tree, pair, from_table(chains.initial, stream), length, stream)
        counts = [call.accepted for call in calls]
        texts[len(counts)] += 1
        np.add.at(accepted, counts, 1)
    return Tally.of(
        trials, counts={"texts": texts, "accepted": accepted}, samples={"calls": Moments.of_histogram(texts)}
    )


def _check(rule: str, tree: DraftTree) -> None:
    """Check that a rule is known and takes the tree."""
    if rule not in ALGORITHMS:
        raise SettingError(f"rule is {rule!r}", limit=f"known are {', '.join(ALGORITHMS)}", remedy="name one of them")
    if not tree.nodes or any(not n or (n[:-1] and n[:-1] not in tree.nodes) or min(n) < 1 for n in tree.nodes):
        raise SettingError("the paths are no tree", limit="every node needs its parent", remedy="give all paths")
    most = max(max(node) for node in tree.nodes)
    if not ALGORITHMS[rule].several and most > 1:
        raise SettingError(f"a rank is {most}", limit=f"{rule} has one candidate", remedy="draft a chain")
    if ALGORITHMS[rule].consecutive and any(node[-1] > tree.candidates[node[:-1]] for node in tree.nodes):
        raise SettingError("a rank is left out", limit=f"{rule} tries children 1..m", remedy="draft all of them")
