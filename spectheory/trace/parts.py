"""A running measurement on disk: finished prompts and sampled texts are rows of a store, so that a kill loses none."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np

from spectheory.errors import TornTraceError, TraceError
from spectheory.store import Contents, Row, Store, payload_of
from spectheory.trace import Trace
from spectheory.trace.on_disk import stored
from spectheory.trace.parquet import parts_of
from spectheory.trace.text_info import TextInfo

PARTS = Contents(
    "parts of a measurement",
    1,
    "parts of a measurement",
    TraceError,
    "delete it or choose another --out",
    "an unfinished measurement with other settings",
    "only the same models, prompts and settings can be resumed",
)


def concatenate(parts: list[Trace], provenance: Mapping[str, Any]) -> Trace:
    """One trace from several that have the same columns."""
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    return Trace(columns, tuple(text for part in parts for text in part.texts), provenance)


class PartStore(Store):
    """Finished prompts of one running measurement (`fingerprint`), beside its trace; use it in a ``with`` statement."""

    def __init__(self, final: Path, fingerprint: str) -> None:
        super().__init__(parts_of(final), PARTS, {"fingerprint": fingerprint})
        self.parts: dict[int, Row] = {}
        """Rows of finished prompts by their places; the latest of each."""
        self.texts: dict[int, list[list[int]]] = {}
        """Sampled texts, token ids by the place of their prompt."""

    def __enter__(self) -> Self:
        """Open the file and see what is finished."""
        super().__enter__()
        for row in self.earlier:
            self.parts |= {row.content["part"]: row} if "part" in row.content else {}
            self.texts |= {int(place): texts for place, texts in row.content.get("sampled", {}).items()}
        return self

    def keep(self, place: int, part: Trace) -> None:
        """Store one finished prompt."""
        columns, arrays = io.BytesIO(), dict[str, Any]()
        arrays |= {name: stored(name, values) for name, values in part.columns.items()}
        np.savez(columns, **arrays)
        texts = [asdict(text) for text in part.texts]
        self.parts[place] = self.add({"part": place, "texts": texts}, columns.getvalue())

    def some(self, places: Iterable[int]) -> list[Trace]:
        """These finished prompts, in the order asked for."""
        return [self._read(self.parts[place]) for place in places]

    def keep_texts(self, texts: Mapping[int, Sequence[Sequence[int]]]) -> None:
        """Store the texts of a batch."""
        self.add({"sampled": {str(place): texts[place] for place in sorted(texts)}})

    def began(self, batch: int, threads: int) -> tuple[int, int]:
        """How many prompts are sampled together, on how many threads: as when this measurement began, or these now.

        Both change the last bits of logits, and with them a text.
        """
        for row in self.earlier:
            if "batch" in row.content:
                return row.content["batch"], row.content["threads"]
        self.add({"batch": batch, "threads": threads})
        return batch, threads

    def _read(self, row: Row) -> Trace:
        """A part, floats in float64."""
        try:
            with np.load(io.BytesIO(payload_of(self.path, row)), allow_pickle=False) as arrays:
                columns = {name: arrays[name] for name in arrays.files}
        except OSError as error:
            raise TornTraceError(
                f"row {row.line} of {self.path} is damaged", limit="needs a finished prompt", remedy="run again"
            ) from error
        wide = {name: each.astype(np.float64) if each.dtype.kind == "f" else each for name, each in columns.items()}
        return Trace(wide, tuple(TextInfo(**text) for text in row.content["texts"]))
