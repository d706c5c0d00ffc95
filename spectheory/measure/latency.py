"""C2: seconds of one pass of each model on m tokens with a filled cache, in groups of rounds."""

from __future__ import annotations

import json
import math
import statistics
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from spectheory.checks import whole
from spectheory.cost import LatencyTable, TimedGroup
from spectheory.cost.table import PASSES, ROUNDS
from spectheory.distributions import Sampling
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.measure.heads.base import AutoregressiveReading, HiddenStates
from spectheory.measure.loop_time import AS_MODELS_DO, _time_loop
from spectheory.measure.machine import Watch, free_bytes, hardware, versions, wait_for
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading
from spectheory.measure.rounds import GROUPS, PLAIN, Budget, Pass, Round, Rounds, share
from spectheory.store import Contents, Store
from spectheory.trace.parquet import parts_of

BURST = 3
"""Draft passes, or plain steps, in a row."""
_LONGER = 64
"""Pairs, or an eighth of its context, that a head reads beyond it before it reads the context again."""


class WarmModel:
    """A model with `context` tokens in its cache; `layers` are the hidden states that a head takes of it."""

    firsts: Collection[int] = ()

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


class _WarmHead:
    """A head after `context` pairs of its target. A pass includes embeddings and the output matrix.

    The first pass of a call reads pairs; the others of an autoregressive head are on drafted tokens. A parallel head
    has one pass: on m tokens it reads one pair and drafts m, or as many as it can. `firsts` are the pairs that the
    first pass of a call reads, the last token and what was accepted: those of `sizes` that a call of it can reach.
    """

    keeps = True

    def __init__(self, pair: ModelPair, context: int, sizes: Sequence[int]) -> None:
        head = pair.draft.head
        assert head is not None
        self.model, self.head, self.context, self.vocabulary = pair.draft, head, context, pair.vocabulary
        with HiddenStates(pair.target.network, head.layers) as states:
            ids = torch.arange(context) % pair.vocabulary
            Reading(pair.target, pair.vocabulary).read(ids[None])
            self._hidden = states.take()[0].to(pair.draft.device, head.dtype)
        self._most, self.reading = head.trained if head.deepest is None else head.deepest, head.reading()
        self.firsts = sizes if head.deepest is None else sizes[: bisect_left(sizes, head.deepest + 1) + 1]
        self._begin()

    def _begin(self) -> None:
        """Read the context."""
        self.reading = self.head.reading()
        self.reading.read(self._hidden, self._some_tokens(self.context))

    def _some_tokens(self, count: int) -> torch.Tensor:
        return torch.arange(count, device=self.model.device) % self.vocabulary

    def run(self, tokens: int, keep: int) -> float:
        """Seconds of one pass on `tokens`, with logits after all of them (`keep`) or after the last."""
        if not self.head.parallel and keep > 1 and self.head.deepest != 1:
            return self._extended([tokens])[0]
        return self.first(1, min(tokens, self._most) if self.head.parallel else 1)

    def burst(self, tokens: int) -> list[float]:
        """Seconds of the passes of a chain, one after the other; of a parallel head the same pass several times.

        On more than one token these are levels of a tree, which only a call's later passes read.
        """
        if self.head.parallel or self.head.deepest == 1:
            return [self.run(tokens, keep=1) for _ in range(BURST)]
        if tokens > 1:
            return [self.run(tokens, keep=tokens) for _ in range(BURST)]
        return [self.first(1), *self._extended([1] * (min(BURST, self.head.deepest or BURST) - 1))]

    def first(self, pairs: int, drafts: int | None = None) -> float:
        """Seconds of reading pairs and drafting after the last: what a first pass drafts, or so many."""
        drafts = drafts or (self._most if self.head.parallel else 1)
        if self.reading.pairs + pairs > self.context + max(_LONGER, self.context // 8) + 2 * self._most:
            self._begin()
        reading, last = self.reading, torch.tensor([self.reading.pairs + pairs - 1], device=self.model.device)
        hidden = self._hidden[torch.arange(pairs) % self.context]

        def work() -> None:
            reading.read(hidden, self._some_tokens(pairs))
            list(reading.depths(last, self._some_tokens(drafts - 1)[None], drafts))

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
TAKING: Pass = ("target with hidden states", 1)
"""The target's pass on one token with its hidden states taken for a head; plain decoding takes none."""
BEFORE = 3
"""Groups before the prompts: the fewest of which an interval is of some use."""
FEWEST_GROUPS = 4
"""Groups however long they take."""
ROUNDS_OF_A_GROUP = 5
"""Rounds of a group at most, unless more are asked for."""
_FOR_LOOP, _FOR_WARM_UP = 0.25, 0.02
"""Shares of the seconds: of a group's, what the decoding loop may take; of all, after which nothing more warms up."""
_FREE = 0.5
"""Share of the free memory above which weights stay where they are: those of a mapped file would be there twice."""
LOOP_SAMPLING = "loop_sampling"
"""Key of the loop's sampling in a table's provenance; without it (older versions) the sampling is `AS_MODELS_DO`."""


def measure_latency(
    pair: ModelPair,
    *,
    context: int,
    tokens: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    rounds: int = ROUNDS_OF_A_GROUP,
    warm_up: int = 5,
    budget: Budget | None = None,
    loop: Sampling | None = None,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> LatencyTable:
    """Measure seconds per pass: the target on each of `tokens`, the draft on these and on 1 and 2, at batch 1.

    Passes start with `context` tokens in the cache; sizes beyond the window are left out, and 1 is always measured.
    Passes follow each other as in decoding, since the processor's caches matter for small models. Caches are cropped
    between passes, outside the measured time; a model without such a cache reads `context` again in every pass.

    Times come in groups of at most `rounds` rounds; every round measures every size. Each group begins with new caches
    and with weights in another place of main memory, which small models' times depend on, and with a round that warms
    up; the first with up to `warm_up` of them. Groups are the unit of error (:meth:`spectheory.cost.LatencyTable.of`).
    There are 8 of them, or fewer if the seconds of the `budget` do not allow it, at least 4; the first may be followed
    by other work (:class:`Timing`). ``rounds`` of the provenance says how they ended, and how many cores other
    processes used.

    With `loop` each group also times our decoding loop with that sampling
    (:func:`~spectheory.measure.loop_time._time_loop`).

    Of a draft head, m are the drafted tokens that a pass reads, and the first pass of a call is also timed by the pairs
    that it reads (:class:`_WarmHead`). The target's passes on two tokens or more include taking the hidden states for
    it; the plain step does not, as plain decoding needs none. ``hidden_states`` of the provenance has the seconds that
    taking them adds to a pass on one token.
    """
    timing = Timing(pair, context, tokens, rounds, warm_up, budget or Budget(), loop, seed, on_progress)
    timing.reach(1.0)
    return timing.table


@dataclass
class Timing:
    """The latencies of a pair on their way: groups of rounds, spread over whatever is measured meanwhile.

    `groups` are those that are measured. The other fields are the arguments of :func:`measure_latency`.
    """

    pair: ModelPair
    context: int
    tokens: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)
    rounds: int = ROUNDS_OF_A_GROUP
    warm_up: int = 5
    budget: Budget = field(default_factory=Budget)
    loop: Sampling | None = None
    seed: int = 0
    on_progress: Callable[[int, int], None] | None = None
    on_group: Callable[[TimedGroup], object] = lambda group: None
    groups: list[TimedGroup] = field(default_factory=list)
    _warm: bool = False
    _read_again: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tokens = _sizes(self.context, self.tokens, self.pair.window, self.rounds, self.warm_up)
        self._described, self._threads = _described(self.pair), torch.get_num_threads()

    @property
    def count(self) -> int:
        """How many groups there will be: as many as the budget allows if all take what those so far took."""
        if not self.groups:
            return GROUPS
        fitting = self.budget.seconds / statistics.fmean(group.seconds for group in self.groups)
        return max(FEWEST_GROUPS, len(self.groups), min(GROUPS, math.floor(fitting)))

    def reach(self, part: float) -> None:
        """Measure the groups that are due when a part of the other work is done: some before it, the last after it."""
        while len(self.groups) < BEFORE + math.floor(part * (self.count - BEFORE)):
            self.groups.append(self._group())
            self.on_group(self.groups[-1])
            if self.on_progress:
                self.on_progress(len(self.groups), self.count)

    @property
    def table(self) -> LatencyTable:
        """The latencies from the groups so far."""
        return LatencyTable.of(self.groups, self.context, self._provenance())

    def _group(self) -> TimedGroup:
        """Measure a group on as many threads as the first one, whatever other work uses."""
        now = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            return self._measured(Watch(), self.budget.seconds / GROUPS)
        finally:
            torch.set_num_threads(now)

    def _measured(self, watch: Watch, seconds: float) -> TimedGroup:
        """A group within so many seconds: new caches, rounds that warm up, rounds, the loop."""
        head, vocabulary = self.pair.draft.head, self.pair.vocabulary
        for model in (self.pair.target, self.pair.draft):
            _place_anew(model)
        target = WarmModel(self.pair.target, vocabulary, self.context, head.layers if head else ())
        draft = (
            _WarmHead(self.pair, self.context, self.tokens)
            if head
            else WarmModel(
                replace(self.pair.draft, common=None), min(vocabulary, self.pair.draft.outputs), self.context
            )
        )
        self._read_again = [one.model.name for one in (target, draft) if not one.keeps]
        number = 0
        while number < (min(1, self.warm_up) if self._warm else self.warm_up):
            if number and watch.seconds > _FOR_WARM_UP * self.budget.seconds:
                break
            _round(draft, target, self.tokens, number)
            number += 1
        self._warm, rounds, stopped = True, Rounds(), ""
        began = watch.seconds
        while not stopped:
            rounds.add(_round(draft, target, self.tokens, number + len(rounds.plain)))
            spent, done = watch.seconds - began, len(rounds.plain)
            if rounds.width() <= self.budget.width:
                stopped = "width"
            elif done == self.rounds:
                stopped = "rounds"
            elif began + spent * (done + 1) / done > (1 - _FOR_LOOP) * seconds:  # another round would exceed it
                stopped = "budget"
        times = rounds.medians()
        loop = None
        if self.loop is not None:
            seed = self.seed + len(self.groups)
            loop = _time_loop(self.pair, self.context, times[PLAIN], sampling=self.loop, seed=seed)
        return TimedGroup(
            **{who: {m: times[one, m] for one, m in times if one == who} for who in PASSES},
            loop=loop,
            rounds=len(rounds.plain),
            seconds=watch.seconds,
            others=watch.others,
            stopped=stopped,
            with_hidden_states=times.get(TAKING),
        )

    def _provenance(self) -> dict[str, Any]:
        table = LatencyTable.of(self.groups, self.context)
        entries = {(who, m): one for who in PASSES for m, one in getattr(table, who).items()}
        seconds = {key: one.best for key, one in entries.items()}
        widths = {key: share(key, seconds) * (one.high - one.low) / one.best for key, one in entries.items()}
        reasons = [group.stopped for group in self.groups]
        ended = {
            "wanted": asdict(self.budget),
            "seconds": math.fsum(group.seconds for group in self.groups),
            "others": table.others,
            "groups": len(self.groups),
            "rounds": sum(group.rounds for group in self.groups),
            "stopped": next(reason for reason in ("budget", "rounds", "width") if reason in reasons),
            "widths": {f"{who} {m}": width for (who, m), width in widths.items() if (who, m) != PLAIN},
        }
        layers = list(self.pair.draft.head.layers) if self.pair.draft.head else []
        return {
            **self._described,
            "batch": 1,
            "read_again": self._read_again,
            **({"hidden_states": {"layers": layers, "seconds": _taking(self.groups).as_dict()}} if layers else {}),
            **({} if self.loop is None else {LOOP_SAMPLING: asdict(self.loop)}),
            ROUNDS: ended,
        }


def _described(pair: ModelPair) -> dict[str, Any]:
    """What a table says of its origin, and what must be the same where it is used again."""
    return {**pair.describe(), "hardware": hardware(), "versions": versions()}


def _place_anew(model: Model) -> None:
    """Move the weights that are in main memory to another place in it, if it has room; their values stay."""
    here = [weights for weights in model.network.parameters() if weights.device.type == "cpu"]
    if sum(weights.nbytes for weights in here) < _FREE * free_bytes(torch.device("cpu")):
        for weights in here:
            weights.data = weights.data.clone()


def _taking(groups: Sequence[TimedGroup]) -> Interval:
    """Seconds that taking hidden states adds to a plain step, with the 95% interval over groups (statistical)."""
    both = [
        replace(one, target={1: one.target[1], 2: one.with_hidden_states or 0.0}, draft={}, first={}) for one in groups
    ]
    table = LatencyTable.of(both, 0)
    return table.target[2] + -table.target[1].best


_KEPT = Contents(
    "groups of timed rounds",
    1,
    "groups of timed rounds",
    TraceError,
    "delete it and run again",
    "groups of another run",
    "models, machine, context, sampling and passes must be the same",
    itemgetter("run"),
)


@contextmanager
def kept_beside(path: Path, timing: Timing) -> Iterator[None]:
    """Keep each group of a timing beside its table at `path` as soon as it is measured; the end writes the table.

    Groups that an earlier run of the same pair on the same machine left come first.
    """
    run = {
        **_described(timing.pair),
        "context": timing.context,
        "tokens": list(timing.tokens),
        LOOP_SAMPLING: None if timing.loop is None else asdict(timing.loop),
        "budget": asdict(timing.budget),
    }
    store = Store(parts_of(path), _KEPT, {"run": json.loads(json.dumps(run))})
    try:
        store.check()
    except TraceError:
        store.path.unlink()
    with store:
        timing.groups += [TimedGroup.of_dict(row.content) for row in store.earlier]
        timing.on_group = lambda group: store.add(group.as_dict())
        yield
        timing.table.write(path)
    store.path.unlink()


def differences(
    table: LatencyTable,
    pair: ModelPair,
    *,
    context: int,
    longest: int,
    sampling: Sampling,
    budget: Budget | None = None,
) -> tuple[str, ...]:
    """Names of what differs between a kept table and one of this run, such as ``hardware``.

    A table is as good as a new one unless its intervals are wider than the `budget` asks and could be narrower.
    """
    same = {name: table.provenance.get(name) == value for name, value in _described(pair).items()}
    same["context"] = table.context == context
    same["tokens of a pass"] = max(table.target) >= longest
    same["groups of rounds"] = bool(table.groups)
    same["first passes"] = pair.draft.head is None or bool(table.first)
    same["loop"] = table.loop is not None
    same["sampling"] = table.provenance.get(LOOP_SAMPLING, asdict(AS_MODELS_DO)) == asdict(sampling)
    same["width of its intervals"] = budget is None or not _could_be_narrower(table, budget)
    return tuple(name for name, equal in same.items() if not equal)


def _could_be_narrower(table: LatencyTable, budget: Budget) -> bool:
    """Whether intervals are wider than the `budget` asks, and rounds ended by a width or time that it exceeds."""
    ended = table.provenance.get(ROUNDS, {})
    wanted = Budget(**ended["wanted"]) if "wanted" in ended else budget
    more = {"width": budget.width < wanted.width, "budget": budget.seconds > wanted.seconds}
    wide = max(ended.get("widths", {}).values(), default=0.0) > budget.width
    return wide and more.get(ended.get("stopped", ""), False)


def _round(draft: WarmModel | _WarmHead, target: WarmModel, sizes: Sequence[int], number: int) -> Round:
    """Seconds of the plain step and of every other pass, in the order of decoding.

    For every size there are drafts, then a verifying pass. Steps come in bursts at two places, those of drafts at
    others in every round, and each of these after a target's pass.
    """
    taken: Round = {}
    drafted = False  # whether the last pass was a draft's
    bursts: dict[Pass, list[list[float]]] = {}
    sizes = sizes if len(sizes) > 1 else [*sizes, *sizes]
    drafts = [("draft", m) for m in DRAFT_TOKENS]
    targets = [PLAIN, TAKING] if target.layers else [PLAIN]
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
        if m not in DRAFT_TOKENS:
            taken["draft", m] = draft.run(m, keep=m)  # children are drafted for each
        if m > 1:
            taken["target", m] = target.run(m, keep=m)
            drafted = False
        if m in draft.firsts:
            if drafted:
                target.run(1, keep=1)
            taken["first", m] = draft.first(m)  # type: ignore[union-attr]  # a head
            drafted = True
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


def _sizes(context: int, tokens: Sequence[int], window: int | None, rounds: int, warm_up: int) -> list[int]:
    for name, value, least in (
        ("context", context, 1),
        ("rounds", rounds, 1),
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
