"""Recorded lengths (§10): what each start accepted, as a log has it, in place of the two models' pmfs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, several, whole
from spectheory.verification.base import Columns
from spectheory.verification.copied import CopiedMatch


@dataclass(frozen=True)
class RecordedMatch(CopiedMatch):
    """A draft of a log that has its accepted drafts at every start of a text (§10, exact up to the recorded depth).

    `places` are its columns of ``recorded_match``; with several it is the draft that accepts more at each start, a
    choice that knows the text. `most` is the longest length that was recorded. One that is `free` has no draft model:
    an n-gram draft. With `by_position` a call accepts a draft at a position if a call that starts there does: what a
    log of positions says, wrong for drafts that depend on the start.

    Examples
    --------
    >>> columns = {"recorded_match": np.array([[2, 0], [0, 1], [0, 0]])}
    >>> RecordedMatch("eagle", (0,), 2).path_survival(columns, 2).tolist()
    [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    >>> RecordedMatch("best", (0, 1), 2).path_survival(columns, 1).tolist()
    [[1.0], [1.0], [0.0]]
    >>> RecordedMatch("eagle", (0,), 2, by_position=True).path_survival(columns, 2).tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """

    draft: str
    places: tuple[int, ...]
    most: int
    free: bool = False
    by_position: bool = False

    name: ClassVar[str] = "recorded"
    needs: ClassVar[tuple[str, ...]] = ("recorded_match",)
    missing: ClassVar[tuple[str, str]] = ("it needs accepted lengths at every start", "log them at every start")

    def __post_init__(self) -> None:
        instance("draft", self.draft, str, remedy="name the draft")
        places = [whole("places", at, least=0, remedy="count columns from 0") for at in several("places", self.places,
                  remedy="(0,) is the first draft")]  # fmt: skip
        object.__setattr__(self, "places", tuple(places))
        for name in ("free", "by_position"):
            instance(name, getattr(self, name), bool, remedy="False is the default")
        whole("most", self.most, least=0, remedy="pass the longest recorded length")
        own = {"name": self.draft, "drafts": "copied" if self.free else "chosen", "hindsight": len(self.places) > 1}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"recorded draft {self.draft}"

    def matched(self, columns: Columns) -> NDArray[Any]:
        """Accepted drafts of a call that starts at each position, ``[N]``."""
        most: NDArray[Any] = columns[self.needs[0]][:, list(self.places)].max(axis=1)
        return run_of(most > 0) if self.by_position else most

    def longest(self, columns: Columns) -> int:
        """The longest length that was recorded."""
        return self.most


def run_of(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many positions in a row, from each on, are true.

    Examples
    --------
    >>> run_of(np.array([True, True, False, True])).tolist()
    [2, 1, 0, 1]
    """
    place = np.arange(len(first))
    following = np.where(first, len(first), place)
    return np.asarray(np.minimum.accumulate(following[::-1])[::-1] - place)
