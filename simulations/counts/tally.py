"""What simulations count: exact sums, the same in any order and for any number of workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulations.counts.moments import Moments
from spectheory.errors import SettingError, ShapeError

Counts = NDArray[np.int64]
Runs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Tally:
    """What a number of trials counted; tallies of different batches add up exactly, in any order.

    - ``counts``, ``[.]``: named int64 vectors, e.g. a histogram of ranks; read-only.
    - ``moments``: named moments of real quantities.
    - ``batches``: which batches are in it, as runs of batch numbers; empty for trials outside any.

    Examples
    --------
    >>> one, two = Tally.of(3, counts={"heads": [2]}), Tally.of(4, counts={"heads": [1]})
    >>> both = one.as_batch(0) + two.as_batch(1)
    >>> both.trials, both.counts["heads"], both.batches
    (7, array([3]), ((0, 2),))
    """

    trials: int = 0
    counts: Mapping[str, Counts] = field(default_factory=dict)
    moments: Mapping[str, Moments] = field(default_factory=dict)
    batches: Runs = ()

    @classmethod
    def of(
        cls,
        trials: int,
        *,
        counts: Mapping[str, ArrayLike] | None = None,
        samples: Mapping[str, ArrayLike | Moments] | None = None,
    ) -> Tally:
        """The tally of finished trials: vectors of counts, and samples of real quantities or their moments."""
        if trials < 1:
            raise SettingError(f"trials is {trials}", limit="must be >= 1", remedy="make some")
        vectors = {name: _vector(name, vector) for name, vector in (counts or {}).items()}
        moments = {n: v if isinstance(v, Moments) else Moments.of(v) for n, v in (samples or {}).items()}
        return cls(trials, vectors, moments)

    @property
    def size(self) -> int:
        """How many batches it has."""
        return sum(end - first for first, end in self.batches)

    def as_batch(self, batch: int) -> Tally:
        """The same tally as that of one batch."""
        return Tally(self.trials, self.counts, self.moments, ((batch, batch + 1),))

    def __add__(self, other: Tally) -> Tally:
        """Both tallies together."""
        if not (self.trials and other.trials):
            return self if self.trials else other
        shapes = [{name: len(t.counts[name]) for name in t.counts} for t in (self, other)]
        if shapes[0] != shapes[1] or set(self.moments) != set(other.moments):
            raise ShapeError(
                f"tallies count {shapes[0]} and {shapes[1]}, with moments {[*self.moments]} and {[*other.moments]}",
                limit="the same names and lengths add up",
                remedy="let a simulator count the same in every batch",
            )
        return Tally(
            self.trials + other.trials,
            {name: _added(name, self.counts[name], other.counts[name]) for name in self.counts},
            {name: self.moments[name] + other.moments[name] for name in self.moments},
            _joined(self.batches, other.batches),
        )

    def __eq__(self, other: object) -> bool:
        """Whether all numbers and batches are equal."""
        return isinstance(other, Tally) and self.as_dict() == other.as_dict() and self.batches == other.batches

    __hash__ = None  # type: ignore[assignment]

    def as_dict(self) -> dict[str, Any]:
        """The numbers, JSON-ready and exact, names in order; not the batches."""
        moments = {name: self.moments[name] for name in sorted(self.moments)}
        return {
            "trials": self.trials,
            "counts": {name: self.counts[name].tolist() for name in sorted(self.counts)},
            "moments": {name: [m.n, str(m.total), str(m.squares)] for name, m in moments.items()},
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Tally:
        """The tally of such numbers."""
        tally = cls.of(fields["trials"], counts=fields["counts"])
        moments = {name: Moments(n, Fraction(a), Fraction(b)) for name, (n, a, b) in fields["moments"].items()}
        return cls(tally.trials, tally.counts, moments)


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies; the empty tally if there are none."""
    result = Tally()
    for tally in tallies:
        result += tally
    return result


def _vector(name: str, counts: ArrayLike) -> Counts:
    vector = np.array(counts)
    if vector.ndim != 1:
        raise ShapeError(f"counts {name!r} have the shape {vector.shape}", limit="must be [n]", remedy="flatten them")
    if vector.dtype.kind not in "iu" or (vector.size and (vector.min() < 0 or vector.max() >= 2**63)):
        raise SettingError(
            f"counts {name!r} are {vector.dtype}s or negative", limit="must be integers >= 0", remedy="use samples"
        )
    return _read_only(vector.astype(np.int64))


def _added(name: str, one: Counts, other: Counts) -> Counts:
    both = one + other
    if np.any(both < 0):
        raise SettingError(f"counts {name!r} pass 2^63", limit="must fit 64 bits", remedy="use fewer trials")
    return _read_only(both)


def _read_only(vector: Counts) -> Counts:
    vector.flags.writeable = False
    return vector


def _joined(one: Runs, other: Runs) -> Runs:
    """The union of runs of batch numbers."""
    joined: list[tuple[int, int]] = []
    for first, end in sorted(one + other):
        if joined and first < joined[-1][1]:
            raise SettingError(f"batch {first} is in both tallies", limit="a batch counts once", remedy="add others")
        if joined and first == joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return tuple(joined)
