"""Draft lengths that earlier calls decide: what engines do, each a small state that every call moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting.tree import at_least_one


@dataclass(frozen=True)
class LengthPolicy(ABC):
    """A rule for the drafts of the next call from the accepted drafts of those before it (§18).

    `most` is the longest chain. `finite`: whether there are so few states that calls are counted exactly; `kept`:
    whether the state goes on from one request to the next, as one of a server does; `reads`: the column of the
    probabilities of drafted tokens, where these decide too.
    """

    most: int

    name: ClassVar[str]
    engine: ClassVar[str]
    finite: ClassVar[bool] = True
    kept: ClassVar[bool] = False
    reads: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        at_least_one("most", self.most)

    @property
    @abstractmethod
    def start(self) -> Hashable:
        """The state before the first call."""

    @abstractmethod
    def drafts(self, state: Hashable) -> int:
        """How many tokens a call drafts in this state."""

    def stops(self, state: Hashable, probability: float) -> bool:
        """Whether a drafted token of this probability is the call's last."""
        return False

    @abstractmethod
    def after(self, state: Hashable, accepted: int, judged: Sequence[float] = ()) -> Hashable:
        """The state after a call that accepted so many of its drafts; `judged` are the probabilities of these and of
        the refused one, if there is one.
        """


@dataclass(frozen=True)
class Heuristic(LengthPolicy):
    """transformers' ``num_assistant_tokens_schedule="heuristic_transient"``: two more after a call that accepted all of
    its drafts, else one less, at least 1. The state is k; a request begins with `first`, by default transformers' own.

    transformers has no largest k: here it is `most`. Drafts that end by its confidence threshold, which is on by
    default, are not those of this policy: it is for ``assistant_confidence_threshold=0``.

    Examples
    --------
    >>> policy = Heuristic(most=16, first=5)
    >>> policy.after(5, 5), policy.after(5, 4), policy.after(1, 0)
    (7, 4, 1)
    """

    first: int = 20

    name: ClassVar[str] = "heuristic"
    engine: ClassVar[str] = "transformers"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("first", self.first)

    @property
    def start(self) -> int:
        """The first k."""
        return min(self.first, self.most)

    def drafts(self, state: Hashable) -> int:
        """The state itself."""
        assert isinstance(state, int)
        return state

    def after(self, state: Hashable, accepted: int, judged: Sequence[float] = ()) -> int:
        """Two more, or one less."""
        k = self.drafts(state)
        return min(k + 2, self.most) if accepted == k else max(k - 1, 1)


@dataclass(frozen=True)
class MovingAverage(LengthPolicy):
    """SGLang's ``--speculative-adaptive`` for one request at a time, with its default settings: k is one of `steps`.

    k begins with `first`, the server's ``--speculative-num-steps``, which is 3 unless it is given. A moving average of
    the accepted drafts, ``0.8 average + 0.2 accepted``, begins at k - 1. After ten calls, every
    fifth one may move k: down while the average is at most the step below less 0.75, else up while it is above k - 0.5.
    The state is (k, average, calls), and goes on over the requests of a server.

    Source: ``srt/speculative/adaptive_spec_params.py`` of SGLang (November 2026).

    Examples
    --------
    >>> policy = MovingAverage(most=16)
    >>> state = policy.start
    >>> for accepted in [3] * 15:
    ...     state = policy.after(state, accepted)
    >>> policy.drafts(policy.start), policy.drafts(state)
    (3, 5)
    """

    first: int = 3
    steps: tuple[int, ...] = (1, 3, 5, 7)

    name: ClassVar[str] = "moving average"
    engine: ClassVar[str] = "sglang"
    finite: ClassVar[bool] = False
    kept: ClassVar[bool] = True
    share: ClassVar[float] = 0.2
    settled: ClassVar[int] = 10
    every: ClassVar[int] = 5
    down: ClassVar[float] = 0.75
    up: ClassVar[float] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        kept = tuple(step for step in sorted(self.steps) if step <= self.most) or (1,)
        object.__setattr__(self, "steps", kept)

    @property
    def start(self) -> tuple[int, float, int]:
        """The first k, or the middle step where that is none of them, an average of one less, and no calls."""
        k = self.first if self.first in self.steps else self.steps[len(self.steps) // 2]
        return k, float(k - 1), 0

    def drafts(self, state: Hashable) -> int:
        """The first number of the state."""
        assert isinstance(state, tuple)
        return int(state[0])

    def after(self, state: Hashable, accepted: int, judged: Sequence[float] = ()) -> tuple[int, float, int]:
        """The average moves with every call, k with every fifth."""
        assert isinstance(state, tuple)
        k, average, calls = state
        average, calls = (1 - self.share) * average + self.share * accepted, calls + 1
        if calls > self.settled and (calls - self.settled) % self.every == 0:
            k = self._moved(k, average)
        return k, average, calls

    def _moved(self, k: int, average: float) -> int:
        """The step that the average asks for; down first."""
        at = before = self.steps.index(k)
        while at > 0 and average <= self.steps[at - 1] - self.down:
            at -= 1
        while at >= before and at < len(self.steps) - 1 and average > self.steps[at] - self.up:
            at += 1
        return self.steps[at]


@dataclass(frozen=True)
class MovingThreshold(LengthPolicy):
    """transformers' ``assistant_confidence_threshold`` with scikit-learn installed, at temperature 0: a call drafts up
    to a token whose probability is below a threshold, which every call moves; `most` drafts at most.

    The threshold begins with `first`. After each call that leaves more than five judged drafts, right ones and wrong
    ones among them, it is the one of their probabilities with the least cost: the share of the wrong ones at or above
    it, and three times the share of the right ones below. The state is (threshold, probabilities, which were right) of
    a request.

    Source: ``update_candidate_strategy`` of ``generation/candidate_generator.py``, transformers 5.23, and
    ``sklearn.metrics.roc_curve``.

    Examples
    --------
    >>> policy = MovingThreshold(most=16)
    >>> state = policy.after(policy.after(policy.start, 3, [0.9, 0.8, 0.7, 0.5]), 2, [0.95, 0.6])
    >>> state[0], policy.stops(state, 0.55)
    (0.6, True)
    """

    first: float = 0.4

    name: ClassVar[str] = "moving threshold"
    engine: ClassVar[str] = "transformers"
    finite: ClassVar[bool] = False
    reads: ClassVar[str | None] = "draft_top"
    least: ClassVar[int] = 5
    weight: ClassVar[float] = 3.0

    @property
    def start(self) -> tuple[float, tuple[float, ...], tuple[bool, ...]]:
        """The first threshold, and nothing judged."""
        return self.first, (), ()

    def drafts(self, state: Hashable) -> int:
        """The most."""
        return self.most

    def stops(self, state: Hashable, probability: float) -> bool:
        """Below the threshold; the token is still drafted."""
        assert isinstance(state, tuple)
        return bool(probability < state[0])

    def after(
        self, state: Hashable, accepted: int, judged: Sequence[float] = ()
    ) -> tuple[float, tuple[float, ...], tuple[bool, ...]]:
        """The threshold of least cost over all drafts that were judged."""
        assert isinstance(state, tuple)
        threshold, probabilities, right = state
        probabilities = (*probabilities, *judged)
        right = (*right, *(number < accepted for number in range(len(judged))))
        if len(right) > self.least and len(set(right)) == 2:
            threshold = self._cheapest(np.array(probabilities), np.array(right))
        return threshold, probabilities, right

    def _cheapest(self, probabilities: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
        """Of equal costs the largest, among the corners of the curve of both shares."""
        order = np.argsort(-probabilities, kind="stable")
        values = probabilities[order]
        last = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
        hits = np.cumsum(right[order])[last]
        misses = last + 1 - hits
        corner = np.ones(len(last), dtype=bool)
        if len(last) > 2:
            corner[1:-1] = (np.diff(hits, 2) != 0) | (np.diff(misses, 2) != 0)
        costs = misses / misses[-1] + self.weight * (1 - hits / hits[-1])
        return float(values[last][corner][np.argmin(costs[corner])])


POLICIES: list[type[LengthPolicy]] = [Heuristic, MovingAverage, MovingThreshold]
"""A new policy is listed here and nowhere else."""
