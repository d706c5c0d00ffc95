"""C1: speed-up and operations of a chain under i.i.d. acceptances, and their inverses (``leviathan2023``).

`alpha` is the acceptance rate in [0, 1], `k` the drafted tokens per call, `c` the time of a draft step over that of a
target step.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.checks import BEYOND, MOST_EXACT, amount, real, several, whole
from spectheory.errors import SettingError, argument
from spectheory.limits import sufficient_divergence

K_MAX = 64
"""Longest chain in a search for the best k."""
_SUMMED = 64
"""Most terms that are summed directly; longer sums use the closed form, which rounds a little more."""
_MOST_SOLVED = 4096
"""Most lengths for which an equation is solved."""

# S(k) = T(k)/(kc+1) is unimodal in k: S(k+1) > S(k) iff d(k) = alpha^(k+1) (kc+1) - c T(k) > 0, and
# d(k+1) - d(k) = -(1-alpha) alpha^(k+1) ((k+1)c+1) <= 0.


def iid_tokens_per_call(alpha: float, k: int) -> float:
    r"""Expected tokens per call of a chain when every draft is accepted independently, :math:`\sum_{i=0}^k\alpha^i`.

    C1 (``leviathan2023``), exact under its assumption of i.i.d. acceptances. The recovered or bonus token counts.
    On real text acceptances vary and depend on each other, and the error of this formula may have either sign.

    Examples
    --------
    >>> iid_tokens_per_call(0.5, 2)
    1.75
    """
    alpha = _checked_alpha(alpha)
    k = checked_length(k)
    if alpha == 1:
        return float(k + 1)
    if k > _SUMMED:
        return 1.0 if alpha == 0 else -math.expm1((k + 1) * math.log(alpha)) / (1 - alpha)
    tokens = 1.0
    for _ in range(k):
        tokens = tokens * alpha + 1
    return tokens


def iid_speedup(alpha: float, k: int, c: float) -> float:
    r"""Speed-up of a chain under i.i.d. acceptances, :math:`\sum_{i=0}^k\alpha^i/(kc+1)` (C1, ``leviathan2023``).

    Exact if acceptances are i.i.d., a draft step costs c target steps, and the target verifies k + 1 tokens in the
    time of one.

    Examples
    --------
    >>> round(iid_speedup(0.8, 4, 0.1), 6)
    2.401143
    """
    c = checked_ratio(c)
    k = checked_length(k)
    return iid_tokens_per_call(alpha, k) / (k * c + 1)


def iid_operations(alpha: float, k: int, c_hat: float) -> float:
    r"""Arithmetic operations per output token relative to plain decoding (C1, ``leviathan2023``).

    .. math:: \frac{k\hat c + k + 1}{\sum_{i=0}^k\alpha^i}

    `c_hat` is the draft's operations per token over the target's. A call processes k tokens in the draft and k + 1 in
    the target; plain decoding one token in the target per output token. At least 1 for any alpha: speculative decoding
    saves time, never operations. Exact under C1's assumption; as in the paper, the draft's work on the last token after
    a full acceptance (:math:`\alpha^k\hat c` more per call) is left out.

    Examples
    --------
    >>> iid_operations(0.5, 2, 0.125)
    1.8571428571428572
    """
    c_hat = checked_ratio(c_hat, "c_hat")
    k = checked_length(k)
    return (k * c_hat + k + 1) / iid_tokens_per_call(alpha, k)


def best_chain_length(alpha: float, c: float, k_max: int) -> int:
    """The k in 1..k_max with the largest :func:`iid_speedup` (C1); the speed-up is unimodal in k.

    With alpha = 1 > c or c = 0 < alpha the speed-up grows with k, so the answer is `k_max`; with 0 < alpha <= c no k
    beats plain decoding and the answer is 1.

    Examples
    --------
    >>> best_chain_length(0.8, 0.1, 64)
    6
    """
    alpha = _checked_alpha(alpha)
    k_max = checked_length(k_max)
    c = checked_ratio(c)
    if c == 0 < alpha:
        return k_max  # the speed-up still grows where rounding hides it
    if alpha == 1:
        return k_max if c < 1 else 1
    return 1 + bisect_left(
        range(1, k_max), True, key=lambda k: not (alpha ** (k + 1) * (k * c + 1) > c * iid_tokens_per_call(alpha, k))
    )


def required_acceptance(speedup: float, k: int | None, c: float, *, k_max: int = K_MAX) -> float:
    r"""The alpha that gives a speed-up S over plain decoding, the inverse of :func:`iid_speedup` (C1; exact).

    Solves :math:`\sum_{i=0}^k\alpha^i = S(kc+1)`, which has a solution iff :math:`1 \le S(kc+1) \le k+1`; it is unique,
    as the speed-up rises in alpha. With k None it is the smallest alpha that gives S at some k of 1..k_max.

    Examples
    --------
    >>> round(required_acceptance(3.0, 4, 0.05), 4)
    0.8349
    >>> round(required_acceptance(3.0, None, 0.05), 4)
    0.7907
    """
    c = checked_ratio(c)
    speedup = _checked_speedup(speedup)
    lengths = _lengths(k, k_max)
    low = max(iid_speedup(0.0, n, c) for n in lengths)
    high = max(iid_speedup(1.0, n, c) for n in lengths)
    if not low <= speedup <= high:
        raise SettingError(
            f"a speed-up of {speedup:g} with k={_named(lengths)} and c={c:g}",
            limit=f"accepting no draft gives {low:.3g}, and every draft {high:.3g}",
            remedy="ask for less, or for another k or c" if speedup > high else "any acceptance rate gives more",
        )
    return min(_solve_alpha(speedup, n, c) for n in lengths if speedup <= iid_speedup(1.0, n, c))


def required_ratio(speedup: float, alpha: float, k: int | None, *, k_max: int = K_MAX) -> float:
    r"""The largest c that still gives a speed-up S, :math:`(\sum_{i=0}^k\alpha^i/S - 1)/k` (C1, ``leviathan2023``).

    Exact under C1's assumption. With k None it is the largest c over 1..k_max.

    Examples
    --------
    >>> round(required_ratio(2.0, 0.8, 4), 4)
    0.1702
    """
    speedup = _checked_speedup(speedup)
    alpha = _checked_alpha(alpha)
    lengths = _lengths(k, k_max)
    free = iid_speedup(alpha, lengths[-1], 0.0)
    if speedup > free:
        raise SettingError(
            f"a speed-up of {speedup:g} with alpha={alpha:g} and k={_named(lengths)}",
            limit=f"is at most {free:g} tokens per call, even if drafts cost nothing",
            remedy="ask for less, or draft more tokens or better ones",
        )
    return max((iid_tokens_per_call(alpha, n) / speedup - 1) / n for n in lengths)


def checked_length(k: int) -> int:
    """A chain length as an int in 1..2^53."""
    return whole("k", k, most=MOST_EXACT, remedy="count drafts from 1")


def checked_ratio(c: float, name: str = "") -> float:
    """A ratio of draft to target as a float in [0, 1e100)."""
    return amount(name or argument("c"), c, below=BEYOND, remedy="pass the draft's step over the target's")


def _checked_alpha(alpha: float) -> float:
    """An acceptance rate as a float in [0, 1]."""
    return real("alpha", alpha, lambda a: 0 <= a <= 1, limit="must be in [0, 1]", remedy="pass an acceptance rate")


def _checked_speedup(speedup: float) -> float:
    return amount("the speed-up", speedup, positive=True, remedy="1 is plain decoding")


def _lengths(k: int | None, k_max: int) -> Sequence[int]:
    most = whole("k_max", k_max, most=_MOST_SOLVED, remedy="count drafts from 1")
    return range(1, most + 1) if k is None else [checked_length(k)]


def _named(lengths: Sequence[int]) -> str:
    return str(lengths[0]) if len(lengths) == 1 else f"{lengths[0]}..{lengths[-1]}"


def _solve_alpha(speedup: float, k: int, c: float) -> float:
    """The root in [0, 1]; the caller has checked the signs at both ends."""
    from scipy.optimize import brentq

    # Half the spacing of floats below 1: the root is as exact as the sum allows.
    return float(brentq(lambda alpha: iid_speedup(alpha, k, c) - speedup, 0.0, 1.0, xtol=2**-53))


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
    return tokens, _checked_alpha(alpha), t_target, t_draft


@dataclass(frozen=True)
class Needed:
    """What chains of k drafts need for a speed-up.

    `tokens_per_call` is exact for the costs given. `acceptance` is the rate that gives them if acceptances are i.i.d.
    (C1, an estimate on real text). A draft whose cross-entropy on text sampled from the target exceeds the target's by
    at most `divergence` nats is sure to have that mean rate (A1; sufficient, not necessary).
    """

    k: int
    tokens_per_call: float
    acceptance: float
    divergence: float


def draft_needed(speedup: float, c: float, ks: Sequence[int] = range(1, K_MAX + 1)) -> list[Needed]:
    """What is needed for a speed-up S over plain decoding, for each chain length that can give it (C1).

    A draft step costs `c` target steps, and verifying as much as a plain step. Lengths that cannot give S are left out:
    S(kc+1) must be in 1..k+1. The least acceptance over all lengths is that of ``required_acceptance`` with k None.

    Raises
    ------
    SettingError
        If no length gives the speed-up, or plain decoding does.

    Examples
    --------
    >>> least = min(draft_needed(2.0, 0.1), key=lambda needed: needed.acceptance)
    >>> least.k, round(least.acceptance, 3), round(least.divergence, 3)
    (4, 0.705, 0.174)
    """
    rows, refused = [], None
    ks = [checked_length(k) for k in several("ks", ks, remedy="range(1, 17) is one")]
    speedup = real("the speed-up", speedup, lambda s: s > 1, limit="must be > 1", remedy="plain decoding gives 1")
    c = checked_ratio(c)
    if not ks:
        raise SettingError("there is no length", limit="needs one at least", remedy="range(1, 17) is one")
    for k in ks:
        try:
            rate = required_acceptance(speedup, k, c)
        except SettingError as error:
            refused = error
            continue
        rows.append(Needed(k, speedup * (k * c + 1), rate, sufficient_divergence(rate)))
    if refused and not rows:
        required_acceptance(speedup, None if len(ks) > 1 else ks[0], c, k_max=max(ks))  # says what all lengths allow
        raise refused
    return rows
