"""Theorems in Coq: the files of ``proofs_check/formal`` are compiled once, then asked what a theorem rests on.

A theorem counts as held if ``Print Assumptions`` says that it is closed under the global context: no axiom, no gap.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from proofs_check.evidence.entries import Control, Evidence
from proofs_check.statement.findings import Effort, Finding
from spectheory.files import cache_folder

SOURCES = Path(__file__).parents[1] / "formal"

CLOSED = "Closed under the global context"

_MARK = "----"

_SECONDS = 600
"""For one file: the slowest takes some five seconds."""

_IMPORTS = "From mathcomp Require Import all_ssreflect all_algebra.\nFrom Spectheory Require Import {}.\n"


@cache
def missing() -> str:
    """What is missing for these proofs to run; empty if nothing is."""
    coqc = shutil.which("coqc")
    if coqc is None:
        return "coqc is not installed"
    where = Path(subprocess.run([coqc, "-where"], capture_output=True, text=True, check=True).stdout.strip())
    libraries = where / "user-contrib"
    if not (libraries / "mathcomp" / "algebra").is_dir():
        return "MathComp's algebra is not installed"
    return "MathComp 2 is installed, and these proofs are for MathComp 1" if (libraries / "HB").is_dir() else ""


def files() -> list[str]:
    """The names of the files, each after those that it needs."""
    lines = (SOURCES / "_CoqProject").read_text(encoding="utf-8").split()
    return [line.removesuffix(".v") for line in lines if line.endswith(".v")]


@cache
def built() -> Path:
    """A folder with these files, compiled: made once, and kept."""
    texts = {name: (SOURCES / f"{name}.v").read_bytes() for name in files()}
    digest = hashlib.sha256(b"\0".join(texts.values())).hexdigest()[:16]
    folder = cache_folder() / f"formal-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            inner = Path(made) / "formal"
            inner.mkdir()
            for name, text in texts.items():
                (inner / f"{name}.v").write_bytes(text)
                _coqc(inner, f"{name}.v")
            with suppress(OSError):  # another process was faster
                inner.rename(folder)
    return folder


def ask(lines: str, *, imports: str) -> str:
    """What Coq prints for some lines, with these files imported."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "Ask.v").write_text(_IMPORTS.format(imports) + lines, encoding="utf-8")
        return _coqc(Path(folder), "Ask.v", library=built())


def proved_in_coq(says: str, names: Sequence[str], *, wrong: tuple[str, str]) -> Evidence:
    """Theorems of ``Statements.v``; the control is a variant that a theorem of ``WrongVariants.v`` refutes."""
    control = Control(wrong[0], lambda effort: _refuted(wrong[1]))
    return Evidence("formal", _sourced(says, "Statements", names), lambda effort: _proved(names), control)


def refuted_in_coq(says: str, name: str, *, true: tuple[str, Sequence[str]]) -> Evidence:
    """A theorem of ``WrongVariants.v`` that refutes a statement; the control is a true one of ``Statements.v``."""

    def check(_: Effort) -> Finding:
        return _refuted(name)

    return Evidence(
        "formal", _sourced(says, "WrongVariants", (name,)), check, Control(true[0], lambda effort: _proved(true[1]))
    )


def _sourced(says: str, file: str, names: Sequence[str]) -> str:
    return f"{says} (Coq, {file}.v: {', '.join(names)})"


@cache
def _printed(file: str) -> dict[str, tuple[str, str]]:
    """The statement of every theorem of a file, and what it rests on."""
    names = re.findall(r"^Theorem (\w+)", (SOURCES / f"{file}.v").read_text(encoding="utf-8"), re.MULTILINE)
    lines = (f'Goal True. idtac "{_MARK}". Abort. Check @{n}. Goal True. idtac "{_MARK}". Abort. ' for n in names)
    asked = "".join(f"{line}Print Assumptions {name}.\n" for line, name in zip(lines, names, strict=True))
    said = [" ".join(part.split()) for part in ask(asked, imports=file).split(_MARK)[1:]]
    return dict(zip(names, zip(said[::2], said[1::2], strict=True), strict=True))


def _proved(names: Sequence[str]) -> Finding:
    """Held if every theorem rests on nothing."""
    printed = _printed("Statements")
    axioms = [f"{name} rests on {printed[name][1]}" for name in names if printed[name][1] != CLOSED]
    if axioms:
        return Finding("undecided", len(names), note="; ".join(axioms))
    return Finding("held", len(names), note="Print Assumptions: no axiom")


def _refuted(name: str) -> Finding:
    """Refuted if the theorem denies its statement and rests on nothing."""
    statement, rests = _printed("WrongVariants")[name]
    if re.match(rf"@?{name} : ~ ", statement) and rests == CLOSED:
        return Finding("refuted", 1, at=f"{name}, computed in Coq")
    return Finding("undecided", 1, note=f"{name} is no refutation: {statement}; {rests}")


def _coqc(folder: Path, file: str, library: Path | None = None) -> str:
    """Compile a file; what it prints."""
    line = ["coqc", "-w", "none", "-R", str(library or folder), "Spectheory", file]
    run = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if run.returncode:
        raise RuntimeError(f"coqc rejects {file}: {' '.join(run.stderr.split())[-300:]}")
    return run.stdout
