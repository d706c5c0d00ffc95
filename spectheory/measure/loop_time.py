"""C2: the time our decoding loop takes outside the models' passes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from scipy.optimize import nnls

from spectheory.cost import LoopTime
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Parallel, Shape
from spectheory.measure.decoders import Call, Method, decode
from spectheory.measure.heads.base import PAIR_BEFORE
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
CALLS = 3
"""Calls of a decoding: the fewest of which the median leaves out one that something delays."""
AS_MODELS_DO = Sampling()
"""Temperature 1 without cuts."""


def _time_loop(
    pair: ModelPair, context: int, plain: float, *, sampling: Sampling = AS_MODELS_DO, seed: int = 0
) -> LoopTime:
    """Seconds of our decoding loop outside the passes, from a few calls after one text of `context` tokens (estimate).

    Every setting of :data:`CALIBRATION` that is no deeper than a head drafts is decoded once, trees of a parallel head
    in one pass. Its median time of a call outside the passes is taken in units of the median pass of plain decoding,
    times the plain step, which takes `plain` seconds. The five numbers of :class:`~spectheory.cost.LoopTime` are their
    non-negative least squares fit; rules differ by up to a third. The fit holds for one sampling: pmfs with a cut or at
    temperature 0 take several times longer to compute.
    """
    head = pair.draft.head
    deepest = math.inf if head is None or head.deepest is None else head.deepest
    methods = [Method("plain"), *(Method(rule, shape) for rule, shape in CALIBRATION if shape.depth <= deepest)]
    prompt = _prompt(pair, context, methods)
    (alone, *others) = (_calls(pair, prompt, method, sampling, seed) for method in methods)
    unit = plain / statistics.median(call.target_seconds for call in alone)
    shapes = [method.shape for method in methods if isinstance(method.shape, Shape)]
    passes = [shape.by(Parallel()) if head is not None and head.parallel else shape for shape in shapes]
    return _fit_loop(passes, [unit * _outside(calls) for calls in others], unit * _outside(alone))


def _fit_loop(shapes: Sequence[Shape], seconds: Sequence[float], plain: float) -> LoopTime:
    """The non-negative loop times that fit these seconds per call of these shapes best (least squares)."""
    names = ("call", "draft_pass", "node", "tree")
    units = [LoopTime(plain=0.0, **{other: float(other == name) for other in names}) for name in names]
    system = np.array([[one.of(shape) for one in units] for shape in shapes])
    solution, _ = nnls(system, np.asarray(seconds, dtype=float))
    return LoopTime(plain, **dict(zip(names, solution.tolist(), strict=True)))


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
