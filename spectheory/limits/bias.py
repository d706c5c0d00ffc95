"""Y5, Y6: what fewer rejections cost in bias, at one position (yin2024, with P the target and Q the draft).

The drafted token x is accepted with probability b_x (`accept`), between the unbiased min(1, p_x/q_x) and 1; any value
>= 0 is allowed where q = 0. After a rejection the output is drawn from a recovery law. The *loss* is TV(output law, p).
OPT recovers from a best law, UNO from p itself.

In a sequence the prefixes follow the *biased* output law, for :func:`bias_frontier` the chain of
:func:`mixture_target`: its rejections are ``expected_rejections(mixture_target(P, Q, theta), Q, initial)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from spectheory.checks import whole
from spectheory.distributions import Array, as_floats, first_true, fit_together, like, ratio, validate_pair
from spectheory.errors import SettingError, ShapeError
from spectheory.limits.rejections import _validate_distances

_ROUNDING = 8
"""Rounding allowed in an acceptance, in units of the precision; it results from a few operations."""


def biased_loss(target: Any, draft: Any, accept: Any) -> Array:
    r"""Least loss of an over-accepting rule over all recovery laws, in [0, TV(p, q)] (Y5, OPT; exact; ``yin2024``).

    .. math:: Loss^*(b) = \tfrac12\sum_x |p_x - b_x q_x| - \tfrac12\sum_x (1-b_x) q_x = \sum_x (b_x q_x - p_x)_+

    `accept` is b ``[..., V]``. The second form is also defined where nothing is rejected: for b = 1 it is TV(p, q).
    With :func:`rejection_probability` it adds up to TV(p, q) for **every** such b (Y6).

    Examples
    --------
    >>> float(biased_loss([0.5, 0.5], [0.75, 0.25], [1.0, 1.0]))
    0.25
    """
    p, q, b, xp = _validate(target, draft, accept)
    return xp.sum(_positive(b * q - p, xp), axis=-1)


def rejection_probability(target: Any, draft: Any, accept: Any) -> Array:
    r"""Probability that an over-accepting rule rejects, :math:`c = \sum_x (1-b_x) q_x` (Y5, exact; ``yin2024``).

    At most TV(p, q). `accept` is b, as in :func:`biased_loss`.

    Examples
    --------
    >>> float(rejection_probability([0.5, 0.5], [0.75, 0.25], [0.75, 1.0]))
    0.1875
    """
    _, q, b, xp = _validate(target, draft, accept)
    return _rejected(q, b, xp)


def optimal_recovery(target: Any, draft: Any, accept: Any) -> Array:
    r"""Recovery law ``[..., V]`` that reaches the least loss; p where p = q (Y5, exact; ``yin2024``).

    With :math:`A = (p - bq)/\sum(1-b)q` a recovery law is optimal if and only if it is 0 on {A < 0} and between 0 and A
    elsewhere. This is the one proportional to :math:`A_+`, so to :math:`(p-q)_+` for every b: the standard recovery law
    of token verification, and `accept` is only checked. It is the only optimal one if b = min(1, p/q).

    Examples
    --------
    >>> optimal_recovery([0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [1, 1, 0.5]).round(6)
    array([0.75, 0.25, 0.  ])
    """
    p, q, b, xp = _validate(target, draft, accept)
    excess = _positive(p - q, xp) + 0 * b  # in the shape of all three
    total = xp.sum(excess, axis=-1, keepdims=True)
    return xp.where(total > 0, excess / xp.where(total > 0, total, xp.ones_like(total)), p)


def uno_loss(target: Any, draft: Any, accept: Any) -> Array:
    r"""Loss of an over-accepting rule that recovers from the target itself, ``[...]`` (Y5, UNO; exact; ``yin2024``).

    .. math:: Loss_{UNO}(b) = \tfrac12\sum_x |(1-c)\,p_x - b_x q_x|, \qquad c = \sum_x (1-b_x) q_x

    In [0, TV(p, q)], at least :func:`biased_loss`, and not 0 at b = min(1, p/q). `accept` is b, as in
    :func:`biased_loss`.

    Examples
    --------
    >>> float(uno_loss([0.5, 0.5], [0.75, 0.25], [0.75, 1.0]))
    0.15625
    """
    p, q, b, xp = _validate(target, draft, accept)
    return _uno(p, b * q, _rejected(q, b, xp), xp)


def mixture_target(target: Any, draft: Any, theta: Any) -> Array:
    r"""Output law of over-acceptance theta, :math:`(1-\theta)p + \theta q`, ``[..., V]`` (Y6, exact).

    `theta` is a number or an array ``[...]``, from 0 (unbiased) to 1 (accept everything). With :math:`b =
    (1-\theta)\min(1, p/q) + \theta = \min(1, p^\theta/q)` and the standard recovery law :math:`\mathrm{norm}(p-q)_+ =
    \mathrm{norm}(p^\theta-q)_+`, over-acceptance **is** lossless token verification for the target :math:`p^\theta`: it
    rejects with probability (1-theta) TV and loses theta TV. So results on token verification hold for sequences with
    this target (Y1; the path theorem, on texts sampled from the mixture).

    Examples
    --------
    >>> mixture_target([0.5, 0.5], [1.0, 0.0], 0.5)
    array([0.75, 0.25])
    """
    p, q, xp = validate_pair(target, draft)
    share = like(as_floats(theta, "theta", SettingError), p, xp)
    if not bool(xp.all((share >= 0) & (share <= 1))):
        remedy = "0 is unbiased, 1 the draft itself"
        raise SettingError(f"theta is {theta}", limit="must be in [0, 1]", remedy=remedy)
    fit_together("theta and the pmfs", share, p[..., 0], q[..., 0])
    return (1 - share[..., None]) * p + share[..., None] * q


@dataclass(frozen=True)
class BiasFrontier:
    """Rejection against loss on the Pareto front of one position, or of the mean over positions (Y6).

    `theta` ``[points]`` runs from 0 to 1. The others are ``[..., points]``: `reject`, the probability of a rejection,
    falls from TV to 0; `loss` (OPT) rises from 0 to TV; `uno` is UNO's loss for the same acceptances, None where only
    the TV is known.

    Examples
    --------
    >>> front = bias_frontier([0.5, 0.5], [0.75, 0.25], points=2)
    >>> front.theta, front.uno
    (array([0., 1.]), array([0.125, 0.25 ]))
    """

    theta: Array
    reject: Array
    loss: Array
    uno: Array | None = None


def bias_frontier(target: Any, draft: Any, *, points: int = 11) -> BiasFrontier:
    r"""The Pareto front of rejection and loss: the straight line from (TV, 0) to (0, TV) (Y6; exact; ``yin2024``).

    .. math:: P(\text{reject}) + Loss \ge TV(p, q)

    for every acceptance b in [0, 1] and every recovery law, as the output differs from the draft with probability at
    most P(reject). Equality holds along :math:`b = (1-\theta)\min(1, p/q) + \theta` with the standard recovery law,
    whose output law is :func:`mixture_target`; theta takes `points` >= 2 evenly spaced values.

    Examples
    --------
    >>> front = bias_frontier([0.5, 0.5], [0.75, 0.25], points=3)
    >>> front.reject, front.loss
    (array([0.25 , 0.125, 0.   ]), array([0.   , 0.125, 0.25 ]))
    """
    p, q, xp = validate_pair(target, draft)
    common = xp.minimum(p, q)
    distance = xp.sum(_positive(p - q, xp), axis=-1)
    theta = _thetas(points, common, xp)
    steps = [theta[i] for i in range(theta.shape[0])]
    uno = [_uno(p, (1 - step) * common + step * q, (1 - step) * distance, xp) for step in steps]
    return BiasFrontier(theta, (1 - theta) * distance[..., None], theta * distance[..., None], xp.stack(uno, axis=-1))


def mean_bias_frontier(total_variation: Any, *, points: int = 11) -> BiasFrontier:
    """The front of the mean rejection and the mean loss over positions: a straight line in the mean TV (Y6, exact).

    `total_variation` ``[...]`` is TV(p, q) at each position; the arrays of the result are ``[points]``, and UNO, which
    needs the pmfs, is None. The sum of rejection and loss is TV at each position, so one theta for all positions is
    optimal. On a trace this is the front at the prefixes of its text; prefixes that follow the biased law have other
    TVs.

    Examples
    --------
    >>> mean_bias_frontier([0.5, 0.25, 0.0], points=3).loss
    array([0.   , 0.125, 0.25 ])
    """
    values = _validate_distances(total_variation)
    xp = array_namespace(values)
    if 0 in values.shape:
        raise SettingError("there is no position", limit="needs at least one TV", remedy="pass an array of TVs")
    mean = xp.mean(values)
    theta = _thetas(points, values, xp)
    return BiasFrontier(theta, (1 - theta) * mean, theta * mean)


def _thetas(points: int, like: Array, xp: Any) -> Array:
    """Evenly spaced over-acceptances from 0 to 1, in the dtype and on the device of `like`."""
    points = whole("points", points, least=2, most=2**24, remedy="the front needs both ends")
    return xp.linspace(0, 1, points, dtype=like.dtype, device=like.device)


def _positive(values: Array, xp: Any) -> Array:
    return xp.where(values > 0, values, xp.zeros_like(values))


def _rejected(draft: Array, accept: Array, xp: Any) -> Array:
    return xp.sum(_positive(1 - accept, xp) * draft, axis=-1)


def _uno(target: Array, kept: Array, rejected: Array, xp: Any) -> Array:
    """UNO's loss from b q; b q and (1-c) p have equal sums, so the positive part of their difference is enough."""
    return xp.sum(_positive(kept - (1 - rejected[..., None]) * target, xp), axis=-1)


def _validate(target: Any, draft: Any, accept: Any) -> tuple[Array, Array, Array, Any]:
    """Target, draft, the acceptance in the shape of all three, checked, and their namespace."""
    p, q, xp = validate_pair(target, draft)
    b = like(as_floats(accept, "accept", SettingError), q, xp)
    try:
        shape = np.broadcast_shapes(tuple(p.shape), tuple(q.shape), tuple(b.shape))
    except ValueError:
        shape = ()
    if b.ndim == 0 or shape[-1:] != (p.shape[-1],) or b.shape[-1] != p.shape[-1]:
        raise ShapeError(
            f"accept has shape {tuple(b.shape)} and the pmfs {tuple(p.shape)}, {tuple(q.shape)}",
            limit="must be [..., V], leading dimensions that broadcast",
            remedy="give one probability per token",
        )
    least = xp.broadcast_to(xp.minimum(ratio(p, q, xp), xp.ones_like(p + q)) * xp.astype(q > 0, q.dtype), shape)
    b = xp.broadcast_to(b, shape)
    _check_accept(b, least, xp)
    return p, q, b, xp


def _check_accept(accept: Array, least: Array, xp: Any) -> None:
    slack = _ROUNDING * float(xp.finfo(accept.dtype).eps)
    wrong = ~((accept >= least * (1 - slack)) & (accept <= 1 + slack))
    if bool(xp.any(wrong)):
        at = first_true(wrong, xp)
        raise SettingError(
            f"accept[{', '.join(map(str, at))}] is {float(accept[at]):.6g}",
            limit=f"must be in [min(1, p/q), 1] = [{float(least[at]):.6g}, 1]",
            remedy="the lower end is unbiased; below it a rule only rejects more",
        )
