"""The search for a counterexample: Hypothesis draws cases, an optimiser walks to the tightest one.

Floats only steer. Every case that is reported, a violation or the tightest gap, is judged by
:mod:`proofs_check.evidence.judge` in fractions or certified intervals, so no tolerance is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proofs_check.evidence.judge import judge
from proofs_check.statement.arithmetic import evaluated_in
from proofs_check.statement.claims import (
    PAIR,
    TWO_POSITIONS,
    AssumptionError,
    Case,
    Claim,
    ClaimError,
    further,
    laid_out,
    pmfs_of,
    shown,
    with_pmfs,
)
from proofs_check.statement.findings import Effort, Finding, together
from proofs_check.statement.fractions import Fraction

DRAWS = (200, 3000)
"""Hypothesis examples of a default and a deep search."""

STARTS = (16, 200)
"""Starts of the optimiser of a default and a deep search."""

STEPS = 60
"""Evaluations of the optimiser per start and dimension."""

WALL = 1e30
"""What the optimiser sees where an assumption is not met or a claim has no value: finite, as it takes differences."""

FLOOR = 1e-9
"""What stands for a zero where the optimiser walks next to a face of the simplex."""


@dataclass(frozen=True)
class Space:
    """Where the optimiser walks: a vector to a case of floats, and the same vector to the exact case that is judged.

    The latter has the floats' own values; entries that `pmfs` names, between blanks, are normalised anew. `exactly`
    makes it in another way.
    """

    dimension: int
    weights: Callable[[NDArray[np.float64]], Case]
    pmfs: str = "p q"
    exactly: Callable[[NDArray[np.float64]], Case] | None = None

    def case(self, x: NDArray[np.float64]) -> Case:
        """The exact case."""
        if self.exactly:
            return self.exactly(x)
        return {name: _exact(value, name in self.pmfs.split()) for name, value in self.weights(x).items()}


def _exact(value: Any, pmf: bool) -> Any:
    """A value with every float as a fraction, rows of pmfs normalised."""
    if isinstance(value, float):
        return Fraction(value)
    if isinstance(value, dict):
        return {key: _exact(item, pmf) for key, item in value.items()}
    if not isinstance(value, tuple):
        return value
    row = pmf and value and isinstance(value[0], float)
    return rational(value) if row else tuple(_exact(item, pmf) for item in value)


def pair_space(tokens: int, *, faces: bool = False) -> Space:
    """Pairs of pmfs on `tokens` tokens, as the softmax of a vector; of fractions as the floats' own exact values.

    faces: next to the faces of the simplex, where the vector's negative entries are :data:`FLOOR`.
    """
    return _space(PAIR, tokens, 2, faces)


def two_positions_space(tokens: int, *, faces: bool = False) -> Space:
    """Target and draft at two positions, as :func:`pair_space` has one."""
    return _space(TWO_POSITIONS, tokens, 2 + 2 * tokens, faces)


def _space(names: tuple[str, ...], tokens: int, pmfs: int, faces: bool) -> Space:
    pmf = _clipped if faces else softmax

    def weights(x: NDArray[np.float64]) -> Case:
        rows = iter(x.reshape(pmfs, tokens))
        return laid_out(names, tokens, lambda _: pmf(next(rows)))

    return Space(pmfs * tokens, weights, " ".join(names))


def rational(pmf: Sequence[float], denominator: int | None = None) -> tuple[Fraction, ...]:
    """The pmf of the floats' exact values, normalised; with a denominator, rounded to multiples of one part in it."""
    weights = [Fraction(float(w)) if denominator is None else Fraction(round(w * denominator)) for w in pmf]
    whole = sum(weights)
    return tuple(weight / whole for weight in weights) if whole else tuple(weights)


def search_claim(
    claim: Claim, strategy: Any, effort: Effort, spaces: Sequence[Space] = (), *, shrink: bool = True
) -> Finding:
    """Look for a counterexample and the tightest case: draws of the strategy, then the optimiser in each space.

    A counterexample that is drawn is shrunk to a simple one, or shown as drawn: the verdict is the same.
    """
    best = _drawn(claim, strategy, effort, shrink)
    if best.status != "held":
        return best
    for number, space in enumerate(spaces):
        best = together(best, _walked(claim, space, effort, number))
        if best.status == "refuted":
            break
    return best


class _Violated(Exception):
    """Raised inside Hypothesis so that it shrinks the case."""


def _drawn(claim: Claim, strategy: Any, effort: Effort, shrink: bool) -> Finding:
    from hypothesis import HealthCheck, Phase, assume, given, seed, settings

    state: dict[str, Any] = {"cases": 0, "gap": None, "at": "", "undecided": "", "stopped": None, "last": None}

    def look(case: Case) -> None:
        unmet = claim.unmet(case)
        if unmet is not None:
            state["stopped"] = further(claim, state["stopped"], unmet)
        assume(unmet is None)
        state["cases"] += 1
        judged = judge(claim, case)
        if judged.status == "refuted":
            state["last"] = (judged.gap, shown(case))
            raise _Violated
        if judged.status == "undecided":
            state["undecided"] = shown(case)
        elif judged.gap is not None and (state["gap"] is None or judged.gap < state["gap"]):
            state["gap"], state["at"] = judged.gap, shown(case, brief=True)

    profile = settings(
        max_examples=effort.pick(*DRAWS),
        derandomize=False,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        report_multiple_bugs=False,
    )
    try:
        seed(effort.seed)(profile(given(strategy)(look)))()
    except _Violated:
        gap, at = state["last"]
        return Finding("refuted", state["cases"], gap, at, "shrunk by Hypothesis" if shrink else "as drawn")
    except Exception as error:
        if type(error).__name__ != "Unsatisfiable":
            raise
    if not state["cases"]:
        stopped = state["stopped"].says if state["stopped"] else "of the strategy"
        raise AssumptionError(
            f"no case drawn for {claim.says!r} meets the assumption {stopped!r}",
            limit="needs at least one",
            remedy="draw from a strategy that meets it",
        )
    if state["undecided"]:
        return Finding("undecided", state["cases"], state["gap"], state["undecided"])
    return Finding("held", state["cases"], state["gap"], state["at"])


def _walked(claim: Claim, space: Space, effort: Effort, number: int) -> Finding:
    """Minimise right - left from many starts; the least of every start is judged exactly."""
    from scipy.optimize import minimize

    rng = np.random.default_rng([effort.seed, number])
    tight: tuple[float, str] | None = None
    starts = effort.pick(*STARTS)
    undecided = ""
    judged_cases = 0
    for start in _starts(rng, space.dimension, starts):
        minimum = minimize(
            lambda x: _float_gap(claim, space, x),
            start,
            method="Nelder-Mead",
            options={"maxfev": STEPS * space.dimension, "xatol": 1e-9, "fatol": 1e-15},
        )
        case = space.case(minimum.x)
        if claim.unmet(case) is not None:
            continue
        judged = judge(claim, case)
        judged_cases += 1
        if judged.status == "refuted":
            gap, at = _simplest(claim, space, minimum.x) or (judged.gap, shown(case))
            return Finding("refuted", judged_cases, gap, at, "found by the optimiser")
        undecided = undecided or (shown(case) if judged.status == "undecided" else "")
        if judged.gap is not None and (tight is None or judged.gap < tight[0]):
            tight = (judged.gap, shown(space.weights(minimum.x)))
    gap, at = tight if tight else (None, "")
    return Finding("undecided" if undecided else "held", judged_cases, gap, undecided or at)


def _simplest(claim: Claim, space: Space, x: NDArray[np.float64]) -> tuple[float | None, str] | None:
    """The counterexample of smallest common denominator next to the one found, if there is a small one."""
    near = space.weights(x)
    if tuple(near) not in (PAIR, TWO_POSITIONS):
        return None
    for denominator in range(2, 201):
        case = with_pmfs(near, partial(rational, denominator=denominator))
        if all(sum(pmf) == 1 for pmf in pmfs_of(case)) and claim.unmet(case) is None:
            try:
                judged = judge(claim, case)
            except ClaimError:
                continue
            if judged.status == "refuted":
                return judged.gap, shown(case)
    return None


def _float_gap(claim: Claim, space: Space, x: NDArray[np.float64]) -> float:
    """The least right minus left, at floats; WALL where there is no value."""
    case = space.weights(x)
    try:
        if claim.unmet(case) is not None:
            return WALL
        with evaluated_in("float"):
            compared = claim.compare(case)
        gaps = [
            float(each.right - each.left) if each.relation == "<=" else -abs(float(each.right - each.left))
            for each in compared
            if each.relation != "~"
        ]
    except (ClaimError, OverflowError, TypeError):
        return WALL
    return min((gap if math.isfinite(gap) else WALL for gap in gaps), default=WALL)


def _starts(rng: np.random.Generator, dimension: int, count: int) -> Iterator[NDArray[np.float64]]:
    """Gaussian starts of several widths: flat, language-like and peaked pmfs."""
    for number in range(count):
        yield rng.standard_normal(dimension) * (0.3, 1.0, 3.0, 8.0)[number % 4]


def softmax(x: NDArray[np.float64]) -> tuple[float, ...]:
    """The pmf of logits."""
    grown = np.exp(x - x.max())
    return tuple(float(value) for value in grown / grown.sum())


def _clipped(x: NDArray[np.float64]) -> tuple[float, ...]:
    weights = np.maximum(x, 0.0)
    near = weights / (weights.sum() or 1.0) + FLOOR
    return tuple(float(value) for value in near / near.sum())
