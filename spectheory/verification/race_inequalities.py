"""A3: closed forms around the acceptance rate of the race."""

from __future__ import annotations

from typing import Any, NamedTuple

from spectheory.distributions import Array, validate_pair


class RaceInequalities(NamedTuple):
    """Bounds ``[...]`` on the race's acceptance rate (A3): three from below, then two from above.

    In order: half the harmonic-mean similarity; the sum of 1/(1/p + 1/q - 1), never below the first; (1 - TV)/(1 + TV);
    1 - TV; the harmonic-mean similarity, never below the fourth.

    Examples
    --------
    >>> RaceInequalities(0.4, 0.5, 0.5, 0.7, 0.8)._fields[3]
    'token'
    """

    half_similarity: Array
    reciprocals: Array
    from_total_variation: Array
    token: Array
    similarity: Array


def race_inequalities(target: Any, draft: Any) -> RaceInequalities:
    r"""The bounds of A3 on the acceptance rate of the race, each ``[..., V]`` to ``[...]``.

    .. math:: \tfrac12 S_{HM} = \sum_x\frac{p_xq_x}{p_x+q_x} \le \sum_x\frac{1}{1/p_x+1/q_x-1} \le \alpha_{race}, \qquad
        \frac{1-TV}{1+TV} \le \alpha_{race} \le 1-TV \le S_{HM}

    The first is the form that Lemma 3.1 of ``kobus2025`` most likely has, the fraction is ``daliri2025``'s. Every step
    holds term by term. The look-alike :math:`S/(2-S) \le \alpha_{race}` is false.

    Examples
    --------
    >>> bounds = race_inequalities([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    >>> [round(float(value), 4) for value in bounds]
    [0.4357, 0.5098, 0.5385, 0.7, 0.8714]
    """
    p, q, xp = validate_pair(target, draft)
    total = p + q
    safe = xp.where(total > 0, total, xp.ones_like(total))
    # 1/(1/p + 1/q - 1) = pq/(p + q - pq), without a reciprocal of a small number.
    both = xp.where(total > 0, total - p * q, xp.ones_like(total))
    half = xp.sum(p * (q / safe), axis=-1)
    token = xp.sum(xp.minimum(p, q), axis=-1)
    return RaceInequalities(
        half_similarity=half,
        reciprocals=xp.sum(p * (q / both), axis=-1),
        from_total_variation=token / (2 - token),
        token=token,
        similarity=2 * half,
    )
