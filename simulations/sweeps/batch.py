"""Rejections of a batch of M drafts on yin2024's test bed: from Y1 down to the limit Y4."""

from __future__ import annotations

from simulations.counts import Mean
from simulations.models.pairs import chains_of
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve, dots
from spectheory.limits import batch_expected_rejections, batch_limit, expected_rejections
from spectheory.plots.style import BLUE, GREY, ORANGE, Figure, Look, caption, doubling, note

TITLE = "A batch of M drafts: rejections fall from Y1 towards the limit Y4"
STATEMENTS = ("Y3", "Y3/printed", "Y4")
SIZE = (9.0, 4.4)

LENGTH = 50
TEST_BED = {"chains": "yin2024", "length": LENGTH}
DRAFTS = (1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256)
BY_POSITION = (4, 5)
"""Batches that the paper names; their rejections are compared position by position."""
PRINTED = (2, 4, 5, 16, 64)
DRAWN = (*range(1, 17), *(round(2 ** (i / 3)) for i in range(13, 31)))
"""Sizes at which the exact line is worked out."""
INTENDED = Look(BLUE, "o")


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


def draw(figure: Figure, data: Data) -> None:
    """Rejections against M, from one draft to the limit of many, and what is above the limit on logarithmic scales."""
    rejections, above = figure.subplots(1, 2, width_ratios=(1.25, 1))
    drafts, values = ([row[name] for row in data["exact"]] for name in ("drafts", "value"))
    most, one, limit, exact = drafts[-1], data["one"], data["limit"], dict(zip(drafts, values, strict=True))
    rejections.axhline(one, color=GREY, linewidth=1, linestyle=":")
    rejections.axhline(limit, color=GREY, linewidth=1, linestyle="--")
    intended, printed = (([row["drafts"] for row in data[name]], data[name]) for name in ("intended", "printed"))
    curve(rejections, drafts, values, INTENDED, seen=intended[1], at=intended[0], width=1)
    dots(rejections, *printed, Look(ORANGE, "D"), filled=False, size=5)
    rejections.set(
        title="Rejections of a batch of drafts",
        ylabel=f"rejections per text of T = {data['length']} tokens",
        xlim=(0.85, 1.15 * most),
        ylim=(limit - 0.9, one + 0.9),
    )
    for height, text, lift, colour in (
        (one, f"Algorithm 4 as printed: as one draft, Y1 = {one:.3f}", 7, ORANGE),
        (limit, f"limit of many drafts, Y4 = {limit:.3f} (exact)", -13, GREY),
    ):
        note(rejections, text, (most, height), (0, lift), colour, 8.5, ha="right")
    for m, seen in zip(*intended, strict=True):
        if m in data["named"]:
            text = f"M = {m}: {seen['best']:.3f}, exact {exact[m]:.3f}"
            note(rejections, text, (m, seen["best"]), (9, 5), BLUE, 8.5)
    at = (20, limit + 0.29 * (one - limit))
    rejections.annotate("as intended: all M first\ntokens are tried (Y3, exact)", at, fontsize=8.5, color=BLUE)
    lifted = [{end: row[end] - limit for end in ("low", "best", "high")} for row in intended[1]]
    curve(above, drafts, [value - limit for value in values], INTENDED, seen=lifted, at=intended[0], width=1)
    above.set(title="What more drafts can still save", ylabel="rejections above the limit Y4", yscale="log")
    for ax in (rejections, above):
        doubling(ax, [2**i for i in range(0, most.bit_length(), 2)])
        ax.set_xlabel("drafts in the batch, M")
    caption(figure, f"Lines: exact; markers: {data['texts']:,} simulated texts each, with 95% intervals.")
