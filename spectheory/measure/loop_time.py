"""C2: the time our decoding loop takes outside the models' passes, and whether a table with it may be used again."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import nnls

from spectheory.cost import LatencyTable, LoopTime
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Shape, in_one_pass
from spectheory.measure.decoders import Call, Method, decode
from spectheory.measure.heads.base import PAIR_BEFORE, Head
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair

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
TOKENS, ROUNDS = 24, 3
AS_MODELS_DO = Sampling()
"""Temperature 1 without cuts."""
LOOP_SAMPLING = "loop_sampling"
"""Key of the loop's sampling in a table's provenance; without it (older versions) the sampling is `AS_MODELS_DO`."""


def with_loop(
    pair: ModelPair, table: LatencyTable, *, sampling: Sampling = AS_MODELS_DO, seed: int = 0
) -> LatencyTable:
    """The table with the time of our decoding loop, from a few decodings of one text at the table's context (estimate).

    Settings are decoded alternately, so that a slow phase of the machine affects all equally. For each setting the
    median time of a call outside the passes is taken in units of the median pass of plain decoding, times the table's
    plain step. The five numbers of :class:`~spectheory.cost.LoopTime` are their non-negative least squares fit; rules
    differ by up to a third. The fit holds for one sampling, named in the provenance: pmfs with a cut or at temperature
    0 take several times longer to compute.
    """
    prompt, calibration = _prompt(pair, table.context), _calibration(pair.draft.head)
    plain: list[Call] = []
    calls: list[list[Call]] = [[] for _ in calibration]
    for number in range(ROUNDS):
        plain += _calls(pair, prompt, Method("plain"), sampling, seed + number)
        for kept, (rule, shape) in zip(calls, calibration, strict=True):
            kept += _calls(pair, prompt, Method(rule, shape), sampling, seed + number)
    unit = table.target_pass(1).best / statistics.median(call.target_seconds for call in plain)
    parallel = pair.draft.head is not None and pair.draft.head.parallel
    shapes = [in_one_pass(shape) if parallel else shape for _, shape in calibration]
    fitted = fit_loop(shapes, [unit * _outside(kept) for kept in calls], unit * _outside(plain))
    provenance = {**table.provenance, LOOP_SAMPLING: dataclasses.asdict(sampling)}
    return dataclasses.replace(table, loop=fitted, provenance=provenance)


def _calibration(head: Head | None) -> list[tuple[str, Shape]]:
    """What a draft can decode: a parallel head chains, each head as deep as it goes."""
    if head is None:
        return list(CALIBRATION)
    most = math.inf if head.deepest is None else head.deepest
    wanted = [each for each in CALIBRATION if not head.parallel or isinstance(each[1], Chain)]
    return [(rule, shape) for rule, shape in wanted if shape.depth <= most]


def fit_loop(shapes: Sequence[Shape], seconds: Sequence[float], plain: float) -> LoopTime:
    """The non-negative loop times that fit these seconds per call of these shapes best (least squares)."""
    names = ("call", "draft_pass", "node", "tree")
    units = [LoopTime(plain=0.0, **{other: float(other == name) for other in names}) for name in names]
    system = np.array([[one.of(shape) for one in units] for shape in shapes])
    found, _ = nnls(system, np.asarray(seconds, dtype=float))
    return LoopTime(plain, **dict(zip(names, found.tolist(), strict=True)))


def _prompt(pair: ModelPair, context: int) -> torch.Tensor:
    """Arbitrary tokens, as many as are cached halfway through the decoding."""
    room = context if pair.window is None else min(context, pair.window - TOKENS)
    least = PAIR_BEFORE if pair.draft.head else 1
    return torch.arange(max(room - TOKENS // 2, least)) % pair.vocabulary


def _calls(pair: ModelPair, prompt: torch.Tensor, method: Method, sampling: Sampling, seed: int) -> list[Call]:
    """Calls that drafted the full depth of the shape; near the end of a text calls are shorter."""
    (text,) = decode(pair, [prompt], method, tokens=TOKENS, sampling=sampling, seed=seed, stop_at_end=False)
    depth = method.shape.depth if isinstance(method.shape, Shape) else 0
    return [call for call in text.calls if call.depth == depth] or list(text.calls)


def _outside(calls: Sequence[Call]) -> float:
    """Median seconds of a call outside both models' passes."""
    return statistics.median(call.seconds - call.draft_seconds - call.target_seconds for call in calls)


def differences(
    table: LatencyTable, pair: ModelPair, *, context: int, longest: int, sampling: Sampling
) -> tuple[str, ...]:
    """Names of what differs between a kept table and one of this run, such as ``hardware``."""
    described = {**pair.describe(), "hardware": hardware(), "versions": versions()}
    same = {name: table.provenance.get(name) == value for name, value in described.items()}
    same["context"] = table.context == context
    same["tokens of a pass"] = max(table.target) >= longest
    same["loop"] = table.loop is not None
    same["sampling"] = table.provenance.get(LOOP_SAMPLING, dataclasses.asdict(AS_MODELS_DO)) == dataclasses.asdict(
        sampling
    )
    return tuple(name for name, equal in same.items() if not equal)
