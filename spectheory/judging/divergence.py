"""Is greedy output right? Where a text leaves the target's first choices, and whether rounding explains it (§13).

At temperature 0 a right engine outputs the target's first choice at every position of its own text. Precision and order
of summation move logits a little, so near-equal logits may change places: a *tie*. A larger gap is a *fault*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from spectheory.errors import SettingError, TextError, TraceError, argument
from spectheory.judging.output import OutputTest
from spectheory.trace import LAYERS, Trace
from spectheory.trace.calls import CallLog

Kind = Literal["tie", "fault", "unknown"]

UNIT_ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Largest relative error of one rounding, by precision."""
ROUNDINGS = {"float64": 32.0, "float32": 32.0, "float16": 8.0, "bfloat16": 8.0}
"""Roundings of the largest logit by which the difference of two logits may be off.

16-bit models add in float32 and round what they store; wider ones round their sums too. Each number is about twice the
largest error seen at 1264 positions of two built-in models of 2 and 12 layers: 4.7, and 19.5 in float32.
"""
CALIBRATED_LAYERS = 12
"""Errors of deeper models are taken to grow with the root of their layers, as independent roundings add."""


GREEDY = "each token is the target's first choice given the text before it, up to rounding"
"""The null hypothesis at temperature 0."""
_NEEDED = {"target_rank", "target_gap", "target_margin", "target_scale"}
_OTHER_NAMES = {"half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16", "f32": "float32"}


@dataclass(frozen=True)
class Divergence:
    """A token of a text that is not the target's first choice, or not that of plain decoding.

    - `text`, `position`: the request, and the tokens before.
    - `token`, `other`: its id, and that of plain decoding; None where it is unknown, or the text had ended.
    - `gap`: nats from the first choice down to the token; `margin`: nats from the first choice to the second. Both are
      differences of logits; NaN where the trace ends before.
    - `bound`: nats that rounding explains (an estimate, :func:`rounding_bound`).
    """

    text: str
    position: int
    token: int | None
    gap: float
    margin: float
    bound: float
    other: int | None = None

    @property
    def size(self) -> float:
        """Nats that rounding must explain: the gap; against plain decoding the first two choices must be close too."""
        return self.gap if self.other is None else max(self.gap, self.margin)

    @property
    def kind(self) -> Kind:
        """A tie if rounding explains it."""
        if math.isnan(self.size):
            return "unknown"
        return "tie" if self.size <= self.bound else "fault"


def rounding_bound(scale: float, dtype: str, layers: int | None = None) -> float:
    """Nats by which the difference of two logits may be off, `scale` the largest absolute logit (an estimate).

    The unit of rounding of the precision, times the logit's size, times :data:`ROUNDINGS`, times the root of the layers
    beyond :data:`CALIBRATED_LAYERS`. Unknown precisions, such as 8-bit weights, are a ``SettingError``: their errors
    are not roundings of logits.

    Examples
    --------
    >>> rounding_bound(16.0, "bfloat16"), round(rounding_bound(16.0, "float32") * 1e6, 1)
    (0.5, 30.5)
    """
    if dtype not in UNIT_ROUNDING:
        raise SettingError(
            f"dtype is {dtype!r}", limit=f"rounding is known of {', '.join(UNIT_ROUNDING)}", remedy="name one of these"
        )
    deeper = math.sqrt(max(1.0, (layers or 0) / CALIBRATED_LAYERS))
    return scale * UNIT_ROUNDING[dtype] * ROUNDINGS[dtype] * deeper


def divergences(trace: Trace, *, dtype: str = "") -> tuple[Divergence, ...]:
    """Every token of a judged trace that is not the target's first choice, in the order of the texts.

    Each position is judged given the text before it, so that a text may be off more than once. `dtype` is the engine's
    precision; the coarser of it and the trace's counts.
    """
    columns = trace.columns
    if missing := _NEEDED - set(columns):
        raise TraceError(
            f"the trace lacks {', '.join(sorted(missing))}",
            limit="gaps are read from the target's logits",
            remedy="read the output with both models: "
            + argument("spectheory.measure.judged.judged_trace", "spectheory judge --target and --draft"),
        )
    off = (columns["target_rank"] != 1).nonzero()[0]
    return tuple(_at(trace, int(row), coarser(trace, dtype)) for row in off)


def greedy_tests(trace: Trace, *, dtype: str = "") -> tuple[OutputTest, ...]:
    """Whether texts of temperature 0 are the target's first choices up to ties: one test, or none without the columns.

    Nothing is random: a fault is certain up to the estimate of rounding, so that p is 0 or 1. A precision that is
    unknown here, as that of quantised weights, counts as that of the trace.
    """
    if not set(trace.columns) >= _NEEDED:
        return ()
    used = known_dtype(dtype)
    places = divergences(trace, dtype=used)
    faults = sum(one.kind == "fault" for one in places)
    scale = float(np.median(trace.columns["target_scale"]))
    return (
        OutputTest(
            name="first choices",
            asks=in_words(places, len(trace.texts)),
            statistic=float(faults),
            symbol="tokens off",
            p=float(faults == 0),
            side="estimate",
            approximation="what rounding explains is estimated from built-in models",
            smallest=rounding_bound(scale, coarser(trace, used), trace.provenance.get(LAYERS)),
            unit="nats below the first choice, at a token",
            tokens=len(trace),
            text=next((one.text for one in places if one.kind == "fault"), ""),
            null=GREEDY,
        ),
    )


def engine_dtype(log: CallLog) -> str:
    """Precision in which an engine ran, as its log or its settings say; empty if unknown."""
    settings = log.provenance.get("settings")
    within = settings.get("dtype") if isinstance(settings, Mapping) else None
    return known_dtype(str(log.provenance.get("dtype") or within or ""))


def known_dtype(name: str) -> str:
    """A precision by its usual name; empty if its rounding is not known here."""
    short = name.removeprefix("torch.")
    known = _OTHER_NAMES.get(short, short)
    return known if known in UNIT_ROUNDING else ""


def against_plain(log: CallLog, plain: CallLog, trace: Trace, *, dtype: str = "") -> tuple[Divergence, ...]:
    """Where texts with speculation first differ from those of the same engine without it, matched by request.

    `trace` is the judged trace of `log`. Up to there both texts are the same, so its gap and margin are those of plain
    decoding too. Texts of which one was cut at a limit are compared as far as both go. Requests that `plain` lacks are
    a ``TextError``.
    """
    texts = {request.id: request for request in plain.requests}
    if missing := [request.id for request in log.requests if request.id not in texts]:
        raise TextError(
            f"request {missing[0]!r} is not in the log without speculation ({len(missing)} are not)",
            limit="both logs need the same requests",
            remedy="run the same prompts in both ways",
        )
    places, start, used = [], 0, coarser(trace, dtype)
    for ours in log.requests:
        other = texts[ours.id]
        pairs = zip(ours.output, other.output, strict=False)
        shared = min(len(ours.output), len(other.output))
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), shared)
        shorter = ours if len(ours.output) < len(other.output) else other
        if at < shared or (len(ours.output) != len(other.output) and shorter.ended):
            places.append(_against(ours.output, other.output, ours.id, at, start, trace, used))
        start += len(ours.output)
    return tuple(places)


def in_words(places: Sequence[Divergence], texts: int, *, what: str = "the target's first choices") -> str:
    """The answer in one sentence; `what` the texts should be, as ``"those of plain decoding"``."""
    if not places:
        return f"All {texts} texts are {what}."
    by_kind = {kind: [one for one in places if one.kind == kind] for kind in ("fault", "unknown", "tie")}
    kind = next(kind for kind, ones in by_kind.items() if ones)
    number = len({one.text for one in by_kind[kind]})
    if kind == "fault":
        worst = max(by_kind[kind], key=lambda one: one.size)
        return (
            f"{number} of {texts} texts leave {what} by more than rounding explains: text {worst.text!r}, token "
            f"{worst.position + 1}, {worst.gap:.2g} nats below the first choice, margin {worst.margin:.2g}, "
            f"rounding {worst.bound:.2g}."
        )
    if kind == "unknown":
        return f"{number} of {texts} texts end before {what}: their margin there is unknown."
    widest = max(places, key=lambda one: one.size)
    return (
        f"{number} of {texts} texts leave {what}, at ties alone: "
        f"gaps of at most {widest.size:.2g} nats, where rounding explains {widest.bound:.2g}."
    )


def _at(trace: Trace, row: int, dtype: str) -> Divergence:
    text, position = trace.locate(row)
    columns, layers = trace.columns, trace.provenance.get(LAYERS)
    gap, margin, scale = (float(columns[name][row]) for name in ("target_gap", "target_margin", "target_scale"))
    token = int(columns["token"][row]) if "token" in columns else None
    return Divergence(text.id, position, token, gap, margin, rounding_bound(scale, dtype, layers))


def _against(
    ours: Sequence[int], other: Sequence[int], text: str, at: int, start: int, trace: Trace, dtype: str
) -> Divergence:
    """The divergence of two texts after `at` shared tokens; -1 stands for the end of a text."""
    theirs = other[at] if at < len(other) else -1
    if at >= len(ours):
        return Divergence(text, at, None, math.nan, math.nan, math.nan, theirs)
    one = _at(trace, start + at, dtype)
    return Divergence(text, at, ours[at], one.gap, one.margin, one.bound, theirs)


def coarser(trace: Trace, dtype: str) -> str:
    """The coarser precision of the engine and of the trace, by its error."""
    target = trace.provenance.get("target")
    of_trace = str(target.get("dtype", "float32")) if isinstance(target, Mapping) else "float32"
    return max((dtype or of_trace, of_trace), key=lambda name: UNIT_ROUNDING.get(name, math.inf))
