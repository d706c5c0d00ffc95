"""A running measurement on disk: each finished prompt and batch of texts is a file, so that a kill loses none."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.errors import FOREIGN, TornTraceError, TraceError
from spectheory.files import read_text, write_whole
from spectheory.trace import Trace
from spectheory.trace.parquet import parts_of

_BATCH = "batch.json"


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
        return parts_of(self.final)

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

    def some(self, indices: Iterable[int]) -> list[Trace]:
        """These finished texts, in the order asked for."""
        found = self._parts()
        return [self._read(found[index]) for index in indices]

    def keep_texts(self, texts: Mapping[int, Sequence[Sequence[int]]]) -> None:
        """Store the texts of a batch, token ids by the index of their prompt."""
        self._keep(f"texts-{min(texts):06d}.json", {str(index): texts[index] for index in sorted(texts)})

    def texts(self) -> dict[int, list[list[int]]]:
        """Stored texts."""
        kept = [self._kept(path) or {} for path in sorted(self.folder.glob("texts-*.json"))]
        return {int(index): texts for batch in kept for index, texts in batch.items()}

    def began(self, batch: int, threads: int) -> tuple[int, int]:
        """How many prompts are sampled together, on how many threads: as when this measurement began, or these now.

        Both change the last bits of logits, and with them a text.
        """
        kept = self._kept(self.folder / _BATCH)
        if kept is not None:
            return int(kept["size"]), int(kept.get("threads", threads))
        self._keep(_BATCH, {"size": batch, "threads": threads})
        return batch, threads

    def merge(self, provenance: Mapping[str, Any], more: Callable[[Trace], Trace] = lambda trace: trace) -> Trace:
        """Write the whole trace, then remove the parts; all of them must be whole. `more` adds what needs all texts."""
        found = self._parts()
        parts = [self._read(path) for path in found.values()]
        trace = more(concatenate(parts, {**provenance, "fingerprint": self.fingerprint}))
        trace.write(self.final)
        for pattern in ("*.parquet", "*.json", ".*.partial"):
            for path in self.folder.glob(pattern):
                path.unlink()
        self.folder.rmdir()
        return trace

    def _parts(self) -> dict[int, Path]:
        """Files of parts by text index, in order."""
        found = {int(path.stem): path for path in self.folder.glob("*.parquet") if path.stem.isdecimal()}
        return dict(sorted(found.items()))

    def _read(self, path: Path) -> Trace:
        """A part of this measurement."""
        part = Trace.read(path)
        self._check(part.provenance.get("fingerprint"))
        return part

    def _keep(self, name: str, content: Mapping[str, Any]) -> None:
        text = json.dumps({"fingerprint": self.fingerprint, "content": content})
        write_whole(self.folder / name, lambda partial: partial.write_text(text))

    def _kept(self, path: Path) -> dict[str, Any] | None:
        """The content of a file of this measurement; None if there is none, or a damaged one."""
        try:
            found = json.loads(read_text(path))
            fingerprint, content = found["fingerprint"], dict(found["content"])
        except (OSError, *FOREIGN):
            return None
        self._check(fingerprint)
        return content

    def _check(self, fingerprint: object) -> None:
        if fingerprint != self.fingerprint:
            raise TraceError(
                f"{self.folder} holds an unfinished measurement with other settings",
                limit="only the same models, prompts and settings can be resumed",
                remedy="delete the folder or choose another --out",
            )
