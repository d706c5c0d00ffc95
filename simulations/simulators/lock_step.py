"""Batches of texts decoded in lock-step: a trial is a batch.

Parameters are those of ``token`` and ``batch``, the texts of a batch. Counted are ``batches``, ``[length + 1]``,
batches by their rounds, whose moments are ``rounds``. Texts are independent, so those that a kernel decodes are put
into batches at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulations.counts.moments import Moments
from simulations.counts.tally import Tally
from simulations.draws.streams import Words, next_word
from simulations.experiments.registry import simulator
from simulations.kernels.markov_decoding import token_calls
from simulations.models.recipes import chains_of


@simulator("lock-step", version="1")
def lock_step(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A batch of texts by token verification, a call of each live text per round (§12)."""
    length, batch = parameters["length"], parameters["batch"]
    made = {"length": length, "k": parameters["k"], "texts": trials * batch}
    counted = token_calls(*chains_of(parameters), **made, state=state).texts
    calls = np.random.default_rng(int(next_word(state))).permutation(np.repeat(np.arange(length + 1), counted))
    rounds = np.bincount(calls.reshape(trials, batch).max(axis=1), minlength=length + 1)
    return Tally.of(trials, counts={"batches": rounds}, samples={"rounds": Moments.of_histogram(rounds)})
