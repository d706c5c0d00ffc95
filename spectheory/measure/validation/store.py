"""Finished rounds on disk, a line of JSON each, so that a kill loses none; those of another run are refused."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spectheory.errors import OutputError, TraceError
from spectheory.measure.validation.runs import Round, Run

SCHEMA = 1


@dataclass(frozen=True)
class RoundStore:
    """The file of a validation's rounds.

    Parameters
    ----------
    path : Path
        Where they are kept.
    fingerprint : str
        Hash of everything that decides them; a file with another one is refused.
    """

    path: Path
    fingerprint: str

    def finished(self) -> dict[int, Round]:
        """Rounds by the number of the prompt; a last line that a kill left torn is cut off.

        Raises
        ------
        TraceError
            If the file is another run's, or no such file.
        OutputError
            If it cannot be read or cut.
        """
        try:
            if not self.path.exists():
                return {}
            whole = self.path.read_bytes()
            end = whole.rfind(b"\n") + 1
            if end < len(whole):
                os.truncate(self.path, end)
        except OSError as error:
            raise self._unusable(error) from error
        lines = whole[:end].splitlines()
        if not lines:
            return {}
        try:
            head, *rows = [json.loads(line) for line in lines]
            if (head["schema"], head["fingerprint"]) != (SCHEMA, self.fingerprint):
                raise TraceError(
                    f"{self.path} holds the rounds of another validation",
                    limit="only the same models, prompts, settings and machine are taken up again",
                    remedy="choose another --out or remove the file",
                )
            return {row["prompt"]: {name: Run.from_dict(run) for name, run in row["runs"].items()} for row in rows}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, TraceError):
                raise
            raise TraceError(
                f"{self.path} holds no rounds of a validation ({error})",
                limit=f"needs JSON lines of schema {SCHEMA}",
                remedy="choose another --out or remove the file",
            ) from error

    def add(self, prompt: int, finished: Round) -> None:
        """Append a round; when this returns it is on the disk.

        Raises
        ------
        OutputError
            If it cannot be written; the rounds before it stay.
        """
        row = {"prompt": prompt, "runs": {name: run.as_dict() for name, run in finished.items()}}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                if file.tell() == 0:
                    file.write(_line({"schema": SCHEMA, "fingerprint": self.fingerprint}))
                file.write(_line(row))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> OutputError:
        return OutputError(
            f"{self.path} cannot be written ({error.strerror or error})",
            limit="needs a writable folder with room; finished rounds stay",
            remedy="make room and run again, or choose another --out",
        )


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"
