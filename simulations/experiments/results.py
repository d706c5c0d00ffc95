"""Finished batches on disk: one JSON row each, appended whole, checked when read.

The first row says what the file is. A task stands in a row before its batches, so a file explains itself. Every row has
the hash of what it says. A row counts once its newline is written; a torn row is dropped. Large arrays of a task are
files of a folder beside it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulations.counts.tally import Tally
from simulations.experiments.tasks import Task, canonical
from spectheory.errors import SpectheoryError

HEAD = canonical({"format": 1, "row": "results of spectheory's simulations"})


class ResultsError(SpectheoryError):
    """A file that is no results file, or that another run is writing."""


@dataclass
class Results:
    """What a results file holds; large arrays of its tasks are in the folder `arrays`."""

    arrays: Path = field(default_factory=Path)
    tasks: dict[str, Task] = field(default_factory=dict)
    batches: dict[str, dict[int, Tally]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def of(self, task: Task) -> dict[int, Tally]:
        """The finished batches of a task."""
        return self.batches.get(task.id, {})

    def versions_beside(self, task: Task) -> list[str]:
        """Remarks on the batches of the same experiment that another version of its simulator made."""
        return [
            f"{len(self.of(other))} batches of {task.kind} are of version {other.version}, not {task.version}: ignored"
            for other in self.tasks.values()
            if other.id != task.id and {**other.folded(), "version": task.version} == task.folded()
        ]

    def _take(self, row: dict[str, Any]) -> str:
        """Take in a row; returns why not, or nothing."""
        if row["row"] == "task":
            if row.get("arrays"):  # they, and with them the id, are checked where they are read
                task = Task.from_folded(row["task"], self.arrays, row["id"])
            else:
                task = Task.from_dict(row["task"])
            if task.id != row["id"]:
                return "names a task wrongly"
            self.tasks[task.id] = task
            return ""
        if row["id"] not in self.tasks:
            return "is of a task that the file does not describe"
        task, tally = self.tasks[row["id"]], Tally.from_dict(row["tally"]).as_batch(row["batch"])
        if row["version"] != task.version:
            return f"is of version {row['version']}, its task of {task.version}"
        if tally.trials != task.trials:
            return f"has {tally.trials} trials, its task {task.trials}"
        known = self.batches.setdefault(task.id, {}).setdefault(row["batch"], tally)
        return "" if known == tally else f"repeats batch {row['batch']} with other numbers; the first row counts"


def read_results(path: Path) -> Results:
    """Read a results file, also while a run appends to it; one that does not exist holds nothing."""
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            return parsed(path, file.read())[0]
    except FileNotFoundError:
        return Results()
    except OSError as error:
        raise ResultsError(
            f"{path} cannot be read ({error.strerror})", limit="needs a regular file", remedy="choose another file"
        ) from error


def arrays_beside(path: Path) -> Path:
    """The folder of the large arrays of a results file."""
    return path.with_name(f"{path.name}.arrays")


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file; a pipe or a device is refused without waiting for it."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def parsed(path: Path, content: bytes) -> tuple[Results, int]:
    """What a file holds, and the length of its whole rows."""
    results = Results(arrays_beside(path))
    head, newline, _ = content.partition(b"\n")
    if head != HEAD.encode() if newline else not HEAD.encode().startswith(head):
        raise ResultsError(
            f"{path} begins with {head[:30].decode(errors='replace')!r}",
            limit="holds no results of this program and format",
            remedy="choose another file",
        )
    *rows, torn = content.split(b"\n")
    faults: Counter[str] = Counter()
    for number, line in enumerate(rows[1:], start=2):
        if fault := _fault(results, line):
            faults[fault] += 1
            if faults[fault] == 1:
                results.remarks.append(f"row {number} of {path} {fault}: ignored")
    results.remarks += [f"{n - 1} more rows: {fault}" for fault, n in faults.items() if n > 1]
    if torn:
        results.remarks.append(f"the last row of {path} is torn: dropped, its batch is run again")
    return results, len(content) - len(torn)


def _fault(results: Results, line: bytes) -> str:
    try:
        row = json.loads(line)
        if row.pop("hash") != row_hash(row):
            return "is damaged"
        return results._take(row)
    except (ValueError, LookupError, TypeError, AttributeError):
        return "is damaged"


def row_hash(row: dict[str, Any]) -> str:
    """The hash that a row carries."""
    return hashlib.sha256(canonical(row).encode()).hexdigest()[:16]
