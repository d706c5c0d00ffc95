"""T1: the channel limit of kobus2025 (Theorem 4.1), from the entropy of the rank."""

from __future__ import annotations

import math
from typing import Literal

from spectheory.checks import MOST_EXACT, choice, real, whole

TunstallForm = Literal["leaves", "asymptotic"]


def tunstall_bound(rank_entropy: float, alphabet: int, k: int, *, form: TunstallForm = "leaves") -> float:
    r"""Upper bound on the expected tokens per call of any draft tree with k nodes (T1; ``kobus2025`` Theorem 4.1).

    .. math:: E[\text{tokens}] \le \frac{\log((k+1)(A-1)+1)}{H(R)} \le \frac{\log A + \log(k+1)}{H(R)},
              \qquad \text{and never more than } k+1.

    `rank_entropy` is H(R) in nats, in [0, log A]; `alphabet` is the number A of possible ranks. The first form
    (``leaves``) is E[tokens] H(R) = H(exit leaf) <= log(number of leaves) (S3); the second (``asymptotic``) is simpler
    and shows the growth log k / H(R), which the Tunstall tree attains. The recovered or bonus token counts. Assumes
    ranks i.i.d. along the text with entropy H(R) over a finite alphabet (lump the ranks above some B, A = B + 1, and
    draft ranks up to B only). On real text, where the rank law changes from position to position, this is the i.i.d.
    *reading*, not a limit.

    Examples
    --------
    >>> import math
    >>> round(tunstall_bound(math.log(2), 2, 3), 6)
    2.321928
    """
    alphabet, k = (
        whole(name, value, most=MOST_EXACT, remedy="count ranks from 1")
        for name, value in (("alphabet", alphabet), ("k", k))
    )
    rank_entropy = real(
        "rank entropy",
        rank_entropy,
        lambda nats: 0 <= nats <= math.log(alphabet) * (1 + 1e-12),
        limit=f"must be in [0, log {alphabet} = {math.log(alphabet):.6g}] nats",
        remedy="give it in nats, of the lumped rank",
    )
    choice("form", form, ("leaves", "asymptotic"), remedy="leaves is the tighter")
    leaves = (k + 1) * (alphabet - 1) + 1 if form == "leaves" else (k + 1) * alphabet
    if rank_entropy * (k + 1) <= math.log(leaves):
        return float(k + 1)
    return math.log(leaves) / rank_entropy
