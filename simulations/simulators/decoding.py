"""Whole texts decoded with k drafts per call: a trial is a text.

Parameters are ``length`` and ``k``, and the chains (:func:`simulations.models.recipes.chains_of`) or the n-gram models
(:func:`simulations.models.ngram.ngram_pair_of`). Counted are ``accepted``, ``[k + 1]``, calls by their accepted drafts,
and ``texts``, ``[length + 1]``, texts by their number of calls, whose moments are ``calls``. Calls of one text are
dependent: intervals come from ``texts`` and ``calls``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from simulations.counts.moments import Moments
from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.experiments.tasks import canonical
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import token_calls
from simulations.kernels.ngram_decoding import Tables, ngram_tables, tabled_calls
from simulations.models.chains import CallCounts
from simulations.models.ngram import ngram_pair_of
from simulations.models.recipes import chains_of


@simulator("token", version="1")
def token(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by token verification (§7)."""
    return _on_chains(token_calls, parameters, trials, state)


@simulator("block", version="1")
def block(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by block verification (§7)."""
    return _on_chains(block_calls, parameters, trials, state)


@simulator("ngram", version="1")
def ngram(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by token verification, n-gram models of real text (§7)."""
    models = canonical({name: parameters[name] for name in parameters if name not in ("length", "k")})
    return _tally(
        tabled_calls(_tables(models), length=parameters["length"], k=parameters["k"], texts=trials, state=state)
    )


@lru_cache(maxsize=2)
def _tables(models: str) -> Tables:
    """A worker makes the tables of a pair once, for many batches."""
    return ngram_tables(*ngram_pair_of(json.loads(models)))


def _on_chains(kernel: Callable[..., CallCounts], parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    chains = chains_of(parameters)
    return _tally(kernel(*chains, length=parameters["length"], k=parameters["k"], texts=trials, state=state))


def _tally(counts: CallCounts) -> Tally:
    return Tally.of(
        int(counts.texts.sum()),
        counts={"accepted": counts.accepted, "texts": counts.texts},
        samples={"calls": Moments.of_histogram(counts.texts)},
    )
