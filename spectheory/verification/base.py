"""What a verification rule is: what it states about two pmfs, and about the positions of a text.

Every :class:`Rule` has an acceptance for two pmfs. A :class:`PathRule` also has a path form (§7), a :class:`RankRule` a
law of the rank R, so that it takes any draft shape. Predictor, figures and commands ask only these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from spectheory.checks import instance, instances, whole
from spectheory.distributions import Array, as_integers
from spectheory.errors import SettingError, ShapeError, TraceError
from spectheory.intervals import CONFIDENCE, Interval, weakest
from spectheory.verification.by_start import PREFIX, along_calls, by_depth, deepest, missing, read_as, shape_of
from spectheory.verification.by_start import Columns as Columns

# Means over pairs of pmfs, and which of them are too long to compute (R8)


Floats = NDArray[np.float64]
MOST_WORK = 1 << 24
"""Entries that are worked through for one number: a second or two."""
_FEW_ODDS = 1 << 15
"""Entries that the merged odds of a pair are worth, however many tokens it has."""


def too_long(entries: int) -> bool:
    """Whether so many entries are more than are worked through for one number."""
    return entries > MOST_WORK


def _repeats(entries: int) -> int:
    """How often so many entries may be worked through."""
    return MOST_WORK // entries


def exact_mean(values: Any) -> Interval:
    """The mean of exact values."""
    return Interval.exact(float(np.mean(values)))


def least_mean(bounds: Any) -> Interval:
    """The mean of lower bounds of a probability."""
    low = float(np.mean(bounds))
    return Interval(low, low, max(low, 1.0), "bound")


def _interval_mean(intervals: Sequence[Interval]) -> Interval:
    """The mean of intervals, of the weakest kind."""
    low, best, high = (float(np.mean([getattr(one, end) for one in intervals])) for end in ("low", "best", "high"))
    return Interval(low, best, high, weakest(*(one.kind for one in intervals)))


def _batch_mean(means: Sequence[float]) -> Interval:
    """The mean of independent estimates of a probability, 95% by Student."""
    from scipy.special import stdtrit

    best = float(np.mean(means))
    width = float(stdtrit(len(means) - 1, (1 + CONFIDENCE) / 2) * np.std(means, ddof=1)) / len(means) ** 0.5
    return Interval(max(best - width, 0.0), best, max(min(best + width, 1.0), best), "statistical")


def endless_entropy(
    entropy: Callable[[Floats, Floats], Interval], target: Floats, draft: Floats
) -> tuple[Interval | None, str]:
    """Mean H(R) of endless i.i.d. candidates, pair by pair, or why there is none."""
    pairs, tokens = target.shape
    if too_long(pairs * min(32 * tokens, _FEW_ODDS + 4 * tokens)):
        return None, f"no H(R): {pairs} x {tokens} tokens would take minutes"
    try:
        return _interval_mean([entropy(p, q) for p, q in zip(target, draft, strict=True)]), ""
    except SettingError:
        return None, "no H(R): the draft lacks tokens of the target, whose rank is infinite"


# Rules


MOST_RANKS = 2**24
"""Most candidates of one position: far more than any vocabulary has tokens."""
_SINGLE_ROUNDING = 1e-4
"""How far the sums of recorded laws may be off: they come from float32 sums over the vocabulary."""


Drafts = Literal["drawn", "distinct", "chosen", "copied"]
"""How candidates come: i.i.d. draws of the draft, distinct tokens of which the first is a draw, the draft's most
probable tokens, or tokens copied from the text."""
Output = Literal["sample", "first choice", "biased"]
Side = Literal["exact", "lower bound", "bounds", "estimate", "none"]


class Accepted(NamedTuple):
    """A mean acceptance over pairs, what it is, and why it is not exact."""

    value: Interval | None
    side: Side = "exact"
    note: str = ""


class Rule(ABC):
    """A verification rule: how a call decides which drafted tokens are output.

    - `name`: on the command line, in reports and in JSON; `title` in figures, if it differs.
    - `statement`: where the theory states its law, as ``A1``; rules are listed in this order.
    - `colour`: in figures, a name of :data:`spectheory.plots.style.PALETTE`; without one a free colour.
    - `drafts`: how its candidates come.
    - `by_arrival`: whether candidates stand in the order of a race's arrivals, whose clocks the output shares.
    - `several`: whether it judges several candidates at one position.
    - `output`: a sample of the target, the target's most probable token, or neither: then it is not `lossless`.
    - `grows`: whether its drafts are a tree grown from confidences, whose size is that of the measurement.
    - `served`: whether a serving engine is known to run it.
    """

    name: ClassVar[str]
    statement: ClassVar[str] = ""
    title: ClassVar[str] = ""
    colour: ClassVar[str] = ""
    drafts: ClassVar[Drafts] = "drawn"
    by_arrival: ClassVar[bool] = False
    several: ClassVar[bool] = False
    grows: ClassVar[bool] = False
    output: ClassVar[Output] = "sample"
    served: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """What sentences call it."""
        return f"{self.name} verification"

    @property
    def lossless(self) -> bool:
        """Whether the text has the law of the target's own decoding."""
        return self.output != "biased"

    @property
    def uses_draft(self) -> bool:
        """Whether a draft model drafts; otherwise drafts cost no draft pass."""
        return self.drafts != "copied"

    @property
    def can_stop(self) -> bool:
        """Whether a stopping rule may end its chains: the rule is lossless, and a model drafts token by token."""
        return self.uses_draft and not self.grows and self.lossless

    @property
    def bound_by(self) -> frozenset[str]:
        """The limits of a trace that are about this rule, by field of its `Limits`.

        All are about lossless rules: those of whole decodings (B7, L) where drafts are drawn, B6 where they do not
        sample.
        """
        if not self.lossless:
            return frozenset()
        if self.drafts in ("chosen", "copied"):
            return frozenset({"text", "iid_branching"})
        return frozenset({"decoding", "decoding_by_start"} if self.output == "sample" else ())

    @abstractmethod
    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Probability ``[...]`` that the output is among the k candidates at one position."""

    def mean_acceptance(
        self, target: Floats, draft: Floats, k: int, rng: np.random.Generator | None = None
    ) -> Accepted:
        """Mean acceptance over pairs ``[n, V]`` (R8); a rule that would take minutes gives a bound or an estimate."""
        return Accepted(exact_mean(self.acceptance(target, draft, k)))

    def mean_rank_entropy(self, target: Floats, draft: Floats) -> tuple[Interval | None, str]:
        """Mean H(R) of the whole rank over pairs ``[n, V]``, nats, or why there is none."""
        return None, ""


class PathRule(Rule):
    """A rule with a path form: given the text, the accepted drafts of a call have a known law (§7).

    `needs` are the columns of a trace that :meth:`path_survival` reads. A rule of `hindsight` is shown beside others
    and never the best: its drafts are chosen by what is output. One of a `length` takes no other chain.
    """

    hindsight: ClassVar[bool] = False
    length: int | None = None

    needs: ClassVar[tuple[str, ...]]

    @property
    def missing(self) -> tuple[str, str]:
        """Why a trace may lack the columns, and the remedy."""
        return (
            "it needs full pmfs",
            "measure the pair, or use token or block; lists of the most probable tokens bound rules in predict only",
        )

    @abstractmethod
    def acceptance_given(self, target: Any, draft: Any) -> Array:
        """Probability ``[..., V]`` that the drafted token is accepted given that the output is x (exact)."""

    @abstractmethod
    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """Survival ``[N, k]`` of the accepted drafts of a call that starts at each position of one text (exact).

        Entry ``[n, i - 1]`` is P(tau >= i) given the whole text, for a chain of k drafts whose first one stands at
        position n. Entries that reach past the end of the text carry no meaning.
        """

    def longest(self, columns: Columns) -> int | None:
        """The longest chain that the rule's own columns know; None where they know every length."""
        return None

    def calls_by_drafted(
        self, columns: Columns, lengths: NDArray[np.int64], most: NDArray[np.int64], k: int, *, first: int = 0
    ) -> NDArray[Any] | None:
        """Calls of each text by the tokens that they draft; None if calls draft the whole shape wherever they start."""
        return None

    def missing_columns(self, columns: Columns) -> list[str]:
        """Columns that the rule reads and that are not there; of drafts by start those by start (§10)."""
        if self.grows or not self.uses_draft:
            return [name for name in self.needs if name not in columns]
        return missing(columns, self.needs)

    def require(self, columns: Columns) -> None:
        """Raise a `TraceError` if `columns` lacks what this rule reads."""
        if missing := self.missing_columns(columns):
            limit, remedy = self.missing
            raise TraceError(
                f"rule {self.name!r} cannot be predicted: the trace has no {', '.join(missing)}",
                limit=limit,
                remedy=remedy,
            )


class PositionRule(PathRule):
    """A rule that decides each position by itself: path survival is a product of a(x)."""

    @abstractmethod
    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """Probability ``[N]`` that the draft at a position is accepted given the text's token there."""

    def path_survival(self, columns: Columns, k: int) -> NDArray[np.float64]:
        """Survival ``[N, k]``: running products of a(x) (§7, exact; of drafts by start §10)."""
        checked_columns(columns, *self.needs)
        k = at_least_one("k", k)
        return np.multiply.accumulate(along_calls(columns, k, self.accepted_at, fill=0.0), axis=1)


class RankRule(PositionRule):
    """A rule that says which of several candidates is output: R is its rank, above k if none of the first k is (§3).

    The rank laws of different positions are independent given the text, so any draft tree has a survival (§4, §7).

    - `consecutive`: whether a rank needs all lower ones drafted; otherwise ranks may be skipped.
    - `recorded_in`: the column of a trace with the law of several ranks.
    - `estimated`: whether that column holds unbiased estimates, independent from position to position.
    """

    several: ClassVar[bool] = True
    consecutive: ClassVar[bool] = False
    recorded_in: ClassVar[str]
    estimated: ClassVar[bool] = False

    @property
    def bound_by(self) -> frozenset[str]:
        """The limits that are about this rule; T1 is about every rule with ranks."""
        return super().bound_by | {"iid_channel"}

    @abstractmethod
    def rank_pmf(self, target: Any, draft: Any, max_rank: int) -> Array:
        """P(R = r), r = 1..max_rank, ``[..., max_rank]`` (exact); what is missing to 1 is P(R > max_rank)."""

    @abstractmethod
    def rank_pmf_given(self, target: Any, draft: Any, token: Any, max_rank: int) -> Array:
        """P(R = r | output `token`), r = 1..max_rank, ``[..., max_rank]`` (exact).

        `token` is an id or an integer array over the leading dimensions. Where the target cannot output it, the entries
        carry no meaning.
        """

    @abstractmethod
    def rank_law(self, columns: Columns, max_rank: int) -> NDArray[np.float64]:
        """P(R = r | text) at each position, r = 1..max_rank, ``[N, max_rank]`` (§7, exact unless `estimated`)."""

    def known_ranks(self, columns: Columns, most: int) -> int:
        """How many ranks :meth:`path_laws` gives, at most `most`: as many as a recorded law has."""
        name = read_as(columns, self.recorded_in)
        if name not in columns:
            return most
        return min([most, *shape_of(columns, name)[2 if name != self.recorded_in else 1 :]])

    def path_laws(self, columns: Columns, max_rank: int, depth: int) -> NDArray[np.float64]:
        """P(R = r | text) of the drafts of calls: ``[N, max_rank]`` by position, or by start and depth ``[N, depth,
        max_rank]`` where the draft's pmfs depend on the start (§7, §10, exact unless `estimated`).
        """
        if deepest(columns) is None:
            return self.rank_law(columns, max_rank)
        return np.stack([self.rank_law(at, max_rank) for at in by_depth(columns, depth)], axis=1)

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Array:
        """Probability ``[...]`` that the output is among the first k candidates, P(R <= k) (exact)."""
        law = self.rank_pmf(target, draft, k)
        return array_namespace(law).sum(law, axis=-1)

    def accepted_at(self, columns: Columns) -> NDArray[np.float64]:
        """P(R = 1 | text) at each position."""
        return self.rank_law(columns, 1)[:, 0]


def at_least_one(name: str, value: int) -> int:
    """A number of candidates or ranks as an int."""
    return whole(name, value, most=MOST_RANKS, remedy="count candidates, and ranks, from 1")


def checked_columns(columns: Columns, *needs: str) -> Columns:
    """Check that an argument holds columns of these names."""
    remedy = "those of a trace are trace.columns"
    instances("the names of columns", instance("columns", columns, Mapping, remedy=remedy).keys(), str, remedy=remedy)
    if missing := [name for name in needs if not {name, PREFIX + name} & {*columns}]:
        raise TraceError(
            f"the columns lack {', '.join(missing)}", limit="the rule reads them", remedy="pass those of a trace"
        )
    return columns


def recorded_ranks(columns: Columns, name: str, max_rank: int) -> NDArray[np.float64]:
    """The first `max_rank` columns of a rank law ``[N, r]`` of a trace; rows that rounding put above 1 are scaled."""
    max_rank = at_least_one("max_rank", max_rank)
    if name not in columns:
        raise TraceError(
            f"the trace has no {name}",
            limit="several candidates per position need the law of their rank",
            remedy="measure the pair again with this version",
        )
    law = columns[name]
    if max_rank > law.shape[1]:
        raise SettingError(
            f"rank {max_rank} is asked for",
            limit=f"{name} records ranks up to {law.shape[1]}",
            remedy="draft fewer candidates per position",
        )
    total = law.sum(axis=1, keepdims=True)
    if not (law.min(initial=0.0) >= 0 and total.max(initial=0.0) <= 1 + _SINGLE_ROUNDING):
        raise TraceError(
            f"{name} of the trace sums to {total.max():.6g} at a position, its smallest entry is {law.min():.3g}",
            limit=f"a law of a rank is >= 0 and sums to at most 1 within {_SINGLE_ROUNDING:g}",
            remedy="measure the pair again",
        )
    return law[:, :max_rank] / np.maximum(total, 1.0)


def at_token(values: Array, token: Any, xp: Any) -> Array:
    """The entries ``[...]`` of `values` ``[..., V]`` at one token per leading index."""
    leading = tuple(values.shape[:-1])
    ids = xp.asarray(as_integers(token, "token"), device=values.device)
    size = values.shape[-1]
    if not bool(xp.all((ids >= 0) & (ids < size))):
        raise ShapeError(f"token is {token}", limit=f"ids are 0..{size - 1}", remedy="check the vocabulary")
    try:
        shape = np.broadcast_shapes(leading, tuple(ids.shape))
    except ValueError as error:
        raise ShapeError(
            f"tokens {tuple(ids.shape)} and pmfs {leading} do not broadcast",
            limit="one token per leading index",
            remedy="pass one id, or an array of the leading shape",
        ) from error
    ids, values = xp.broadcast_to(ids, shape), xp.broadcast_to(values, (*shape, size))
    return xp.take_along_axis(values, ids[..., None], axis=-1)[..., 0]


def single_candidate(rule: Rule, k: int) -> None:
    """Refuse more than one candidate per position for a rule that has just one."""
    if at_least_one("k", k) != 1:
        raise SettingError(f"k is {k}", limit=f"{rule.name} verification takes one candidate", remedy="use k=1")
