"""What the base install can do: every import of an extra is blocked, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.trace import TextInfo, Trace
from tests.made_up import race_g

ROOT = Path(__file__).parents[2]
VALIDATED = ROOT / "docs/figures/validation/distilled"
MODULES = {"z3-solver": "z3", "vl-convert-python": "vl_convert"}
"""Distributions whose module has another name."""

BLOCKING = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
from spectheory.cli import main
sys.exit(main())
"""


def extras() -> list[str]:
    """The modules that the extras bring, tools of the tests aside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [wanted for name, wanted in project["optional-dependencies"].items() if name != "test"]
    names = {re.split(r"[<>=]", each)[0] for wanted in lists for each in wanted}
    return sorted(MODULES.get(name, name) for name in names)


def run(folder: Path, *arguments: str, blocked: list[str]) -> subprocess.CompletedProcess[str]:
    """The command line without some modules."""
    command = [sys.executable, "-c", BLOCKING.format(blocked=blocked), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a measured trace."""
    rng, rows = np.random.default_rng(0), 80
    log_target = -rng.exponential(size=rows)
    log_draft = np.minimum(0, log_target + rng.normal(0, 0.5, rows))
    columns = {"log_target": log_target, "log_draft": log_draft, "race_g": race_g(rng, log_target, log_draft)}
    Trace(columns, tuple(TextInfo(str(i), 20) for i in range(4))).write(tmp_path / "measured" / "trace.parquet")
    return tmp_path


COMMANDS = {
    "predict": (["predict", "measured", "--c", "0.1", "--k-max", "3"], "prediction.json"),
    "plan": (["plan", "measured", "--c", "0.1", "--k-max", "3", "--nodes-max", "1"], "plan.json"),
    "validations": (["validations", str(VALIDATED)], "validation.md"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_numbers_are_written_without_extras(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 0, the numbers in --out, and the figures: the same numbers as here, with every extra."""
    arguments, written = COMMANDS[command]
    ran = run(folder, *arguments, "--out", "bare", blocked=extras())
    assert ran.returncode == 0, ran.stderr
    assert {".png", ".svg"} < {path.suffix for path in (folder / "bare").iterdir()}
    if written.endswith(".json"):
        monkeypatch.chdir(folder)
        assert main([*arguments, "--out", "whole"]) == 0
        one, other = (json.loads((folder / out / written).read_text()) for out in ("bare", "whole"))
        assert one == other


@pytest.mark.parametrize(
    ("arguments", "module", "extra"),
    [
        (["measure", "--out", "out"], "torch", "models"),
        (["validate", "--out", "out"], "torch", "models"),
        (["verify", "A1"], "sympy", "proofs"),
        (["predict", "measured", "--c", "0.1", "--report", "page.html"], "jinja2", "report"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_what_needs_an_extra_names_it(arguments: list[str], module: str, extra: str, folder: Path) -> None:
    ran = run(folder, *arguments, blocked=extras())
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert f"{module} is not installed: this needs the extra '{extra}'; pip install 'spectheory[{extra}]'" in ran.stderr


def test_the_blocked_modules_are_those_of_the_extras() -> None:
    """Control: the names are found, and all but those of the tests are covered."""
    assert {"torch", "sympy", "z3", "transformers", "altair"} <= set(extras())
    assert not {"numpy", "scipy", "pyarrow", "rich", "typer", "pytest", "numba", "matplotlib"} & set(extras())
