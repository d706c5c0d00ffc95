"""C2: seconds of one pass of each model on m tokens with a filled cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.checks import whole
from spectheory.cost import LatencyTable
from spectheory.errors import SettingError
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.measure.devices import wait_for
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading

DRAFT_TOKENS = (1, 2)
"""A draft step of a chain reads one token, or two after a call in which every draft was accepted."""
BURST = 4
"""Draft passes, or plain steps, in a row."""
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
    """
    sizes = _sizes(context, tokens, pair.window, repeats, warm_up)
    draft, target = (_Filled(model, pair.vocabulary, context) for model in (pair.draft, pair.target))
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
        "hardware": hardware(),
        "versions": versions(),
    }
    return LatencyTable(medians["target"], medians["draft"], context, provenance)


def _against_plain_step(rounds: Sequence[Round]) -> dict[tuple[str, int], NDArray[np.float64]]:
    """Sorted seconds of each pass, every round scaled to the median plain step."""
    plain = float(np.median([taken["target", 1] for taken in rounds]))
    keys = {key for taken in rounds for key in taken}
    return {
        key: np.sort([plain * taken[key] / taken["target", 1] for taken in rounds if key in taken])
        for key in sorted(keys)
    }


def _round(draft: _Filled, target: _Filled, sizes: Sequence[int], number: int) -> Round:
    """Seconds of each pass, in the order of decoding: for every size drafts, then a verifying pass."""
    taken: Round = {}
    bursts: dict[int, list[float]] = {m: [] for m in DRAFT_TOKENS}
    for index, m in enumerate(sizes):
        # The two sizes of a draft pass alternate in the same places.
        turn = (index + number) % len(DRAFT_TOKENS)
        for tokens in DRAFT_TOKENS if len(sizes) == 1 else DRAFT_TOKENS[turn : turn + 1]:
            bursts[tokens] += [draft.run(tokens, keep=1) for _ in range(BURST)]
        if m not in DRAFT_TOKENS:
            taken["draft", m] = draft.run(m, keep=m)  # children are drafted for each
        taken["target", m] = target.run(m, keep=m)
        if m == 1:
            taken["target", m] = statistics.median(target.run(m, keep=m) for _ in range(BURST))
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


class _Filled:
    """A model with `context` tokens in its cache, to time the same passes repeatedly."""

    def __init__(self, model: Model, vocabulary: int, context: int) -> None:
        self.model, self.vocabulary, self.context = model, vocabulary, context
        self.reading = Reading(model, vocabulary)
        self.reading.read(self._some_tokens(context))
        self.keeps = hasattr(self.reading.cache, "crop")
        if hasattr(self.reading.cache, "activate_past_recording"):
            self.reading.cache.activate_past_recording()

    def _some_tokens(self, count: int) -> torch.Tensor:
        """Arbitrary tokens: the time does not depend on them (in dense models)."""
        return (torch.arange(count, device=self.model.device) % self.vocabulary)[None]

    def run(self, tokens: int, keep: int) -> float:
        """Seconds of one pass on `tokens` with `keep` rows of logits; the cache is cropped afterwards."""
        reading = self.reading if self.keeps else Reading(self.model, self.vocabulary)
        ids = self._some_tokens(tokens if self.keeps else self.context + tokens)
        seconds = _timed(lambda: reading.read(ids, keep=keep), self.model.device)
        if self.keeps:
            reading.cache.crop(-tokens)
        return seconds


def _timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of `work` including everything it started on the device, as the decoders time their passes."""
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started


def _median(ordered: NDArray[np.float64]) -> Interval:
    """Median with the narrowest symmetric 95% interval from order statistics."""
    n = len(ordered)
    rank = int(binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    return Interval(float(ordered[rank - 1]), float(np.median(ordered)), float(ordered[n - rank]), "statistical")
