"""The branching bounds against simulated best trees, for six families of random pmfs: how loose each form is.

For each family and P = 1 to 4096: B1's leading term, both forms of B2, B2', B3' and E[X] of the best tree with its 95%
interval, written to ``results/branching_families.json`` and drawn to ``docs/figures/branching_families.png``. With
``--table`` (the table of ``docs/branching_limits.md``) or ``--figure`` the results on file are used again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _machine import print_machine
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from proofs_check.pmf_families import CAPACITIES, FAMILIES, MIXED, population, sampler
from spectheory.limits import StepLaw, branching_bound, random_tree_value, renewal_bound

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "branching_families.json"
FIGURE = HERE.parent / "docs" / "figures" / "branching_families.png"

PMFS, TOKENS = 2048, 256
TREES, TREES_OF_MIXED = 120, 960
"""Enough that the 95% interval ends below B2' everywhere."""

FORMS = ("published", "lorden", "best_t", "sharp")

LINES = (("better_of_b2", "B2", "#E69F00"), ("sharp", "B2′", "#D55E00"), ("numeric", "B3′", "#009E73"))
"""Bounds that are drawn, from above: key, label, colour (Okabe and Ito's palette)."""
BLUE, GREY = "#0072B2", "#555555"

Row = dict[str, Any]


def measure() -> list[Row]:
    """Every family at every capacity."""
    rows: list[Row] = []
    for name in FAMILIES:
        pmfs = population(name, PMFS, TOKENS)
        law = StepLaw.from_pmfs(pmfs)
        for capacity in CAPACITIES:
            trees = TREES_OF_MIXED if name == MIXED else TREES
            value = random_tree_value(sampler(pmfs), capacity, trees, rng=capacity)
            row: Row = {"family": name, "capacity": capacity, "mu": law.mean, "mu2": law.second_moment}
            row |= {form: branching_bound(None, None, capacity, form, step_law=law) for form in FORMS}
            row["leading"] = (1 + law.second_moment / law.mean) * math.log(capacity) / law.mean
            row["numeric"] = renewal_bound(law, capacity).high
            row["better_of_b2"] = min(row["lorden"], row["best_t"])
            row |= {"low": value.low, "best": value.best, "high": value.high, "trees": trees}
            rows.append(row)
            assert row["high"] <= row["sharp"], "E[X] is below B2', at 95%"
            assert row["numeric"] <= row["sharp"] <= row["better_of_b2"]
    return rows


def of_family(rows: list[Row], name: str) -> list[Row]:
    """The rows of a family, by capacity."""
    return [row for row in rows if row["family"] == name]


def panel(ax: Axes, rows: list[Row]) -> None:
    """One family: bounds as lines, simulated E[X] as dots; B1's leading term until it leaves the panel."""
    capacities = [row["capacity"] for row in rows]
    top = 1.3 * rows[-1]["better_of_b2"]
    ax.plot(capacities, [row["leading"] for row in rows], "--", color=GREY, linewidth=1.2)
    for key, _, colour in LINES:
        ax.plot(capacities, [row[key] for row in rows], color=colour, linewidth=1.6)
    best = [row["best"] for row in rows]
    ends = [[abs(row[end] - row["best"]) for row in rows] for end in ("low", "high")]
    ax.errorbar(capacities, best, ends, fmt="o", color=BLUE, markersize=5, capsize=3, clip_on=False, zorder=3)
    ax.set_xscale("log", base=4)
    ax.set_xticks(capacities, [f"{n:,}" for n in capacities])
    ax.minorticks_off()
    ax.set_xlim(1, capacities[-1])
    ax.set_ylim(0, top)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    name_ends(ax, capacities[-1], [("best", "E[X]", BLUE), *reversed(LINES)], rows[-1], top / 14)
    leaves = math.exp(top / (rows[-1]["leading"] / math.log(capacities[-1])))
    note = f"B1's leading term alone, no bound\nat P = 1; {rows[-1]['leading']:.1f} at P = {capacities[-1]:,}"
    at = {"xytext": (4, -1), "textcoords": "offset points", "color": GREY, "fontsize": 8, "va": "top"}
    ax.annotate(note, (leaves, top), **at)
    slope = 1 + rows[0]["mu2"] / rows[0]["mu"]
    ax.set_title(
        f"{rows[0]['family']}\nμ = {rows[0]['mu']:.2f} nats, slope of B1 {slope:.1f}/μ", fontsize=9, loc="left"
    )


def name_ends(ax: Axes, right: float, lines: Sequence[tuple[str, str, str]], row: Row, gap: float) -> None:
    """The name of each line beyond its end, from below, pushed apart."""
    height, far = -math.inf, 1.4 * right
    for key, label, colour in lines:
        height = max(row[key], height + gap)
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
        ax.annotate("", (right, row[key]), (far, height), arrowprops=leader, annotation_clip=False)
        at = {"xytext": (2, 0), "textcoords": "offset points", "color": colour, "fontsize": 8, "va": "center"}
        ax.annotate(label, (far, height), annotation_clip=False, **at)


def draw(rows: list[Row]) -> None:
    """All families as small multiples."""
    figure = Figure(figsize=(11, 6.6), layout="constrained")
    axes = figure.subplots(2, 3)
    for ax, name in zip(axes.flat, FAMILIES, strict=True):
        panel(ax, of_family(rows, name))
    for ax in axes[1]:
        ax.set_xlabel("draft nodes per call, P", fontsize=9)
    for ax in axes[:, 0]:
        ax.set_ylabel("predicted tokens per call, E[X]", fontsize=9)
    figure.savefig(FIGURE, dpi=160)


def table(rows: list[Row]) -> str:
    """The results as a Markdown table: P = 64 and P = 4096, and the slope between them."""
    small, large = 64, CAPACITIES[-1]
    lines = [
        "| family | μ | μ₂ | P | B1 leading | B2 | B2′ | B3′ | E[X] | slope of E[X]·μ | slope of B1·μ |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in FAMILIES:
        by_capacity = {row["capacity"]: row for row in of_family(rows, name)}
        first, last = by_capacity[small], by_capacity[large]
        slope = (last["best"] - first["best"]) / math.log(large / small) * last["mu"]
        for row in (first, last):
            numbers = [row[key] for key in ("leading", "better_of_b2", "sharp", "numeric")]
            value = f"{row['best']:.2f} ± {(row['high'] - row['low']) / 2:.2f}"
            ends = [f"{slope:.2f}", f"{1 + row['mu2'] / row['mu']:.2f}"] if row is last else ["", ""]
            begin = [name, f"{row['mu']:.2f}", f"{row['mu2']:.2f}"] if row is first else ["", "", ""]
            cells = [*begin, f"{row['capacity']:,}", *(f"{n:.2f}" for n in numbers), value, *ends]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Compute, write and draw; or print the table of what is on file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true", help="print the results on file as a Markdown table")
    parser.add_argument("--figure", action="store_true", help="draw the results on file")
    options = parser.parse_args()
    if options.figure:
        draw(json.loads(RESULTS.read_text(encoding="utf-8")))
    elif not options.table:
        print_machine()
        began = time.perf_counter()
        rows = measure()
        RESULTS.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        draw(rows)
        print(f"{len(rows)} rows in {time.perf_counter() - began:.0f} s")
    print(table(json.loads(RESULTS.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
