"""C6: what the mean acceptance alone says of tokens per call, however acceptances are spread over the text."""

from __future__ import annotations

from spectheory.checks import MOST_EXACT, real, whole

REMEDY = "pass a share, such as 0.8"


def least_tokens_per_call(acceptance: float, k: int) -> float:
    r"""Lower bound on tokens per call of a chain of k drafts, from the mean acceptance alone (C6).

    .. math:: \tau \ge \frac{k+1}{1 + k(1-\bar a)}

    :math:`\bar a` is the mean over the positions of a text of the probability that the text's token is accepted there,
    given the text; of token verification its expectation is :math:`E[1 - TV]`. Assumes a rule that decides position by
    position, in the same way at every depth of a call; nothing of independence. It bounds tokens over expected calls
    of any one text, but for an end term: the text's end may add up to k/(k + 1) of a call. Block verification is
    covered in the mean alone, over texts that the target samples: by B7 it needs no more expected calls there than
    token verification. A call ends at a rejection or is full, and the
    expected rejections are at most :math:`N(1-\bar a)` in N tokens: so the expected calls are at most
    :math:`N(1 + k(1-\bar a))/(k+1)`. Reached where the positions that are refused follow each other.

    Examples
    --------
    >>> round(least_tokens_per_call(0.8, 7), 3)
    3.333
    """
    acceptance, k = _share("acceptance", acceptance), _length(k)
    return (k + 1) / (1 + k * (1 - acceptance))


def most_tokens_per_call(acceptance: float, k: int) -> float:
    r"""Upper bound on tokens per call of a chain of k drafts, from the mean acceptance alone (C6).

    .. math:: \tau \le \min\Big(k+1,\ \frac{1}{1-\bar a}\Big)

    Assumptions are those of :func:`least_tokens_per_call`, but block verification may exceed it. Every position that
    would be refused ends a call, whether it is a draft's or the bonus token's. Reached where each of them ends a
    call of its own, as when they are k + 1 tokens apart.

    Examples
    --------
    >>> round(most_tokens_per_call(0.8, 7), 3), most_tokens_per_call(0.8, 3)
    (5.0, 4.0)
    """
    acceptance, k = _share("acceptance", acceptance), _length(k)
    return min(k + 1.0, 1 / (1 - acceptance)) if acceptance < 1 else k + 1.0


def tokens_per_call_between(counted: float, counted_k: int, k: int) -> tuple[float, float]:
    r"""Lower and upper bound on tokens per call of chains of k drafts, from those of chains of `counted_k` (C6).

    With :math:`\tau_0` tokens per call at :math:`k_0` drafts the mean acceptance is between :math:`1 - 1/\tau_0` and
    :math:`1 - ((k_0+1)/\tau_0 - 1)/k_0`, the inverses of the two bounds above. Besides, longer chains need at most as
    many calls, and the text of one call of k drafts takes at most :math:`m = \lceil (k+1)/(k_0+1) \rceil` calls of
    :math:`k_0`: so for longer chains :math:`\tau_0 \le \tau \le m\tau_0`, and for shorter ones the same with k and
    :math:`k_0` exchanged. Assumptions are those of :func:`least_tokens_per_call`, both values are of expected calls on
    one and the same text, and nothing is claimed of block verification. Counted calls scatter around expected ones:
    that error is not in the range.

    Examples
    --------
    >>> [round(end, 6) for end in tokens_per_call_between(2.5, 4, 1)]
    [1.428571, 2.0]
    >>> tokens_per_call_between(2.5, 4, 4)
    (2.5, 2.5)
    """
    counted_k, k = _length(counted_k), _length(k)
    tokens = real(
        "tokens per call",
        counted,
        lambda value: 1 <= value <= counted_k + 1,
        limit=f"must be in [1, {counted_k + 1}] with k = {counted_k}",
        remedy="count the recovered or bonus token too",
    )
    if k == counted_k:
        return tokens, tokens
    least, most = 1 - 1 / tokens, 1 - ((counted_k + 1) / tokens - 1) / counted_k
    low, high = least_tokens_per_call(least, k), most_tokens_per_call(most, k)
    calls = -(-(max(k, counted_k) + 1) // (min(k, counted_k) + 1))
    if k > counted_k:
        return max(low, tokens), min(high, calls * tokens)
    return max(low, tokens / calls), min(high, tokens)


def _share(name: str, value: float) -> float:
    return real(name, value, lambda share: 0 <= share <= 1, limit="must be in [0, 1]", remedy=REMEDY)


def _length(k: int) -> int:
    return whole("k", k, most=MOST_EXACT, remedy="a call drafts one token at least")
