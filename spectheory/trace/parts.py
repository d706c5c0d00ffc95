"""A running measurement on disk: each finished prompt is a trace file of its own, so that a kill loses none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.errors import TornTraceError, TraceError
from spectheory.trace import Trace


def concatenate(parts: list[Trace], provenance: Mapping[str, Any]) -> Trace:
    """One trace from several that have the same columns."""
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    return Trace(columns, tuple(text for part in parts for text in part.texts), provenance)


@dataclass(frozen=True)
class PartStore:
    """Finished texts of one running measurement (`fingerprint`), each a small trace file beside the final one."""

    final: Path
    fingerprint: str

    @property
    def folder(self) -> Path:
        """Where the parts stand until the trace is whole."""
        return self.final.with_name(self.final.name + ".parts")

    def finished(self) -> dict[int, Path]:
        """Finished parts by text index; torn ones, and files that a kill left unfinished, are to be measured again."""
        found = {}
        for index, path in self._parts().items():
            with contextlib.suppress(TornTraceError):
                self._read(path)
                found[index] = path
        return found

    def add(self, index: int, part: Trace) -> None:
        """Store one finished text."""
        marked = Trace(part.columns, part.texts, {"fingerprint": self.fingerprint})
        marked.write(self.folder / f"{index:06d}.parquet")

    def merge(self, provenance: Mapping[str, Any], more: Callable[[Trace], Trace] = lambda trace: trace) -> Trace:
        """Write the whole trace, then remove the parts; all of them must be whole. `more` adds what needs all texts."""
        found = self._parts()
        parts = [self._read(path) for path in found.values()]
        trace = more(concatenate(parts, {**provenance, "fingerprint": self.fingerprint}))
        trace.write(self.final)
        for path in found.values():
            path.unlink()
        for leftover in self.folder.glob(".*.partial"):
            leftover.unlink()
        self.folder.rmdir()
        return trace

    def _parts(self) -> dict[int, Path]:
        """Files of parts by text index, in order."""
        found = {int(path.stem): path for path in self.folder.glob("*.parquet") if path.stem.isdecimal()}
        return dict(sorted(found.items()))

    def _read(self, path: Path) -> Trace:
        """A part of this measurement."""
        part = Trace.read(path)
        if part.provenance.get("fingerprint") != self.fingerprint:
            raise TraceError(
                f"{self.folder} holds an unfinished measurement with other settings",
                limit="only the same models, prompts and settings can be resumed",
                remedy="delete the folder or choose another --out",
            )
        return part
