"""Cost models: the time of a target step and of a call, for every shape of drafts (C1, C2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spectheory.checks import MOST_EXACT, amount, instance
from spectheory.cost.iid import checked_ratio
from spectheory.drafting import Shape
from spectheory.drafting.tree import a_shape
from spectheory.intervals import Interval, weakest

_ENDS = ("low", "best", "high")
Ends = tuple["CostModel", "CostModel"]
"""A cost model with one time at the low end of its 95% interval, and with that time at the high end."""


class CostModel(ABC):
    """Times of a target step and of a call, in one unit."""

    @abstractmethod
    def target_step(self) -> Interval:
        """Time of one plain decoding step."""

    @abstractmethod
    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """Time of one call: drafting `shape` and verifying it.

        `full_share` is the share of calls that follow a full acceptance: the draft's first pass then is on two tokens.
        With trees, it is the share that follow the acceptance of a node without children, which the draft has not read
        yet. Where the draft :attr:`reads_accepted` tokens, it is the number that it reads besides one.
        """

    @property
    def reads_accepted(self) -> bool:
        """Whether the first draft pass of a call reads all tokens since the last call, as a head does (§10).

        A draft model has read its own drafts: one token, or two after a full acceptance, is all it reads.
        """
        return False

    def errors(self) -> Iterator[Ends]:
        """The independent errors of the times: this model with one time at either end of its interval, each in turn."""
        return iter(())

    def speedup(self, tokens_per_call: Interval, shape: Shape, full_share: float = 0.0) -> Interval:
        r"""Tokens per second relative to plain decoding, without the prompt's own pass on both sides (C2).

        .. math:: \text{tokens per call} \cdot \frac{t_\text{target}(1)}{t_\text{draft}(\text{shape}) +
            t_\text{target}(\text{nodes} + 1)}

        Exact for these times and for the mean call. The range multiplies the ranges of tokens per call and of
        times: an outer range, given the share of full acceptances and of lengths. :func:`~spectheory.predict` combines
        the errors instead, which gives 95% intervals.
        """
        instance("tokens per call", tokens_per_call, Interval, remedy="Interval.exact(2.5) is one")
        step, call = self.target_step(), self.call(shape, full_share)
        per_call = Interval(
            step.low / call.high, step.best / call.best, step.high / call.low, weakest(step.kind, call.kind)
        )
        return tokens_per_call * per_call


class PassCost(CostModel):
    """A cost model with the time of one pass of each model on m tokens (C2).

    A call makes the draft passes of its shape, then one target pass on its drafts and one more token.
    """

    @abstractmethod
    def target_pass(self, tokens: int) -> Interval:
        """Time of a target pass on that many tokens."""

    @abstractmethod
    def draft_pass(self, tokens: int) -> Interval:
        """Time of a draft pass on that many tokens; 0 where drafts are free."""

    def target_step(self) -> Interval:
        """Time of the target on one token."""
        return self.target_pass(1)

    def verification(self, shape: Shape) -> Interval:
        """Mean time of the target's pass of a call: on nodes + 1 tokens unless drafts vary in length."""
        parts = [(share, self.target_pass(tokens)) for tokens, share in shape.verified.items()]
        low, best, high = sorted(sum(share * getattr(one, end) for share, one in parts) for end in _ENDS)
        return Interval(low, best, high, weakest(*(one.kind for _, one in parts)))

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """Time of the draft passes and of the target's pass."""
        verify = self.verification(a_shape(shape))
        full_share = check_share(full_share)
        drafts = [(count, self.draft_pass(tokens)) for tokens, count in Counter(shape.passes).items()]
        first = list(self._longer(shape.passes[0], full_share)) if shape.passes else []
        ends = []
        for end in _ENDS:
            drafting = sum(count * getattr(draft, end) for count, draft in drafts)
            # A longer pass that was measured as faster counts as equally fast.
            extra = sum(share * max(getattr(longer, end) - getattr(usual, end), 0.0) for share, usual, longer in first)
            ends.append(getattr(verify, end) + drafting + extra)
        low, best, high = sorted(ends)  # in order except for rounding
        passes = [verify, *(draft for _, draft in drafts), *(longer for *_, longer in first)]
        return Interval(low, best, high, weakest(*(one.kind for one in passes)))

    def _longer(self, tokens: int, more: float) -> Iterator[tuple[float, Interval, Interval]]:
        """Passes on more than these tokens, `more` on average, with their shares and beside the usual pass."""
        usual, fewer = self.draft_pass(tokens), int(more)
        for extra, share in ((fewer, fewer + 1 - more), (fewer + 1, more - fewer)):
            if extra == 1 or (extra and share):
                yield share, usual, self.draft_pass(tokens + extra)


def a_cost(cost: CostModel) -> CostModel:
    """Check that an argument is a cost model."""
    return instance("cost", cost, CostModel, remedy="ConstantRatio(0.1) is one")


def check_share(full_share: float) -> float:
    """A share of calls, or with a head the number of tokens that it reads besides one."""
    return amount("full_share", full_share, below=MOST_EXACT, remedy="0 if unknown")


@dataclass(frozen=True)
class ConstantRatio(CostModel):
    """C1: a draft pass costs c target steps, and verifying costs one, for every number of tokens.

    Examples
    --------
    >>> from spectheory.drafting import Batch, Chain
    >>> ConstantRatio(0.1).speedup(Interval.exact(2.8), Chain(4))
    Interval(low=2.0, best=2.0, high=2.0, kind='exact')
    >>> ConstantRatio(0.1).call(Batch(4)).best
    1.1
    """

    c: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", checked_ratio(self.c))

    def target_step(self) -> Interval:
        """One: the unit of time."""
        return Interval.exact(1.0)

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """1 + draft passes · c."""
        check_share(full_share)
        return Interval.exact(1 + len(a_shape(shape).passes) * self.c)


FREE_DRAFTS = ConstantRatio(0.0)
"""Drafts that cost nothing, such as prompt lookup. The speed-up is then the number of tokens per call."""
