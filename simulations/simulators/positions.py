"""One position: races, lists of candidates, one draft token, over-acceptance. A trial is a position.

Parameters are ``target`` and ``draft``, pmfs ``[V]``, and ``rule``, ``max_rank`` or ``k``; of over-acceptance
``accept``, ``[V]``, and ``recovery``, "optimal" or "target". Counted are

- ``output``, ``[V]``, up to :data:`simulations.models.pairs.MOST_OUTPUTS` tokens;
- of races ``rank``, ``[max_rank + 2]``: no rank, rank 1, 2, ..., higher; of candidates ``[max_rank + 1]`` or
  ``[k + 1]``, the last none;
- of Gumbel lists ``hits``: misses, by another race, by the output's own race; of one draft ``accepted``, ``[1]``; of
  over-acceptance ``rejected``, ``[1]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts import Share, Tally
from simulations.draws import Counts, Words
from simulations.experiments.tasks import simulator
from simulations.kernels.candidates import biased_verification, kseq, recursive_rejection, single_draft, top_k_match
from simulations.kernels.gumbel_lists import gumbel_list, lazy_gumbel_list
from simulations.kernels.races import dense_race, lazy_race, poisson_race
from simulations.models.pairs import MOST_OUTPUTS, by_output
from simulations.verdicts.predictions import Predicted, predicts
from spectheory import total_variation
from spectheory.limits import biased_loss, optimal_recovery, rejection_probability, uno_loss
from spectheory.verification import (
    RULES,
    GumbelList,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    TopKMatch,
)
from spectheory.verification.base import RankRule
from spectheory.verification.recursive import most_ranks

# Races

Kernel = Callable[..., Counts]


def _tally(trials: int, counts: Counts, rows: str = "rank") -> Tally:
    """The tally of counts ``[rows, V]``: trials by row, and by output where tokens are few enough to be counted."""
    return Tally.of(trials, counts={rows: counts.sum(axis=1), **by_output(counts.sum(axis=0))})


@simulator("race", version="1")
def race(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A race over distinct tokens, target first (R2)."""
    return _race_tally(lazy_race, parameters, trials, state)


@simulator("race-dense", version="1")
def race_dense(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same with a clock for every token (A2, R2)."""
    return _race_tally(dense_race, parameters, trials, state)


@simulator("poisson", version="1")
def poisson(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A Poisson race with replacement (R1)."""
    return _race_tally(poisson_race, parameters, trials, state)


def _race_tally(kernel: Kernel, parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    target, draft, most = (parameters[name] for name in ("target", "draft", "max_rank"))
    sort = len(target) <= MOST_OUTPUTS
    counts = kernel(target, draft, trials=trials, state=state, max_rank=most, by_output=sort)
    return _tally(trials, counts.T) if sort else Tally.of(trials, counts={"rank": counts})


MOST_WORK = 3 << 24
"""Largest positions V^2 (ranks + 4) that the race's law is worked out for: some 20 seconds."""


def race_ranks(tokens: int, max_rank: int, positions: int = 1) -> int:
    """How many ranks of the race's law are predicted, of `max_rank`: rank 1 is cheap, others are O(V^2) integrals.

    Examples
    --------
    >>> race_ranks(1000, 8), race_ranks(4000, 8), race_ranks(200_000, 8), race_ranks(100, 8, positions=1000)
    (8, 1, 1, 1)
    """
    return max(1, min(max_rank, MOST_WORK // (positions * tokens**2) - 4))


@predicts("race")
@predicts("race-dense")
@predicts("race-numpy")
def race_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The exponential race over distinct tokens: as many ranks as :func:`race_ranks` says."""
    acceptance = float(RaceVerification().acceptance(parameters["target"], parameters["draft"]))
    yield Predicted("acceptance rate", "A2", Share("rank", 1), acceptance)
    most = race_ranks(len(parameters["target"]), parameters["max_rank"])
    yield from ranks(RaceVerification(), "R2", {**parameters, "max_rank": most}, first=1)


def ranks(rule: RankRule | KSeq, statement: str, parameters: dict[str, Any], *, first: int) -> Iterator[Predicted]:
    """P(R = r) and P(output = x); rank 1 is counted at index `first`."""
    most = parameters["max_rank" if "max_rank" in parameters else "k"]
    law = np.asarray(rule.rank_pmf(parameters["target"], parameters["draft"], most))
    for r, share in enumerate(law):
        yield Predicted(f"P(R = {r + 1})", statement, Share("rank", first + r), float(min(share, 1.0)))
    yield from outputs(parameters)


def outputs(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The output follows the target; nothing where outputs are not counted."""
    if len(parameters["target"]) > MOST_OUTPUTS:
        return
    for x, share in enumerate(parameters["target"]):
        yield Predicted(f"P(output = {x})", "lossless", Share("output", x), float(share))


for _kind, _rule, _statement, _first in (
    ("poisson", PoissonRace(), "R1", 1),
    ("recursive", RecursiveRejection(replacement=True), "R3", 0),
    ("top-k", TopKMatch(), "R7", 0),
    ("k-seq", KSeq(), "R5", 0),
):
    predicts(_kind)(partial(ranks, _rule, _statement, first=_first))


# Candidates and Gumbel lists


@simulator("recursive", version="1")
def recursive(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Recursive rejection of i.i.d. candidates (R3)."""
    return _listed(recursive_rejection, "max_rank", parameters, trials, state)


@simulator("recursive-distinct", version="1")
def recursive_distinct(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Recursive rejection of distinct candidates (R3)."""
    return _listed(partial(recursive_rejection, replacement=False), "max_rank", parameters, trials, state)


@simulator("gumbel-list", version="2")
def gumbel(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A Gumbel list of k drafts, output first (R6)."""
    return _listed(lazy_gumbel_list, "k", parameters, trials, state, "hits")


@simulator("gumbel-list-dense", version="1")
def gumbel_dense(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same with k clocks for every token (R6)."""
    return _listed(gumbel_list, "k", parameters, trials, state, "hits")


def _listed(
    kernel: Kernel, size: str, parameters: Mapping[str, Any], trials: int, state: Words, rows: str = "rank"
) -> Tally:
    target, draft, most = (parameters[name] for name in ("target", "draft", size))
    return _tally(trials, kernel(target, draft, most, trials, state=state), rows)


@predicts("recursive-distinct")
def distinct_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Recursive rejection of distinct candidates, as many ranks as can be enumerated."""
    most = most_ranks(len(parameters["target"]), parameters["max_rank"])
    yield from ranks(RecursiveRejection(replacement=False), "R3", {**parameters, "max_rank": most}, first=0)


@predicts("gumbel-list")
@predicts("gumbel-list-dense")
def gumbel_list_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Gumbel lists: the exact probability of a miss, the printed bound for hits of the output's own race."""
    given = (parameters["target"], parameters["draft"], parameters["k"])
    yield Predicted("P(not in the list)", "R6", Share("hits", 0), 1.0 - float(GumbelList().acceptance(*given)))
    yield Predicted(
        "P(draft of the output's race)", "R6", Share("hits", 2), float(GumbelList().acceptance_bound(*given))
    )
    yield from outputs(parameters)


# One draft token (A1, A4), the draft's top k (R7), k-SEQ (R5)


@simulator("single", version="1")
def single(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """One draft token (A1, A4)."""
    counts = single_draft(parameters["target"], parameters["draft"], parameters["rule"], trials, state=state)
    return Tally.of(trials, counts={"accepted": [counts[1].sum()], "output": counts.sum(axis=0)})


@simulator("top-k", version="1")
def top_k(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A sampled output among the draft's most probable tokens (R7)."""
    return _ranked(top_k_match, "max_rank", parameters, trials, state)


@simulator("k-seq", version="1")
def k_seq(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A list of k i.i.d. candidates against a scaled target: k-SEQ (R5)."""
    return _ranked(kseq, "k", parameters, trials, state)


def _ranked(kernel: Kernel, size: str, parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    target, draft, most = (parameters[name] for name in ("target", "draft", size))
    counts = kernel(target, draft, most, trials, state=state)
    return Tally.of(trials, counts={"rank": counts.sum(axis=1), "output": counts.sum(axis=0)})


@predicts("single")
def single_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Acceptance, and the output: the target's sample, of greedy decoding its first choice."""
    rule, statement = parameters["rule"], "A1" if parameters["rule"] == "token" else "A4"
    acceptance = float(RULES[rule].acceptance(parameters["target"], parameters["draft"]))
    yield Predicted("acceptance rate", statement, Share("accepted"), min(acceptance, 1.0))
    if rule == "greedy":
        first = int(np.argmax(parameters["target"]))
        yield Predicted(f"P(output = {first})", statement, Share("output", first), 1.0)
    else:
        yield from outputs(parameters)


# Over-acceptance (yin2024)


@simulator("biased", version="1")
def biased(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """One draft token, accepted too often (Y5, Y6)."""
    target, draft, accept = (parameters[name] for name in ("target", "draft", "accept"))
    counts = biased_verification(target, draft, accept, trials, state=state, recovery=parameters["recovery"])
    return Tally.of(trials, counts={"rejected": [int(counts[1].sum())], "output": counts.sum(axis=0)})


@predicts("biased")
def biased_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """P(reject), whatever the recovery law; the output's law, and its bias TV(output, p)."""
    p, q, b = (np.asarray(parameters[name], dtype=np.float64) for name in ("target", "draft", "accept"))
    rejected = float(total_variation(p, q)) - float(biased_loss(p, q, b))
    yield Predicted("P(reject) = TV - Loss*", "Y6", Share("rejected"), min(max(rejected, 0.0), 1.0))
    law, optimal = output_law(p, q, b, parameters["recovery"]), parameters["recovery"] == "optimal"
    more = tuple(int(x) for x in np.flatnonzero(law > p))
    loss = float(biased_loss(p, q, b) if optimal else uno_loss(p, q, b))
    if more:
        says, above = "the bias Loss*" if optimal else "UNO's bias", float(p[list(more)].sum())
        yield Predicted(f"P(output too often) - p = {says}", "Y5", Share("output", more), min(above + loss, 1.0))
    for x, share in enumerate(law):
        yield Predicted(f"P(output = {x})", "Y5", Share("output", x), float(min(share, 1.0)))


def output_law(target: Any, draft: Any, accept: Any, recovery: str) -> NDArray[np.float64]:
    """The output's law, b q + c r: what is accepted, and c = P(reject) times the recovery law r."""
    p, q, b = (np.asarray(each, dtype=np.float64) for each in (target, draft, accept))
    law = optimal_recovery(p, q, b) if recovery == "optimal" else p
    return np.asarray(b * q + float(rejection_probability(p, q, b)) * law)
