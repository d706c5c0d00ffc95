"""Finished rounds on disk, one line of JSON each, so that a kill loses none; rounds of another run are refused."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectheory.errors import FOREIGN, OutputError, TraceError
from spectheory.measure.validation.runs import Round, Run

SCHEMA = 2


@dataclass(frozen=True)
class RoundStore:
    """The file of a validation's rounds; `fingerprint` is a hash of everything that decides them."""

    path: Path
    fingerprint: str

    def finished(self, prompts: int, names: Collection[str]) -> dict[int, Round]:
        """Rounds with all these settings, by the number of the prompt; a line torn by a kill is cut off."""
        try:
            whole = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise self._unusable(error) from error
        end = whole.rfind(b"\n") + 1
        if end == 0 and not self._head.startswith(whole):
            raise self._foreign("no line is whole")
        rounds: dict[int, Round] = {}
        try:
            head, *rows = [json.loads(line, parse_constant=_refused) for line in whole[:end].splitlines()] or [None]
            if head is not None and (head["schema"], head["fingerprint"]) != (SCHEMA, self.fingerprint):
                raise TraceError(
                    f"{self.path} holds the rounds of another validation",
                    limit="models, prompts, settings and machine must be the same",
                    remedy="choose another --out or remove the file",
                )
            for row in rows:
                rounds[row["prompt"]] = {name: Run.from_dict(row["runs"][name]) for name in names}
        except FOREIGN as error:
            if isinstance(error, TraceError):
                raise
            raise self._foreign(str(error)) from error
        if not set(rounds) <= set(range(prompts)):
            raise self._foreign(f"it has prompts outside 0..{prompts - 1}")
        self._cut(len(whole), end)
        return rounds

    @property
    def _head(self) -> bytes:
        return _line({"schema": SCHEMA, "fingerprint": self.fingerprint})

    def _cut(self, size: int, end: int) -> None:
        """Truncate the file to its complete lines."""
        if end < size:
            try:
                os.truncate(self.path, end)
            except OSError as error:
                raise self._unusable(error) from error

    def add(self, prompt: int, finished: Round) -> None:
        """Append a round; it is on the disk when this returns."""
        row = {"prompt": prompt, "runs": {name: run.as_dict() for name, run in finished.items()}}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if file.tell() == 0:
                    file.write(self._head)
                file.write(_line(row))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unusable(error) from error

    def _foreign(self, why: str) -> TraceError:
        return TraceError(
            f"{self.path} holds no rounds of a validation ({why})",
            limit=f"needs JSON lines of schema {SCHEMA}",
            remedy="choose another --out or remove the file",
        )

    def _unusable(self, error: OSError) -> OutputError:
        return OutputError(
            f"{self.path} cannot be written ({error.strerror or error})",
            limit="needs a writable folder with free space; finished rounds are kept",
            remedy="free some space and run again, or choose another --out",
        )


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
