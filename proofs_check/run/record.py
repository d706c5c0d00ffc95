"""Results of long runs as they come: a line of JSON for each finished check, so that a kill loses nothing finished.

A rerun takes the lines that the same code, effort and versions have written, and runs the rest.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from proofs_check.run.verify import Checked, Key
from proofs_check.statement.findings import KINDS, Effort, Finding
from spectheory.errors import OutputError

PACKAGES = ("proofs_check", "simulations", "spectheory")
VERSIONS = ("numpy", "scipy", "sympy", "z3-solver", "mpmath", "hypothesis", "numba")


@cache
def fingerprint() -> str:
    """A digest of the code that is checked and that checks, and of the libraries' versions."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name in VERSIONS:
        digest.update(f"{name} {importlib.metadata.version(name)}".encode())
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for root in sorted(spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(root).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def read_record(path: Path, effort: Effort) -> tuple[dict[Key, Checked], str]:
    """The checks of this code and effort in a file, and a remark on what else it holds."""
    if path.exists() and not path.is_file():
        raise OutputError(
            f"{path} is no file", limit="needs a file of an earlier run, or none", remedy="choose another --out"
        )
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeError) as error:
        raise OutputError(
            f"{path} cannot be read ({error})", limit="needs a file of an earlier run", remedy="choose another --out"
        ) from error
    known: dict[Key, Checked] = {}
    other = torn = 0
    for line in lines:
        try:
            row = json.loads(line)
            if row["run"] != _run(effort):
                other += 1
                continue
            checked = _checked(row["checked"])
        except (ValueError, KeyError, TypeError):
            torn += 1
            continue
        known[checked.id, checked.place] = checked
    remarks = [f"{other} lines of other code or effort are not used"] * (other > 0)
    remarks += [f"{torn} torn lines are dropped"] * (torn > 0)
    return known, "; ".join(remarks)


def ready(path: Path) -> None:
    """Make sure that lines can be added, before any work is done for them."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise _unwritable(path, error) from error


def append(path: Path, checked: Checked, effort: Effort) -> None:
    """Add a finished check."""
    line = json.dumps({"run": _run(effort), "checked": asdict(checked)}, default=str)
    try:
        with path.open("ab+") as file:
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                line = "\n" * (file.read(1) != b"\n") + line  # the last row is torn: it stays a line of its own
            file.write(f"{line}\n".encode())
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{path} cannot be written ({error.strerror or error})",
        limit="needs a writable file with room",
        remedy="choose another --out",
    )


def _run(effort: Effort) -> dict[str, Any]:
    return {"code": fingerprint(), **asdict(effort)}


def _checked(row: dict[str, Any]) -> Checked:
    if row["kind"] not in KINDS:
        raise ValueError(f"no kind of evidence: {row['kind']}")
    parts = {name: Finding(**row[name]) if row[name] else None for name in ("finding", "control")}
    return Checked(**{**row, **parts})
