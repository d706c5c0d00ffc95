"""Expected against counted tokens per call, by engine, setting and rule, from saved judgements alone.

A row is a judgement as JSON has it (:func:`spectheory.reports.judgement.content`): a black line is what the engine
counted, a marker with a 95% interval what a rule expects of the same texts. Refuted rules are hollow and crossed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.plots.style import (
    BLACK,
    GREY,
    LOOKS,
    Axes,
    Figure,
    Look,
    caption,
    drawable,
    note,
    plain_axes,
    save_figure,
)

Content = Mapping[str, Any]
Interval = tuple[float, float, float]
"""Low, best and high."""

NORMAL_95 = 1.96
_LANE = 0.11
"""Vertical distance of rules that stand at nearly the same place, in rows."""
_NEAR = 0.06
"""What is nearly the same place, as a share of the width."""


def draw(figure: Figure, answers: Sequence[Content]) -> None:
    """One panel, and what its marks mean below it."""
    draw_judgements(figure.subplots(), answers)
    caption(
        figure,
        "Black line: counted.  Marker: expected of the same texts by rule; bar: 95% of runs.  "
        "Crossed: refuted by all counts.",
    )


def draw_judgements(ax: Axes, answers: Sequence[Content]) -> None:
    """Rows by engine and setting in the order given, the names of rules with their markers above."""
    rules = list(dict.fromkeys(each["rule"] for answer in answers for each in answer["rules"]))
    looks = {rule: LOOKS.get(rule, Look(GREY, "o")) for rule in rules}
    drawn = [{each["rule"]: expected(answer, each["calls"]) for each in answer["rules"]} for answer in answers]
    most = max([counted(answer) for answer in answers] + [high for row in drawn for *_, high in row.values()])
    ax.set_xlim(1.0, 1.0 + 1.08 * (most - 1.0))
    for height, (answer, row) in enumerate(zip(answers, drawn, strict=True)):
        _row(ax, height, answer, row, looks)
    ax.set_ylim(len(answers) - 0.45, -0.55)
    ax.set_yticks(range(len(answers)), list(labels(answers)))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("tokens per call")
    plain_axes(ax)
    _key(ax, looks)


def write_figure(answers: Sequence[Content], path: Path) -> list[Path]:
    """Write the figure of some judgements as PNG and SVG; `path` is without suffix."""
    return save_figure(lambda figure: draw(figure, answers), (9.0, 1.6 + 0.42 * len(answers)), path)


def decoded(answer: Content) -> int:
    """Output tokens of calls: all, or without those that the prompts' own passes emit."""
    return int(answer["tokens"]) - int(answer["requests"]) * bool(answer["prefill_emits_token"])


def counted(answer: Content) -> float:
    """Tokens per call as the engine counted them; each rule has the same counts."""
    return decoded(answer) / max(answer["rules"][0]["calls"]["counted"], 1)


def expected(answer: Content, calls: Content) -> Interval:
    """Tokens per call that a rule expects of the texts, and where 95% of runs on them would lie."""
    low, high = calls["expected"]["low"], calls["expected"]["high"]
    reach, tokens = NORMAL_95 * calls["deviation"], decoded(answer)
    fewest = max(low - reach, 1.0)
    return tokens / (high + reach), tokens / ((low + high) / 2), tokens / fewest


def labels(answers: Sequence[Content]) -> Iterator[str]:
    """Setting of each row, below the engine's name where that changes."""
    before = None
    for answer in answers:
        name = drawable(f"{answer['engine']} {answer['version']}".strip())
        temperature = "" if answer["temperature"] is None else f", T = {answer['temperature']:g}"
        drafts = answer.get("provenance", {}).get("drafts")
        how = f", {drafts} drafts" if drafts and answer["temperature"] else ""
        above = f"{name}\n" if name != before else ""
        yield f"{above}k = {answer['k']}{temperature}{how}"
        before = name


def verdict(answer: Content) -> str:
    """What counts and output say, in a few words."""
    fits = f"{' or '.join(answer['fitting'][:2])} fits" if answer["fitting"] else ""
    wrong = ["output REFUTED"] if answer.get("output_refuted") else []
    if answer["refuted"]:
        wrong = [f"{' and '.join(answer['stated']) or 'every rule'} REFUTED", *wrong]
    return "\n".join(filter(None, ["; ".join(wrong), fits]))


def lanes(row: Mapping[str, Interval], width: float) -> dict[str, float]:
    """Heights of rules beside their row: those at nearly the same place stand one above the other."""
    found: dict[str, float] = {}
    group: list[str] = []
    for rule in [*sorted(row, key=lambda one: row[one][1]), None]:
        if group and (rule is None or row[rule][1] - row[group[-1]][1] > _NEAR * width):
            found |= {one: _LANE * (i - (len(group) - 1) / 2) for i, one in enumerate(group)}
            group = []
        group += [rule] if rule is not None else []
    return found


def _row(ax: Axes, height: int, answer: Content, row: Mapping[str, Interval], looks: Mapping[str, Look]) -> None:
    left, right = ax.get_xlim()
    at = lanes(row, right - left)
    ax.plot([counted(answer)] * 2, [height - 0.36, height + 0.36], color=BLACK, linewidth=1.6, zorder=2)
    for each in answer["rules"]:
        low, best, high = row[each["rule"]]
        (colour, marker), y = looks[each["rule"]], height + at[each["rule"]]
        ax.plot([low, high], [y, y], color=colour, linewidth=1.2, zorder=3)
        ax.plot(best, y, marker, color=colour, mfc="white" if each["refuted"] else colour, ms=6.5, mew=1.2, zorder=4)
        if each["refuted"]:
            ax.plot(best, y, "x", color=colour, ms=4, mew=1.0, zorder=5)
    weight = "bold" if answer["refuted"] or answer.get("output_refuted") else "normal"
    at_end = {"xycoords": ax.get_yaxis_transform(), "va": "center", "annotation_clip": False, "weight": weight}
    note(ax, verdict(answer), (1.0, height), (6, 0), BLACK, 8, **at_end)


def _key(ax: Axes, looks: Mapping[str, Look]) -> None:
    """The rules' names with their markers, in a line above the rows."""
    for rule, look in looks.items():
        ax.plot([], [], look.marker, color=look.colour, markersize=6.5, label=rule)
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(looks), handletextpad=0.1, columnspacing=1.2)
