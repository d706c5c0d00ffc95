"""C2: seconds of one pass of each model on m tokens with a filled cache."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.checks import whole
from spectheory.cost import LatencyTable
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.measure.filled import BURST, Filled, FilledHead
from spectheory.measure.heads.base import Head
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair

DRAFT_TOKENS = (1, 2)
"""A draft step of a chain reads one token, or two after a call in which every draft was accepted."""
TAKING = "target with hidden states"
"""In a round, the target's pass on one token with its hidden states taken for a head; plain decoding takes none."""
Round = dict[tuple[str, int], float]
"""Seconds of each pass of a round, by (model, tokens)."""
LEAST_REPEATS = 6
"""Fewer measurements give no 95% interval of the median: 2 · 2^-5 > 0.05."""


def measure_latency(
    pair: ModelPair,
    *,
    context: int,
    tokens: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    repeats: int = 40,
    warm_up: int = 5,
    on_progress: Callable[[int, int], None] | None = None,
) -> LatencyTable:
    """Measure seconds per pass: the target on each of `tokens`, the draft on these and on 1 and 2, at batch 1.

    Passes start with `context` tokens in the cache; sizes beyond the window are left out, and 1 is always measured.
    After `warm_up` rounds, each of `repeats` rounds measures every size, so that a slow phase of the machine affects
    all equally. Passes follow each other as in decoding, since the processor's caches matter for small models. Caches
    are cropped between passes, outside the measured time; a model without such a cache reads `context` again in every
    pass.

    Each pass is divided by the plain step of its own round, so that a slow round cancels. An entry is the median of
    these ratios times the median plain step, with the 95% interval of the median ratio from order statistics
    (distribution-free, assuming independent rounds; statistical). The plain step is the unit and has no interval; its
    quartiles are in the provenance.

    Of a draft head, m are the pairs and drafted tokens that a pass reads (:class:`FilledHead`). The target's passes on
    two tokens or more include taking the hidden states for it; the plain step does not, as plain decoding needs none.
    ``hidden_states`` of the provenance has the seconds that taking them adds to a pass on one token.
    """
    sizes = _sizes(context, tokens, pair.window, repeats, warm_up)
    head = pair.draft.head
    target = Filled(pair.target, pair.vocabulary, context, head.layers if head else ())
    draft = FilledHead(pair, context, max(sizes)) if head else Filled(pair.draft, pair.vocabulary, context)
    rounds = []
    for done in range(warm_up + repeats):
        rounds.append(_round(draft, target, sizes, done))
        if on_progress is not None:
            on_progress(done + 1, warm_up + repeats)
    arrays = _against_plain_step(rounds[warm_up:])
    medians = {
        model: {m: _median(t) for (who, m), t in arrays.items() if who == model} for model in ("target", "draft")
    }
    steps = [taken["target", 1] for taken in rounds[warm_up:]]
    provenance = {
        **pair.describe(),
        "batch": 1,
        "repeats": repeats,
        "warm_up": warm_up,
        "read_again": [each.model.name for each in (target, draft) if not each.keeps],
        "plain_step_quartiles": [float(q) for q in np.quantile(steps, (0.25, 0.75))],
        "quartiles": {f"{who} {m}": [float(q) for q in np.quantile(t, (0.25, 0.75))] for (who, m), t in arrays.items()},
        **({"hidden_states": _taken(head, arrays[TAKING, 1], arrays["target", 1])} if head else {}),
        "hardware": hardware(),
        "versions": versions(),
    }
    return LatencyTable(medians["target"], medians["draft"], context, provenance)


def _taken(head: Head, taking: NDArray[np.float64], plain: NDArray[np.float64]) -> dict[str, Any]:
    """Which hidden states the target's passes take for a head, and the seconds that this adds to one token's."""
    return {"layers": list(head.layers), "seconds": _median(taking - plain[0]).as_dict()}


def _against_plain_step(rounds: Sequence[Round]) -> dict[tuple[str, int], NDArray[np.float64]]:
    """Sorted seconds of each pass, every round scaled to the median plain step."""
    plain = float(np.median([taken["target", 1] for taken in rounds]))
    keys = {key for taken in rounds for key in taken}
    return {
        key: np.sort([plain * taken[key] / taken["target", 1] for taken in rounds if key in taken])
        for key in sorted(keys)
    }


def _round(draft: Filled | FilledHead, target: Filled, sizes: Sequence[int], number: int) -> Round:
    """Seconds of each pass, in the order of decoding: for every size drafts, then a verifying pass."""
    taken: Round = {}
    bursts: dict[int, list[float]] = {m: [] for m in DRAFT_TOKENS}
    for index, m in enumerate(sizes):
        # The two sizes of a draft pass alternate in the same places.
        turn = (index + number) % len(DRAFT_TOKENS)
        for tokens in DRAFT_TOKENS if len(sizes) == 1 else DRAFT_TOKENS[turn : turn + 1]:
            bursts[tokens] += draft.burst(tokens)
        if m not in DRAFT_TOKENS:
            taken["draft", m] = draft.run(m, keep=m)  # children are drafted for each
        taken["target", m] = target.run(m, keep=m)
        if m == 1:
            kinds = [("target", True), (TAKING, False)] if target.layers else [("target", True)]
            for who, alone in kinds[:: 1 if number % 2 else -1]:  # in turn first: the later finds warmer caches
                taken[who, m] = statistics.median(target.run(m, keep=m, alone=alone) for _ in range(BURST))
    taken |= {("draft", m): draft.run(m, keep=m) for m in draft.longer}
    taken |= {("draft", tokens): _in_a_row(burst) for tokens, burst in bursts.items()}
    return taken


def _in_a_row(seconds: Sequence[float]) -> float:
    """Median of the bursts' first passes, which follow another model's, averaged with the median of the others."""
    first, others = seconds[::BURST], [taken for i, taken in enumerate(seconds) if i % BURST]
    return (statistics.median(first) + (BURST - 1) * statistics.median(others)) / BURST


def _sizes(context: int, tokens: Sequence[int], window: int | None, repeats: int, warm_up: int) -> list[int]:
    for name, value, least in (
        ("context", context, 1),
        ("repeats", repeats, LEAST_REPEATS),
        ("warm-up", warm_up, 0),
        ("tokens", min(tokens, default=0), 1),
    ):
        whole(name, value, least=least, remedy=f"use {least} or more")
    if window is not None and context + max(DRAFT_TOKENS) > window:
        raise SettingError(
            f"context is {context}",
            limit=f"the models take {window} tokens and 2 must follow",
            remedy=f"use a context of {window - 2} at most",
        )
    fitting = {1, *tokens}
    return sorted(m for m in fitting if window is None or context + m <= window)


def _median(ordered: NDArray[np.float64]) -> Interval:
    """Median with the narrowest symmetric 95% interval from order statistics."""
    n = len(ordered)
    rank = int(binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    return Interval(float(ordered[rank - 1]), float(np.median(ordered)), float(ordered[n - rank]), "statistical")
