"""C5: speculation parallelism, where targets verify while the draft continues (``timor2025``)."""

from __future__ import annotations

import math

from spectheory.checks import BEYOND, MOST_EXACT, amount, whole
from spectheory.cost.iid import checked_alpha
from spectheory.errors import SettingError


def parallel_time(tokens: int, alpha: float, t_target: float, t_draft: float) -> float:
    r"""Expected seconds for `tokens` = N output tokens with speculation parallelism (C5, ``timor2025``).

    .. math:: t_{target} + (N-1)\,(\alpha\,t_{draft} + (1-\alpha)\,t_{target})

    Exact under its assumptions: acceptances are i.i.d. of rate alpha; lookahead 1 (every drafted token starts a target
    pass at once); at least :func:`parallel_replicas` targets, so that none waits; passes take constant times with 0 <
    t_draft <= t_target; starting, stopping and communicating are free. A right draft token extends the text after
    t_draft, a wrong one after t_target, and the last token is a target's. Never above plain decoding's N t_target, and
    per token never above that of any chain (C1) with the same pair.

    Examples
    --------
    >>> parallel_time(11, 0.5, 1.0, 0.2)
    7.0
    """
    tokens, alpha, t_target, t_draft = _checked(tokens, alpha, t_target, t_draft)
    return t_target + (tokens - 1) * (alpha * t_draft + (1 - alpha) * t_target)


def parallel_speedup(tokens: int, alpha: float, t_target: float, t_draft: float) -> float:
    r"""Plain decoding's N t_target over :func:`parallel_time` (C5, ``timor2025``; same assumptions), at least 1.

    Tends to :math:`1/(\alpha t_{draft}/t_{target} + 1 - \alpha)` with N.

    Examples
    --------
    >>> round(parallel_speedup(11, 0.5, 1.0, 0.2), 4)
    1.5714
    """
    tokens, alpha, t_target, t_draft = _checked(tokens, alpha, t_target, t_draft)
    return tokens * t_target / parallel_time(tokens, alpha, t_target, t_draft)


def parallel_replicas(t_target: float, t_draft: float) -> int:
    r"""Targets that :func:`parallel_time` needs, :math:`\lceil t_{target}/t_{draft}\rceil` (C5, ``timor2025``; exact).

    A target pass starts every t_draft and lasts t_target, so that many run at the same time.

    Examples
    --------
    >>> parallel_replicas(1.0, 0.3)
    4
    """
    *_, t_target, t_draft = _checked(1, 0.0, t_target, t_draft)
    return math.ceil(t_target / t_draft)


def _checked(tokens: int, alpha: float, t_target: float, t_draft: float) -> tuple[int, float, float, float]:
    tokens = whole("tokens", tokens, most=MOST_EXACT, remedy="count output tokens")
    t_target, t_draft = (
        amount(name, seconds, positive=True, below=BEYOND, remedy="give seconds")
        for name, seconds in (("t_target", t_target), ("t_draft", t_draft))
    )
    if not t_draft <= t_target:
        raise SettingError(
            f"t_draft is {t_draft:g}, t_target is {t_target:g}",
            limit="needs 0 < t_draft <= t_target",
            remedy="choose a draft that is faster than its target",
        )
    return tokens, checked_alpha(alpha), t_target, t_draft
