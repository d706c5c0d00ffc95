"""The door: what counts as a pmf, how logits become one, and the order of the ratios p/q.

Arrays are numpy or torch (array API standard); what comes in decides what goes out. Public functions elsewhere
validate here and then trust.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from spectheory.errors import LogitsError, PmfError, SettingError, ShapeError

Array = Any
"""A numpy or torch array; the array API has no common static type."""


def sum_tolerance(dtype: Any, xp: Any) -> float:
    """How far the entries of a pmf may sum from one: the square root of the precision.

    Rounding V entries and adding them moves the sum by at most V times the precision, so this admits every honest
    pmf of up to ten million tokens and still refuses unnormalised weights.
    """
    return math.sqrt(xp.finfo(dtype).eps)


def as_floats(values: Any) -> Array:
    """Return `values` as a floating array: torch and numpy arrays stay what they are, all else becomes float64."""
    if not is_array_api_obj(values):
        return np.asarray(values, dtype=np.float64)
    xp = array_namespace(values)
    return values if xp.isdtype(values.dtype, "real floating") else xp.astype(values, xp.float64)


def validate_pmf(values: Any, name: str = "pmf") -> Array:
    """Check that `values` is a pmf over its last axis and return it as a floating array.

    Parameters
    ----------
    values : array ``[..., V]``
        Probabilities; nothing is renormalised.
    name : str
        How to call it in the error.

    Raises
    ------
    PmfError
        If there is no entry, one is negative or NaN, or the sum is off by more than :func:`sum_tolerance`.

    Examples
    --------
    >>> validate_pmf([0.5, 0.5])
    array([0.5, 0.5])
    >>> validate_pmf([0.5, 0.6])
    Traceback (most recent call last):
    spectheory.errors.PmfError: pmf sums to 1.1: must sum to 1 within 1.5e-08; normalise it first
    """
    pmf = as_floats(values)
    xp = array_namespace(pmf)
    if pmf.ndim == 0 or pmf.shape[-1] == 0:
        raise PmfError(f"{name} has no entries", limit="needs V >= 1", remedy="pass an array [..., V]")
    if not bool(xp.all(pmf >= 0)):
        flat = xp.reshape(pmf, (-1,))
        at = int(xp.argmax(xp.astype(~(flat >= 0), xp.int32)))
        index = np.unravel_index(at, tuple(pmf.shape))
        entry = ", ".join(str(int(i)) for i in index)
        raise PmfError(
            f"{name}[{entry}] is {float(flat[at]):g}",
            limit="probabilities are >= 0",
            remedy="pass probabilities, not logits",
        )
    total = xp.sum(pmf, axis=-1)
    tolerance = sum_tolerance(pmf.dtype, xp)
    off = xp.abs(total - 1)
    if not bool(xp.all(off <= tolerance)):
        worst = float(xp.reshape(total, (-1,))[int(xp.argmax(xp.reshape(off, (-1,))))])
        raise PmfError(
            f"{name} sums to {worst:.10g}",
            limit=f"must sum to 1 within {tolerance:.1e}",
            remedy="normalise it first",
        )
    return pmf


def validate_pair(target: Any, draft: Any) -> tuple[Array, Array, Any]:
    """Check target and draft pmfs over one vocabulary; return both and their array namespace.

    Raises
    ------
    PmfError
        If either is not a pmf.
    ShapeError
        If the vocabularies differ or the leading dimensions do not broadcast.
    """
    target, draft = validate_pmf(target, "target"), validate_pmf(draft, "draft")
    try:
        xp = array_namespace(target, draft)
    except TypeError as error:
        raise PmfError(
            f"target is {type(target).__module__} and draft {type(draft).__module__}",
            limit="both must be arrays of one library",
            remedy="convert one of them",
        ) from error
    if target.shape[-1] != draft.shape[-1]:
        raise ShapeError(
            f"target has {target.shape[-1]} tokens and draft {draft.shape[-1]}",
            limit="one vocabulary for both",
            remedy="cut both to the common ids and renormalise",
        )
    try:
        np.broadcast_shapes(tuple(target.shape), tuple(draft.shape))
    except ValueError as error:
        raise ShapeError(
            f"target {tuple(target.shape)} and draft {tuple(draft.shape)} do not broadcast",
            limit="leading dimensions must agree or be 1",
            remedy="add axes of length 1 where they differ",
        ) from error
    return target, draft, xp


def ratio(target: Array, draft: Array, xp: Any) -> Array:
    """Entrywise p/q with 0/0 = 0 and p/0 = inf."""
    safe = xp.where(draft > 0, draft, xp.ones_like(draft))
    infinite = xp.where(target > 0, xp.full_like(target, math.inf), xp.zeros_like(target))
    with np.errstate(over="ignore"):  # a ratio beyond the floats is infinite
        return xp.where(draft > 0, target / safe, infinite)


def widened(values: Array, xp: Any) -> Array:
    """The same numbers in double precision, for prefix sums and differences; as they are where a device has none."""
    if values.dtype == xp.float64 or str(values.device).startswith("mps"):
        return values
    return xp.astype(values, xp.float64)


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn from logits, in the order engines apply it: temperature, then top-k, then top-p.

    Parameters
    ----------
    temperature : float
        Divides the logits; 0 is greedy (the largest logit, lowest index first).
    top_k : int, optional
        Keep the `top_k` most probable tokens.
    top_p : float, optional
        Keep the smallest set of most probable tokens whose probability reaches `top_p`.

    Raises
    ------
    SettingError
        If a setting is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(Sampling(top_k=2).log_pmf(np.log([0.5, 0.3, 0.2]))).round(3)
    array([0.625, 0.375, 0.   ])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise SettingError(
                f"temperature is {self.temperature:g}", limit="must be >= 0 and finite", remedy="use 0 for greedy"
            )
        if self.top_k is not None and self.top_k < 1:
            raise SettingError(f"top-k is {self.top_k}", limit="must be >= 1", remedy="leave it out to keep all tokens")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SettingError(
                f"top-p is {self.top_p:g}", limit="must be in (0, 1]", remedy="leave it out to keep all tokens"
            )

    def log_pmf(self, logits: Array) -> Array:
        """Log-probabilities ``[..., V]`` (nats, -inf where cut) of the token drawn from `logits` ``[..., V]``.

        Raises
        ------
        LogitsError
            If a row has a NaN or +inf, or nothing but -inf.
        """
        xp = array_namespace(logits)
        best = xp.max(logits, axis=-1, keepdims=True)
        _check_rows(best, xp)
        if self.temperature == 0:
            first = xp.argmax(logits, axis=-1, keepdims=True)
            chosen = xp.arange(logits.shape[-1], device=logits.device) == first
            return xp.where(chosen, xp.zeros_like(logits), xp.full_like(logits, -math.inf))
        # A gap beyond the arrays' precision is -inf; the best stays 0 at any temperature.
        with np.errstate(all="ignore"):
            scaled = xp.where(logits == best, xp.zeros_like(logits), (logits - best) / self.temperature)
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            scaled = _keep(scaled, _descending_rank(scaled, xp) < self.top_k, xp)
        if self.top_p is not None and self.top_p < 1:
            scaled = _keep(scaled, _nucleus(scaled, self.top_p, xp), xp)
        return _log_normalise(scaled, xp)


def _check_rows(best: Array, xp: Any) -> None:
    bad = xp.reshape(~xp.isfinite(best), (-1,))
    if bool(xp.any(bad)):
        row = int(xp.argmax(xp.astype(bad, xp.int32)))
        value = float(xp.reshape(best, (-1,))[row])
        what = "are all -inf" if value == -math.inf else f"contain {value}"
        raise LogitsError(
            f"logits of row {row} {what}",
            limit="needs finite logits",
            remedy="check the weights and the dtype (float16 overflows; try float32)",
            row=row,
        )


def _log_normalise(scaled: Array, xp: Any) -> Array:
    """Subtract the log of the sum of exponentials; the largest entry is 0 on the way in."""
    return scaled - xp.log(xp.sum(xp.exp(scaled), axis=-1, keepdims=True))


def _keep(scaled: Array, kept: Array, xp: Any) -> Array:
    return xp.where(kept, scaled, xp.full_like(scaled, -math.inf))


def _descending_rank(values: Array, xp: Any) -> Array:
    """Rank of each entry, 0 the largest; ties go to the lowest index (a stable sort)."""
    return xp.argsort(xp.argsort(-values, axis=-1, stable=True), axis=-1)


def _nucleus(scaled: Array, top_p: float, xp: Any) -> Array:
    """Which tokens belong to the smallest set of most probable ones that reaches `top_p`."""
    order = xp.argsort(-scaled, axis=-1, stable=True)
    pmf = xp.exp(_log_normalise(xp.take_along_axis(scaled, order, axis=-1), xp))
    before = xp.cumulative_sum(pmf, axis=-1) - pmf
    place = xp.argsort(order, axis=-1)
    return xp.take_along_axis(before < top_p, place, axis=-1) | (place == 0)
