"""Drafts that are certain of their tokens (A4, §7, §10): given the text a call accepts as many as the text repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels
from spectheory.checks import instance, several, whole
from spectheory.distributions import Array
from spectheory.errors import SettingError
from spectheory.ngrams.base import LONGEST_COPY, NgramDraft
from spectheory.verification.base import Columns, Drafts, PathRule, at_least_one, checked_columns
from spectheory.verification.matching import IndependentMatch


class CopiedMatch(PathRule):
    r"""A chain that is a function of the text before its start, accepted while the output equals it.

    With :math:`m_n`, the number of leading drafts that the text repeats from n on, :math:`P(\tau \ge i \mid x, n) =
    1[m_n \ge i]` (§7, exact): given the text nothing is random. Token and block verification of a draft that is certain
    of its tokens are the same rule. `needs` are the columns of :math:`m_n` and, where it is known, of the tokens
    drafted. `copies` is how decoders find these, None where a log alone knows.
    """

    statement: ClassVar[str] = "A4"
    drafts: ClassVar[Drafts] = "copied"
    copies: NgramDraft | None = None

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Target probability of the drafted token, of which `draft` is certain (A4, exact)."""
        return IndependentMatch().acceptance(target, draft, k)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Acceptance given the output: 1 at the drafted token, else 0, ``[..., V]`` (A4, exact)."""
        return IndependentMatch().acceptance_given(target, draft)

    def matched(self, columns: Columns) -> NDArray[Any]:
        """Leading drafts that the text repeats from each position on, ``[N]``."""
        return columns[self.needs[0]]

    def drafted(self, columns: Columns) -> NDArray[Any]:
        """Tokens drafted at each position, ``[N]``, where `needs` has their column."""
        return columns[self.needs[1]]

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """1 where the text repeats at least i tokens of the draft, ``[N, k]`` (§7, exact)."""
        checked_columns(columns, self.needs[0])
        k, longest = at_least_one("k", k), self.longest(columns)
        if k > longest:
            raise SettingError(
                f"a chain of {k} copied tokens is asked for",
                limit=f"{self.needs[0]} is recorded up to {longest}",
                remedy="use a shorter chain",
            )
        return (self.matched(columns)[:, None] >= np.arange(1, k + 1)).astype(np.float64)

    def longest(self, columns: Columns) -> int:
        """The longest chain whose matches are known."""
        return LONGEST_COPY

    def calls_by_drafted(
        self, columns: Columns, lengths: NDArray[np.int64], most: NDArray[np.int64], k: int, *, first: int = 0
    ) -> NDArray[np.int64] | None:
        """Calls of each text that draft 0, 1, ..., k tokens, ``[texts, k + 1]`` (exact); None where that is unknown.

        A call that starts at n outputs one token more than it has accepted, and the next one starts there. It never
        drafts the last token that a text has room for: the call outputs one of its own. Texts are concatenated, of
        `lengths` tokens each where `most` would have fitted; the first call of each starts at `first`.

        Examples
        --------
        >>> from spectheory.verification import LookupMatch
        >>> columns = {"lookup_match": np.array([0, 2, 1, 0]), "lookup_drafted": np.array([0, 3, 2, 1])}
        >>> LookupMatch().calls_by_drafted(columns, np.array([4]), np.array([4]), 3)
        array([[1, 0, 1, 0]])
        """
        if len(self.needs) < 2:
            return None
        matched, drafted = self.matched(columns), self.drafted(columns)
        begins = np.cumsum(lengths) - lengths
        counts = np.zeros((len(lengths), k + 1), dtype=np.int64)
        if kernels.pays(len(matched)):
            from spectheory.kernels.path_calls import copied_calls

            matched, drafted = (column.astype(np.int64, copy=False) for column in (matched, drafted))
            copied_calls(matched, drafted, lengths, most, k, first, counts)
            return counts
        going = (lengths > first).nonzero()[0]
        at = np.full(len(going), first)
        while len(going):
            rows = begins[going] + at
            counts[going, np.minimum(drafted[rows], np.minimum(k, most[going] - at - 1))] += 1
            at = at + np.minimum(matched[rows], k) + 1
            inside = at < lengths[going]
            going, at = going[inside], at[inside]
        return counts


# Recorded lengths (§10): what each start accepted, as a log has it, in place of the two models' pmfs


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
    missing = ("it needs accepted lengths at every start", "log them at every start")

    def __post_init__(self) -> None:
        instance("draft", self.draft, str, remedy="name the draft")
        places = [
            whole("places", at, least=0, remedy="count columns from 0")
            for at in several("places", self.places, remedy="(0,) is the first draft")
        ]
        object.__setattr__(self, "places", tuple(places))
        for name in ("free", "by_position"):
            instance(name, getattr(self, name), bool, remedy="False is the default")
        whole("most", self.most, least=0, remedy="pass the longest recorded length")
        fields = {"name": self.draft, "drafts": "copied" if self.free else "chosen", "hindsight": len(self.places) > 1}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """What sentences call it."""
        return "recorded draft" if self.draft == "draft" else f"recorded draft {self.draft}"

    def matched(self, columns: Columns) -> NDArray[Any]:
        """Accepted drafts of a call that starts at each position, ``[N]``."""
        most: NDArray[Any] = columns[self.needs[0]][:, list(self.places)].max(axis=1)
        return _run_of(most > 0) if self.by_position else most

    def longest(self, columns: Columns) -> int:
        """The longest length that was recorded."""
        return self.most


def _run_of(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many positions in a row, from each on, are true.

    Examples
    --------
    >>> _run_of(np.array([True, True, False, True])).tolist()
    [2, 1, 0, 1]
    """
    place = np.arange(len(first))
    following = np.where(first, len(first), place)
    return np.asarray(np.minimum.accumulate(following[::-1])[::-1] - place)
