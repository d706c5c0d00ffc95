"""Rejections when drafts run to the horizon: one draft (Y1), a batch (Y3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulations.counts.quantities import Mean, Share
from simulations.models.recipes import chains_of
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.limits import rejection_profile


@predicts("rejections")
def rejections(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Rejections of one draft, in all and by position."""
    yield from _profile(parameters, "Y1", 1)


@predicts("rejections-running")
def rejections_running(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Rejections of one draft, in all."""
    yield from _profile({**parameters, "positions": False}, "Y1", 1)


@predicts("batch")
def batch(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Those of a batch, one draft being Y1; as printed, Algorithm 4 rejects as if it had one."""
    if parameters.get("printed", False):
        yield from _profile(parameters, "Y3/printed", 1)
    else:
        yield from _profile(parameters, "Y1" if parameters["drafts"] == 1 else "Y3", parameters["drafts"])


def _profile(parameters: dict[str, Any], statement: str, drafts: int) -> Iterator[Predicted]:
    length = parameters["length"]
    profile = rejection_profile(*chains_of(parameters), drafts=drafts, horizon=length)
    yield Predicted("rejections per text", statement, Mean("rejections", 0, length), float(profile.sum()))
    for n, share in enumerate(profile if parameters.get("positions", True) else ()):
        yield Predicted(f"P(reject at {n + 1})", statement, Share("positions", n), float(share))
