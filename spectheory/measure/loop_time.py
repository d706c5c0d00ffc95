"""C2: the time our decoding loop takes outside the models' passes, and whether a table with it may be used again."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from scipy.optimize import nnls

from spectheory.cost import LatencyTable, LoopTime
from spectheory.cost.table import LOOP_ROUNDS, PASS_ROUNDS
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Parallel, Shape
from spectheory.measure.decoders import Call, Method, decode
from spectheory.measure.heads.base import PAIR_BEFORE, Head
from spectheory.measure.machine import Watch, hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.rounds import Budget, Stopped

CALIBRATION: tuple[tuple[str, Shape], ...] = (
    ("token", Chain(1)),
    ("token", Chain(4)),
    ("race", Chain(4)),
    ("token", Chain(8)),
    ("recursive-distinct", KAry((2, 1))),
    ("race", KAry((2, 2, 1))),
    ("race", KAry((4, 2, 1, 1))),
)
"""Rules and shapes that are decoded; the times of other shapes are derived from these."""
CALLS, ROUNDS = 4, 6
"""Calls of a decoding, and decodings of each setting at most."""
AS_MODELS_DO = Sampling()
"""Temperature 1 without cuts."""
LOOP_SAMPLING = "loop_sampling"
"""Key of the loop's sampling in a table's provenance; without it (older versions) the sampling is `AS_MODELS_DO`."""


def with_loop(
    pair: ModelPair,
    table: LatencyTable,
    *,
    sampling: Sampling = AS_MODELS_DO,
    seed: int = 0,
    budget: Budget | None = None,
) -> LatencyTable:
    """The table with the time of our decoding loop, from a few calls after one text at the table's context (estimate).

    Settings are decoded in turn, a few calls each, so that a slow phase of the machine affects all equally. For each
    setting the median time of a call outside the passes is taken in units of the median pass of plain decoding, times
    the table's plain step. The five numbers of :class:`~spectheory.cost.LoopTime` are their non-negative least squares
    fit; rules differ by up to a third. The fit holds for one sampling, named in the provenance: pmfs with a cut or at
    temperature 0 take several times longer to compute.

    Each setting is decoded once at least. More follow until, for every setting, the middle half of the times outside
    the passes differs by less of a call than the `budget` asks; or until the seconds are spent that the table's passes
    left of it. ``loop_rounds`` of the provenance says which.
    """
    watch, budget = Watch(), budget or Budget()
    left = budget.seconds - table.provenance.get(PASS_ROUNDS, {}).get("seconds", 0.0)
    methods = [Method("plain"), *(Method(rule, shape) for rule, shape in _calibration(pair.draft.head))]
    prompt = _prompt(pair, table.context, methods)
    calls: list[list[Call]] = [[] for _ in methods]
    stopped: Stopped | None = None
    number = 0
    while stopped is None:
        for kept, method in zip(calls, methods, strict=True):
            kept += _calls(pair, prompt, method, sampling, seed + number)
        number += 1
        seconds = watch.seconds
        if max(map(_spread, calls)) <= budget.width:
            stopped = "width"
        elif number == ROUNDS:
            stopped = "repeats"
        elif seconds * (number + 1) / number > left:  # another decoding of each setting would exceed it
            stopped = "budget"
    how = {"stopped": stopped, "repeats": number, "spread": max(map(_spread, calls)), **watch.as_dict()}
    provenance = {**table.provenance, LOOP_SAMPLING: dataclasses.asdict(sampling), LOOP_ROUNDS: how}
    return dataclasses.replace(table, loop=_fitted(pair, table, methods, calls), provenance=provenance)


def _fitted(
    pair: ModelPair, table: LatencyTable, methods: Sequence[Method], calls: Sequence[Sequence[Call]]
) -> LoopTime:
    """The loop's times from the calls of plain decoding and of the other methods."""
    (_, *drafted), (plain, *others) = methods, calls
    unit = table.target_pass(1).best / statistics.median(call.target_seconds for call in plain)
    parallel = pair.draft.head is not None and pair.draft.head.parallel
    shapes = [method.shape for method in drafted if isinstance(method.shape, Shape)]
    passes = [shape.by(Parallel()) if parallel else shape for shape in shapes]
    return fit_loop(passes, [unit * _outside(kept) for kept in others], unit * _outside(plain))


def _calibration(head: Head | None) -> list[tuple[str, Shape]]:
    """What a draft can decode: a parallel head chains, each head as deep as it goes."""
    if head is None:
        return list(CALIBRATION)
    most = math.inf if head.deepest is None else head.deepest
    wanted = [each for each in CALIBRATION if not head.parallel or each[1].is_chain]
    return [(rule, shape) for rule, shape in wanted if shape.depth <= most]


def fit_loop(shapes: Sequence[Shape], seconds: Sequence[float], plain: float) -> LoopTime:
    """The non-negative loop times that fit these seconds per call of these shapes best (least squares)."""
    names = ("call", "draft_pass", "node", "tree")
    units = [LoopTime(plain=0.0, **{other: float(other == name) for other in names}) for name in names]
    system = np.array([[one.of(shape) for one in units] for shape in shapes])
    found, _ = nnls(system, np.asarray(seconds, dtype=float))
    return LoopTime(plain, **dict(zip(names, found.tolist(), strict=True)))


def _prompt(pair: ModelPair, context: int, methods: Sequence[Method]) -> torch.Tensor:
    """Arbitrary tokens, as many as are cached, or as leave room for the calls."""
    room = context if pair.window is None else min(context, pair.window - max(map(_tokens, methods)))
    least = PAIR_BEFORE if pair.draft.head else 1
    return torch.arange(max(room, least)) % pair.vocabulary


def _tokens(method: Method) -> int:
    """Tokens that leave every call room for the full depth, whatever is accepted."""
    return CALLS * (method.depth + 1) + method.depth


def _calls(pair: ModelPair, prompt: torch.Tensor, method: Method, sampling: Sampling, seed: int) -> list[Call]:
    """A few calls; where the window ends, those that drafted the full depth of the shape if there are any."""
    tokens = _tokens(method) if pair.window is None else min(_tokens(method), pair.window - len(prompt))
    how = partial(decode, sampling=sampling, seed=seed, stop_at_end=False, calls=CALLS)
    (text,) = how(pair, [prompt], method, tokens=tokens)
    return [call for call in text.calls if call.depth == method.depth] or list(text.calls)


def _outside(calls: Sequence[Call]) -> float:
    """Median seconds of a call outside both models' passes."""
    return statistics.median(call.outside for call in calls)


def _spread(calls: Sequence[Call]) -> float:
    """Middle half of the seconds outside the passes, relative to the median call."""
    low, high = np.quantile([call.outside for call in calls], (0.25, 0.75))
    return float(high - low) / statistics.median(call.seconds for call in calls)


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
    described = {**pair.describe(), "hardware": hardware(), "versions": versions()}
    same = {name: table.provenance.get(name) == value for name, value in described.items()}
    same["context"] = table.context == context
    same["tokens of a pass"] = max(table.target) >= longest
    same["loop"] = table.loop is not None
    same["sampling"] = table.provenance.get(LOOP_SAMPLING, dataclasses.asdict(AS_MODELS_DO)) == dataclasses.asdict(
        sampling
    )
    same["width of its intervals"] = budget is None or not _could_be_narrower(table, budget)
    return tuple(name for name, equal in same.items() if not equal)


def _could_be_narrower(table: LatencyTable, budget: Budget) -> bool:
    """Whether passes or loop ended wider than the `budget` asks, though it allows more rounds and more time."""
    passes, loop = (table.provenance.get(key) or {} for key in (PASS_ROUNDS, LOOP_ROUNDS))
    spent = passes.get("seconds", 0.0) + loop.get("seconds", 0.0)
    given = {"width": spent, "budget": passes.get("wanted", {}).get("seconds", spent), "repeats": math.inf}
    wide = {"passes": max(passes.get("widths", {}).values(), default=0.0), "loop": loop.get("spread", 0.0)}
    return any(
        wide[what] > budget.width and budget.seconds > given.get(ended.get("stopped", ""), math.inf)
        for what, ended in (("passes", passes), ("loop", loop))
    )
