r"""The error budget: which parts of a call cause the error of a predicted speed-up.

Times are in plain steps. With N tokens per call, drafting d, verifying v, all other time o per call, and p the time of
plain decoding outside its passes, measured and predicted speed-ups are

.. math:: S = \frac{N (1 + p)}{d + v + o}, \qquad \hat S = \frac{\hat N (1 + \hat p)}{\hat d + \hat v + \hat o},

so :math:`\log(S / \hat S)` is :math:`\log(N / \hat N)` plus :math:`\log(1 + p) - \log(1 + \hat p)` minus :math:`\log(t
/ \hat t)` for the time t of a call. That is :math:`(t - \hat t) / L` with the logarithmic mean L, and splits over the
terms of :math:`t - \hat t` without a remainder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EQUAL = 1e-9
"""For numbers closer than this, logarithmic and arithmetic mean agree up to rounding."""


@dataclass(frozen=True)
class CallTime:
    """Time per call in plain steps, any shape: passes of the draft, passes of the target, and everything else."""

    drafting: Floats
    verifying: Floats
    overhead: Floats | float = 0.0

    @property
    def total(self) -> Floats:
        """The whole call."""
        return self.drafting + self.verifying + self.overhead


@dataclass(frozen=True)
class TokensPerCall:
    """Tokens per call: predicted by the trace, expected of the decoded texts, and counted."""

    trace: Floats
    texts: Floats
    counted: Floats


@dataclass(frozen=True)
class Timing:
    """A call, and the time of plain decoding outside its passes per token, in plain steps."""

    call: CallTime
    plain_overhead: Floats | float = 0.0


def speedup(tokens: Floats, timing: Timing) -> Floats:
    """Tokens per second relative to plain decoding (C2)."""
    return tokens * (1 + timing.plain_overhead) / timing.call.total


@dataclass(frozen=True)
class Budget:
    """The parts of log(measured / predicted speed-up), which add up to it; ``PARTS`` says what each is."""

    texts: Floats
    acceptance: Floats
    cut: Floats
    drafting: Floats
    verifying: Floats
    overhead: Floats
    plain: Floats


def budget(tokens: TokensPerCall, predicted: Timing, made: CallTime, measured: Timing) -> Budget:
    """log(measured / predicted speed-up) in parts (exact).

    `predicted` is the whole shape by the table, `made` the passes of the calls as they were made by the table,
    `measured` as timed.

    Examples
    --------
    >>> one = np.ones(1)
    >>> tokens = TokensPerCall(2.0 * one, 2.2 * one, 2.1 * one)
    >>> table = Timing(CallTime(0.5 * one, 1.1 * one, 0.1), 0.05)
    >>> timed = Timing(CallTime(0.6 * one, 1.0 * one, 0.2 * one), 0.1)
    >>> parts = budget(tokens, table, table.call, timed)
    >>> miss = np.log(speedup(tokens.counted, timed) / speedup(tokens.trace, table))
    >>> bool(np.isclose(sum(vars(parts).values()), miss, rtol=1e-12))
    True
    """
    called, expected = measured.call, predicted.call
    mean = logarithmic_mean(called.total, expected.total)
    return Budget(
        texts=np.log(tokens.texts / tokens.trace),
        acceptance=np.log(tokens.counted / tokens.texts),
        cut=-(made.drafting + made.verifying - expected.drafting - expected.verifying) / mean,
        drafting=-(called.drafting - made.drafting) / mean,
        verifying=-(called.verifying - made.verifying) / mean,
        overhead=-(called.overhead - expected.overhead) / mean,
        plain=np.log1p(measured.plain_overhead) - np.log1p(predicted.plain_overhead) + 0 * mean,
    )


def logarithmic_mean(a: Floats, b: Floats) -> Floats:
    """(a - b) / log(a / b), and its limit a where both are equal.

    Examples
    --------
    >>> logarithmic_mean(np.array([1.0, np.e]), np.array([1.0, 1.0])).round(6)
    array([1.      , 1.718282])
    """
    relative = a / b - 1
    near = np.abs(relative) < _EQUAL
    return np.where(near, (a + b) / 2, b * relative / np.log1p(np.where(near, 1.0, relative)))
