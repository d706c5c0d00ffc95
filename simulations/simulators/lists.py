"""Several candidates at one position: a trial is a position.

Parameters are ``target`` and ``draft``, pmfs ``[V]``, and ``max_rank`` or ``k``. Counted are ``rank``,
``[max_rank + 1]``, the last none, or ``hits``, [misses, by another race, by the output's own race]; and ``output``,
``[V]``, up to :data:`simulations.models.positions.MOST_OUTPUTS` tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.kernels.gumbel_list import gumbel_list
from simulations.kernels.lazy_gumbel_list import lazy_gumbel_list
from simulations.kernels.race_counts import Counts
from simulations.kernels.recursive_rejection import recursive_rejection
from simulations.models.positions import by_output


@simulator("recursive", version="1")
def recursive(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Recursive rejection of i.i.d. candidates (R3)."""
    return _judged(parameters, trials, state, replacement=True)


@simulator("recursive-distinct", version="1")
def recursive_distinct(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Recursive rejection of distinct candidates (R3)."""
    return _judged(parameters, trials, state, replacement=False)


def _judged(parameters: Mapping[str, Any], trials: int, state: Words, *, replacement: bool) -> Tally:
    target, draft = parameters["target"], parameters["draft"]
    counts = recursive_rejection(target, draft, parameters["max_rank"], trials, state=state, replacement=replacement)
    return Tally.of(trials, counts={"rank": counts.sum(axis=1), **by_output(counts.sum(axis=0))})


@simulator("gumbel-list", version="2")
def gumbel(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A Gumbel list of k drafts, output first (R6)."""
    return _listed(lazy_gumbel_list, parameters, trials, state)


@simulator("gumbel-list-dense", version="1")
def gumbel_dense(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same with k clocks for every token (R6)."""
    return _listed(gumbel_list, parameters, trials, state)


def _listed(kernel: Callable[..., Counts], parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    counts = kernel(parameters["target"], parameters["draft"], parameters["k"], trials, state=state)
    return Tally.of(trials, counts={"hits": counts.sum(axis=1), **by_output(counts.sum(axis=0))})
