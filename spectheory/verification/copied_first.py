"""Hybrids (§10): a call copies where a lookup finds something, and else a draft model or head drafts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance
from spectheory.distributions import Array
from spectheory.errors import SettingError
from spectheory.verification.base import Columns, PathRule, checked_columns
from spectheory.verification.copied import CopiedMatch

THEN = ">"
"""Stands between the names of both rules."""


@dataclass(frozen=True)
class CopiedFirst(PathRule):
    r"""Where `copied` drafts at least one token at a start its chain is the call's, else that of `other`.

    Given the text a lookup's draft is certain, so :math:`P(\tau\ge i\mid x,n)` is the one or the other at each start
    (§7, exact; where the lookup remembers earlier calls an estimate, as these are then calls of both). Engines that
    chain drafts so: llama.cpp (``--spec-type ngram-simple,draft-simple``), Arctic Inference.

    Examples
    --------
    >>> from spectheory.verification import LookupMatch, TokenVerification
    >>> columns = {"lookup_match": np.array([0, 1]), "lookup_drafted": np.array([0, 1])}
    >>> hybrid = CopiedFirst(LookupMatch(), TokenVerification())
    >>> columns |= {"log_target": np.log([0.5, 0.5]), "log_draft": np.log([0.25, 0.25])}
    >>> hybrid.name, hybrid.path_survival(columns, 2)
    ('lookup>token', array([[0.5 , 0.25],
           [1.  , 0.  ]]))
    """

    copied: CopiedMatch
    other: PathRule

    name: ClassVar[str] = "hybrid"
    statement: ClassVar[str] = "A4"
    needs: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name, rule in (("copied", self.copied), ("other", self.other)):
            instance(name, rule, PathRule, remedy="pass a rule")
        known = isinstance(self.copied, CopiedMatch) and len(self.copied.needs) > 1
        if not (known and self.other.uses_draft and self.other.lossless and not self.other.grows):
            raise SettingError(
                f"{self.copied.name} is followed by {self.other.name}",
                limit="needs a lookup whose drafted tokens are known, then a lossless rule with a draft of a model",
                remedy="lookup>token is one",
            )
        for name, value in {"name": f"{self.copied.name}{THEN}{self.other.name}", "length": self.copied.length}.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"{self.copied.label}, else {self.other.label}"

    @property
    def can_stop(self) -> bool:
        """Copied drafts have no confidence."""
        return False

    @property
    def bound_by(self) -> frozenset[str]:
        """None of the limits: they are about one draft."""
        return frozenset()

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """That of the other draft, where nothing is copied."""
        return self.other.acceptance(target, draft, k)

    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """That of the other draft, where nothing is copied."""
        return self.other.acceptance_given(target, draft)

    def missing_columns(self, columns: Columns) -> list[str]:
        """Those that either lacks."""
        return [*self.copied.missing_columns(columns), *self.other.missing_columns(columns)]

    def require(self, columns: Columns) -> None:
        """Raise a `TraceError` if either lacks what it reads."""
        self.copied.require(columns)
        self.other.require(columns)

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """That of the draft that the call has, ``[N, k]`` (§7)."""
        checked_columns(columns, *self.copied.needs)
        copies = self.copied.drafted(columns)[:, None] > 0
        return np.where(copies, self.copied.path_survival(columns, k), self.other.path_survival(columns, k))

    def calls_by_drafted(
        self, columns: Columns, lengths: NDArray[np.int64], most: NDArray[np.int64], k: int, *, first: int = 0
    ) -> NDArray[Any]:
        """Expected calls of each text by the tokens that they copy, ``[texts, k + 1]``; 0: those of the other draft."""
        survival = np.hstack([np.ones((len(columns[self.copied.needs[0]]), 1)), self.path_survival(columns, k)])
        moves = survival - np.hstack([survival[:, 1:], np.zeros((len(survival), 1))])
        drafted, begin = np.minimum(self.copied.drafted(columns), k), 0
        counts = np.zeros((len(lengths), k + 1))
        for text, (length, room) in enumerate(zip(lengths.tolist(), most.tolist(), strict=True)):
            visits = np.zeros(length + k + 1)
            visits[first] = 1.0
            for n in range(first, length):
                counts[text, min(drafted[begin + n], room - n - 1)] += visits[n]
                visits[n + 1 : n + k + 2] += visits[n] * moves[begin + n]
            begin += length
        return counts
