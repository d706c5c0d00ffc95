"""Rejections on Markov chains when drafts run to the horizon (yin2024): a trial is a text.

Parameters are the chains (:func:`simulations.settings.chains_of`) and ``length``, T. Counted are ``positions``,
``[T]``, texts with a rejection there, and ``texts``, ``[T + 1]``, texts by their number of rejections, whose moments
are ``rejections``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulations.chains import RejectionCounts
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.markov_decoding import horizon_rejections
from simulations.moments import Moments
from simulations.registry import simulator
from simulations.settings import chains_of
from simulations.streams import Words
from simulations.tally import Tally


@simulator("rejections", version="1")
def rejections(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Token verification whose rounds draft to the horizon (Y1)."""
    return _tally(horizon_rejections(*chains_of(parameters), length=parameters["length"], texts=trials, state=state))


@simulator("batch", version="1")
def batch(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Algorithm 4 with ``drafts`` drafts, as intended, or with ``printed`` as printed (Y3)."""
    made = {name: parameters[name] for name in ("length", "drafts", "printed") if name in parameters}
    return _tally(batch_rejections(*chains_of(parameters), **made, texts=trials, state=state))


def _tally(counts: RejectionCounts) -> Tally:
    return Tally.of(
        int(counts.texts.sum()),
        counts={"positions": counts.positions, "texts": counts.texts},
        samples={"rejections": Moments.of_histogram(counts.texts)},
    )
