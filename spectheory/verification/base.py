"""What a verification rule is: what it states about two pmfs, and about the positions of a text.

A rule is a small frozen dataclass. For pmfs it answers :meth:`Rule.acceptance` and
:meth:`Rule.acceptance_given`; for a text it answers :meth:`Rule.path_survival`, from the columns of a trace it names
in ``needs``. Everything else (predictor, plots, CLI) asks only these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Array
from spectheory.errors import SettingError, TraceError

Columns = Mapping[str, NDArray[Any]]
"""Per-position statistics of a text by name, each ``[N]``; the names are those of :mod:`spectheory.trace`."""


class Rule(ABC):
    """A verification rule: how a call decides which drafted tokens are output.

    Attributes
    ----------
    name : str
        The name on the command line and in reports.
    needs : tuple of str
        Columns of a trace that :meth:`path_survival` reads.
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]]

    @abstractmethod
    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Probability ``[...]`` that the output is among the k candidates at one position (exact)."""

    @abstractmethod
    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Probability ``[..., V]`` that the drafted token is accepted given that the output is x (exact)."""

    @abstractmethod
    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """Survival ``[N, k]`` of the accepted drafts of a call that starts at each position of one text (exact).

        Entry ``[n, i - 1]`` is P(tau >= i) given the whole text, for a chain of k drafts whose first one stands at
        position n. Entries that reach past the end of the text carry no meaning.
        """

    def require(self, columns: Columns) -> None:
        """Check that `columns` holds what this rule reads.

        Raises
        ------
        TraceError
            If one is missing.
        """
        missing = [name for name in self.needs if name not in columns]
        if missing:
            raise TraceError(
                f"rule {self.name!r} cannot be predicted: the trace has no {', '.join(missing)}",
                limit="it needs full pmfs",
                remedy="measure the pair, or use token and block verification",
            )


class PositionRule(Rule):
    """A rule that decides each position by itself: path survival is a product of a(x)."""

    @abstractmethod
    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """Probability ``[N]`` that the draft at a position is accepted given the text's token there."""

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """Survival ``[N, k]``: running products of a(x) (§7, exact)."""
        return np.multiply.accumulate(windows(self.accepted_at(columns), k, fill=0.0), axis=1)


def windows(values: NDArray[np.float64], k: int, *, fill: float) -> NDArray[np.float64]:
    """The k values from each position on, ``[N, k]``, with `fill` past the end."""
    padded = np.concatenate([values, np.full(k - 1, fill)])
    return np.lib.stride_tricks.sliding_window_view(padded, k)


def single_candidate(rule: Rule, k: int) -> None:
    """Refuse more than one candidate per position for a rule that has just one.

    Raises
    ------
    SettingError
        If k is not 1.
    """
    if k != 1:
        raise SettingError(f"k is {k}", limit=f"{rule.name} verification takes one candidate", remedy="use k=1")
