"""Write what engines did, `results/engines/*.json`, into docs/engines.md and docs/figures/engines.*; `make engines`.

The table has a row for each way to draft: the calls by k, and the rule that runs. The figure has expected against
counted tokens per call. A row of it is a judgement as JSON has it: a black line is what the engine counted, a marker
with a 95% interval what a rule expects of the same texts. Refuted rules are hollow and crossed out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft, engine_settings
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
from spectheory.reports.table import Cell, Column, Table
from spectheory.trace import SAMPLED_TEXT, SOURCES, Trace

ROOT = Path(__file__).parents[1]
ANSWERS = ROOT / "benchmarks" / "results" / "engines"
PAGE = ROOT / "docs" / "engines.md"
FIGURE = ROOT / "docs" / "figures" / "engines"
ORDER = ("openvino", "onnxruntime", "vllm", "vllm-repaired", "llama.cpp")
DRAWN_K = 3
BEGIN, END = "<!-- written by benchmarks/_engines_page.py -->", "<!-- end -->"

Content = Mapping[str, Any]
Interval = tuple[float, float, float]
"""Low, best and high."""

NORMAL_95 = 1.96
_LANE = 0.11
"""Vertical distance of rules that stand at nearly the same place, in rows."""
_NEAR = 0.06
"""What is nearly the same place, as a share of the width."""


# The page


def answers() -> list[dict[str, Any]]:
    """The saved answers in the page's order."""
    return [json.loads(file.read_text()) for name in ORDER if (file := ANSWERS / f"{name}.json").exists()]


def lines(temperature: float) -> str:
    """What `spectheory plan` prints for the engines that ran, for a pair whose draft is mostly right."""
    ran = {engine["engine"] for answer in answers() for engine in answer["engines"]}
    columns = {
        "log_target": np.full(60, -0.3),
        "log_draft": np.full(60, -0.4),
        "draft_rank": np.array([1, 1, 1, 2] * 15),
        "greedy_agreement": np.array([True, True, True, False] * 15),
    }
    settings = {"sampling": {"temperature": temperature}}
    models = {name: {"name": name.upper(), "dtype": "bfloat16"} for name in ("target", "draft")}
    sources = {SOURCES: {"target": "TARGET", "draft": "DRAFT"}}
    provenance = {**models, **sources, "settings": settings, "origin": SAMPLED_TEXT}
    plain = Trace.from_log_probabilities([(columns["log_target"], columns["log_draft"])] * 2)
    both = {name: np.tile(values, 2) for name, values in columns.items()}
    trace = Trace(both, plain.texts, provenance)
    listed = engine_settings([Draft("DRAFT", trace, ConstantRatio(0.1))])
    blocks = [f"*{one.engine} {one.version}*\n\n```\n{one.paste.strip()}\n```" for one in listed if one.engine in ran]
    return "\n\n".join(blocks)


def section() -> str:
    """What stands between the marks."""
    parts = [BEGIN, engines_table(answers()).markdown]
    for temperature in (0.0, 1.0):
        parts += [f"### What `plan` prints at temperature {temperature:g}", lines(temperature)]
    return "\n\n".join([*parts, END])


def renewed(page: str) -> str:
    """The page with its section written again."""
    before, _, rest = page.partition(BEGIN)
    return before + section() + rest.partition(END)[2]


# Its table


def engines_table(answers: Sequence[Content]) -> Table:
    """Calls counted and expected of the stated rule, its deviations in brackets, for each engine, temperature and way
    to draft; then the rules that fit at every k, or the cause, and whether the output is right.
    """
    engines = [engine for answer in answers for engine in answer["engines"]]
    groups = [group for engine in engines for group in _groups(engine)]
    ks = sorted({run["k"] for _, runs in groups for run in runs if run["k"]})
    names = ("engine", "T", "drafts", "judged as", *(f"k = {k}" for k in ks), "rule that runs", "output")
    columns = [Column(name, kind="names") for name in names]
    rows = [[name, *_setting(runs[0]), *_calls(runs, ks), rule_that_runs(runs), _output(runs)] for name, runs in groups]
    return Table("Engines", columns, rows)


def figure_rows(answers: Sequence[Content], k: int) -> Iterator[dict[str, Any]]:
    """The runs of one k as the figure has them."""
    for engine in (engine for answer in answers for engine in answer["engines"]):
        for run in engine["runs"]:
            if run["k"] == k and "counts" in run:
                about = {
                    "engine": engine["engine"],
                    "version": engine["version"],
                    "provenance": {"drafts": run["drafts"]},
                }
                yield {**run, **about, "output_refuted": not run["output"]["right"]}


def rule_that_runs(runs: Sequence[Content]) -> str:
    """The stated rule if it fits at every k; else the causes that were found, or the rules that fit at every k."""
    drafting = [run for run in runs if "counts" in run]  # an impossible text has none
    if not drafting:
        return ""
    rule = drafting[0]["counts"]["rule"]
    if all(run["counts"]["fits"] for run in drafting):
        return rule
    causes = dict.fromkeys(cause["cause"] for run in drafting for cause in run["causes"])
    fitting = [name for name in drafting[0]["fitting"] if all(name in run["fitting"] for run in drafting)]
    outcome = ", ".join(causes) or " or ".join(fitting) or "none fits"
    return f"not {rule}: {outcome}"


def _groups(engine: Content) -> Iterator[tuple[str, list[Content]]]:
    """The runs of each temperature and way to draft; the engine's name where it changes."""
    groups: dict[Any, list[Content]] = {}
    for run in engine["runs"]:
        groups.setdefault((run["temperature"], bool(run["k"]), run["drafts"]), []).append(run)
    for number, runs in enumerate(groups.values()):
        yield "" if number else f"{engine['engine']} {engine['version']}, {engine['date'][:10]}", runs


def _setting(run: Content) -> list[str]:
    if not run["k"]:
        return [f"{run['temperature']:g}", "none", ""]
    rule = run["counts"]["rule"] if "counts" in run else ""
    return [f"{run['temperature']:g}", run["drafts"] or "first choices", rule]


def _calls(runs: Sequence[Content], ks: Sequence[int]) -> list[str | Cell]:
    by_k = {run["k"]: run["counts"]["calls"] for run in runs if "counts" in run}
    return [_cell(by_k[k]) if k in by_k else "" for k in ks]


def _cell(calls: Content) -> str:
    """Counted / expected, and the deviations where something is random."""
    low, high = calls["expected"]["low"], calls["expected"]["high"]
    expected = f"{low:.0f}" if round(low) == round(high) else f"{low:.0f}..{high:.0f}"
    z = f" ({calls['z']:+.1f})" if calls["z"] is not None and calls["deviation"] > 1e-3 else ""
    return f"{calls['counted']} / {expected}{z}"


def _output(runs: Sequence[Content]) -> str:
    wrong = [run for run in runs if not run["output"]["right"]]
    if not wrong:
        return "right"
    return "WRONG" if len(wrong) == len(runs) else f"WRONG at k = {', '.join(str(run['k']) for run in wrong)}"


# Its figure


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
    intervals = [{each["rule"]: expected(answer, each["calls"]) for each in answer["rules"]} for answer in answers]
    most = max([counted(answer) for answer in answers] + [high for row in intervals for *_, high in row.values()])
    ax.set_xlim(1.0, 1.0 + 1.08 * (most - 1.0))
    for height, (answer, row) in enumerate(zip(answers, intervals, strict=True)):
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
    """The engine and the setting of each row."""
    for answer in answers:
        name = drawable(f"{answer['engine']} {answer['version']}".strip())
        temperature = "" if answer["temperature"] is None else f", T = {answer['temperature']:g}"
        drafts = answer.get("provenance", {}).get("drafts")
        how = f", {drafts} drafts" if drafts and answer["temperature"] else ""
        yield f"{name}\nk = {answer['k']}{temperature}{how}"


def verdict(answer: Content) -> str:
    """What counts and output say, in a few words."""
    fits = f"{' or '.join(answer['fitting'][:2])} fits" if answer["fitting"] else ""
    wrong = ["output REFUTED"] if answer.get("output_refuted") else []
    if answer["refuted"]:
        wrong = [f"{' and '.join(answer['stated']) or 'every rule'} REFUTED", *wrong]
    return "\n".join(filter(None, ["; ".join(wrong), fits]))


def lanes(row: Mapping[str, Interval], width: float) -> dict[str, float]:
    """Heights of rules beside their row: those at nearly the same place stand one above the other."""
    heights: dict[str, float] = {}
    group: list[str] = []
    for rule in [*sorted(row, key=lambda one: row[one][1]), None]:
        if group and (rule is None or row[rule][1] - row[group[-1]][1] > _NEAR * width):
            heights |= {one: _LANE * (i - (len(group) - 1) / 2) for i, one in enumerate(group)}
            group = []
        group += [rule] if rule is not None else []
    return heights


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


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
    write_figure(list(figure_rows(answers(), DRAWN_K)), FIGURE)
