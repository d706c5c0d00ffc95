"""How much the numbers of a run vary by chance alone: with other requests, and with the same ones served again."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from spectheory.checks import MOST_EXACT, instance, whole
from spectheory.distributions import Floats
from spectheory.errors import SettingError, TextError, argument
from spectheory.judging.comparison import CERTAIN
from spectheory.judging.counting import Counting
from spectheory.judging.runs import Run, Stated, counted_run, expected_run, keys, side_of
from spectheory.prediction.over_prompts import reach
from spectheory.trace import Trace
from spectheory.trace.calls import MOST_DRAFTS, CallLog
from spectheory.trace.counters import Counters

USUAL_REQUESTS = 20
"""Requests of a run, where neither they nor calls are given."""
USUAL_K = 5
"""Drafts per call of a trace, where none are asked for."""
Known = Literal["exact", "lower bound", "estimate", "unknown"]


@dataclass(frozen=True)
class Chance:
    """A number of a run, and the standard deviation that chance gives it.

    `others`: between runs of other requests of the same kind. `again`: between runs of the same requests; None if
    nothing says it.
    """

    what: str
    value: float
    others: float
    again: float | None


@dataclass(frozen=True)
class RunNoise:
    """Tokens per call, then the share of calls that accepted 1, 2, ..., k drafts, in runs of so many `requests`.

    - `requests`, `calls`: the size of a run; requests are None of counts that know of none.
    - `prompts`: prompts that the spread is known from; 0: calls are taken as independent, a lower bound of the noise.
    - `freedom`: degrees of freedom of the spread.
    - `again`: what the deviation of the same requests is. *Exact* at temperature 0, where a text is the same again (0
      unless drafts are drawn); an *estimate* from several texts of a prompt, at temperature 0 too if these differ; else
      of a trace a *lower bound*, the decoder's own draws on the same text.
    """

    name: str
    k: int
    rule: str | None
    requests: float | None
    calls: float
    prompts: int
    freedom: float
    again: Known
    rows: tuple[Chance, ...]

    @property
    def tokens(self) -> Chance:
        """Tokens per call."""
        return self.rows[0]

    def half(self, deviation: float, runs: int = 1) -> float:
        """Half the width of what 95 of 100 runs are within around the mean of all such requests, or differences of two
        runs around 0 (estimate, Student's t). `value` has the error of its own prompts besides.
        """
        return reach(self.freedom) * math.sqrt(runs) * deviation


def noise(
    evidence: Trace | CallLog | Counters | str | Path,
    *,
    requests: int | None = None,
    calls: int | None = None,
    k: int | None = None,
    rule: str = "token",
    name: str = "the run",
) -> RunNoise:
    r"""How much tokens per call and acceptance vary between runs of so many requests by chance alone (estimates).

    With tokens :math:`T_i` and calls :math:`C_i` of request i, and R their ratio of sums, R of N other requests has the
    variance of :math:`(T_i - R\,C_i) / \bar C` over N: that between requests, and of a trace also that of the decoder's
    draws given each text (§7, exact). Numbers of the same requests served again vary within prompts only, and not at
    all at temperature 0 or with fixed seeds: any difference is then none of chance. A speed-up at the same step times
    varies by the same share as tokens per call.

    Parameters
    ----------
    evidence
        A trace, a log of calls, or counters; or the path of one.
    requests
        Requests of a run; 20 if neither is given.
    calls
        Instead: calls of a run, or of the window between two lines of a log. Counters need them.
    k, rule
        Of a trace: drafts per call (5 if not given) and the rule. A log or counters say their own k.
    name
        What the run is called in messages.

    Raises
    ------
    SettingError
        An answer instead of counts, counters without `calls`, or `requests` and `calls`.

    Examples
    --------
    >>> alike, never = ([-1.0] * 40, [-1.0] * 40), ([-1.0] * 40, [-9.0] * 40)
    >>> answer = noise(Trace.from_log_probabilities([alike, never] * 10), requests=20, k=1)
    >>> round(answer.tokens.value, 2), round(answer.tokens.others, 2), answer.again
    (1.33, 0.1, 'lower bound')
    """
    instance("name", name, str, remedy="leave it out")
    if requests is not None and calls is not None:
        raise SettingError(
            f"{argument('requests')} and {argument('calls')} are both given",
            limit="either is the size of a run",
            remedy="leave one out",
        )
    size = USUAL_REQUESTS if requests is None else requests
    size = whole(argument("requests"), size, most=MOST_EXACT, remedy="20 is usual")
    if calls is not None:
        calls = whole(argument("calls"), calls, most=MOST_EXACT, remedy="give the calls of a window, such as 1000")
    side = side_of(evidence)
    if k is not None and not isinstance(side, Trace):
        raise SettingError(
            f"{argument('k')} is given with counts", limit="a log or counters say their own", remedy="leave it out"
        )
    if isinstance(side, Stated):
        raise SettingError(f"{name} is an answer", limit="the spread is over requests", remedy="give a trace or a log")
    if isinstance(side, Counters):
        return _of_totals(name, Run.of(name, side), calls)
    if isinstance(side, Trace):
        length = USUAL_K if k is None else whole(argument("k"), k, most=MOST_DRAFTS, remedy="give the drafts per call")
        names: list[Hashable] = [text.prompt or text.id for text in side.texts]
        counting = Counting(length, past_end=False)
        run = expected_run(name, side, rule, counting, whole=False, prompts=range(len(names)))
        temperature = side.sampling.temperature if side.sampling else None
    else:
        names = keys(side)
        each = tuple(replace(request, prompt=(), id=str(i)) for i, request in enumerate(side.requests))
        run = counted_run(name, replace(side, requests=each), whole=False)
        temperature = side.temperature
    if not run.calls > 0:
        raise TextError(f"{name} has no call", limit="shares are of calls", remedy="use longer texts, or serve some")
    return _of_requests(run, [str(key) for key in names], temperature, size, calls)


def _of_totals(name: str, run: Run, calls: int | None) -> RunNoise:
    """Of counts that know of no requests: independent calls."""
    if calls is None:
        raise SettingError(
            f"{name} has totals without requests",
            limit="the spread between requests is not in them",
            remedy=f"give {argument('calls')}, the calls of a window, or a log of each request",
        )
    deviations = np.sqrt(run.of_calls * run.calls / calls)
    rows = _rows(run, deviations, None)
    return RunNoise(name, run.k, None, None, float(calls), 0, math.inf, "unknown", rows)


def _of_requests(
    run: Run, prompts: list[str], temperature: float | None, requests: float, calls: int | None
) -> RunNoise:
    """Of requests one by one, some of which may be of the same prompt."""
    rows, mean_calls = len(run.counts), run.calls / len(run.counts)
    _, of_row, sizes = np.unique(prompts, return_inverse=True, return_counts=True)
    count, repeats = len(sizes), rows - len(sizes)
    if calls is not None:
        requests = calls / mean_calls
    sums = np.column_stack([run.counts.sum(axis=1), run.counts[:, 1:]])
    off = (sums - run.shares * run.counts[:, :1]) / mean_calls
    coins = np.broadcast_to(run.coins, off.shape[1:]) * rows  # of one request, given its text
    if count < 2:
        others = run.of_calls * run.calls / mean_calls
        freedom = math.inf
    else:
        others = (off**2).mean(axis=0) * count / (count - 1) + coins
        weights = np.bincount(of_row, run.counts[:, 0])
        freedom = max(float(weights.sum() ** 2 / (weights**2).sum()) - 1, 1.0)
    again: Floats | None = None
    known: Known = "unknown"
    least = CERTAIN**2 / mean_calls**2
    mean = np.stack([np.bincount(of_row, column) / sizes for column in off.T], axis=1)
    within = ((off - mean[of_row]) ** 2).sum(axis=0) / max(repeats, 1)
    if temperature == 0 and (within <= least).all():  # else the texts of a prompt differ, whatever the log says
        again, known = np.where(coins <= least, 0.0, coins), "exact"
    elif repeats:
        again, known = within + coins, "estimate"
    elif run.rule:
        again, known = coins, "lower bound"
    shown = _rows(run, np.sqrt(others / requests), None if again is None else np.sqrt(again / requests))
    size = requests, requests * mean_calls
    return RunNoise(run.name, run.k, run.rule or None, *size, count if count > 1 else 0, freedom, known, shown)


def _rows(run: Run, others: Floats, again: Floats | None) -> tuple[Chance, ...]:
    names: list[Any] = ["tokens per call", *(f"position {i}" for i in range(1, run.k + 1))]
    columns = (
        names,
        run.shares.tolist(),
        others.tolist(),
        again.tolist() if again is not None else [None] * len(names),
    )
    return tuple(Chance(*row) for row in zip(*columns, strict=True))
