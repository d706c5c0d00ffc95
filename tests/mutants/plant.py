"""Plants faults in a copy of the sources, one at a time, and says which test sees each.

``python -m tests.mutants.plant [WORD ...]`` plants the faults of files whose path has one of the words, or all, and
keeps the first test that failed, or null, as a line of ``seen.jsonl``. A fault with a line is skipped if that test is
still there: a run goes on where it stopped, and after tests were removed the faults that they saw are planted again.

Tests of the file's own room are asked first, those that name what it defines before others, then the examples of the
file and the ledger of statements, and at last the tests of other rooms that name it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("faults.txt")
SEEN = Path(__file__).with_name("seen.jsonl")
PRELOADED = [
    "array_api_strict",
    "mpmath",
    "numba",
    "pyarrow.parquet",
    "pytest",
    "scipy.stats",
    "sympy",
    "torch",
]
SECONDS, ENDLESS = 300, "no end"
"""A fault that keeps the tests computing for longer counts as seen."""
ELSEWHERE = ["tests/proofs_check/test_ledger.py"]


class Fault(NamedTuple):
    """A text of a file, and what is written in its place."""

    file: str
    right: str
    wrong: str

    def planted(self, source: str) -> str:
        """The source with the fault."""
        if source.count(self.right) != 1:
            raise ValueError(f"{self.file} has {self.right!r} {source.count(self.right)} times; a fault needs it once")
        return source.replace(self.right, self.wrong)


def listed() -> dict[str, list[Fault]]:
    """The faults of each file, as the list has them."""
    faults_of: dict[str, list[Fault]] = {}
    file = ""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            faults_of[file].append(Fault(file, *line.strip().split(" => ")))
        elif line and not line.startswith("#"):
            faults_of[file := line] = []
    return faults_of


def faults() -> list[Fault]:
    """All of the list in an order that mixes the rooms, so that a run that stops early has some of each."""
    planted = [fault for of_file in listed().values() for fault in of_file]
    Random(1).shuffle(planted)
    return planted


def lines() -> dict[Fault, str | None]:
    """The tests that saw faults in earlier runs, where they still stand; the last line of a fault counts."""
    if not SEEN.exists():
        return {}
    read = [json.loads(line) for line in SEEN.read_text(encoding="utf-8").splitlines()]
    known = {Fault(*each["fault"]): each["seen_by"] for each in read}
    return {fault: test for fault, test in known.items() if test in (None, ENDLESS) or stands(test)}


def stands(test: str) -> bool:
    """Whether the file of a test still has it."""
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.exists() and name.partition("[")[0].rpartition("::")[2].rpartition(".")[2] in path.read_text("utf-8")


def places(tree: Path, fault: Fault, known: dict[Fault, str | None]) -> Iterator[list[str]]:
    """Groups of tests in the order in which they are asked."""
    room = tree / "tests" / Path(fault.file).parent.name
    names = re.compile(r"\b(" + "|".join(public(tree / fault.file)) + r")\b")
    before = {test.partition("::")[0] for other, test in known.items() if test and other.file == fault.file}
    files = {path.relative_to(tree).as_posix(): path.read_text("utf-8") for path in sorted(room.glob("test_*.py"))}
    yield sorted(files, key=lambda file: (file not in before, -len(names.findall(files[file]))))
    yield [fault.file, *ELSEWHERE]
    others = {path: len(names.findall(path.read_text("utf-8"))) for path in (tree / "tests").rglob("test_*.py")}
    asked = {tree / file for file in [*files, *ELSEWHERE]}
    yield [
        path.relative_to(tree).as_posix()
        for path in sorted(others, key=lambda path: (-others[path], path))
        if others[path] and path not in asked
    ]


def public(file: Path) -> list[str]:
    """What a file defines for others."""
    defined = [
        each for each in ast.parse(file.read_text("utf-8")).body if isinstance(each, ast.ClassDef | ast.FunctionDef)
    ]
    return [each.name for each in defined if not each.name.startswith("_")] or [file.stem]


class First:
    """A plugin of pytest that writes down the first test that fails."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _write(self, report: Any) -> None:
        if report.failed and not self.path.exists():
            self.path.write_text(report.nodeid, encoding="utf-8")

    pytest_runtest_logreport = pytest_collectreport = _write


def run(tree: Path, tests: list[str], out: Path) -> None:
    """Run tests in the copy until one fails."""
    import pytest

    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.RLIM_INFINITY))
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)
    with (tree / "output").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    options = ["-x", "-q", "-m", "not evidence", "-p", "no:cacheprovider"]
    for test in tests:
        status = pytest.main([*options, test], plugins=[First(out)])
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(int(status))


def seen_by(tree: Path, groups: Iterator[list[str]]) -> str | None:
    """The first test that fails in the copy."""
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    out = tree / "found"
    for tests in groups:
        out.unlink(missing_ok=True)
        child = context.Process(target=run, args=(tree, tests, out))
        child.start()
        child.join()
        if out.exists():
            return out.read_text(encoding="utf-8")
        if child.exitcode == -signal.SIGXCPU:
            return ENDLESS
        if child.exitcode:
            raise SystemExit(f"pytest ended with {child.exitcode} on {tests}: {(tree / 'output').read_text()[-2000:]}")
    return None


def copied(folder: Path) -> Path:
    """The files that git knows or would add, with what Python and numba compiled of them."""
    command = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    compiled = [path for parent in {file.parent for file in files} for path in parent.glob("__pycache__/*")]
    for file in filter(Path.is_file, [*files, *compiled]):
        place = folder / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, place)  # with its time, by which compiled code is taken
    return folder


def main(words: list[str]) -> None:
    """Plant what is not known yet, and show all."""
    with tempfile.TemporaryDirectory() as folder:
        tree, known = copied(Path(folder)), lines()
        wanted = [fault for fault in faults() if not words or any(word in fault.file for word in words)]
        for number, fault in enumerate(wanted):
            if fault not in known:
                path, began = tree / fault.file, time.monotonic()
                right = path.read_text(encoding="utf-8")
                path.write_text(fault.planted(right), encoding="utf-8")
                at = int(time.time()) + 10 * number + 5  # compiled code is taken by the time in whole seconds
                os.utime(path, (at, at))
                known[fault] = seen_by(tree, places(tree, fault, known))
                path.write_text(right, encoding="utf-8")
                os.utime(path, (at + 5, at + 5))
                line = {"fault": fault, "seen_by": known[fault], "seconds": round(time.monotonic() - began)}
                with SEEN.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            print(f"{fault.file}: {fault.right!r} -> {fault.wrong!r}: {known[fault] or 'NOBODY'}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
