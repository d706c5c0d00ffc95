"""Sums over two rows of logits, by an exponential that vectorises (Cody and Waite)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, plus, scratch

LOWEST = -708.0
"""Smaller arguments give exactly 0: their exponentials are no normal floats."""

NEAR = 1 / 32
"""Largest |log p/q| with a KL term from its series; for larger ones cancellation costs less than 12 bits."""

APART = 16.0
"""Distance of the rows' largest logits from which these are subtracted before log p/q is computed."""

_LOG2_E = 1 / math.log(2)
_LOG2_HIGH = float.fromhex(
    "0x1.62e42fefa0000p-1"
)  # log 2 with its low bits cleared: its product with any exponent is exact
_LOG2_LOW = float.fromhex("0x1.cf79abc9e3b3ap-40")  # the rest of log 2
_TO_INTEGER = 1.5 * 2.0**52  # adding it rounds to an integer, which is then in the low bits
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (1 / math.factorial(n) for n in range(2, 14))


def sums_of_logits(
    target: NDArray[np.floating], draft: NDArray[np.floating], best_p: float, best_q: float
) -> tuple[float, ...]:
    """TV, KL, H(p), M2(p), cross entropy and S_HM of two rows ``[V]`` of logits with maxima `best_p`, `best_q`."""
    p, q = scratch("grown target", target.size), scratch("grown draft", target.size)
    sum_p, sum_q, first, second, cross = _weigh(target, draft, best_p, best_q, p, q)
    log_p, log_q = math.log(sum_p), math.log(sum_q)
    # Differences of logits are exact for nearly equal rows; for distant rows each row's maximum is subtracted first.
    off_p, off_q = (0.0, 0.0) if abs(best_p - best_q) < APART else (best_p, best_q)
    shift = (best_p - off_p) - (best_q - off_q) + (log_p - log_q)
    tv, kl, harmonic = _compare(target, draft, off_p, off_q, shift, 1 / sum_p, 1 / sum_q, p, q)
    mean = first / sum_p
    # The maxima are subtracted, so none of these sums cancels.
    return (
        tv / 2,
        kl,
        log_p - mean,
        second / sum_p - 2 * log_p * mean + log_p * log_p,
        log_q - cross / sum_p,
        2 * harmonic,
    )


def exponentials(values: Floats, out: Floats | None = None) -> Floats:
    """The kernels' exp of each value <= 0, written to `out` where it is given."""
    out = np.empty_like(values) if out is None else out
    _exponentials(values, out)
    return out


@compiled
def _exp(x: float) -> float:
    """exp(x) for x <= 0 within one unit in the last place, by x = n log 2 + r; 0 below LOWEST."""
    shifted = x * _LOG2_E + _TO_INTEGER
    n = shifted - _TO_INTEGER
    r = (x - n * _LOG2_HIGH) - n * _LOG2_LOW
    s = _E9 + r * (_E10 + r * (_E11 + r * (_E12 + r * _E13)))
    s = _E2 + r * (_E3 + r * (_E4 + r * (_E5 + r * (_E6 + r * (_E7 + r * (_E8 + r * s))))))
    bits = np.float64(1.0 + (r + r * r * s)).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64) if x >= LOWEST else 0.0


@compiled
def _exponentials(values: Floats, out: Floats) -> None:
    for i in range(values.size):
        out[i] = _exp(values[i])


@compiled
def _sum_of_exponentials(logits: NDArray[np.floating], best: float, warmth: float) -> float:
    """Sum of exp((x - best) / warmth) over logits x with maximum `best`."""
    total = 0.0
    for i in range(logits.size):
        total = plus(total, _exp((logits[i] - best) / warmth))
    return total


@compiled
def _weigh(
    target: NDArray[np.floating],
    draft: NDArray[np.floating],
    best_p: float,
    best_q: float,
    grown_p: Floats,
    grown_q: Floats,
) -> tuple[float, float, float, float, float]:
    """Write e^a and e^b, a and b the logits minus their maxima; return the sums of e^a, e^b, a e^a, a^2 e^a, b e^a."""
    sum_p = sum_q = first = second = cross = 0.0
    for i in range(target.size):
        a, b = target[i] - best_p, draft[i] - best_q
        p, q = _exp(a), _exp(b)
        a = a if p > 0.0 else 0.0
        b = b if p > 0.0 else 0.0
        grown_p[i], grown_q[i] = p, q
        sum_p, sum_q = plus(sum_p, p), plus(sum_q, q)
        first, second, cross = plus(first, p * a), plus(second, p * a * a), plus(cross, p * b)
    return sum_p, sum_q, first, second, cross


@compiled
def _compare(
    target: NDArray[np.floating],
    draft: NDArray[np.floating],
    off_p: float,
    off_q: float,
    shift: float,
    scale_p: float,
    scale_q: float,
    grown_p: Floats,
    grown_q: Floats,
) -> tuple[float, float, float]:
    """Sums of |p-q|, of p z - p + q with z = log p/q (never negative, KL in all) and of p q/(p+q)."""
    tv = kl = harmonic = 0.0
    for i in range(target.size):
        p, q = grown_p[i] * scale_p, grown_q[i] * scale_q
        apart = ((target[i] - off_p) - (draft[i] - off_q)) - shift
        z = apart if p > 0.0 else 0.0
        series = _E2 - z * (_E3 - z * (_E4 - z * (_E5 - z * (_E6 - z * (_E7 - z * (_E8 - z * _E9))))))
        term = p * (z * z * series) if (abs(z) < NEAR) & (p > 0.0) else p * z - p + q
        both = p + q if p + q > 0.0 else 1.0
        tv, kl, harmonic = plus(tv, abs(p - q)), plus(kl, term), plus(harmonic, p * q / both)
    return tv, kl, harmonic
