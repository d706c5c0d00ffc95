"""Finished batches on disk: a :class:`~spectheory.store.Store` of tasks and their tallies.

A task stands in a row before its batches, so a file explains itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from simulations.counts import Tally
from simulations.experiments.tasks import Task
from spectheory.errors import SpectheoryError
from spectheory.store import Contents, Row, Rows, Store, read_rows


class ResultsError(SpectheoryError):
    """A file that is no results file, or that another run is writing."""


RESULTS = Contents(
    "results of spectheory's simulations",
    2,
    "results of this program and format",
    ResultsError,
    "choose another file",
    identity=lambda head: head["schema"],
)


@dataclass
class Results:
    """What a results file holds."""

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
            if other != task and replace(other, version=task.version) == task
        ]

    @classmethod
    def of_rows(cls, path: Path, rows: Rows) -> Results:
        """The results that a file holds, with remarks on what is ignored."""
        results = cls()
        faults = dict.fromkeys(rows.damaged, "is damaged") | {row.line: results._fault(row) for row in rows}
        counts = Counter(fault for fault in faults.values() if fault)
        first = {fault: line for line, fault in sorted(faults.items(), reverse=True)}
        results.remarks += [f"row {first[f]} of {path} {f}: ignored" for f in sorted(counts, key=first.__getitem__)]
        results.remarks += [f"{n - 1} more rows: {fault}" for fault, n in counts.items() if n > 1]
        if rows.torn:
            results.remarks.append(f"the last row of {path} is torn: dropped, its batch is run again")
        return results

    def _fault(self, row: Row) -> str:
        try:
            return self.take(row)
        except (ValueError, LookupError, TypeError, AttributeError):
            return "is damaged"

    def take(self, row: Row) -> str:
        """Take in a row; returns why not, or nothing."""
        content = row.content
        if content["row"] == "task":
            task = Task.from_dict(content["task"])
            if task.id != content["id"]:
                return "names a task wrongly"
            self.tasks[task.id] = task
            return ""
        if content["id"] not in self.tasks:
            return "is of a task that the file does not describe"
        task, tally = self.tasks[content["id"]], Tally.from_dict(content["tally"]).as_batch(content["batch"])
        if content["version"] != task.version:
            return f"is of version {content['version']}, its task of {task.version}"
        if tally.trials != task.trials:
            return f"has {tally.trials} trials, its task {task.trials}"
        known = self.batches.setdefault(task.id, {}).setdefault(content["batch"], tally)
        return "" if known == tally else f"repeats batch {content['batch']} with other numbers; the first row counts"


def read_results(path: Path) -> Results:
    """Read a results file, also while a run appends to it; one that does not exist holds nothing."""
    return Results.of_rows(path, read_rows(path, RESULTS))


class ResultsWriter(Store):
    """A results file held open for appending by one run; use it in a ``with`` statement."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, RESULTS, {})
        self.results = Results()

    def __enter__(self) -> Self:
        """Open and lock the file, read it, and cut off a torn last row."""
        super().__enter__()
        self.results = Results.of_rows(self.path, self.earlier)
        self.earlier.rows.clear()  # tallies take less memory
        return self

    def keep(self, task: Task, batch: int, tally: Tally) -> None:
        """Append a finished batch, after its task; when this returns it is on the disk."""
        if task.id not in self.results.tasks:
            self.add({"row": "task", "id": task.id, "task": task.as_dict()})
            self.results.tasks[task.id] = task
        self.add({"row": "batch", "id": task.id, "batch": batch, "version": task.version, "tally": tally.as_dict()})
