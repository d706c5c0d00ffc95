"""A running measurement on disk: each finished prompt is a trace file of its own, so that a kill loses none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.errors import TraceError
from spectheory.trace import Trace


def concatenate(parts: list[Trace], provenance: Mapping[str, Any]) -> Trace:
    """One trace from several that have the same columns."""
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    return Trace(columns, tuple(text for part in parts for text in part.texts), provenance)


@dataclass(frozen=True)
class PartStore:
    """Finished texts of a running measurement, each a small trace file beside the final one.

    Attributes
    ----------
    final : Path
        Where the whole trace will stand.
    fingerprint : str
        Hash of everything that decides the numbers; parts of another fingerprint are refused.
    """

    final: Path
    fingerprint: str

    @property
    def folder(self) -> Path:
        """Where the parts stand until the trace is whole."""
        return self.final.with_name(self.final.name + ".parts")

    def finished(self) -> dict[int, Path]:
        """Finished parts by text index; files that a kill left unfinished are ignored.

        Raises
        ------
        TraceError
            If the parts were made with other settings.
        """
        found = {int(path.stem): path for path in sorted(self.folder.glob("[0-9]*.parquet"))}
        if found:
            first = Trace.read(next(iter(found.values())))
            if first.provenance.get("fingerprint") != self.fingerprint:
                raise TraceError(
                    f"{self.folder} holds an unfinished measurement with other settings",
                    limit="only the same models, prompts and settings can be resumed",
                    remedy="delete the folder or choose another --out",
                )
        return found

    def add(self, index: int, part: Trace) -> None:
        """Store one finished text."""
        marked = Trace(part.columns, part.texts, {"fingerprint": self.fingerprint})
        marked.write(self.folder / f"{index:06d}.parquet")

    def merge(self, provenance: Mapping[str, Any]) -> Trace:
        """Write the whole trace, then remove the parts."""
        found = self.finished()
        parts = [Trace.read(found[index]) for index in sorted(found)]
        trace = concatenate(parts, {**provenance, "fingerprint": self.fingerprint})
        trace.write(self.final)
        for path in found.values():
            path.unlink()
        for leftover in self.folder.glob(".*.partial"):
            leftover.unlink()
        self.folder.rmdir()
        return trace
