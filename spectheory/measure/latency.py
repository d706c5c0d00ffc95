"""C2: seconds of one pass of each model on m tokens with a filled cache."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import pairwise

import torch

from spectheory.checks import whole
from spectheory.cost import LatencyTable
from spectheory.cost.table import PASS_ROUNDS
from spectheory.errors import SettingError
from spectheory.measure.heads.base import AutoregressiveReading, HiddenStates, ParallelReading
from spectheory.measure.machine import Watch, hardware, versions, wait_for
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading
from spectheory.measure.rounds import LEAST_REPEATS, PLAIN, Budget, Pass, Round, Rounds

BURST = 3
"""Draft passes, or plain steps, in a row."""
_LONGER = 64
"""Pairs that a head reads beyond its context before it reads its context again."""


class WarmModel:
    """A model with `context` tokens in its cache; `layers` are the hidden states that a head takes of it."""

    longer: Sequence[int] = ()

    def __init__(self, model: Model, vocabulary: int, context: int, layers: Sequence[int] = ()) -> None:
        self.model, self.vocabulary, self.context, self.layers = model, vocabulary, context, layers
        self.reading = Reading(model, vocabulary)
        self.reading.read(self._some_tokens(context))
        self.keeps = hasattr(self.reading.cache, "crop")
        if hasattr(self.reading.cache, "activate_past_recording"):
            self.reading.cache.activate_past_recording()

    def _some_tokens(self, count: int) -> torch.Tensor:
        """Arbitrary tokens: the time does not depend on them (in dense models)."""
        return (torch.arange(count, device=self.model.device) % self.vocabulary)[None]

    def run(self, tokens: int, keep: int, *, alone: bool = False) -> float:
        """Seconds of one pass on `tokens` with `keep` rows of logits; the cache is cropped afterwards.

        Hidden states are taken unless it is `alone`.
        """
        reading = self.reading if self.keeps else Reading(self.model, self.vocabulary)
        ids = self._some_tokens(tokens if self.keeps else self.context + tokens)
        states = HiddenStates(self.model.network, self.layers) if self.layers and not alone else None

        def work() -> None:
            reading.read(ids, keep=keep)
            if states is not None:
                states.take()

        with states or nullcontext():
            seconds = seconds_of(work, self.model.device)
        if self.keeps:
            reading.cache.crop(-tokens)
        return seconds

    def burst(self, tokens: int) -> list[float]:
        """Seconds of the passes of a chain, one after the other."""
        return [self.run(tokens, keep=1) for _ in range(BURST)]


class WarmHead:
    """A head after `context` pairs of its target. A pass includes embeddings and the output matrix.

    The first pass of a call reads pairs; the others of an autoregressive head are on drafted tokens. A parallel head
    has one pass: on m tokens it reads one pair and drafts m, or as many as it can, and reads more pairs instead.
    """

    keeps = True

    def __init__(self, pair: ModelPair, context: int, longest: int) -> None:
        head = pair.draft.head
        assert head is not None
        self.model, self.head, self.context, self.vocabulary = pair.draft, head, context, pair.vocabulary
        with HiddenStates(pair.target.network, head.layers) as states:
            ids = torch.arange(context) % pair.vocabulary
            Reading(pair.target, pair.vocabulary).read(ids[None])
            self._hidden = states.take()[0].to(pair.draft.device, head.dtype)
        most = head.trained if head.deepest is None else head.deepest
        self.longer = (2 * min(most, longest),) if head.parallel else ()
        self._most, self.reading = most, head.reading()
        self._begin()

    def _begin(self) -> None:
        """Read the context."""
        self.reading = self.head.reading()
        self.reading.read(self._hidden, self._some_tokens(self.context))

    def _some_tokens(self, count: int) -> torch.Tensor:
        return torch.arange(count, device=self.model.device) % self.vocabulary

    def run(self, tokens: int, keep: int) -> float:
        """Seconds of one pass on `tokens`, with logits after all of them (`keep`) or after the last."""
        if isinstance(self.reading, AutoregressiveReading) and keep > 1 and self.head.deepest != 1:
            return self._extended([tokens])[0]
        drafts = min(tokens, self._most) if self.head.parallel else 1
        return self._first(tokens - drafts + 1, drafts)

    def burst(self, tokens: int) -> list[float]:
        """Seconds of the passes of a chain, one after the other; of a parallel head the same pass several times."""
        if not isinstance(self.reading, AutoregressiveReading) or self.head.deepest == 1:
            return [self.run(tokens, keep=1) for _ in range(BURST)]
        return [self._first(tokens, 1), *self._extended([tokens] * (BURST - 1))]

    def _first(self, pairs: int, drafts: int) -> float:
        """Seconds of reading pairs and drafting after the last."""
        if self.reading.pairs + pairs > self.context + _LONGER + 2 * self._most:
            self._begin()
        reading, last = self.reading, torch.tensor([self.reading.pairs + pairs - 1], device=self.model.device)
        hidden = self._hidden[torch.arange(pairs) % self.context]

        def work() -> None:
            reading.read(hidden, self._some_tokens(pairs))
            if isinstance(reading, ParallelReading):
                reading.block(last, drafts)
            elif isinstance(reading, AutoregressiveReading):
                reading.first(last)

        return seconds_of(work, self.model.device)

    def _extended(self, levels: Sequence[int]) -> list[float]:
        """Seconds of a pass on each level of drafted tokens, each token below one of the level before."""
        reading = self.reading
        assert isinstance(reading, AutoregressiveReading)
        reading.forget()
        starts = [0]
        for tokens in levels:
            starts.append(starts[-1] + tokens)
        last, seconds = torch.tensor([-reading.pairs], device=self.model.device), []
        parents = last.expand(levels[0])
        for begin, end in pairwise(starts):
            ids = self._some_tokens(end - begin)
            seconds.append(seconds_of(partial(reading.extend, parents, ids), self.model.device))
            parents = torch.arange(begin, end, device=self.model.device)
        reading.forget()
        return seconds


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of `work` including everything it started on the device, as the decoders time their passes."""
    wait_for(device)
    started = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - started


DRAFT_TOKENS = (1, 2)
"""A draft step of a chain reads one token, or two after a call in which every draft was accepted."""
TAKING = "target with hidden states"
"""In a round, the target's pass on one token with its hidden states taken for a head; plain decoding takes none."""
REPEATED: dict[Pass, int] = dict.fromkeys([PLAIN, (TAKING, 1), *(("draft", m) for m in DRAFT_TOKENS)], 2 * BURST)
"""How often a round has a pass, where it is more than once."""
_FOR_LOOP, _FOR_WARM_UP = 0.25, 0.02
"""Shares of the budget: what is left to the decoding loop, and after which no second round warms up."""


def measure_latency(
    pair: ModelPair,
    *,
    context: int,
    tokens: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    repeats: int = 40,
    warm_up: int = 5,
    budget: Budget | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> LatencyTable:
    """Measure seconds per pass: the target on each of `tokens`, the draft on these and on 1 and 2, at batch 1.

    Passes start with `context` tokens in the cache; sizes beyond the window are left out, and 1 is always measured.
    Up to `warm_up` rounds come first. Then each round measures every size, so that a slow phase of the machine affects
    all equally. Passes follow each other as in decoding, since the processor's caches matter for small models. Caches
    are cropped between passes, outside the measured time; a model without such a cache reads `context` again in every
    pass.

    Each pass is divided by the plain step of its own round, so that a slow round cancels. An entry is the median of
    these ratios times the median plain step, with the 95% interval of the median ratio from order statistics
    (distribution-free, assuming independent rounds; statistical). The plain step is the unit and has no interval; its
    quartiles are in the provenance.

    A size is measured until its interval is as narrow as the `budget` says (:class:`~spectheory.measure.rounds.Rounds`
    weighs it), `repeats` times at most, 6 times at least. Three quarters of the budget's seconds are for this; what
    they leave after 6 rounds is shared out, with fewer repetitions of a pass that takes long. Intervals hold although
    the values decide when they end (:func:`~spectheory.measure.rounds.median_at`). ``pass_rounds`` of the provenance
    says how it ended, and how many cores other processes used.

    Of a draft head, m are the pairs and drafted tokens that a pass reads (:class:`WarmHead`). The target's passes on
    two tokens or more include taking the hidden states for it; the plain step does not, as plain decoding needs none.
    ``hidden_states`` of the provenance has the seconds that taking them adds to a pass on one token.
    """
    watch, budget = Watch(), budget or Budget()
    sizes, head = _sizes(context, tokens, pair.window, repeats, warm_up), pair.draft.head
    target = WarmModel(pair.target, pair.vocabulary, context, head.layers if head else ())
    draft = WarmHead(pair, context, max(sizes)) if head else WarmModel(pair.draft, pair.vocabulary, context)
    report = on_progress or (lambda done, total: None)

    def measured(number: int, due: set[Pass]) -> Round:
        taken = _round(draft, target, sizes, number, due)
        report(number + 1, warm_up + repeats)
        return taken

    rounds = Rounds(_passes(draft, target, sizes), budget.width, repeats, REPEATED)
    warmed = _measure(rounds, measured, warm_up, budget.seconds, watch)
    found = rounds.medians()
    taking = found.get((TAKING, 1), found[PLAIN]) + -found[PLAIN].best
    provenance = {
        **pair.describe(),
        "batch": 1,
        "read_again": [each.model.name for each in (target, draft) if not each.keeps],
        # What taking hidden states for a head adds to a pass of the target on one token.
        **({"hidden_states": {"layers": list(head.layers), "seconds": taking.as_dict()}} if head else {}),
        "hardware": hardware(),
        "versions": versions(),
        "warm_up": warmed,
        **rounds.as_dict(),
        PASS_ROUNDS: {"wanted": asdict(budget), **watch.as_dict(), **rounds.ended()},
    }
    medians = {model: {m: one for (who, m), one in found.items() if who == model} for model in ("target", "draft")}
    return LatencyTable(medians["target"], medians["draft"], context, provenance)


def _measure(
    rounds: Rounds, measured: Callable[[int, set[Pass]], Round], warm_up: int, seconds: float, watch: Watch
) -> int:
    """Measure rounds to the end; return how many came before, to warm up."""
    warmed = 0
    while warmed < warm_up and (warmed == 0 or watch.seconds < _FOR_WARM_UP * seconds):
        measured(warmed, set(rounds.passes))
        warmed += 1
    while due := rounds.due((1 - _FOR_LOOP) * seconds - watch.seconds):
        rounds.add(measured(warmed + len(rounds.plain), due))
    return warmed


def _passes(draft: WarmModel | WarmHead, target: WarmModel, sizes: Sequence[int]) -> list[Pass]:
    """The passes of a full round, beside the plain step."""
    taking = [(TAKING, 1)] if target.layers else []
    drafts = sorted({*DRAFT_TOKENS, *sizes, *draft.longer})
    return [*taking, *(("target", m) for m in sizes if m > 1), *(("draft", m) for m in drafts)]


def _round(draft: WarmModel | WarmHead, target: WarmModel, sizes: Sequence[int], number: int, due: set[Pass]) -> Round:
    """Seconds of the plain step and of each pass that is due, in the order of decoding.

    For every size there are drafts, then a verifying pass. Steps come in bursts at two places, those of drafts at
    others in every round, and each of these after a target's pass.
    """
    taken: Round = {("draft", m): draft.run(m, keep=m) for m in draft.longer if ("draft", m) in due}
    drafted = bool(taken)  # whether the last pass was a draft's
    bursts: dict[Pass, list[list[float]]] = {}
    sizes = [m for m in sizes if m == 1 or {("target", m), ("draft", m)} & due - {("draft", 2)}]
    sizes = sizes * 2 if len(sizes) == 1 else sizes
    drafts = [("draft", m) for m in DRAFT_TOKENS if ("draft", m) in due]
    targets = [PLAIN, (TAKING, 1)] if (TAKING, 1) in due else [PLAIN]
    for index, m in enumerate(sizes):
        here = [step for i, step in enumerate(drafts) if index in _places(number + i, len(sizes))]
        for step in here:
            if drafted:
                target.run(1, keep=1, alone=True)
            bursts.setdefault(step, []).append(draft.burst(step[1]))
            drafted = True
        if not here:
            draft.run(1, keep=1)  # a target's pass follows a draft's
        drafted = True
        if m not in DRAFT_TOKENS and ("draft", m) in due:
            taken["draft", m] = draft.run(m, keep=m)  # children are drafted for each
        if m > 1 and ("target", m) in due:
            taken["target", m] = target.run(m, keep=m)
            drafted = False
        if index in _places(0, len(sizes)):
            for step in targets[:: 1 if number % 2 else -1]:  # in turn first: the later finds warmer caches
                passes = [target.run(1, keep=1, alone=step == PLAIN) for _ in range(BURST)]
                bursts.setdefault(step, []).append(passes)
            drafted = False
    if drafted:
        target.run(1, keep=1, alone=True)
    taken |= {step: _alone(of_step) if step in targets else _in_a_row(of_step) for step, of_step in bursts.items()}
    return taken


def _places(number: int, sizes: int) -> tuple[int, int]:
    """Where a round of so many sizes has the two bursts of a step."""
    return number % sizes, (number + sizes // 2) % sizes


def _alone(bursts: Sequence[Sequence[float]]) -> float:
    """Median of all passes."""
    return statistics.median(seconds for burst in bursts for seconds in burst)


def _in_a_row(bursts: Sequence[Sequence[float]]) -> float:
    """Median of the bursts' first passes, which follow another model's, averaged with the median of the others."""
    first, others = (burst[0] for burst in bursts), (seconds for burst in bursts for seconds in burst[1:])
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
