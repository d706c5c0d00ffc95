"""The writing side of a results file: a row is on the disk, whole, or it is not there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from simulations.counts.tally import Tally
from simulations.experiments.results import HEAD, Results, ResultsError, arrays_beside, open_regular, parsed, row_hash
from simulations.experiments.tasks import Task, canonical
from spectheory.errors import OutputError
from spectheory.files import lock


class ResultsWriter:
    """A results file held open for appending by one run; use it in a ``with`` statement."""

    def __init__(self, path: Path) -> None:
        self.path, self.results = path, Results()
        self._file = -1
        self._end = 0

    def __enter__(self) -> ResultsWriter:
        """Open and lock the file, read it, and cut off a torn last row."""
        try:
            with contextlib.suppress(FileExistsError):  # opening says what is wrong with the folder
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open_regular(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise OutputError(
                f"{self.path} cannot be written ({error.strerror or error})",
                limit="needs a regular file on a writable disk",
                remedy="choose another file",
            ) from error
        try:
            self._not_the_answers()
            if not lock(self._file):
                raise ResultsError(
                    f"{self.path} is in use", limit="one run at a time appends", remedy="wait or choose another file"
                )
            self.results, self._end = parsed(self.path, self.path.read_bytes())
            os.ftruncate(self._file, self._end)
            if self._end == 0:
                self._append(HEAD)
        except BaseException:
            os.close(self._file)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the file and let go of it."""
        os.close(self._file)

    def add(self, task: Task, batch: int, tally: Tally) -> None:
        """Append a finished batch; when this returns it is on the disk."""
        if task.id not in self.results.tasks:
            self._append_row(self._described(task.kept_in(arrays_beside(self.path))))
            self.results.tasks[task.id] = task
        row = {"row": "batch", "id": task.id, "batch": batch, "version": task.version, "tally": tally.as_dict()}
        self._append_row(row)

    @staticmethod
    def _described(task: Task) -> dict[str, Any]:
        row = {"row": "task", "id": task.id, "task": task.folded()}
        return {**row, "arrays": task.arrays_named} if task.arrays_named else row

    def _append_row(self, row: dict[str, Any]) -> None:
        self._append(canonical({**row, "hash": row_hash(row)}))

    def _append(self, line: str) -> None:
        data = line.encode() + b"\n"
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
            os.fsync(self._file)
        except BaseException as error:  # a keyboard interrupt between two writes too
            with contextlib.suppress(OSError):  # a torn row left here is dropped by the next run
                os.ftruncate(self._file, self._end)
            if isinstance(error, OSError):
                raise OutputError(
                    f"{self.path} cannot be written ({error.strerror or error})",
                    limit="needs a disk with room; finished rows stay",
                    remedy="make room and run again, it continues",
                ) from error
            raise
        self._end += len(data)

    def _not_the_answers(self) -> None:
        """Refuse /dev/stdout and the like, and a file that the shell sends answers or remarks to."""
        for stream in {1, 2} - {self._file}:
            with contextlib.suppress(OSError):  # the stream is closed
                if os.path.samestat(os.fstat(stream), os.fstat(self._file)):
                    raise ResultsError(
                        f"{self.path} is where output goes", limit="rows need their own", remedy="choose another file"
                    )
