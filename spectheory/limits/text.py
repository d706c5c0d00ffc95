"""B6: the limit of deterministic drafts on real text, without an i.i.d. assumption."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import BEYOND, MOST_EXACT, amount, real, whole
from spectheory.distributions import Floats
from spectheory.errors import SettingError, TextError
from spectheory.limits.inputs import checked_capacity, checked_surprisals

MOST_WALK = 1 << 27
"""Most steps of all walks together, P per token: 1 GB."""


def surprisal_walks(surprisals: Floats, lengths: NDArray[np.int64], depth: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Cumulative surprisal S_1..S_depth from each start, ``[N, depth]``, and which starts have `depth` tokens left.

    The walk is infinite past the end of a text.
    """
    ends = np.repeat(np.cumsum(lengths), lengths)
    rows = np.arange(len(surprisals))
    padded = np.concatenate([surprisals, np.full(depth - 1, math.inf)])
    walks = np.cumsum(np.lib.stride_tricks.sliding_window_view(padded, depth), axis=1)
    inside = rows[:, None] + np.arange(1, depth + 1) <= ends[:, None]
    return np.where(inside, walks, math.inf), rows + depth <= ends


def best_threshold(walks: Floats, capacity: int) -> float:
    """The t that minimises B6 on these walks ``[starts, depth]``.

    The bound falls in t while the mean over starts of the sum of exp(S_i), S_i < t, is below P, and rises after that.
    Choose t on other data than the bound is evaluated on: B6 is a bound for a t fixed beforehand.
    """
    steps = np.sort(walks[np.isfinite(walks)])
    with np.errstate(over="ignore"):
        weight = np.cumsum(np.exp(steps)) / len(walks)
    at = int(np.searchsorted(weight, capacity))
    # Too little text to reach P: past the last step only P exp(-t) changes, so t is large.
    return float(steps[at]) if at < len(steps) else float(steps[-1] if len(steps) else 0.0) + math.log(capacity) + 40.0


def threshold_terms(walks: Floats, t: float) -> Floats:
    r"""The term of each start in B6, :math:`\sum_i (1-e^{-(t-S_i)})_+`, ``[starts]``."""
    return np.sum(-np.expm1(np.minimum(walks - t, 0.0)), axis=1)


def branching_bound_from_text(surprisals: list[Floats], capacity: int, t: float) -> float:
    r"""Upper bound on E[X] from target-sampled text, with no i.i.d. assumption (B6; statistical in the texts).

    .. math:: E[X] \le E\sum_{i\le P}\big(1-e^{-(t-S_i)}\big)_+ + P e^{-t}, \qquad S_i = \text{surprisal of i tokens}

    for every t >= 0; a tree of P nodes is at most P deep, so the sum stops there. `surprisals` holds -log p of the
    tokens of each text ``[tokens]``, in nats, p the target's pmf with the sampling settings in use; `capacity` is P.
    The mean is over every start with P tokens left. Assumes starts distributed as call starts (uniform here), a t fixed
    beforehand or chosen on other texts, and texts cut at a length: if texts end by themselves, leaving out the starts
    near their ends favours long texts.

    Examples
    --------
    >>> import numpy as np
    >>> round(branching_bound_from_text([np.full(50, 0.7)], 1, 0.7), 4)
    0.4966
    """
    capacity = whole("capacity", capacity, remedy="count draft nodes from 1")
    t = real("t", t, lambda threshold: threshold >= 0, limit="must be >= 0", remedy="t near log P is a good start")
    texts = checked_surprisals(surprisals)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    if lengths.max(initial=0) < capacity:
        raise TextError(
            f"the longest text has {lengths.max(initial=0)} tokens",
            limit=f"needs {capacity} tokens after a start",
            remedy="use longer texts or a smaller capacity",
        )
    if capacity * int(lengths.sum()) > MOST_WALK:
        raise SettingError(
            f"capacity {capacity} times {int(lengths.sum())} tokens",
            limit=f"must be at most {MOST_WALK}",
            remedy="use fewer texts or a smaller capacity",
        )
    walks, inside = surprisal_walks(np.concatenate(texts), lengths, capacity)
    return float(min(threshold_terms(walks[inside], t).mean() + capacity * math.exp(-t), capacity))


# B9: stationary ergodic targets, a bound from how rarely their text is predictable


def window_bound(capacity: int, window: int, step: float, chance: float) -> float:
    r"""Upper bound on E[X] where no stretch of text stays predictable for long (B9; exact).

    .. math:: E[X] \le E N(\log P) + 1 \le \frac{w (\lfloor \log P/\delta \rfloor + 1)}{\epsilon}, \qquad
        N(t) = \#\{i \ge 1 : S_i \le t\}

    and E[X] <= P. S_i is the surprisal of the next i tokens in nats. Assumes that, *whatever the text before*, the next
    `window` w tokens have a surprisal of at least `step` delta with probability at least `chance` epsilon. Then
    N(t)/t has bounded second moments, so that for a stationary ergodic target of entropy rate h > 0 both
    E[N(t)]/t and E[X]/log P tend to 1/h. Without such a condition they need not: B9/stretches. `capacity` is P.

    Examples
    --------
    >>> window_bound(64, 1, math.log(2), 0.5)
    14.0
    """
    nodes = checked_capacity(capacity)
    tokens = whole("window", window, most=MOST_EXACT, remedy="1 asks for uncertainty at every token")
    least = amount("step", step, positive=True, below=BEYOND, remedy="give it in nats; log 2 is one bit")
    often = real(
        "chance", chance, lambda share: 0 < share <= 1, limit="must be in (0, 1]", remedy="lengthen the window"
    )
    return min(tokens * (math.floor(math.log(nodes) / least) + 1) / often, nodes)
