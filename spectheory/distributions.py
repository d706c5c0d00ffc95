"""Validation of pmfs, and how logits become pmfs.

Arrays are numpy or torch (array API standard), and results belong to the library of the inputs. Public functions of
other files validate here; inner functions trust their inputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from numpy.typing import NDArray

from spectheory.checks import MOST_EXACT, real, whole
from spectheory.errors import LogitsError, PmfError, ShapeError, SpectheoryError

__all__ = ["Sampling", "validate_pair", "validate_pmf"]

Floats = NDArray[np.float64]
Array = Any
"""A numpy or torch array; the array API has no common static type."""


def sum_tolerance(dtype: Any, xp: Any) -> float:
    """Largest deviation of a pmf's sum from one: the root of the precision, as rounding ten million tokens passes."""
    return math.sqrt(xp.finfo(dtype).eps)


def as_floats(values: Any, name: str = "the array", error: type[SpectheoryError] = PmfError) -> Array:
    """`values` as a floating array: numpy and torch arrays keep their library, everything else becomes float64.

    Refused are arrays some of whose entries are masked, stored by their places (sparse) or nowhere (meta).
    """
    what, remedy = "does not become an array", "pass an array of floats"
    if is_array_api_obj(values):
        if reason := _without_numbers(values):
            raise error(f"{name} {reason[0]}", limit="every entry must be a number", remedy=reason[1])
        xp = array_namespace(values)
        if xp.isdtype(values.dtype, "real floating"):
            return values if type(values) is not np.matrix else np.asarray(values)
        if xp.isdtype(values.dtype, ("bool", "integral")):
            return xp.astype(values, xp.float64)
    try:
        if isinstance(values, list | tuple) and any(issubclass(kind, _MASKED) for kind in {*map(type, values)}):
            what, remedy = "has masked rows or entries", "drop them, or fill them with .filled"
            raise TypeError
        array = np.asarray(values)
        if array.dtype.kind in "biuf" or (array.dtype.kind == "O" and all(map(_is_number, array.flat))):
            return array.astype(np.float64)
        what = f"holds {array.dtype}"
    except (TypeError, ValueError, OverflowError, RuntimeError, RecursionError):
        pass
    raise error(f"{name} {what}", limit="needs real numbers, rows of one length", remedy=remedy)


def as_numpy(values: Any, name: str = "the array", error: type[SpectheoryError] = PmfError) -> np.ndarray[Any, Any]:
    """`values` as a numpy array of float64, for what is computed in numpy alone."""
    floats = as_floats(values, name, error)
    if hasattr(floats, "detach"):  # a torch tensor: on any device, in any type, with or without a gradient
        floats = floats.detach().cpu().double()
    return np.asarray(floats, dtype=np.float64)


def as_integers(values: Any, name: str, error: type[SpectheoryError] = ShapeError) -> np.ndarray[Any, Any]:
    """`values` as a numpy array of int64: ids, places, numbers of tokens."""
    floats = as_numpy(values, name, error)
    if not ((floats == np.floor(floats)) & (np.abs(floats) <= MOST_EXACT)).all():
        raise error(
            f"{name} are not all integers", limit="needs whole numbers", remedy="pass ids and counts as integers"
        )
    return floats.astype(np.int64)


_MASKED = np.ma.MaskedArray


def _is_number(entry: Any) -> bool:
    """Whether an entry is a real number; text is not, though numpy would read it."""
    return isinstance(entry, Real | Decimal)


def _without_numbers(values: Any) -> tuple[str, str] | None:
    """Why an array has no number in some of its entries, and the remedy."""
    if isinstance(values, np.ndarray):
        masked = isinstance(values, _MASKED)
        return ("is a masked array", "drop the masked entries, or fill them with .filled") if masked else None
    if str(getattr(values, "layout", "")).startswith("torch.sparse"):
        return "is a sparse tensor", "convert it with .to_dense"
    return ("is a meta tensor", "load it to a device") if getattr(values, "is_meta", False) else None


def first_true(mask: Array, xp: Any) -> tuple[int, ...]:
    """Index of the first true entry."""
    flat = int(xp.argmax(xp.astype(xp.reshape(mask, (-1,)), xp.int32)))
    return tuple(int(i) for i in np.unravel_index(flat, tuple(mask.shape)))


def validate_pmf(values: Any, name: str = "pmf") -> Array:
    """Check that `values` ``[..., V]`` is a pmf over its last axis and return it as a floating array.

    Examples
    --------
    >>> validate_pmf([0.5, 0.5])
    array([0.5, 0.5])
    >>> validate_pmf([0.5, 0.6])
    Traceback (most recent call last):
    spectheory.errors.PmfError: pmf sums to 1.1: must sum to 1 within 1.5e-08; normalise it first
    """
    pmf = as_floats(values, name)
    xp = array_namespace(pmf)
    if pmf.ndim == 0 or pmf.shape[-1] == 0:
        raise PmfError(f"{name} has no entries", limit="needs V >= 1", remedy="pass an array [..., V]")
    if not bool(xp.all(pmf >= 0)):
        at = first_true(~(pmf >= 0), xp)
        raise PmfError(
            f"{name}[{', '.join(map(str, at))}] is {float(pmf[at]):g}",
            limit="probabilities are >= 0",
            remedy="pass probabilities, not logits",
        )
    total = xp.sum(pmf, axis=-1)
    tolerance = sum_tolerance(pmf.dtype, xp)
    off = xp.abs(total - 1)
    if not bool(xp.all(off <= tolerance)):
        worst = float(xp.reshape(total, (-1,))[int(xp.argmax(xp.reshape(off, (-1,))))])
        raise PmfError(
            f"{name} sums to {worst:.10g}", limit=f"must sum to 1 within {tolerance:.1e}", remedy="normalise it first"
        )
    return pmf


def pmf_rows(values: Any, name: str) -> tuple[Floats, list[str]]:
    """One pmf or a table of them, ``[n, V]`` in double precision, and what was done to them, one sentence each.

    Rows of single precision are scaled to sum to one.

    Examples
    --------
    >>> rows, notes = pmf_rows(np.array([0.5, 0.5], np.float32), "p")
    >>> rows, notes
    (array([[0.5, 0.5]]), ['p is in float32: rows were scaled to sum to one, by 0.0e+00 at most.'])
    """
    array, kind, tolerance = _real_rows(values, name)
    rows = np.atleast_2d(array)
    totals = rows.sum(axis=1)
    off = np.abs(totals - 1)
    if off.max() > tolerance:
        raise _off(totals, int(off.argmax()), name, f"must sum to 1 within {tolerance:.1e}")
    if kind == "float64":
        return rows, []
    note = f"{name} is in {kind}: rows were scaled to sum to one, by {off.max():.1e} at most."
    return rows / totals[:, None], [note]


def rank_law(values: Any, name: str) -> Floats:
    """P(R = 1), P(R = 2), ..., ``[A]``; the rest is P(R > A). A sum that rounding put above one is cut."""
    law, _, tolerance = _real_rows(values, name)
    if law.ndim != 1:
        raise PmfError(f"{name} holds {len(law)} rows", limit="one law of a rank", remedy="average them, or name one")
    total = float(law.sum())
    if total > 1 + tolerance:
        raise _off(np.array([total]), 0, name, "must sum to at most 1")
    if total == 0:
        raise PmfError(f"{name} is zero everywhere", limit="needs a positive entry", remedy="give P(R = 1), P(R = 2)")
    return law / max(total, 1.0)


def letters(law: Floats) -> int:
    """Size of the rank alphabet: a mass that is missing to one by more than rounding is one letter more."""
    return len(law) + int(1 - math.fsum(law) > len(law) * np.finfo(law.dtype).eps)


def _real_rows(values: Any, name: str) -> tuple[Floats, str, float]:
    """Numbers ``[V]`` or ``[n, V]``, finite and >= 0, in double precision; the type that they came in, and how far
    sums of that type may be off.
    """
    array = values if is_array_api_obj(values) else as_floats(values, name)
    numeric = not isinstance(array, np.ndarray) or array.dtype.kind in "fiu"
    if not numeric or array.ndim not in (1, 2) or 0 in array.shape:
        raise PmfError(
            f"{name} is an array {tuple(array.shape)} of {getattr(array.dtype, 'name', array.dtype)}",
            limit="needs real numbers [V] or [n, V]",
            remedy="store probabilities, a row per pmf",
        )
    floats = as_floats(array, name)
    pmfs = as_numpy(floats, name)
    rows = np.atleast_2d(pmfs)
    bad = ~((rows >= 0) & (rows < math.inf))
    if bad.any():
        row, entry = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        where = f"{name}[{row}, {entry}]" if len(rows) > 1 else f"{name}[{entry}]"
        raise PmfError(
            f"{where} is {rows[row, entry]:g}",
            limit="probabilities are finite and >= 0",
            remedy="pass probabilities, not logits",
        )
    return pmfs, str(floats.dtype).removeprefix("torch."), sum_tolerance(floats.dtype, array_namespace(floats))


def _off(totals: Floats, row: int, name: str, limit: str) -> PmfError:
    """The error of a row that does not sum to what it should."""
    where = f"{name} row {row}" if len(totals) > 1 else name
    excess = float(totals[row]) - 1
    side = "too much" if excess > 0 else "too little"
    return PmfError(
        f"{where} sums to {totals[row]:.10g}, {abs(excess):.3g} {side}", limit=limit, remedy="normalise it first"
    )


def validate_pair(target: Any, draft: Any) -> tuple[Array, Array, Any]:
    """Check target and draft pmfs over one vocabulary; return both and their array namespace."""
    target, draft = validate_pmf(target, "target"), validate_pmf(draft, "draft")
    xp = same_library(target, draft)
    if target.shape[-1] != draft.shape[-1]:
        raise ShapeError(
            f"target has {target.shape[-1]} tokens and draft {draft.shape[-1]}",
            limit="one vocabulary for both",
            remedy="cut both to the common ids and renormalise",
        )
    fit_together("target and draft", target, draft)
    return target, draft, xp


def same_library(target: Array, draft: Array) -> Any:
    """The array namespace of both, of numpy or of torch."""
    try:
        xp = array_namespace(target, draft)
    except TypeError as error:
        raise PmfError(
            f"target is {type(target).__module__} and draft {type(draft).__module__}",
            limit="both must be arrays of one library",
            remedy="convert one of them",
        ) from error
    return xp


def fit_together(names: str, *arrays: Array) -> None:
    """Check that arrays broadcast."""
    shapes = [tuple(each.shape) for each in arrays]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(
            f"{names} have shapes {', '.join(map(str, shapes))}, which do not broadcast",
            limit="leading dimensions must agree or be 1",
            remedy="add axes of length 1 where they differ",
        ) from error


def like(values: Array, other: Array, xp: Any) -> Array:
    """The numbers of `values` in the library, in the precision and on the device of `other`."""
    if not hasattr(values, "detach"):
        return xp.asarray(values, dtype=other.dtype, device=other.device)
    if hasattr(other, "detach"):
        return values.to(other)
    return xp.asarray(as_numpy(values), dtype=other.dtype)


def ratio(target: Array, draft: Array, xp: Any) -> Array:
    """Entrywise p/q with 0/0 = 0 and p/0 = inf."""
    safe = xp.where(draft > 0, draft, xp.ones_like(draft))
    infinite = xp.where(target > 0, xp.full_like(target, math.inf), xp.zeros_like(target))
    with np.errstate(over="ignore"):  # an overflowing ratio is infinite
        return xp.where(draft > 0, target / safe, infinite)


def widened(values: Array, xp: Any) -> Array:
    """The same numbers in double precision, for prefix sums and differences; unchanged on devices without it."""
    if values.dtype == xp.float64 or str(values.device).startswith("mps"):
        return values
    return xp.astype(values, xp.float64)


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn from logits: temperature, then top-k, then top-p, then min-p (the order of transformers).

    Each filter sees the renormalised pmf that the filters before it leave.

    - `temperature` divides the logits; 0 is greedy (the largest logit, lowest index first).
    - `top_k` keeps the k most probable tokens and all tokens tied with the k-th, by their logits before the
      temperature.
    - `top_p` keeps the smallest set of most probable tokens whose probability reaches `top_p`. Of tied tokens at the
      cut, those of lowest index stay (transformers may keep others, with the same probabilities).
    - `min_p` keeps the tokens of at least `min_p` times the largest probability.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(Sampling(top_k=2).log_pmf(np.log([0.5, 0.3, 0.2]))).round(3)
    array([0.625, 0.375, 0.   ])
    >>> np.exp(Sampling(top_k=2).log_pmf(np.log([0.5, 0.25, 0.25]))).round(3)
    array([0.5 , 0.25, 0.25])
    >>> np.exp(Sampling(min_p=0.5).log_pmf(np.log([0.5, 0.3, 0.2]))).round(3)
    array([0.625, 0.375, 0.   ])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        keep_all = "leave it out to keep all tokens"
        limit = "must be >= 0 and finite"
        real("temperature", self.temperature, lambda t: 0 <= t < math.inf, limit=limit, remedy="use 0 for greedy")
        if self.top_k is not None:
            object.__setattr__(self, "top_k", whole("top-k", self.top_k, remedy=keep_all))
        if self.top_p is not None:
            real("top-p", self.top_p, lambda p: 0 < p <= 1, limit="must be in (0, 1]", remedy=keep_all)
        if self.min_p is not None:
            real("min-p", self.min_p, lambda p: 0 <= p <= 1, limit="must be in [0, 1]", remedy=keep_all)

    @property
    def truncates(self) -> bool:
        """Whether tokens with a finite logit may be cut."""
        return self.temperature == 0 or self.top_k is not None or self.top_p not in (None, 1) or bool(self.min_p)

    def log_pmf(self, logits: Array) -> Array:
        """Log-probabilities ``[..., V]`` (nats, -inf where cut) of the token drawn from `logits` ``[..., V]``.

        Integers become float64. 16-bit logits are processed in float32, as in transformers, and rounded at the end. A
        row with a NaN, with +inf, or with only -inf is a :class:`~spectheory.errors.LogitsError`.
        """
        logits, xp = _as_logits(logits)
        if xp.finfo(logits.dtype).bits < 32:
            with np.errstate(over="ignore"):  # values too small for 16 bits become -inf
                return xp.astype(self.log_pmf(xp.astype(logits, xp.float32)), logits.dtype)
        best = xp.max(logits, axis=-1, keepdims=True)
        _check_rows(best, xp)
        if self.temperature == 0:
            first = xp.argmax(logits, axis=-1, keepdims=True)
            chosen = xp.arange(logits.shape[-1], device=logits.device) == first
            return xp.where(chosen, xp.zeros_like(logits), xp.full_like(logits, -math.inf))
        # An overflowing difference is -inf; the largest logit stays 0 at any temperature.
        with np.errstate(all="ignore"):
            scaled = xp.where(logits == best, xp.zeros_like(logits), (logits - best) / self.temperature)
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            # The k-th of the logits themselves, as different logits may become equal when scaled.
            last = xp.sort(logits, axis=-1, descending=True)[..., self.top_k - 1 : self.top_k]
            scaled = _keep(scaled, logits >= last, xp)
        if self.top_p is not None and self.top_p < 1:
            scaled = _keep(scaled, _nucleus(logits, scaled, self.top_p, xp), xp)
        if self.min_p:
            scaled = _keep(scaled, scaled >= math.log(self.min_p), xp)
        return _log_normalise(scaled, xp)


def _as_logits(logits: Any) -> tuple[Array, Any]:
    """Logits as a floating array, and their array namespace."""
    what = f"a {type(logits).__name__}"
    if is_array_api_obj(logits):
        xp = array_namespace(logits)
        if xp.isdtype(logits.dtype, ("integral", "real floating")) and logits.ndim and logits.shape[-1]:
            return as_floats(logits), xp
        what = f"{logits.dtype} of shape {tuple(logits.shape)}"
    raise ShapeError(
        f"the logits are {what}",
        limit="needs a numpy or torch array [..., V] of real numbers, V >= 1",
        remedy="convert lists with numpy.asarray",
    )


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
    """Subtract the log of the sum of exponentials; the largest input entry is 0."""
    return scaled - xp.log(xp.sum(xp.exp(scaled), axis=-1, keepdims=True))


def _keep(scaled: Array, kept: Array, xp: Any) -> Array:
    return xp.where(kept, scaled, xp.full_like(scaled, -math.inf))


def _nucleus(logits: Array, scaled: Array, top_p: float, xp: Any) -> Array:
    """Mask of the smallest set of most probable tokens that reaches `top_p`; ties go to the lowest index."""
    order = xp.argsort(-logits, axis=-1, stable=True)
    # Relative to the largest, so that tied tokens add up without rounding.
    weights = xp.exp(widened(xp.take_along_axis(scaled, order, axis=-1), xp))
    upto = xp.cumulative_sum(weights, axis=-1)
    place = xp.argsort(order, axis=-1)
    return xp.take_along_axis(upto - weights < top_p * upto[..., -1:], place, axis=-1) | (place == 0)
