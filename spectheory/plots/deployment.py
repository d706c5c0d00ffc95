"""A plan as figures: candidates by speed-up; the best chain length and its speed-up against the batch size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

from spectheory.cost import LatencyTable, LoopedTable
from spectheory.deployment import BatchChoice, Candidate, Deployment, LockStepChoice, Ranking
from spectheory.intervals import Interval
from spectheory.plots.chart import Chart, Dot, Series, rows
from spectheory.plots.prediction import DRAFTED, PLAIN, PREDICTED
from spectheory.plots.style import (
    DISTINCT,
    GREY,
    Axes,
    Figure,
    LineEnd,
    doubling,
    name_ends,
    plain_axes,
    save_figure,
    titled,
    whole_ticks,
)

_MOST_ROWS = 24


def ranking(ax: Axes, ranked: Ranking) -> None:
    """Predicted speed-up of each candidate with its interval, the fastest on top, a look for each draft model."""
    rows(ax, candidates_chart(ranked))


def candidates_chart(ranked: Ranking) -> Chart:
    """The fastest candidates in their order, with a series for each draft model."""
    drafts = dict.fromkeys(map(_drafts, ranked.candidates))
    shown, several = ranked.candidates[:_MOST_ROWS], len(ranked.candidates) > _MOST_ROWS
    cut = f" The first {_MOST_ROWS} of {len(ranked.candidates)} are drawn." if several else ""
    return Chart(
        "candidates",
        "Candidates by speed-up",
        "predicted speed-up over plain decoding, with 95% interval",
        "",
        tuple(Series(name, look) for name, look in zip(drafts, cycle(DISTINCT), strict=False)),
        tuple(
            Dot(
                _drafts(one),
                one.speedup,
                Interval.exact(row),
                one.setting,
                short=_setting(one),
                says=f"{one.speedup.best:.2f}x",
            )
            for row, one in enumerate(shown)
        ),
        words="The fastest setting of each draft, rule and kind of shape, with its 95% interval; left of the broken "
        f"line plain decoding is faster.{cut}",
        assumes=(
            "Tokens per call are exact for the texts of the trace; times are the measured ones, or those of the cost "
            "model that was given.",
            "Intervals are over prompts and latencies together. Settings whose intervals overlap may still differ, "
            "since they share both.",
        ),
        heading=_circumstances(ranked),
        reference=PLAIN,
    )


def _drafts(candidate: Candidate) -> str:
    """What drafts, as the key names it."""
    rule = candidate.prediction.rule
    return f"draft model “{candidate.draft.name}”" if rule.uses_draft else "no draft model"


def _setting(candidate: Candidate) -> str:
    """Rule and shape; the key names the draft."""
    return candidate.setting.removeprefix(f"draft {candidate.draft.name}, ").removesuffix(", no draft model")


def _circumstances(ranked: Ranking) -> str:
    """The target, its temperature, and what seconds include, as far as the best candidate knows."""
    draft = ranked.best.draft
    target, temperature = draft.fact("target", "name"), draft.fact("settings", "sampling", "temperature")
    facts = [
        f"target model “{target}”" if target else "",
        "" if temperature is None else f"temperature {temperature:g}",
    ]
    if isinstance(draft.cost, LatencyTable):
        looped = isinstance(draft.cost, LoopedTable)
        facts += [f"context {draft.cost.context}", "our decoding loop counted" if looped else "passes alone"]
    return ", ".join(filter(None, facts))


def write_plan(answer: Deployment, folder: Path) -> list[Path]:
    """Write ``plan``, and ``batches`` where costs know them."""
    height = 1.4 + 0.27 * min(len(answer.ranking.candidates), _MOST_ROWS)
    draw: dict[str, tuple[Callable[[Figure], None], float, float]] = {
        "plan": (lambda figure: ranking(figure.subplots(), answer.ranking), 9.0, height)
    }
    if answer.batches:
        draw["batches"] = (lambda figure: batches(figure, answer.batches, answer.lock_step), 8.4, 3.6)
    return [file for name, (how, *size) in draw.items() for file in save_figure(how, (size[0], size[1]), folder / name)]


def batches(figure: Figure, choices: Sequence[BatchChoice], together: Sequence[LockStepChoice] = ()) -> None:
    """Best k on the left (0: plain decoding), its speed-up on the right; lock-step batches dashed."""
    lengths, speedups = figure.subplots(1, 2)
    labels: list[LineEnd] = []
    for place, context in enumerate(sorted({choice.context for choice in choices})):
        line = [choice for choice in choices if choice.context == context]
        at, (colour, marker) = [choice.batch for choice in line], DISTINCT[place % len(DISTINCT)]
        lengths.plot(at, [choice.k for choice in line], f"{marker}-", color=colour, markersize=4.5)
        speedups.plot(at, [choice.speedup for choice in line], f"{marker}-", color=colour, markersize=4.5)
        labels.append((at[-1], line[-1].speedup, f"context {context}", colour))
        dashed = [choice for choice in together if choice.context == context]
        for ax, values in ((lengths, [c.k for c in dashed]), (speedups, [c.speedup for c in dashed])):
            ax.plot([c.batch for c in dashed], values, "--", color=colour)
    ticks = _apart(sorted({choice.batch for choice in choices}))
    for ax in (lengths, speedups):
        doubling(ax, ticks)
        ax.set_xlabel("sequences decoded together")
        plain_axes(ax)
    lengths.set_ylim(bottom=-0.2)
    lengths.yaxis.set_major_locator(whole_ticks())
    titled(lengths, "Best k; 0: plain decoding")
    lengths.set_ylabel(DRAFTED)
    speedups.set_ylabel(PREDICTED)
    speedups.axhline(1.0, color=GREY, linewidth=1.0, linestyle=":")
    titled(speedups, "Speed-up there, by the roofline" + ("; dashed: in lock-step" if together else ""))
    name_ends(speedups, labels)


def _apart(batches: Sequence[int]) -> list[int]:
    """Those whose numbers do not run into each other on a logarithmic axis."""
    apart = 0.99 * (batches[-1] / batches[0]) ** 0.1
    kept = [batches[0]]
    for batch in batches[1:]:
        if batch >= apart * kept[-1]:
            kept.append(batch)
    return kept
