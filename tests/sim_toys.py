"""Toy simulators that workers import: coins, some of which bring their worker down."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simulations.counts import Tally
from simulations.draws import Stream, Words
from simulations.experiments.tasks import Task, simulator, task

P = 0.3
COIN = "coin of the tests"
BATCH = 200


@simulator(COIN, version="1")
def coin(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """Heads with probability p; and the time of each trial, exponential."""
    time.sleep(parameters.get("sleep", 0.0))
    stream = Stream(state)
    heads = sum(stream.uniform() < parameters["p"] for _ in range(trials))
    return Tally.of(trials, counts={"heads": [heads]}, samples={"time": [stream.exponential() for _ in range(trials)]})


@simulator("mortal of the tests", version="1")
def mortal(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The coin; its worker dies as long as there are deaths in the folder, one file each."""
    for death in sorted(Path(parameters["folder"]).iterdir()):
        try:
            death.unlink()
        except FileNotFoundError:  # another worker died of it
            continue
        os._exit(3)
    return coin(parameters, trials, state)


@simulator("doomed of the tests", version="1")
def doomed(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The worker always dies."""
    os._exit(3)


@simulator("sloppy of the tests", version="1")
def sloppy(parameters: Mapping[str, Any], trials: int, state: Words) -> Any:
    """What a simulator must not return."""
    return {"none": None, "few": Tally.of(1), "many": Tally.of(trials + 1)}[parameters["returns"]]


def coins(seed: int = 1, **parameters: Any) -> Task:
    """A task of the coin."""
    return task(COIN, {"p": P, **parameters}, seed=seed, trials=BATCH)
