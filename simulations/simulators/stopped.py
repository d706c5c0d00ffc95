"""Whole texts by token verification whose drafting a stopping rule ends (§11): a trial is a text.

Parameters are ``length``, ``k``, the chains (:func:`simulations.models.recipes.chains_of`, one matrix for all
positions) and ``stop``, a rule as ``token<0.4``, or None. Samples are ``calls`` and ``drafted`` of a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.kernels.stopped_decoding import stopped_calls, stops_of
from simulations.models.chains import checked_chains
from simulations.models.positions import whole_number
from simulations.models.recipes import chains_of


@simulator("stopped", version="1")
def stopped(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by token verification, drafting stopped by a rule (§11)."""
    length, k = (whole_number(name, parameters[name]) for name in ("length", "k"))
    chains = checked_chains(*chains_of(parameters), length=length)
    stops = stops_of(chains.draft[0], parameters["stop"])
    rng = np.random.default_rng([int(word) for word in state])
    calls, drafted = stopped_calls(chains, stops, length=length, k=k, texts=trials, rng=rng)
    return Tally.of(trials, samples={"calls": calls, "drafted": drafted})
