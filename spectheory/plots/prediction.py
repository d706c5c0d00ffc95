"""Charts of a prediction: tokens per call of chains and trees with their limits, speed-ups, and these by cost ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from spectheory.cost import ConstantRatio
from spectheory.deployment.candidates import in_words
from spectheory.intervals import Interval
from spectheory.limits.claims import (
    BY_START,
    IDEALISED,
    IID_BRANCHING,
    IID_CHANNEL,
    IID_FORMULA,
    TEXT,
    WHOLE_DECODING,
    LimitClaim,
)
from spectheory.plots.chart import Chart, Dot, Line, Series, curves, write_curves
from spectheory.plots.style import BLACK, GREY, MARKERS, PALETTE, Artist, Axes, Look, looks_of
from spectheory.prediction import Label, Plan, Prediction
from spectheory.prediction.what_if_answer import CostSweep

_CLAIMS = (WHOLE_DECODING, BY_START, IID_FORMULA, TEXT, IID_BRANCHING, IID_CHANNEL)
"""The lines to compare with."""
DRAFTED, PREDICTED = "drafted tokens per call, k", "speed-up over plain decoding"
PLAIN = (1.0, "plain decoding")
_RANGES = "Lists of the most probable tokens alone give some rules a certain range in place of an exact value."


def tokens_per_call(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of chains against k: every rule with its interval, the i.i.d. formula, and the limits of chains.

    T1 and B2' bound what trees give and are drawn by :func:`trees`.
    """
    return curves(ax, tokens_chart(plan, plan.chains))


def trees(ax: Axes, plan: Plan) -> list[Artist]:
    """Tokens per call of trees against their nodes: every rule with ranks, and the limits of such trees.

    T1 depends on the law of a rule's ranks: each rule has its own, in its colour.
    """
    return curves(ax, tokens_chart(plan, plan.trees))


def speedup(ax: Axes, plan: Plan) -> list[Artist]:
    """Predicted speed-up against k for every rule and kind of shape; its interval where each is best."""
    return curves(ax, speedup_chart(plan))


def write_figures(plan: Plan, folder: Path) -> list[Path]:
    """Write ``tokens_per_call``, ``trees`` and, with costs, ``speedup``."""
    of_labels = {"tokens_per_call": plan.chains, "trees": plan.trees}
    charts = {name: tokens_chart(plan, labels) for name, labels in of_labels.items() if labels}
    return write_curves(charts | ({"speedup": speedup_chart(plan)} if plan.timed else {}), folder)


def tokens_chart(plan: Plan, labels: Sequence[Label]) -> Chart:
    """Tokens per call of some labels of a plan; their limits are those of chains if there is one among them."""

    def end(label: Label, top: Prediction) -> str:
        if not label.chain:
            return str(label)
        limit = ",\nthe upper limit" if label.rule == "block" and top.limits.decoding else ""
        rule = f"{top.rule.label}{limit}"
        return f"{top.rule.label}, {label.stop}" if label.stop else rule

    chains = [label for label in labels if label.chain]
    lines = tuple(_of_chains(plan, chains[0]) if chains else _of_trees(plan, labels))
    about = {line.name: line.explained for line in lines}
    ranges = any(p.certified for p in plan.predictions)
    dashed = " Trees of k nodes are dashed." if chains and len(chains) < len(labels) else ""
    around = ", around certain ranges where lists leave one" if ranges else ""
    return Chart(
        "tokens",
        "Tokens per target call",
        DRAFTED if chains else "draft nodes per call, k = P",
        "tokens per target call",
        *_curves(plan, labels, lambda p: p.tokens_per_call, end),
        lines,
        words="Output tokens of one target pass by drafted tokens per call, k. Bands are 95% intervals over prompts"
        f"{around}. Click a name in the legend to see one rule.{dashed}"
        + (f" Choose a limit of {'chains' if chains else 'trees'} to compare with." if lines else ""),
        assumes=(
            "Exact for the measured texts (path theorem); the intervals are for the mean over all prompts of the same "
            "kind.",
            *([_RANGES] if ranges else []),
            *(f"{name}: {explained}" for name, explained in about.items()),
        ),
        heading="Tokens per call of chains; grey: limits (dashed) and values as if i.i.d. (dotted)"
        if chains
        else "Tokens per call of the best trees found; dashed: limit, dotted: values as if i.i.d.",
    )


def speedup_chart(plan: Plan) -> Chart:
    """Speed-ups of all labels of a plan that has costs."""

    def value(prediction: Prediction) -> Interval:
        assert prediction.speedup is not None
        return prediction.speedup

    return Chart(
        "speedup",
        "Predicted speed-up",
        DRAFTED,
        PREDICTED,
        *_curves(
            plan, plan.labels, value, lambda label, top: f"{label}: {value(top).best:.2f}x at k = {top.shape.nodes}"
        ),
        words="Tokens per second over those of plain decoding, the dotted line. Bands are 95% intervals over prompts "
        "and latencies.",
        assumes=("Estimate: measured times of passes, or those of the cost model, and exact tokens per call.",),
        heading="Predicted speed-up; bars: 95% intervals where each is largest",
        reference=PLAIN,
        crowded=True,
    )


def _looks_in(plan: Plan) -> dict[str, Look]:
    """Colour and marker of the rules of a plan, by name: the same in all its charts."""
    return looks_of(p.rule for p in plan.predictions)


def series_of(plan: Plan, labels: Sequence[Label], end: Callable[[Label], str] = str) -> tuple[Series, ...]:
    """A series for each label, in its rule's look; drafts that stop are dashed, and trees beside chains."""
    looks, mixed = _looks_in(plan), any(label.chain for label in labels)
    return tuple(
        Series(str(label), looks[label.rule], end(label), bool(label.stop) or (mixed and not label.chain))
        for label in labels
    )


def _curves(
    plan: Plan,
    labels: Sequence[Label],
    value: Callable[[Prediction], Interval],
    end: Callable[[Label, Prediction], str],
) -> tuple[tuple[Series, ...], tuple[Dot, ...]]:
    """A series for each rule and kind of shape, named at its end by its highest point, and all dots."""
    highest = {label: max(plan.of(label), key=lambda p: value(p).best) for label in labels}
    dots = [
        Dot(str(label), Interval.exact(p.shape.nodes), value(p), str(label)) for label in labels for p in plan.of(label)
    ]
    return series_of(plan, labels, lambda label: end(label, highest[label])), tuple(dots)


def _of_chains(plan: Plan, label: Label) -> Iterator[Line]:
    """What chains are compared with, as the first rule has it; block verification attains B7."""
    in_pictures = (BY_START, IID_FORMULA, TEXT) if plan.of("block") else (WHOLE_DECODING, BY_START, IID_FORMULA, TEXT)
    return _lines(plan.of(label), _CLAIMS, in_pictures)


def _of_trees(plan: Plan, labels: Sequence[Label]) -> Iterator[Line]:
    """What trees are compared with: T1 has the law of a rule's ranks, and its colour."""
    yield from _lines(plan.of(labels[0]), (TEXT, IID_BRANCHING), (TEXT, IID_BRANCHING))
    for rule in dict.fromkeys(label.rule for label in labels):
        first = next(label for label in labels if label.rule == rule)
        yield from _lines(plan.of(first), (IID_CHANNEL,), (IID_CHANNEL,), rule, _looks_in(plan)[rule].colour)


def _lines(
    predictions: Sequence[Prediction],
    claims: Iterable[LimitClaim],
    in_pictures: Sequence[LimitClaim],
    of: str = "",
    colour: str = GREY,
) -> Iterator[Line]:
    """Those that are known; a picture has those that are known at every size."""
    for claim in claims:
        at = tuple((p.shape.nodes, value) for p in predictions if (value := p.compared(claim)) is not None)
        idealised = claim.scope is IDEALISED
        if at:
            whole = claim in in_pictures and len(at) == len(predictions)
            yield Line(claim.words, of, f"{claim.what}. {claim.scope.says}.", at, idealised, whole, colour)


# By cost ratio

_FASTEST = "the fastest"


def costs_chart(costs: CostSweep) -> Chart:
    """A curve over c for each setting that is the fastest somewhere, and the fastest at each c with its interval."""
    settings = {f"{row.rule}, {in_words(row.shape)}".removeprefix(", "): row for row in costs.rows}
    looks = cycle([Look(colour, marker) for colour, marker in zip(PALETTE.values(), MARKERS, strict=False)])
    series = [Series(name, look, name, dashed=True) for name, look in zip(settings, looks, strict=False)]
    dots = [Dot(_FASTEST, Interval.exact(row.c), row.speedup, _FASTEST) for row in costs.rows]
    for name, row in settings.items():
        for c in (each.c for each in costs.rows):
            speedup = ConstantRatio(c).speedup(row.tokens_per_call, row.shape)
            dots.append(Dot(name, Interval.exact(c), Interval.exact(speedup.best), name))
    pays = f"pays up to c = {costs.pays_below:.3g}" if math.isfinite(costs.pays_below) else "some drafts need no pass"
    return Chart(
        "costs",
        "Speed-up at each cost ratio",
        "c, time of a draft pass over that of a target step",
        PREDICTED,
        (*series, Series(_FASTEST, Look(BLACK, "D"))),
        tuple(dots),
        words=f"Diamonds: the fastest setting at each c, with its interval. Dashed: each of them at every c; {pays}.",
        assumes=("A draft pass costs c target steps, a call's verification one; measured latencies do not enter.",),
        heading=f"The fastest setting at each cost ratio (diamonds); {pays}",
        reference=PLAIN,
    )
