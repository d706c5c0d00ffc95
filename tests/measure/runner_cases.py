"""What tests of workers share: a measurement, its trace by one process, and pairs whose readers die."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from spectheory.measure import MeasureSettings, ModelPair, load_pair, runners
from spectheory.measure.job import traces_of
from spectheory.prompts import Prompt
from spectheory.store import read_rows
from spectheory.trace import Trace
from spectheory.trace.parquet import parts_of
from spectheory.trace.parts import PARTS

PROMPTS = tuple(Prompt(f"q{i}", "any", f"t{i} t{i + 1} t7") for i in range(1, 7))
SETTINGS = MeasureSettings(tokens=9, count=2, seed=3)
MORTAL = "q3"
"""The prompt that is deadly."""


@dataclass(frozen=True)
class Source:
    """Where workers load the pair; whoever reads the deadly prompt dies, as often as `deaths` has files."""

    target: str
    draft: str
    deaths: str | None = None

    def load(self, device: str | None) -> ModelPair:
        """Load the pair."""
        if self.deaths is not None:
            runners.traces_of = self._mortal  # type: ignore[attr-defined]  # in a process of its own
        return load_pair(self.target, self.draft, device=device or "cpu")

    def _mortal(self, pair: ModelPair, encoded: runners.Encoded, *others: object) -> list[Trace]:
        if encoded.prompt.id == MORTAL:
            for death in Path(str(self.deaths)).iterdir():
                death.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return traces_of(pair, encoded, *others)  # type: ignore[arg-type]


def deaths(folder: Path, count: int) -> str:
    """A folder of so many deaths to come."""
    folder.mkdir()
    for death in range(count):
        (folder / str(death)).touch()
    return str(folder)


def kept(out: Path) -> set[int]:
    """Places of the prompts that an unfinished measurement has finished."""
    return {row.content["part"] for row in read_rows(parts_of(out), PARTS) if "part" in row.content}


def assert_equal_bytes(one: Trace, other: Trace) -> None:
    assert one.texts == other.texts
    assert set(one.columns) == set(other.columns)
    for name, values in one.columns.items():
        assert values.dtype == other.columns[name].dtype, name
        assert values.tobytes() == other.columns[name].tobytes(), name
