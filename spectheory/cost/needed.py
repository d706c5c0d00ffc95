"""What a draft that does not exist yet must reach for a speed-up, by the length of its chains (C1, A1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.checks import amount, several
from spectheory.cost.iid import K_MAX, checked_length, checked_ratio, required_acceptance
from spectheory.errors import SettingError
from spectheory.limits import sufficient_divergence


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
        If no length gives the speed-up.

    Examples
    --------
    >>> least = min(draft_needed(2.0, 0.1), key=lambda needed: needed.acceptance)
    >>> least.k, round(least.acceptance, 3), round(least.divergence, 3)
    (4, 0.705, 0.174)
    """
    rows, refused = [], None
    ks = [checked_length(k) for k in several("ks", ks, remedy="range(1, 17) is one")]
    speedup, c = amount("the speed-up", speedup, positive=True, remedy="1 is plain decoding"), checked_ratio(c)
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
