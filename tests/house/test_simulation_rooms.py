"""The rooms of the simulations: their order, and that nothing that simulates reads the theory it is held against."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house import test_house
from tests.house.test_house import PACKAGES, imports, sources, tree

THEORETICAL = ("simulations/verdicts", "simulations/sweeps")
"""Where theory and simulation meet; all else in `simulations` knows nothing of the theory it is held against, but what
predicts in `simulations/simulators/`."""

KNOWN_TO_SIMULATORS = (
    *(f"spectheory.{name}" for name in ("errors", "files", "store", "processes", "runner", "pairs", "prompts")),
    *(f"spectheory.{name}" for name in ("intervals", "distributions", "kernels.compiling")),
    "spectheory.drafting.shapes",
    "spectheory.drafting.optimal.validate_rank_pmf",
    *(f"spectheory.measure.{name}" for name in ("load_pair", "sample_continuations", "ModelPair", "tokens", "reading")),
    *(f"spectheory.measure.{name}" for name in ("columns.pmf", "pair", "sampling")),
    *(f"spectheory.drafting.{name}" for name in ("Batch", "Chain", "KAry", "Shape", "Tree")),
)
"""Beginnings of the names of spectheory that simulators may import: no closed form is among them."""


def beyond_simulators(names: Iterable[str]) -> list[str]:
    """Dotted names of spectheory beyond what a simulator may know, or of where theory and simulation meet."""
    allowed = tuple(f"{each}." for each in KNOWN_TO_SIMULATORS)
    meeting = tuple(each.replace("/", ".") for each in THEORETICAL)
    return [
        name
        for name in names
        if name.startswith(meeting) or not (name.startswith("simulations") or (name + ".").startswith(allowed))
    ]


def closed_forms(path: Path) -> list[str]:
    """The theory that a file of `simulations` reads; in the room of the simulators, what simulates there."""
    return beyond_simulators(simulated(path) if path.parts[1] == "simulators" else imports(path))


def reached(path: Path) -> set[str]:
    """Names that the functions registered as simulators read, and those that they call in their file."""
    used = dict[str, set[str]]()
    for node in tree(path).body:
        read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for each in ast.walk(node):
            read |= {f"{each.module}.{a.name}" for a in each.names} if isinstance(each, ast.ImportFrom) else set()
            read |= {a.name for a in each.names} if isinstance(each, ast.Import) else set()
        stored = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        used |= dict.fromkeys([node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else stored, read)
    waiting, seen = [name for name in used if name in registered_in(path)], set[str]()
    while waiting:
        if (name := waiting.pop()) not in seen:
            seen.add(name)
            waiting += used.get(name, ())
    return seen


def registered_in(path: Path) -> set[str]:
    return {
        node.name
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef)
        for each in node.decorator_list
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "simulator"
    }


def simulated(path: Path) -> set[str]:
    """Dotted names of this repository that simulators read, and what they call."""
    imported = [node for node in tree(path).body if isinstance(node, ast.ImportFrom)]
    given = {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in imported for alias in node.names}
    return {dotted for name in reached(path) if (dotted := given.get(name, name)).split(".")[0] in PACKAGES}


SIMULATION_ROOMS = (
    *("draws", "counts", "experiments", "models", "kernels", "reference", "verdicts", "simulators", "sweeps"),
)
"""A file of `simulations` imports only from its own room and the rooms before it; the first two are a file each."""

REGISTRATION = {("simulations/verdicts/predictions.py", "simulators")}
"""Loaded when predictions are asked for: what is loaded registers itself."""


def test_rooms_of_the_simulations_import_one_way() -> None:
    room_of = {path: Path(path.parts[1]).stem for path in sources("simulations")}
    known = set(room_of.values()) - {"__init__", "preloaded"}
    assert known == set(SIMULATION_ROOMS), "a new room: give it its place in SIMULATION_ROOMS"
    wrong = {
        (str(path), name.split(".")[1])
        for path, room in room_of.items()
        if room in known
        for name in imports(path)
        if name.startswith("simulations.") and SIMULATION_ROOMS.index(name.split(".")[1]) > SIMULATION_ROOMS.index(room)
    }
    assert wrong == REGISTRATION


SIMULATORS = [path for path in sources("simulations") if not str(path).startswith(THEORETICAL)]


def test_simulators_call_no_closed_form() -> None:
    """What a simulator calls in another file of the room is called by a simulator there, and so looked through."""
    assert {str(path): forms for path in SIMULATORS if (forms := closed_forms(path))} == {}
    for path in sources("simulations/simulators"):
        for dotted in simulated(path):
            file, _, name = dotted.removeprefix("simulations.simulators.").partition(".")
            if dotted.startswith("simulations.simulators."):
                assert name in reached(Path(f"simulations/simulators/{file}.py")), dotted


def test_a_simulator_with_a_closed_form_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: in a kernel, and read by what a registered simulator calls."""
    uses = "\ndef f():\n    NAME\n@simulator('s', version='1')\ndef s():\n    f()\n@predicts('s')\ndef p():\n    NAME"
    for line in (
        "from spectheory import total_variation",
        "from spectheory.verification import RaceVerification",
        "from spectheory.drafting import node_weights",
        "from spectheory.drafting.optimal import node_weights",
        "from spectheory.measure import teacher_forced",
        "from simulations.verdicts.predictions import predictions",
        "from proofs_check import oracle",
    ):
        name = line.split()[-1]
        for room, text, count in (
            ("kernels", line, 1),
            ("simulators", line + uses.replace("NAME", name), 1),
            ("simulators", line + uses.replace("    NAME", "    pass", 1).replace("NAME", name), 0),
            ("simulators", uses.replace("    NAME", f"    {line}", 1).replace("NAME", "1"), 1),
        ):
            for module in (test_house, sys.modules[__name__]):
                monkeypatch.setattr(module, "tree", lambda _, text=text: ast.parse(text))
            assert len(closed_forms(Path(f"simulations/{room}/races.py"))) == count, text
