"""Rejections of a batch of M drafts on yin2024's test bed: from Y1 down to the limit Y4."""

from __future__ import annotations

from typing import Any

from simulations.counts.quantities import Mean
from simulations.models.recipes import chains_of
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from spectheory.limits import batch_expected_rejections, batch_limit, expected_rejections
from spectheory.plots.style import BLUE, GREY, ORANGE, Axes, Figure, caption, doubling, note, plain_axes, titled

LENGTH = 50
TEST_BED = {"chains": "yin2024", "length": LENGTH}
DRAFTS = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)
BY_POSITION = (4, 5)
"""Batches that the paper names; their rejections are compared position by position."""
PRINTED = (2, 4, 5, 16, 64)
DRAWN = (*range(1, 17), *(round(2 ** (i / 3)) for i in range(13, 31)))
"""Sizes at which the exact line is worked out."""


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Algorithm 4 as intended and as printed."""
    return (*(_ask(scale, "intended", m) for m in DRAFTS), *(_ask(scale, "printed", m) for m in PRINTED))


def _ask(scale: Scale, name: str, drafts: int) -> Ask:
    parameters = {**TEST_BED, "drafts": drafts}
    if name == "printed" or drafts not in BY_POSITION:
        parameters["positions"] = False
    if name == "printed":
        parameters["printed"] = True
    return ask(f"M = {drafts}, {name}", "batch", parameters, scale, trials=scale.pick(160_000, 1_600_000))


def data(scale: Scale, tallies: Tallies) -> Data:
    """Observed means beside the exact numbers and their limits."""
    chains = chains_of(TEST_BED)
    return {
        "length": LENGTH,
        "named": BY_POSITION,
        "texts": scale.pick(160_000, 1_600_000),
        "one": float(expected_rejections(*chains)),
        "limit": float(batch_limit(*chains)),
        "exact": [{"drafts": m, "value": float(batch_expected_rejections(*chains, drafts=m))} for m in DRAWN],
        "intended": [_seen(tallies, "intended", m) for m in DRAFTS],
        "printed": [_seen(tallies, "printed", m) for m in PRINTED],
    }


def _seen(tallies: Tallies, name: str, drafts: int) -> Data:
    return {"drafts": drafts, **vars(Mean("rejections", 0, LENGTH).estimate(tallies[f"M = {drafts}, {name}"]))}


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Rejections against M, and how much of them is above the limit."""
    rejections, above = figure.subplots(1, 2, width_ratios=(1.25, 1))
    draw_rejections(rejections, data)
    draw_above(above, data)
    for ax in (rejections, above):
        doubling(ax, [2**i for i in range(0, data["exact"][-1]["drafts"].bit_length(), 2)])
        ax.set_xlabel("drafts in the batch, M")
        plain_axes(ax)
    caption(figure, f"Lines: exact; markers: {data['texts']:,} simulated texts each, with 95% intervals.")


def draw_rejections(ax: Axes, data: dict[str, Any]) -> None:
    """Rejections per text against M, from one draft to the limit of many."""
    most = data["exact"][-1]["drafts"]
    ax.axhline(data["one"], color=GREY, linewidth=1, linestyle=":")
    ax.axhline(data["limit"], color=GREY, linewidth=1, linestyle="--")
    ax.plot([row["drafts"] for row in data["exact"]], [row["value"] for row in data["exact"]], color=BLUE, linewidth=1)
    dots(ax, [row["drafts"] for row in data["intended"]], data["intended"], BLUE)
    dots(ax, [row["drafts"] for row in data["printed"]], data["printed"], ORANGE, marker="D", filled=False, size=5)
    ax.set_xlim(0.85, 1.15 * most)
    ax.set_ylim(data["limit"] - 0.9, data["one"] + 0.9)
    ax.set_ylabel(f"rejections per text of T = {data['length']} tokens")
    titled(ax, "Rejections of a batch of drafts")
    notes = (
        (data["one"], f"Algorithm 4 as printed: as one draft, Y1 = {data['one']:.3f}", 7, ORANGE),
        (data["limit"], f"limit of many drafts, Y4 = {data['limit']:.3f} (exact)", -13, GREY),
    )
    for height, text, lift, colour in notes:
        note(ax, text, (most, height), (0, lift), colour, 8.5, ha="right")
    for row in data["intended"]:
        if row["drafts"] in data["named"]:
            exact = next(each["value"] for each in data["exact"] if each["drafts"] == row["drafts"])
            text = f"M = {row['drafts']}: {row['best']:.3f}, exact {exact:.3f}"
            note(ax, text, (row["drafts"], row["best"]), (9, 5), BLUE, 8.5)
    at = (20, data["limit"] + 0.29 * (data["one"] - data["limit"]))
    ax.annotate("as intended: all M first\ntokens are tried (Y3, exact)", at, fontsize=8.5, color=BLUE)


def draw_above(ax: Axes, data: dict[str, Any]) -> None:
    """What is above the limit, on logarithmic scales."""
    limit = data["limit"]
    ax.plot(
        [row["drafts"] for row in data["exact"]],
        [row["value"] - limit for row in data["exact"]],
        color=BLUE,
        linewidth=1,
    )
    lifted = [{end: row[end] - limit for end in ("low", "best", "high")} for row in data["intended"]]
    dots(ax, [row["drafts"] for row in data["intended"]], lifted, BLUE)
    ax.set_yscale("log")
    ax.set_ylabel("rejections above the limit Y4")
    titled(ax, "What more drafts can still save")


SWEEP = Sweep(
    "batch",
    "A batch of M drafts: rejections fall from Y1 towards the limit Y4",
    ("Y3", "Y3/printed", "Y4"),
    asks,
    data,
    draw,
    (9.0, 4.4),
)
