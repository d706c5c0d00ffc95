"""Steps of a server that decodes many requests together (§15): a trial is a step in the long run.

Parameters are ``survival`` ``[N][K]``, P(a call accepts i drafts or more) by its start, ``drafts`` ``[N]`` that it
verifies, ``lengths`` of texts, which begin after their first token, ``batch`` requests, and ``seconds``
``[batch · K + 1]`` of a step by its drafts. Counted are ``drafts`` and ``tokens`` of a step; ``seconds`` and ``tokens``
are samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from simulations.counts import Mean, Tally
from simulations.draws import Words
from simulations.experiments.tasks import simulator
from simulations.kernels.serving import Texts, sampled_steps
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.deployment.batch_budget import call_laws, sum_law


@simulator("serving", version="1")
def serving(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A step of a server with so many requests, found in the long run (§15)."""
    texts, seconds = _texts(parameters), np.asarray(parameters["seconds"], np.float64)
    tokens, drafts = sampled_steps(texts, parameters["batch"], trials, state)
    return Tally.of(
        trials,
        counts={"drafts": np.bincount(drafts, minlength=len(seconds)), "tokens": np.bincount(tokens)},
        samples={"seconds": seconds[drafts], "tokens": tokens},
    )


@predicts("serving")
def serving_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The mean time and tokens of a step, by convolution."""
    batch, seconds = parameters["batch"], np.asarray(parameters["seconds"], np.float64)
    drafts, tokens = call_laws(*_texts(parameters))
    law = sum_law(drafts, batch)
    times = seconds[: len(law)]
    mean = float(law @ times)
    deviation = float(law @ (times - mean) ** 2)
    if times.min() < times.max():
        quantity = Mean("seconds", float(times.min()), float(times.max()))
        yield Predicted("seconds of a step", "§15/step", quantity, mean, variance=deviation)
    numbers = np.arange(len(tokens))
    each = float(tokens @ numbers)
    quantity = Mean("tokens", float(batch), float(batch * (len(tokens) - 1)))
    variance = batch * float(tokens @ (numbers - each) ** 2)
    yield Predicted("tokens of a step", "§15/step", quantity, batch * each, variance=variance)


def _texts(parameters: Mapping[str, Any]) -> Texts:
    drafts, lengths = (np.array(parameters[name], np.int64) for name in ("drafts", "lengths"))
    return Texts(np.array(parameters["survival"], np.float64), drafts, lengths)
