"""Calls and drafted tokens of stopped chains (§11): the mean over all texts of a Markov target, each by the library."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts.quantities import Mean
from simulations.models.recipes import chains_of
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.drafting import read_stop
from spectheory.prediction.drafted_lengths import Drafted
from spectheory.prediction.stopped import drafted_along
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification

Floats = NDArray[np.float64]


@predicts("stopped")
def stopped(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Both means (exact): by the path theorem, and by likelihood ratios."""
    length, k = parameters["length"], parameters["k"]
    trace, shares = _texts(parameters)
    stop = read_stop(parameters["stop"]) if parameters["stop"] else None
    along = np.full(len(trace), k) if stop is None else drafted_along(trace.columns, stop, k).sum(axis=1)
    keeps = stop is None or stop.keeps
    found = Drafted(trace, TokenVerification(), k).lengths_of_calls(along, keeps=keeps)
    calls = Mean("calls", -(-length // (k + 1)), length + 1)
    yield Predicted("calls per text", "§11", calls, float(shares @ found.calls))
    drafted = float(shares @ found.going.sum(axis=1))
    yield Predicted("drafted tokens per text", "§11/drafted", Mean("drafted", 0, length * k), drafted)


def _texts(parameters: dict[str, Any]) -> tuple[Trace, Floats]:
    """All texts as a trace, and their probabilities."""
    target, draft, initial = chains_of(parameters)
    tokens, length = len(initial), parameters["length"]
    runs = np.array(list(product(range(tokens), repeat=length + 1)))  # the token before the text, then the text
    before, text = runs[:, :-1], runs[:, 1:]
    log_target = np.log(target[before, text])
    shares = initial[runs[:, 0]] * np.exp(log_target.sum(axis=1))
    pmfs = draft[before].reshape(-1, tokens)
    columns = {
        "log_target": log_target.ravel(),
        "log_draft": np.log(draft[before, text]).ravel(),
        "draft_top": pmfs.max(axis=1),
        "draft_entropy": -(pmfs * np.log(pmfs)).sum(axis=1),
    }
    return Trace(columns, tuple(TextInfo(str(number), length) for number in range(len(runs)))), shares
