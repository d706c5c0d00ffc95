"""Finished checks of long runs, so that a kill loses nothing: a rerun takes those of the same code and versions."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import platform
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from proofs_check.run.verify import Checked, Key
from proofs_check.statement.findings import Effort, Finding
from spectheory.errors import OutputError
from spectheory.store import Contents, Store

PACKAGES = ("proofs_check", "simulations", "spectheory")
VERSIONS = ("numpy", "scipy", "sympy", "z3-solver", "mpmath", "gmpy2", "hypothesis", "numba")

CHECKS = Contents("checks", 1, "finished checks", OutputError, "choose another --out", identity=lambda _: None)
"""Runs of any code and effort share a file: each row says whose it is."""


@cache
def fingerprint() -> str:
    """A digest of the code that is checked and that checks, and of the libraries' versions."""
    digest = hashlib.sha256(platform.python_version().encode())
    for name in VERSIONS:
        digest.update(f"{name} {importlib.metadata.version(name)}".encode())
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for root in sorted(spec.submodule_search_locations or []) if spec else []:
            for path in sorted([*Path(root).rglob("*.py"), *Path(root).rglob("*.v")]):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def finished(store: Store, effort: Effort) -> tuple[dict[Key, Checked], str]:
    """The checks of this code and effort that an open store holds, and a remark on what else it does."""
    known: dict[Key, Checked] = {}
    for row in (row.content for row in store.earlier):
        if row["run"] == _run(effort):
            parts = {name: row["checked"][name] and Finding(**row["checked"][name]) for name in ("finding", "control")}
            checked = Checked(**{**row["checked"], **parts})
            known[checked.id, checked.place] = checked
    other, torn = len(store.earlier.rows) - len(known), len(store.earlier.damaged) + store.earlier.torn
    remarks = [f"{other} lines of other code or effort are not used"] * (other > 0)
    remarks += [f"{torn} torn lines are dropped"] * (torn > 0)
    return known, "; ".join(remarks)


def keep(store: Store, checked: Checked, effort: Effort) -> None:
    """Add a finished check to an open store."""
    store.add(json.loads(json.dumps({"run": _run(effort), "checked": asdict(checked)}, default=str)))


def _run(effort: Effort) -> dict[str, Any]:
    return {"code": fingerprint(), **asdict(effort)}
