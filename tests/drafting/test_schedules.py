"""A draft is a tree, a schedule and a stopping rule: every part changes what it says, and no other."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from spectheory.cost import ConstantRatio
from spectheory.drafting import (
    Batch,
    Chain,
    Copied,
    Grown,
    KAry,
    Parallel,
    Schedule,
    Sequential,
    Shape,
    Tree,
    read_stop,
)
from spectheory.errors import SettingError
from tests.made_up import Refusal, all_refused

STOP = read_stop("top<0.4")
TREES = (Chain(3), Batch(3), KAry((2, 2)), Tree.from_paths([(1,), (2,), (1, 1)]), Grown(6, 2, 3))


@dataclass(frozen=True)
class Pairs(Schedule):
    """A toy: one pass for every two depths."""

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """Those of every other depth."""
        return inner[::2]


@pytest.mark.parametrize("shape", TREES, ids=str)
def test_a_schedule_changes_the_passes_alone(shape: Shape) -> None:
    assert shape.schedule == Sequential()
    assert shape.passes == shape.inner
    for schedule, passes in ((Parallel(), (shape.depth,)), (Pairs(), shape.inner[::2])):
        other = shape.by(schedule)
        assert other.passes == passes
        assert ConstantRatio(0.5).call(other).best == 1 + 0.5 * len(passes)
        assert (str(other), other.nodes, other.depth, other.verified) == (
            str(shape),
            shape.nodes,
            shape.depth,
            shape.verified,
        )
        assert other != shape
        assert other.by(Sequential()) == shape


def test_what_is_the_default_is_not_shown() -> None:
    assert repr(Chain(2)) == "Chain(k=2)"
    assert repr(KAry((2, 1), schedule=Parallel())) == "KAry(branching=(2, 1), schedule=Parallel())"
    assert repr(Chain(2, stop=STOP)) == "Chain(k=2, stop=TopBelow(threshold=0.4))"


@pytest.mark.parametrize(
    ("schedule", "kept", "looked"),
    [(Sequential(), (1, 1), (1, 1, 1)), (Parallel(), (4,), (4,)), (Pairs(), (1, 1), (1, 1))],
)
def test_calls_that_are_stopped(schedule: Schedule, kept: tuple[int, ...], looked: tuple[int, ...]) -> None:
    """A call of 2 of 4 drafts: the pass that looked at a token is made, whether the token is kept or not."""
    for stop, passes in ((read_stop("token<0.4"), kept), (STOP, looked)):
        call = Chain(4, schedule=schedule, stop=stop).cut(2)
        assert (call.passes, call.verified) == (passes, {3: 1.0})


def test_other_lengths_keep_schedule_and_stop() -> None:
    shape = Chain(4, schedule=Parallel(), stop=STOP)
    assert shape.of_length(2) == Chain(2, schedule=Parallel(), stop=STOP)
    assert Chain(2, schedule=Copied((0.5, 0.25, 0.25))).of_length(1) == Chain(1, schedule=Copied((0.5, 0.5)))


BAD: dict[str, Refusal] = {
    "a tree that stops": (lambda: KAry((2, 2), stop=STOP), SettingError, "k-ary is given top<0.4: only a chain"),
    "a copied tree": (lambda: Batch(2, schedule=Copied()), SettingError, "batch is given Copied: only a chain"),
    "a copied tree, later": (lambda: TREES[3].by(Copied()), SettingError, "tree is given Copied: only a chain"),
    "a grown tree that stops": (lambda: Grown(6, 2, 3, stop=STOP), SettingError, "grown is given top<0.4"),
    "a tree that is cut": (lambda: Batch(2).cut(1), SettingError, "batch is given Cut: only a chain"),
    "shares of another length": (lambda: Chain(3).by(Copied((0.5, 0.5))), SettingError, "needs 4 numbers >= 0"),
    "no schedule": (lambda: Chain(3, schedule="parallel"), SettingError, "schedule"),  # type: ignore[arg-type]
    "no stopping rule": (lambda: Chain(3, stop=0.4), SettingError, "stop"),  # type: ignore[arg-type]
}

test_bad_drafts_are_named_in_one_line = all_refused(BAD)
