"""The house: one direction of imports, a light front door, documented rooms, and a library that never prints."""

from __future__ import annotations

import ast
import graphlib
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.made_up import each

ROOT = Path(__file__).parents[2]
PACKAGES = ("spectheory", "simulations", "proofs_check")

ROOMS = (
    "errors",
    "extensions",
    "checks",
    "files",
    "store",
    "processes",
    "runner",
    "intervals",
    "distributions",
    "kernels",
    "divergences",
    "logit_statistics",
    "ngrams",
    "verification",
    "truncated",
    "drafting",
    "limits",
    "cost",
    "engines",
    "trace",
    "prediction",
    "deployment",
    "judging",
    "answers",
    "reports",
    "plots",
    "pages",
    "prompts",
    "measure",
    "pairs",
    "cli",
    "__main__",
)
"""A file imports only from its own room and the rooms before it. A new room takes its place here."""

PARTS = {"logs": "trace", "bench": "trace", "timed": "trace", "settings": "deployment", "running": "measure"}
"""A file of an engine counts to the room that asks for it; an engine's package and the list of engines to their own."""

SCRIPTS = ("spectheory/cli", "spectheory/__main__.py")
"""What runs on a terminal may print."""

ORACLES = (
    "proofs_check/algorithms/batch_algorithm.py",
    "proofs_check/algorithms/drafts.py",
    "proofs_check/algorithms/enumeration.py",
    "proofs_check/algorithms/rank_laws.py",
    "proofs_check/algorithms/rivals.py",
    "proofs_check/algorithms/tree_enumeration.py",
    "proofs_check/prelude.py",
    "proofs_check/twins/oracle.py",
    "proofs_check/twins/path_theorem.py",
    "proofs_check/twins/race_ranks.py",
    "proofs_check/twins/tree_theorem.py",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "simulations/reference").glob("*.py"))),
)
"""What the library is checked against calls none of its closed forms."""

HEAVY = (
    "prometheus_client",
    "torch",
    "numba",
    "sympy",
    "matplotlib",
    "pyarrow",
    "scipy",
    "transformers",
    "rich",
    "typer",
)


def sources(*packages: str) -> list[Path]:
    return sorted(path.relative_to(ROOT) for package in packages for path in (ROOT / package).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    """Dotted names of what a file imports from this repository, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively: write the whole name"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] in PACKAGES}


def room(dotted: str) -> str:
    """The room of a dotted name of spectheory; the package itself belongs to none."""
    parts = dotted.split(".")
    if parts[1:2] == ["engines"] and len(parts) > 3:
        return PARTS.get(parts[3], "engines")
    known = len(parts) > 1 and ((ROOT / "spectheory" / parts[1]).is_dir() or is_module(f"spectheory.{parts[1]}"))
    return parts[1] if known else ""


@cache
def is_module(dotted: str) -> bool:
    return (ROOT / Path(*dotted.split("."))).with_suffix(".py").is_file()


def room_of(path: Path) -> str:
    if path.parts[1] == "engines" and len(path.parts) > 3:
        return PARTS.get(path.parts[3].removesuffix(".py"), "engines")
    return path.parts[1].removesuffix(".py")


LIBRARY = [path for path in sources("spectheory") if path != Path("spectheory/__init__.py")]


def outward(path: Path) -> list[str]:
    """Imports of a file that point the wrong way."""
    here = ROOMS.index(room_of(path))
    wrong = []
    for name in imports(path):
        if name.split(".")[0] != "spectheory":
            if room_of(path) != "cli":
                wrong.append(name)
        elif room(name) and ROOMS.index(room(name)) > here:
            wrong.append(name)
    return wrong


def test_every_room_has_its_place() -> None:
    assert {room_of(path) for path in LIBRARY} <= set(ROOMS), "a new room: give it its place in ROOMS"


def test_imports_point_one_way() -> None:
    assert {str(path): wrong for path in LIBRARY if (wrong := outward(path))} == {}


def test_no_file_imports_itself_in_a_circle() -> None:
    """Within a room too: the files of the library have an order."""
    graph = {}
    for path in LIBRARY:
        name = ".".join(path.with_suffix("").parts)
        owners = {part if is_module(part) else part.rpartition(".")[0] for part in imports(path)}
        graph[name] = {owner for owner in owners if is_module(owner) and owner != name}
    assert list(graphlib.TopologicalSorter(graph).static_order())


def test_a_wrong_import_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: theory that imports the predictor, a rule that imports the simulators."""
    for line, path in (
        ("from spectheory.prediction import predict", Path("spectheory/divergences.py")),
        ("import simulations.reference", Path("spectheory/verification/race.py")),
        ("from spectheory import cli", Path("spectheory/cost.py")),
        ("from spectheory.deployment import Draft", Path("spectheory/engines/vllm/logs.py")),
        ("from spectheory.engines.vllm.running import RUNS", Path("spectheory/engines/vllm/settings.py")),
    ):
        monkeypatch.setattr(sys.modules[__name__], "tree", lambda _, line=line: ast.parse(line))
        assert len(outward(path)) == 1, line


def test_oracles_call_no_closed_form() -> None:
    assert {path for path in ORACLES for name in imports(Path(path)) if name.startswith("spectheory")} == set()


def test_the_front_door_is_light() -> None:
    """`import spectheory` loads no heavy library; its divergences need numpy alone, the predictor no torch."""
    heavy = f"print(*sorted({{m.split('.')[0] for m in sys.modules}} & set({HEAVY!r})))"
    for line, allowed in (
        ("import spectheory", ""),
        ("import spectheory; spectheory.kl_divergence; spectheory.Interval; spectheory.Trace", ""),
        ("import spectheory.verification, spectheory.limits, spectheory.cost", ""),
        ("import spectheory; spectheory.predict", "scipy"),
    ):
        ran = subprocess.run(
            [sys.executable, "-c", f"import sys; {line}; {heavy}"], capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert ran.stdout.strip() == allowed, line


def test_the_front_door_lists_what_it_has() -> None:
    import spectheory

    assert set(spectheory.__all__) <= set(dir(spectheory))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        spectheory.nothing  # noqa: B018


# Documentation


def public(path: Path) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Public functions and classes of a file."""
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def undocumented(path: Path) -> list[str]:
    """The file, its public functions, classes and their public methods that have no docstring."""
    lines = [] if ast.get_docstring(tree(path)) else [f"{path}"]
    for node in public(path):
        members = [m for m in getattr(node, "body", []) if isinstance(m, ast.FunctionDef) and m.name[0] != "_"]
        methods = members if isinstance(node, ast.ClassDef) else []
        lines += [f"{path}: {item.name}" for item in (node, *methods) if not ast.get_docstring(item)]
    return lines


def test_everything_public_is_documented() -> None:
    """Files, public functions, classes and their public methods (an override of a documented one included)."""
    assert [name for path in sources(*PACKAGES) for name in undocumented(path)] == []


def prints(path: Path) -> list[int]:
    """Lines that call print."""
    calls = (node for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def test_the_library_never_prints() -> None:
    assert [path for path in sources(*PACKAGES) if not str(path).startswith(SCRIPTS) and prints(path)] == []


# The evidence


EVIDENCE_ROOMS = (
    *("statement", "evidence", "library", "algorithms", "prelude", "twins", "forms", "proofs", "agreement", "theorems"),
    "run",
)
"""Rooms of proofs_check: a file imports only from its own room and the rooms before it."""


def of_later_rooms(path: Path) -> list[str]:
    """Imports of a file of proofs_check from a later room, another topic, or a file of statements."""
    theorem = path.parts[1] == "theorems"
    rooms = EVIDENCE_ROOMS[: EVIDENCE_ROOMS.index(path.parts[1]) + (not theorem)]
    known = (*(f"proofs_check.{each}." for each in rooms), *([".".join((*path.parts[:3], ""))] if theorem else ()))
    return [
        name
        for name in imports(path)
        if name.startswith("proofs_check.") and (not (name + ".").startswith(known) or states(name.rpartition(".")[0]))
    ]


def states(dotted: str) -> bool:
    """Whether a file has entries of the ledger."""
    path = (ROOT / Path(*dotted.split("."))).with_suffix(".py")
    return path.is_file() and " = Entry(\n" in path.read_text(encoding="utf-8")


EVIDENCE = [path for path in sources("proofs_check") if len(path.parts) > 2]


def test_rooms_of_the_evidence_have_an_order() -> None:
    assert {str(p): wrong for p in EVIDENCE if p.parts[1] != "run" and (wrong := of_later_rooms(p))} == {}


def test_a_theorem_file_that_imports_another_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control, with a form that imports a proof."""
    for line, path in (
        ("from proofs_check.theorems.trees.tunstall import ENTRIES", "theorems/exit_leaf.py"),
        ("from proofs_check.theorems import tunstall", "theorems/exit_leaf.py"),
        ("from proofs_check.theorems.trees.rank_trees import ADD_A_NODE", "forms/exits.py"),
    ):
        monkeypatch.setattr(sys.modules[__name__], "tree", lambda _, line=line: ast.parse(line))
        assert len(of_later_rooms(Path("proofs_check") / path)) == 1, line


# One test over many cases fails where a case fails, and says which


def test_every_case_runs_and_those_that_fail_are_named() -> None:
    seen = []

    @each("b", [1, 2])
    @each("a, c", [(10, 0), (20, 1), (30, 2)])
    def check(a: int, b: int, c: int, fixture: str) -> None:
        seen.append((a, b, fixture))
        assert a != 20
        with pytest.raises(ZeroDivisionError):
            a / (30 - a)

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(BaseExceptionGroup) as caught:
        check(fixture="f")
    assert seen == [(a, b, "f") for b in (1, 2) for a in (10, 20, 30)]
    inner = caught.value.exceptions[1]
    assert isinstance(inner, BaseExceptionGroup)
    assert [type(each) for each in inner.exceptions] == [pytest.fail.Exception, AssertionError]
    assert inner.exceptions[1].__notes__ == ["case: {'a': 20, 'c': 1}"]
    assert inner.__notes__ == ["case: {'b': 2}"]


def test_no_cases_are_no_test() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        each("a", [])


# Scripts of benchmarks, which nothing else imports


def absent(source: str) -> list[str]:
    """Names that a script imports from this repository's packages and that are not there."""
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and not node.level)
    asked = [(node.module or "", each.name) for node in imports for each in node.names]
    ours = [(module, name) for module, name in asked if module.partition(".")[0] in PACKAGES]
    return [f"{module}.{name}" for module, name in ours if not _there(module, name)]


def _there(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ImportError:
        return False


def test_benchmarks_import_what_there_is() -> None:
    pytest.importorskip("torch")
    scripts = sorted((ROOT / "benchmarks").rglob("*.py"))
    assert {path.name: names for path in scripts if (names := absent(path.read_text(encoding="utf-8")))} == {}
    assert absent("from spectheory.verification import SuffixDrafts, Rule") == ["spectheory.verification.SuffixDrafts"]
