r"""The error budget: which part of a call the miss of a predicted speed-up comes from.

With times in plain steps (forward passes of the target while it decodes plainly) and, per call, the tokens N, drafting
d, verifying v and what is neither o, measured and predicted speed-ups are

.. math:: S = \frac{N (1 + o_0)}{d + v + o}, \qquad \hat S = \frac{\hat N}{\hat d + \hat v},

:math:`o_0` the plain loop's own. So :math:`\log(S / \hat S) = \log(N / \hat N) + \log(1 + o_0) - \log(t / \hat t)`, and
a difference of logarithms is one of times: :math:`\log(t / \hat t) = (t - \hat t) / L`, L the logarithmic mean of t and
:math:`\hat t`, splits over the terms of :math:`t - \hat t` without a rest and in no order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PARTS = {
    "texts": "the texts are others than the trace's",
    "acceptance": "calls counted against those expected of these very texts",
    "cut": "calls as made against the shape's: fewer drafts where a text ends or a draft has no more, full acceptances",
    "drafting": "draft passes as timed against the table",
    "verifying": "verifying passes as timed against the table",
    "overhead": "a call outside the passes: drawing, verifying, cutting caches",
    "plain": "plain decoding outside its passes: the same for the denominator",
}
"""The parts of the budget and what each holds against what."""
_EQUAL = 1e-9
"""Numbers that are closer have their mean for a logarithmic mean, up to rounding."""


@dataclass(frozen=True)
class CallTime:
    """Time per call in plain steps, any shape.

    Attributes
    ----------
    drafting, verifying : array
        Forward passes of the draft, and of the target.
    overhead : array or float
        What is neither.
    """

    drafting: Floats
    verifying: Floats
    overhead: Floats | float = 0.0

    @property
    def total(self) -> Floats:
        """The whole call."""
        return self.drafting + self.verifying + self.overhead


@dataclass(frozen=True)
class TokensPerCall:
    """Tokens per call by what is known: the trace, the very texts, or the calls themselves."""

    trace: Floats
    texts: Floats
    counted: Floats


def predicted_speedup(tokens: TokensPerCall, predicted: CallTime) -> Floats:
    """What trace and latencies say beforehand (C2)."""
    return tokens.trace / predicted.total


def measured_speedup(tokens: TokensPerCall, measured: CallTime, plain_overhead: Floats) -> Floats:
    """Tokens per second over those of plain decoding."""
    return tokens.counted * (1 + plain_overhead) / measured.total


def budget(
    tokens: TokensPerCall, predicted: CallTime, made: CallTime, measured: CallTime, plain_overhead: Floats
) -> dict[str, Floats]:
    """log(measured / predicted speed-up) in parts, by the names of :data:`PARTS`; they add up to it (exact).

    Parameters
    ----------
    tokens : TokensPerCall
        Predicted, expected and counted.
    predicted, made, measured : CallTime
        Of the shape by the table; of the calls as they were made, by the table; as timed.
    plain_overhead : array
        Plain decoding outside its passes, in plain steps per token.

    Examples
    --------
    >>> one = np.ones(1)
    >>> tokens = TokensPerCall(2.0 * one, 2.2 * one, 2.1 * one)
    >>> table, timed = CallTime(0.5 * one, 1.1 * one), CallTime(0.6 * one, 1.0 * one, 0.2 * one)
    >>> parts = budget(tokens, table, table, timed, 0.1 * one)
    >>> miss = np.log(measured_speedup(tokens, timed, 0.1 * one) / predicted_speedup(tokens, table))
    >>> bool(np.isclose(sum(parts.values()), miss, rtol=1e-12))
    True
    """
    mean = logarithmic_mean(measured.total, predicted.total)
    return {
        "texts": np.log(tokens.texts / tokens.trace),
        "acceptance": np.log(tokens.counted / tokens.texts),
        "cut": -(made.total - predicted.total) / mean,
        "drafting": -(measured.drafting - made.drafting) / mean,
        "verifying": -(measured.verifying - made.verifying) / mean,
        "overhead": -measured.overhead / mean,
        "plain": np.log1p(plain_overhead),
    }


def logarithmic_mean(a: Floats, b: Floats) -> Floats:
    """(a - b) / log(a / b), the limit a where both are equal.

    Examples
    --------
    >>> logarithmic_mean(np.array([1.0, np.e]), np.array([1.0, 1.0])).round(6)
    array([1.      , 1.718282])
    """
    relative = a / b - 1
    near = np.abs(relative) < _EQUAL
    return np.where(near, (a + b) / 2, b * relative / np.log1p(np.where(near, 1.0, relative)))
