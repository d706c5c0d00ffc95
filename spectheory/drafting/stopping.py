"""Stopping rules (§11): where a draft ends a call's drafting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance, real
from spectheory.errors import SettingError

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class StoppingRule(ABC):
    """Where a draft ends a call's drafting, from its own pmf at a position and the token drafted there.

    `reads` is the column of a trace that decides, `sign` how the rule is written. With `keeps` the token of the
    position that stops is still drafted and verified; otherwise the draft's pass is made, and nothing is drafted from
    it. At temperature 0 q is one token: probabilities are then those of the plain softmax, as engines compare them
    (temperature 1, no filters), and a rule without a `greedy` form is refused.
    """

    threshold: float

    name: ClassVar[str]
    sign: ClassVar[str]
    reads: ClassVar[str]
    keeps: ClassVar[bool] = False
    greedy: ClassVar[bool] = True
    limit: ClassVar[str] = "needs a probability, > 0 and <= 1"
    remedy: ClassVar[str] = "0.4 is usual"

    def __post_init__(self) -> None:
        threshold = real(
            f"the threshold of {self.name}{self.sign}",
            self.threshold,
            self.inside,
            limit=self.limit,
            remedy=self.remedy,
        )
        object.__setattr__(self, "threshold", threshold)

    @staticmethod
    def inside(threshold: float) -> bool:
        """Whether a threshold is in range."""
        return 0 < threshold <= 1

    @staticmethod
    def threshold_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The thresholds that equal values of the column that the rule reads."""
        return values

    @abstractmethod
    def stops(self, columns: Columns) -> NDArray[np.bool_]:
        """Whether drafting stops at each position, ``[N]``, if the drafts up to there equal the text."""

    @abstractmethod
    def stops_at(self, pmf: NDArray[np.float64], token: int, confidence: float | None = None) -> bool:
        """Whether drafting stops at one position, from the draft's pmf ``[V]`` (at temperature 0 the plain softmax),
        the token drafted from it, and the confidence that a head gives it.
        """

    def check_temperature(self, temperature: float) -> None:
        """Refuse temperature 0 where the rule has no meaning there."""
        if temperature == 0 and not self.greedy:
            raise SettingError(
                f"{self} is asked for at temperature 0",
                limit=f"the draft's pmf is one token there, and its {self.name} is 0",
                remedy="stop by top or token, or use another temperature",
            )

    def __str__(self) -> str:
        """As it is written, with every digit: token<0.4. Results are kept under this name."""
        return f"{self.name}{self.sign}{repr(self.threshold).removesuffix('.0')}"


class TokenBelow(StoppingRule):
    """Stop after a drafted token of probability q below the threshold; that token is kept (§11).

    Its probability is the smaller of q and ``draft_top``: q above temperature 0, else the plain softmax of the draft's
    first choice.

    Examples
    --------
    >>> TokenBelow(0.4).stops({"log_draft": np.log([0.5, 0.3])}).tolist()
    [False, True]
    >>> TokenBelow(0.4).stops({"log_draft": np.zeros(2), "draft_top": np.array([0.5, 0.3])}).tolist()
    [False, True]
    """

    name: ClassVar[str] = "token"
    sign: ClassVar[str] = "<"
    reads: ClassVar[str] = "log_draft"
    keeps: ClassVar[bool] = True

    @staticmethod
    def threshold_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probabilities, of logarithms."""
        return np.exp(values)

    def stops(self, columns: Columns) -> NDArray[np.bool_]:
        """Where q of the text's token is below, or the largest probability."""
        below, top = np.asarray(columns[self.reads] < np.log(self.threshold)), columns.get(TopBelow.reads)
        return below if top is None else np.asarray(below | (top < self.threshold))

    def stops_at(self, pmf: NDArray[np.float64], token: int, confidence: float | None = None) -> bool:
        """Whether q of the token is below."""
        return bool(pmf[token] < self.threshold)


class TopBelow(StoppingRule):
    """Stop before a token whose most probable candidate has a probability q below the threshold (§11).

    Examples
    --------
    >>> TopBelow(0.6).stops({"draft_top": np.array([0.7, 0.5])}).tolist()
    [False, True]
    """

    name: ClassVar[str] = "top"
    sign: ClassVar[str] = "<"
    reads: ClassVar[str] = "draft_top"

    def stops(self, columns: Columns) -> NDArray[np.bool_]:
        """Where the largest q is below."""
        return np.asarray(columns[self.reads] < self.threshold)

    def stops_at(self, pmf: NDArray[np.float64], token: int, confidence: float | None = None) -> bool:
        """Whether the largest q is below."""
        return bool(pmf.max() < self.threshold)


class EntropyAbove(StoppingRule):
    """Stop before a token whose pmf q has an entropy above the threshold, in nats (§11).

    Examples
    --------
    >>> EntropyAbove(2).stops({"draft_entropy": np.array([1.0, 3.0])}).tolist()
    [False, True]
    """

    name: ClassVar[str] = "entropy"
    sign: ClassVar[str] = ">"
    reads: ClassVar[str] = "draft_entropy"
    greedy: ClassVar[bool] = False
    limit: ClassVar[str] = "needs nats, finite and >= 0"
    remedy: ClassVar[str] = "2 is usual"

    @staticmethod
    def inside(threshold: float) -> bool:
        """Whether a threshold is in range."""
        return 0 <= threshold < np.inf

    def stops(self, columns: Columns) -> NDArray[np.bool_]:
        """Where the entropy is above."""
        return np.asarray(columns[self.reads] > self.threshold)

    def stops_at(self, pmf: NDArray[np.float64], token: int, confidence: float | None = None) -> bool:
        """Whether the entropy is above."""
        support = pmf[pmf > 0]
        return bool(-(support @ np.log(support)) > self.threshold)


class ConfidenceBelow(StoppingRule):
    """Stop before a token that the head's own confidence, a probability of being accepted, is below the threshold
    (§11).

    A DSpark head makes it of the tokens before, so that stopping is lossless. It reads no pmf of the draft.

    Examples
    --------
    >>> ConfidenceBelow(0.6).stops({"confidence": np.array([0.7, 0.5])}).tolist()
    [False, True]
    """

    name: ClassVar[str] = "confidence"
    sign: ClassVar[str] = "<"
    reads: ClassVar[str] = "confidence"

    def stops(self, columns: Columns) -> NDArray[np.bool_]:
        """Where the confidence is below."""
        return np.asarray(columns[self.reads] < self.threshold)

    def stops_at(self, pmf: NDArray[np.float64], token: int, confidence: float | None = None) -> bool:
        """Whether the confidence is below; a draft without one is refused."""
        if confidence is None:
            raise SettingError(
                f"{self} is asked for", limit="the draft has no confidence", remedy="stop by token or top"
            )
        return confidence < self.threshold


STOPPING: list[type[StoppingRule]] = [TokenBelow, TopBelow, EntropyAbove, ConfidenceBelow]
"""A new stopping rule is listed here and nowhere else."""


def read_stop(text: str) -> StoppingRule:
    """The stopping rule that a text writes.

    Examples
    --------
    >>> read_stop("token<0.4"), str(read_stop("entropy>2"))
    (TokenBelow(threshold=0.4), 'entropy>2')
    """
    instance("the stopping rule", text, str, remedy=f"there are {written()}")
    for kind in STOPPING:
        name, sign, number = text.replace(" ", "").partition(kind.sign)
        if sign and name == kind.name and (threshold := _number(number)) is not None:
            return kind(threshold)
    raise SettingError(f"the stopping rule is {text!r}", limit=f"there are {written()}", remedy="write one, in quotes")


def written() -> str:
    """How stopping rules are written, with usual thresholds.

    Examples
    --------
    >>> written()
    'token<0.4, top<0.4, entropy>2, confidence<0.4'
    """
    return ", ".join(f"{kind.name}{kind.sign}{kind.remedy.split()[0]}" for kind in STOPPING)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
