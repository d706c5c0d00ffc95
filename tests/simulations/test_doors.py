"""What kernels take, as one table: every argument damaged in every way of its kind is one clear line; runs add up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simulations.draws import words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.candidates import biased_verification, kseq, recursive_rejection, single_draft, top_k_match
from simulations.kernels.gumbel_lists import gumbel_list, lazy_gumbel_list
from simulations.kernels.markov_decoding import horizon_rejections, ngram_tables, tabled_calls, token_calls
from simulations.kernels.races import dense_race, lazy_race, poisson_race
from simulations.kernels.random_pmf_trees import random_pmf_trees
from simulations.kernels.ranked_trees import raced_tree, ranked_tree
from spectheory.drafting import Tree
from spectheory.errors import PmfError, SettingError, ShapeError, SpectheoryError
from tests.made_up import each

P, Q, HALF = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [[0.5, 0.5], [0.5, 0.5]]
POSITION = {"target": P, "draft": Q, "trials": 10}
CHAINS = {"target": HALF, "draft": HALF, "initial": [0.5, 0.5], "length": 3, "texts": 2}
TREE = Tree.from_paths([(1,), (2,), (1, 1), (2, 1), (1, 3)])


def automaton(target: Any, draft: Any, following: Any, initial: Any, **how: Any) -> Any:
    return tabled_calls(ngram_tables(target, draft, following, initial), **how)


Kernel = Callable[..., Any]
KERNELS: dict[str, tuple[Kernel, dict[str, Any]]] = {
    "single": (single_draft, {**POSITION, "rule": "token"}),
    "top-k": (top_k_match, {**POSITION, "max_rank": 2}),
    "k-seq": (kseq, {**POSITION, "k": 2}),
    "recursive": (recursive_rejection, {**POSITION, "max_rank": 2}),
    "biased": (biased_verification, {**POSITION, "accept": [1.0, 1.0, 0.6]}),
    "gumbel": (gumbel_list, {**POSITION, "k": 2}),
    "lazy gumbel": (lazy_gumbel_list, {**POSITION, "k": 2}),
    "dense": (dense_race, {**POSITION, "max_rank": 2}),
    "lazy": (lazy_race, {**POSITION, "max_rank": 2}),
    "poisson": (poisson_race, {**POSITION, "max_rank": 2}),
    "token": (token_calls, {**CHAINS, "k": 2}),
    "block": (block_calls, {**CHAINS, "k": 2}),
    "batch": (batch_rejections, {**CHAINS, "drafts": 2}),
    "horizon": (horizon_rejections, CHAINS),
    "automaton": (automaton, {**CHAINS, "following": [[0, 1], [0, 1]], "k": 2}),
    "best trees": (random_pmf_trees, {"pmfs": P, "capacities": [1, 2], "trees": 2}),
    "walks": (ranked_tree, {"shape": TREE, "rank_pmf": [0.5, 0.25, 0.25], "calls": 10}),
    "raced walks": (raced_tree, {"shape": TREE, "target": P, "draft": Q, "calls": 10}),
}
"""Each with arguments that fit."""

PMFS = ("target", "draft", "initial", "pmfs", "rank_pmf")
WHOLE = ("trials", "max_rank", "k", "length", "texts", "drafts", "trees", "calls")


def call(kernel: str, **changed: Any) -> Any:
    run, fitting = KERNELS[kernel]
    return run(**{**fitting, "state": words(1), **changed})


def refused(kernel: str, error: type[SpectheoryError], message: str | None, **changed: Any) -> None:
    with pytest.raises(error, match=message) as raised:
        call(kernel, **changed)
    assert "\n" not in str(raised.value)


@each("kernel", KERNELS)
def test_damaged_arguments_are_one_clear_line(kernel: str) -> None:
    fitting = KERNELS[kernel][1]
    assert call(kernel) is not None
    for name in fitting.keys() & set(PMFS):
        for wrong, message in ((0.75, None), (-0.5, "-0.5"), (math.nan, "nan")):
            damaged = np.array(fitting[name])
            damaged.flat[0] = wrong
            refused(kernel, PmfError, message, **{name: damaged})
    for name in fitting.keys() & set(WHOLE):
        for wrong in (0, -3, 2.5):
            refused(kernel, SettingError, f"{name} is {wrong}: must be a whole number >= 1", **{name: wrong})
    for state in (np.zeros(4, dtype=np.uint64), np.arange(4), 7):
        refused(kernel, SettingError, "state is no stream", state=state)


@each("kernel", [name for name, (_, fitting) in KERNELS.items() if fitting.keys() >= POSITION.keys()])
def test_one_position_over_one_vocabulary(kernel: str) -> None:
    refused(kernel, ShapeError, "tokens and draft", draft=[0.5, 0.5])
    refused(kernel, ShapeError, "one position", target=[P, P])


OTHERS: list[tuple[str, dict[str, Any], type[SpectheoryError], str | None]] = [
    ("single", {"rule": "best"}, SettingError, "the rule is 'best'"),
    ("biased", {"recovery": "best"}, SettingError, "recovery is 'best': must be one of optimal, target"),
    ("biased", {"accept": [1.0, 1.0]}, ShapeError, "accept has shape"),
    ("biased", {"accept": [1.0, 1.0, 0.39]}, SettingError, r"accept\[2\] is .*must be in \[min\(1, p/q\), 1\]"),
    ("biased", {"accept": [0.99, 1.0, 0.6]}, SettingError, r"accept\[0\] is .*must be in \[min\(1, p/q\), 1\]"),
    ("biased", {"accept": [1.0, 1.0, 1.01]}, SettingError, r"accept\[2\] is .*must be in \[min\(1, p/q\), 1\]"),
    ("biased", {"accept": [1.0, 1.0, math.nan]}, SettingError, r"accept\[2\] is nan"),
    *(
        (race, {"target": [0.5, 0.5], "draft": [1.0, 1e-320]}, PmfError, "token 1 is 0.5/9.99989e-321: p/q must be")
        for race in ("dense", "lazy", "poisson")
    ),
    ("poisson", {"draft": [1e-10, 0.3, 0.7 - 1e-10], "trials": 1000}, SettingError, "1000 trials at a largest p/q of"),
    *(
        (chains, changed, ShapeError, None)
        for chains in ("token", "block", "batch", "horizon", "automaton")
        for changed in ({"initial": [1.0]}, {"draft": np.full((3, 3), 1 / 3)})
    ),
    *(
        (chains, {"target": wrong}, ShapeError, None)
        for chains in ("token", "block", "batch", "horizon")
        for wrong in ([0.5, 0.5], np.full((4, 2, 2), 0.5))
    ),
    *(
        ("automaton", {"following": wrong}, ShapeError, "states 0 to 1")
        for wrong in ([[0, 1], [0, 2]], [[0, 1], [0, -1]], [[0.0, 1.0], [0.0, 1.0]], [[0, 1]])
    ),
    *(("best trees", {"capacities": wrong}, SettingError, "must ascend") for wrong in ([], [2, 1], [3, 3])),
    ("best trees", {"capacities": [0, 1]}, SettingError, "a capacity is 0"),
    *(("best trees", {"pmfs": np.ones(shape)}, ShapeError, "one pmf a row") for shape in ((1, 2, 1), (0, 3))),
    ("walks", {"rank_pmf": [0.5, 0.25]}, SettingError, "the shape has rank 3"),
    ("walks", {"rank_pmf": [0.5, 0.25, 0.5]}, PmfError, "at most 1"),
    ("walks", {"rank_pmf": [[0.5, 0.25, 0.25]]}, ShapeError, r"needs \[A\]"),
    ("raced walks", {"max_rank": 2}, SettingError, "the shape has rank 3"),
    ("raced walks", {"target": np.ones((2, 2, 1)), "draft": np.ones((2, 2, 1))}, ShapeError, "one pmf a row"),
]


@each("kernel, changed, error, message", OTHERS)
def test_what_one_kernel_alone_refuses(
    kernel: str, changed: dict[str, Any], error: type[SpectheoryError], message: str | None
) -> None:
    refused(kernel, error, message, **changed)


@each("kernel", ["single", "top-k", "k-seq", "recursive", "biased", "gumbel", "lazy gumbel", "dense", "poisson"])
def test_runs_add_up(kernel: str) -> None:
    """Two runs of one stream are one long run."""
    state = words(3)
    parts = [call(kernel, trials=trials, state=state) for trials in (700, 300)]
    np.testing.assert_array_equal(sum(parts), call(kernel, trials=1000, state=words(3)))
