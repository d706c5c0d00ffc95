"""The figures, a file each: bounds against simulations."""

from __future__ import annotations

from importlib import import_module

from simulations.sweeps.base import Scale, Sweep
from spectheory.errors import SettingError

NAMES = (
    "schematic",
    "example",
    "race",
    "tokens",
    "marginal",
    "branching",
    "imperfect",
    "stationary",
    "rejections",
    "batch",
    "gain",
    "pareto",
    "opt_uno",
    "lazy",
    "entropy",
    "gaps",
    "paths",
    "block",
)
"""In the order of the docs; each is a file of this folder."""


def sweeps(names: list[str] | None = None) -> list[Sweep]:
    """The figures of these names, each once; all of them if none is named."""
    for name in names or []:
        if name not in NAMES:
            raise SettingError(
                f"no figure is called {name!r}", limit=f"there are {', '.join(NAMES)}", remedy="name one"
            )
    return [import_module(f"simulations.sweeps.{name}").SWEEP for name in dict.fromkeys(names or NAMES)]


__all__ = ["NAMES", "Scale", "Sweep", "sweeps"]
