"""Seconds of a server's step by the tokens that it verifies: a table, or what timed runs of a server give (§15)."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np

from spectheory.checks import BEYOND, MOST_EXACT, amount, whole
from spectheory.cost.served import ServedFit
from spectheory.distributions import Floats
from spectheory.errors import FOREIGN, SettingError, argument, reason_of
from spectheory.files import read_text

_COLUMNS = ("tokens", "seconds", "drafting")
_EXAMPLE = "write rows of tokens,seconds, such as 64,0.012"


class StepTimes(ABC):
    """Seconds of a step of some requests, by the drafts that are verified in all of them together."""

    @abstractmethod
    def plain(self, batch: int) -> float:
        """Of a step without drafts."""

    @abstractmethod
    def verifying(self, batch: int, k: int) -> Floats:
        """Of a step of `batch` requests that verifies 0, 1, ..., batch · k drafts, ``[batch · k + 1]``."""

    @abstractmethod
    def drafting(self, batch: int) -> float:
        """Of a pass of the draft for all requests, where :meth:`verifying` leaves it out."""

    @abstractmethod
    def covers(self, batch: int, k: int) -> bool:
        """Whether the times are known of so many requests with so many drafts each."""

    def least(self, batch: int, k: int, passes: Sequence[int]) -> Floats:
        """The least seconds of a step by its drafts, ``[batch · k + 1]``; `passes` are those of 0, ..., k drafts.

        A step that verifies j drafts of B requests has one with j / B or more, and one without drafts is plain.
        """
        seconds = self.verifying(batch, k)
        longest = -(-np.arange(len(seconds)) // batch)
        seconds = seconds + self.drafting(batch) * np.asarray(passes)[longest]
        seconds[0] = min(seconds[0], self.plain(batch))
        return seconds


@dataclass(frozen=True)
class StepTable(StepTimes):
    """Measured seconds of a step that verifies so many tokens, one of each request and all drafts; linear between rows.

    Where steps are padded to the size of a captured graph, two rows write a stair: its first size and its last, with
    one time. `drafting` are the seconds of a pass of the draft by requests, linear too; without it drafts are free.
    Times of more tokens are no smaller.

    Examples
    --------
    >>> table = StepTable((1, 64, 128), (0.010, 0.012, 0.020), ((1, 0.001), (64, 0.002)))
    >>> table.verifying(32, 1)[[0, 32]].round(4).tolist(), table.drafting(64), table.covers(64, 2)
    ([0.011, 0.012], 0.002, False)
    """

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    drafted: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        sizes = [whole("tokens", each, most=MOST_EXACT, remedy=_EXAMPLE) for each in self.tokens]
        times = [amount("seconds", each, positive=True, below=BEYOND, remedy=_EXAMPLE) for each in self.seconds]
        drafted = [
            (whole("requests", size, remedy=_EXAMPLE), amount("drafting", time, remedy=_EXAMPLE))
            for size, time in self.drafted
        ]
        for name, rows in (("step", [*zip(sizes, times, strict=True)]), ("drafting", drafted)):
            _check_rising(name, rows)
        if not sizes:
            raise SettingError("the table of steps has no row", limit="needs one or more", remedy=_EXAMPLE)
        object.__setattr__(self, "tokens", tuple(sizes))
        object.__setattr__(self, "seconds", tuple(times))
        object.__setattr__(self, "drafted", tuple(drafted))

    def plain(self, batch: int) -> float:
        """Of a step that verifies a token of each request."""
        return float(self.verifying(batch, 0)[0])

    def verifying(self, batch: int, k: int) -> Floats:
        """Between the rows; outside them it is refused."""
        if not self.covers(batch, k):
            raise SettingError(
                f"a step of {batch} requests with {k} drafts each verifies {batch * (k + 1)} tokens",
                limit=f"the table is of {self.tokens[0]} to {self.tokens[-1]} tokens",
                remedy=f"add rows, or lower {argument('batches', '--batch')} or {argument('k_max')}",
            )
        return np.asarray(np.interp(batch + np.arange(batch * k + 1), self.tokens, self.seconds))

    def drafting(self, batch: int) -> float:
        """On the line between rows, and beyond the ends as at them; 0 where none are given."""
        if not self.drafted:
            return 0.0
        requests, seconds = np.array(self.drafted).T
        return float(np.interp(batch, requests, seconds))

    def covers(self, batch: int, k: int) -> bool:
        """Whether the rows hold it between them."""
        return self.tokens[0] <= batch and batch * (k + 1) <= self.tokens[-1]


def _check_rising(name: str, rows: Sequence[tuple[int, float]]) -> None:
    for (size, seconds), (larger, longer) in pairwise(rows):
        if larger <= size or longer < seconds:
            raise SettingError(
                f"a {name} of {larger} takes {longer:g} s, after {size} with {seconds:g} s",
                limit="sizes rise, and times do not fall",
                remedy="sort the rows, and take the largest time up to each",
            )


@dataclass(frozen=True)
class ServedSteps(StepTimes):
    """What the runs of a timed server give at one context (estimate): a step that verifies j drafts of B requests takes
    as long as one of chains of j / B drafts, whose drafting is in the time.
    """

    fit: ServedFit
    context: float

    def plain(self, batch: int) -> float:
        """The fit's plain step."""
        return self.fit.seconds(batch, self.context).best

    def verifying(self, batch: int, k: int) -> Floats:
        """The fit where each request has so many drafts in the mean, no time below the one before."""
        drafts = np.arange(batch * k + 1) / batch
        return np.maximum.accumulate(self.fit.verifying(batch, self.context, drafts))

    def drafting(self, batch: int) -> float:
        """In the time of verifying."""
        return 0.0

    def covers(self, batch: int, k: int) -> bool:
        """Whether such runs were timed."""
        least, most = self.fit.batches
        return least <= batch <= most and k <= self.fit.ks[-1]


def read_steps(path: Path) -> StepTable:
    """A table of step times: lines of ``tokens,seconds`` with these names first, and a column ``drafting`` if wanted.

    `drafting` has the seconds of a draft pass for as many requests; rows may leave it empty, and `seconds` too.
    """
    try:
        rows = [*csv.DictReader(StringIO(read_text(path).lstrip("\ufeff")))]
        names = [name.strip() for name in rows[0] if name] if rows else []
        if not rows or not {"tokens", "seconds"} <= set(names) <= set(_COLUMNS):
            raise LookupError(f"its columns are {', '.join(names) or 'missing'}")
        cells = [{name.strip(): (cell or "").strip() for name, cell in row.items() if name} for row in rows]
        known = [(int(row["tokens"]), row["seconds"], row.get("drafting", "")) for row in cells]
        step = [(size, float(seconds)) for size, seconds, _ in known if seconds]
        return StepTable(
            tuple(size for size, _ in step),
            tuple(seconds for _, seconds in step),
            tuple((size, float(drafting)) for size, _, drafting in known if drafting),
        )
    except SettingError as error:
        raise SettingError(f"{path}: {error.what}", limit=error.limit, remedy=error.remedy) from error
    except (OSError, *FOREIGN) as error:
        raise SettingError(
            f"{path} cannot be read as step times ({reason_of(error)})",
            limit="needs the columns tokens and seconds, and drafting if drafts are not free",
            remedy=_EXAMPLE,
        ) from error
