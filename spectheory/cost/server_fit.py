"""The fit of a server's step times: which terms the runs determine, and with what error (C3)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from spectheory.cost.served import SAME, TERMS, ServedFit, StepTime, accepted_at, row_of
from spectheory.errors import SettingError

Floats = NDArray[np.float64]

_OF_CONTEXT = (2, 6)
_OF_CALLS = (3, 7, 8)
_PREFILL = (8, 7)
_MOST_ERROR = 0.25
"""Residuals above it leave speed-ups unknown by a factor of more than 1.5 either way."""


def fit_server(runs: Sequence[StepTime]) -> ServedFit:
    """Fit the time of a step by least squares of relative residuals, no coefficient below 0 (``scipy.optimize.nnls``).

    Terms of the context are fitted where it varies, and those of a call where k does. The runs must say more than
    there are terms: a ``SettingError`` names the runs that are missing.

    Examples
    --------
    >>> from spectheory.cost.served import StepTime
    >>> runs = [StepTime(b, 100, k, 0.01 + 0.001 * b + 0.002 * k) for b in (1, 4, 16) for k in (0, 1, 4)]
    >>> fit = fit_server(runs)
    >>> round(fit.coefficients[0], 6), round(fit.coefficients[4], 6), fit.error < 1e-9, fit.freedom
    (0.01, 0.002, True, 3)
    """
    _require(runs)
    design = np.array([row_of(run.batch, run.context, run.k, accepted_at(runs, run.k)) for run in runs])
    seconds = np.array([run.seconds for run in runs])
    used = _used(runs)
    relative = design[:, used] / seconds[:, None]
    for term in _PREFILL:
        if term in used and (len(runs) <= len(used) or _rank(relative) < len(used)):  # a law without it may be known
            used.remove(term)
            relative = design[:, used] / seconds[:, None]
    _require_determined(runs, relative, used)
    found = _solved(relative)
    free = found > 0
    freedom = len(runs) - len(used)
    error = math.sqrt(float(np.sum((relative @ found - 1) ** 2)) / freedom)
    if error > _MOST_ERROR:
        raise SettingError(
            f"the runs scatter by {error:.0%} about the fit",
            limit=f"at most {_MOST_ERROR:.0%}",
            remedy="time a quiet server, with longer outputs and more prompts",
        )
    scale = relative[:, free].max(axis=0)
    values, vectors = np.linalg.eigh(np.linalg.inv((relative[:, free] / scale).T @ (relative[:, free] / scale)))
    directions = np.zeros((len(values), len(TERMS)))
    directions[:, np.array(used)[free]] = (error * np.sqrt(np.maximum(values, 0.0)) * vectors / scale[:, None]).T
    coefficients = np.zeros(len(TERMS))
    coefficients[used] = found
    return ServedFit(
        tuple(runs),
        tuple(coefficients.tolist()),
        tuple(map(tuple, directions.tolist())),
        error,
        freedom,
        tuple(_left_out(relative, i) for i in range(len(runs))),
    )


def _rank(relative: Floats) -> int:
    return int(np.linalg.matrix_rank(relative / relative.max(axis=0)))


def _solved(relative: Floats) -> Floats:
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    return np.asarray(nnls(relative / scale, np.ones(len(relative)))[0] / scale)


def _left_out(relative: Floats, run: int) -> float:
    """The relative error at one run of the fit to all others."""
    others = np.delete(relative, run, axis=0)
    if np.linalg.matrix_rank(others / np.maximum(others.max(axis=0), np.finfo(float).tiny)) < relative.shape[1]:
        return math.nan
    return float(relative[run] @ _solved(others) - 1)


def _used(runs: Sequence[StepTime]) -> list[int]:
    """Terms that the runs vary."""
    contexts = [run.context for run in runs]
    varies = max(contexts) > (1 + SAME) * min(contexts)
    several = len({run.k for run in runs if run.k}) > 1
    told = any(run.accepted for run in runs)
    kept = [i for i in range(len(TERMS)) if (varies or i not in _OF_CONTEXT) and (several or i not in _OF_CALLS)]
    return [i for i in kept if told or i != _PREFILL[0]]


def _require(runs: Sequence[StepTime]) -> None:
    """Both kinds of runs, each at two batches."""
    for drafts, name in ((False, "without speculation"), (True, "with speculation")):
        batches = sorted({run.batch for run in runs if bool(run.k) is drafts})
        if len(batches) < 2:
            there = f"there are some at {batches[0]:g} alone" if batches else "there are none"
            raise SettingError(
                f"runs {name} are missing ({there})",
                limit="each kind is needed at two batches",
                remedy=f"run {name} at another concurrency" if batches else f"add runs {name}",
            )


def _require_determined(runs: Sequence[StepTime], relative: Floats, used: Sequence[int]) -> None:
    """More runs than terms, and terms that vary by themselves."""
    if len(runs) <= len(used):
        raise SettingError(
            f"{len(runs)} runs are given for {len(used)} terms",
            limit="errors are estimated from more runs than terms",
            remedy="add runs at other concurrencies",
        )
    if _rank(relative) < len(used):
        raise SettingError(
            "the runs do not determine the times of " + ", ".join(TERMS[i] for i in used),
            limit="batch, context and k must vary independently, with and without speculation",
            remedy="run every k at two concurrencies and two contexts",
        )
