"""B9: stationary ergodic targets, a bound from how rarely their text is predictable."""

from __future__ import annotations

import math

from spectheory.checks import BEYOND, MOST_EXACT, amount, real, whole
from spectheory.limits.capacity import checked_capacity


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
