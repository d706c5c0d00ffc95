"""Rejections of a batch of M drafts on yin2024's test bed: from Y1 down to the limit Y4."""

from __future__ import annotations

from simulations.counts.quantities import Mean
from simulations.models.recipes import chains_of
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from spectheory.limits import batch_expected_rejections, batch_limit, expected_rejections
from spectheory.plots.batch import draw

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


SWEEP = Sweep(
    "batch",
    "A batch of M drafts: rejections fall from Y1 towards the limit Y4",
    ("Y3", "Y3/printed", "Y4"),
    asks,
    data,
    draw,
    (9.0, 4.4),
)
