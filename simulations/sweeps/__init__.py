"""The figures, a file each: bounds against simulations."""

from __future__ import annotations

from dataclasses import fields
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
    return [_sweep(name) for name in dict.fromkeys(names or NAMES)]


def _sweep(name: str) -> Sweep:
    """The parts of a figure have their names in its file; those that are no functions in capitals."""
    file = vars(import_module(f"simulations.sweeps.{name}"))
    parts = {part.name: file[at] for part in fields(Sweep) for at in (part.name, part.name.upper()) if at in file}
    return Sweep(**{**parts, "name": name})


__all__ = ["NAMES", "Scale", "Sweep", "sweeps"]
