r"""A better draft along a stated path: its KL, and the trace that it would have on the same texts (§7).

A draft may become better in many ways. Two paths lead from the draft q to the target p, both by a share s in [0, 1]:

- *mixed*: :math:`q_s = (1-s)\,q + s\,p`, a draft that is right about a share of the mass;
- *geometric*: :math:`q_s \propto q^{1-s} p^s`, the average of both models' logits.

Token and block verification read log p and log q of the text's token alone. On the mixed path these follow from the two
at s = 0 (exact). On the geometric path they need the normalisation, which is a Rényi divergence:
:math:`\log q_s = (1-s) \log q + s \log p + (1-s) D_s` and :math:`KL(p \| q_s) = (1-s)(KL(p \| q) - D_s(p \| q))`. A
trace has :math:`D_s` at :data:`~spectheory.trace.columns.RENYI_ORDERS`; between them :math:`D_s / s` is interpolated
(an estimate), with :math:`D_1 = KL`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from spectheory.errors import TraceError, argument
from spectheory.trace import Trace
from spectheory.trace.columns import RENYI_ORDERS
from spectheory.verification.by_start import along_calls, deepest

Floats = NDArray[np.float64]
Path = Literal["mixed", "geometric"]
PATHS: tuple[Path, ...] = ("mixed", "geometric")
GEOMETRIC_NEEDS = ("kl", "renyi")
"""Columns that the geometric path reads besides the log-probabilities."""
_TOLERANCE = 1e-12


def kl_along(trace: Trace, path: Path) -> Callable[[float], float]:
    """The mean KL(p || q_s) as a function of s, nats per token.

    On the mixed path it is the mean of log p - log q_s along the texts: an unbiased estimate where the target sampled
    them; of drafts by start over all starts and depths. On the geometric path each position has its own exact KL at the
    recorded orders.

    Raises a ``TraceError`` where a KL is infinite, where the texts are clearly none of the target's, and where columns
    are missing.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([(np.log([0.5, 0.5]), np.log([0.25, 0.5]))])
    >>> kl = kl_along(trace, "mixed")
    >>> [round(kl(s), 4) for s in (0.0, 0.5, 1.0)]
    [0.3466, 0.1438, 0.0]
    """
    if path == "geometric":
        return _geometric_kl(trace)
    gaps = _gaps(trace)
    ratio = np.exp(-gaps)
    mean = _finite(float(gaps.mean()))
    if mean <= 0:
        raise TraceError(
            f"the mean of log p - log q along the texts is {mean:.3g}",
            limit="it estimates a KL, which is > 0 unless the draft is perfect",
            remedy="measure texts that the target sampled, or more of them",
        )

    def at(s: float) -> float:
        with np.errstate(divide="ignore"):
            return float(-np.log((1 - s) * ratio + s).mean()) if s < 1 else 0.0

    return at


def share_for(kl: Callable[[float], float], reduction: float) -> float:
    """The share s of a path at which the mean KL is lower by the share `reduction` of what it is at s = 0.

    Examples
    --------
    >>> share_for(lambda s: 2.0 * (1 - s) ** 2, 0.75)
    0.5
    """
    if reduction >= 1:
        return 1.0
    wanted = (1 - reduction) * kl(0.0)
    return float(brentq(lambda s: kl(s) - wanted, 0.0, 1.0, xtol=_TOLERANCE))


def better_draft(trace: Trace, path: Path, s: float) -> Trace:
    """The trace that the draft at a share `s` of a path would have on the same texts, with what token and block
    verification read.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([(np.log([0.5, 0.5]), np.log([0.25, 0.5]))])
    >>> np.exp(better_draft(trace, "mixed", 0.2).columns["log_draft"]).round(3).tolist()
    [0.3, 0.5]
    """
    target = np.asarray(trace.columns["log_target"])
    columns = {name: trace.columns[name] for name in ("token", "log_target") if name in trace.columns}
    if path == "geometric":
        draft = np.asarray(trace.columns["log_draft"])
        moved = target if s >= 1 else (1 - s) * (draft + _renyi(trace, s)) + s * target
        columns["log_draft"] = np.minimum(moved, 0.0)
    else:
        columns["log_draft"] = _mixed(target, trace.columns["log_draft"], s)
        if (depth := deepest(trace.columns)) is not None:
            starts = along_calls(trace.columns, depth, lambda at: _mixed(at["log_target"], at["log_draft"], s), fill=0)
            columns["start_log_draft"] = np.where(_inside(trace, depth), starts, -np.inf)
    return Trace(columns, trace.texts, trace.provenance)


def _mixed(target: Floats, draft: Floats, s: float) -> Floats:
    """log((1-s) q + s p)."""
    with np.errstate(divide="ignore"):
        return np.minimum(np.logaddexp(np.log1p(-s) + draft, np.log(s) + target), 0.0)


def _gaps(trace: Trace) -> Floats:
    """The gaps log p - log q of the texts' tokens, of drafts by start at every start and depth inside the text."""
    depth = deepest(trace.columns) or 1
    gaps = along_calls(trace.columns, depth, lambda at: at["log_target"] - at["log_draft"], fill=0.0)
    return np.asarray(gaps[_inside(trace, depth)], dtype=np.float64)


def _inside(trace: Trace, depth: int) -> NDArray[np.bool_]:
    """Which drafts of calls from every position lie inside the text, ``[N, depth]``."""
    left = np.concatenate([np.arange(n, 0, -1) for n in trace.lengths])
    return left[:, None] > np.arange(depth)


def _geometric_kl(trace: Trace) -> Callable[[float], float]:
    if missing := [name for name in GEOMETRIC_NEEDS if name not in trace.columns]:
        raise TraceError(
            f"the trace has no {', '.join(missing)}",
            limit="the geometric path needs them at every position",
            remedy=f"measure the pair with {argument('better_drafts', '--better-drafts')}",
        )
    if deepest(trace.columns) is not None:
        raise TraceError(
            "the draft is a head, recorded by start",
            limit="the geometric path has columns by position alone",
            remedy="use the mixed path",
        )
    kl = np.asarray(trace.columns["kl"])
    _finite(float(kl.mean()))
    return lambda s: float((1 - s) * (kl - _renyi(trace, s)).mean()) if s < 1 else 0.0


def _renyi(trace: Trace, s: float) -> Floats:
    """D_s(p || q) at every position: D_s / s is interpolated in s between the recorded orders and 1."""
    orders = np.array([*RENYI_ORDERS, 1.0])
    i = int(np.clip(np.searchsorted(orders, s) - 1, 0, len(orders) - 2))
    weight = (s - orders[i]) / (orders[i + 1] - orders[i])
    known = np.column_stack([np.asarray(trace.columns["renyi"], np.float64), trace.columns["kl"]]) / orders
    return np.maximum(s * ((1 - weight) * known[:, i] + weight * known[:, i + 1]), 0.0)


def _finite(mean: float) -> float:
    if not np.isfinite(mean):
        raise TraceError(
            "the mean KL is infinite: the draft cannot draw tokens of the target",
            limit="a share of an infinite KL says nothing",
            remedy="measure at a temperature above 0, without top-k, top-p and min-p",
        )
    return mean
