"""Rejections on Markov chains when drafts run to the horizon (yin2024): a trial is a text.

Parameters are the chains (:func:`simulations.models.pairs.chains_of`) and ``length``, T. Counted are ``positions``,
``[T]``, texts with a rejection there, and ``texts``, ``[T + 1]``, texts by their number of rejections, whose moments
are ``rejections``. With ``positions`` false they are not counted by position. ``rejections-running`` counts
``running``, ``[C]``, rejections in the first ``checkpoints[c]`` texts, in place of ``positions``; the last checkpoint
is the number of trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simulations.counts import Mean, Moments, Share, Tally
from simulations.draws import Words
from simulations.experiments.tasks import simulator
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.markov_decoding import horizon_rejections
from simulations.models.pairs import RejectionCounts, chains_of
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import SettingError
from spectheory.limits import rejection_profile


@simulator("rejections", version="1")
def rejections(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text whose drafts run to the horizon (Y1)."""
    counts = horizon_rejections(*chains_of(parameters), length=parameters["length"], texts=trials, state=state)
    return _tally(counts, parameters)


@simulator("rejections-running", version="1")
def rejections_running(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text whose drafts run to the horizon, counted at checkpoints too (Y1)."""
    checkpoints = parameters["checkpoints"]
    segments = np.diff(checkpoints, prepend=0)
    if not len(segments) or segments.min() < 1 or checkpoints[-1] != trials:
        raise SettingError(
            f"checkpoints are {checkpoints}", limit=f"must rise from 1 or more to {trials}", remedy="end at the trials"
        )
    chains, length = chains_of(parameters), parameters["length"]
    parts = [horizon_rejections(*chains, length=length, texts=int(n), state=state) for n in segments]
    running = np.cumsum([part.positions.sum() for part in parts])
    texts = np.sum([part.texts for part in parts], axis=0)
    return Tally.of(
        trials, counts={"running": running, "texts": texts}, samples={"rejections": Moments.of_histogram(texts)}
    )


@simulator("batch", version="1")
def batch(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same with M drafts (Y3)."""
    made = {name: parameters[name] for name in ("length", "drafts", "printed") if name in parameters}
    return _tally(batch_rejections(*chains_of(parameters), **made, texts=trials, state=state), parameters)


def _tally(observed: RejectionCounts, parameters: Mapping[str, Any]) -> Tally:
    counts = {"texts": observed.texts}
    if parameters.get("positions", True):
        counts["positions"] = observed.positions
    moments = Moments.of_histogram(observed.texts)
    return Tally.of(int(observed.texts.sum()), counts=counts, samples={"rejections": moments})


# What theory says


@predicts("rejections")
def rejections_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Rejections of one draft, in all and by position."""
    yield from _profile(parameters, "Y1", 1)


@predicts("rejections-running")
def running_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Rejections of one draft, in all."""
    yield from _profile({**parameters, "positions": False}, "Y1", 1)


@predicts("batch")
def batch_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Those of a batch, one draft being Y1; as printed, Algorithm 4 rejects as if it had one."""
    if parameters.get("printed", False):
        yield from _profile(parameters, "Y3/printed", 1)
    else:
        yield from _profile(parameters, "Y1" if parameters["drafts"] == 1 else "Y3", parameters["drafts"])


def _profile(parameters: dict[str, Any], statement: str, drafts: int) -> Iterator[Predicted]:
    length = parameters["length"]
    profile = rejection_profile(*chains_of(parameters), drafts=drafts, horizon=length)
    yield Predicted("rejections per text", statement, Mean("rejections", 0, length), float(profile.sum()))
    for n, share in enumerate(profile if parameters.get("positions", True) else ()):
        yield Predicted(f"P(reject at {n + 1})", statement, Share("positions", n), float(share))
