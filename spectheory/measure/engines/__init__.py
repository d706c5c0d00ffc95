"""Real engines, run on the prompts of a pair: what they have in common; each is run by ``running.py`` of its folder."""

from __future__ import annotations

from spectheory.engines import of_engines
from spectheory.errors import SettingError
from spectheory.measure.engines.base import Engine, Job, Models

__all__ = ["Engine", "Job", "Models", "find_engine"]


def find_engine(named: str) -> Engine:
    """The engine of ``NAME`` or ``NAME=PROGRAM``, the program or Python that runs it."""
    name, _, program = named.partition("=")
    engines: dict[str, type[Engine]] = {kind.name: kind for kind in of_engines("running", "RUNS")}
    if name not in engines:
        raise SettingError(
            f"engine {name!r} is unknown", limit=f"there are {', '.join(engines)}", remedy="name one of them"
        )
    return engines[name](program or None)
