"""The composite action of GitHub: its shell steps run here, with the command as it is and with one that records."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from spectheory.trace.samples import SAMPLES
from tests.made_up import each

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEP = ACTION["runs"]["steps"][0]
RECORDS = """#!/bin/bash
echo "$(basename "$0") $*" >> "$CALLED"
[ "$1" = gate ] && { echo "Passed or not"; exit "$GATE_STATUS"; }
exit 0
"""
REAL = f'#!/bin/bash\n[ "$2" = pip ] && exit 0\n"{sys.executable}" -m spectheory "$@"\n'


def acted(folder: Path, script: str, inputs: dict[str, str], **environment: str) -> tuple[int, str, str]:
    """Run the step as GitHub does; its status, the job's outputs and its summary."""
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    words = {name: value.removeprefix("${{ inputs.").removesuffix(" }}") for name, value in STEP["env"].items()}
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in ("python", "spectheory"):
        (bin_folder / name).write_text(script, encoding="utf-8")
        (bin_folder / name).chmod(0o755)
    variables = os.environ | {name: given[word] for name, word in words.items()} | environment
    variables["PATH"] = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "CALLED"):
        variables[name] = str(folder / name)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]],
        env=variables,
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    written = [folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")]
    outputs, summary = (path.read_text(encoding="utf-8") if path.exists() else "" for path in written)
    return done.returncode, outputs, summary


@each("status, passed", [(0, "true"), (1, "false"), (2, "false")])
def test_the_step_says_what_the_gate_says(status: int, passed: str, tmp_path: Path) -> None:
    folder = tmp_path / str(status)
    folder.mkdir()
    inputs = {"counts": "after this.txt", "before": "before.txt", "expect": "e.json", "alarm": "0.01"}
    done, outputs, summary = acted(folder, RECORDS, inputs, GATE_STATUS=str(status))
    assert (done, outputs, summary) == (status, f"passed={passed}\n", "Passed or not\n")
    pip, imported, gate = (folder / "CALLED").read_text(encoding="utf-8").splitlines()
    assert pip == "python -m pip install --quiet spectheory"
    assert imported.startswith("spectheory import before.txt after this.txt --out ")
    out = imported.rsplit(maxsplit=1)[-1]
    assert gate == f"spectheory gate {out} --expect e.json --rule token --alarm 0.01"


@each("expected, status", [(1.5, 0), (2.5, 1)])
def test_the_step_runs_the_command(expected: float, status: int, tmp_path: Path) -> None:
    """A scrape of a server passes against a low number and fails against a high one."""
    folder = tmp_path / str(status)
    folder.mkdir()
    (folder / "expected.json").write_text(f'{{"k": 7, "tokens_per_call": {expected}}}', encoding="utf-8")
    inputs = {"counts": str(SAMPLES / "vllm_metrics.txt"), "expect": str(folder / "expected.json")}
    done, outputs, summary = acted(folder, REAL, inputs)
    assert (done, outputs) == (status, f"passed={'false' if status else 'true'}\n")
    assert f"expected {expected:.3f}" in summary


def test_what_the_action_names_is_there() -> None:
    """The job's outputs are those of the step; every input is used."""
    assert ACTION["outputs"]["passed"]["value"] == f"${{{{ steps.{STEP['id']}.outputs.passed }}}}"
    assert set(STEP["env"].values()) == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
