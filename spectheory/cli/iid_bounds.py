"""Limits where conditional pmfs, or ranks, are i.i.d.: from two moments, from pmfs, from the law of a rank."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from spectheory.cli.inputs import Floats, Pmfs, in_range, letters
from spectheory.cli.progress import working
from spectheory.drafting import Chain, expected_tokens, optimal_tree
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.limits import (
    StepLaw,
    branching_bound,
    random_tree_value,
    renewal_bound,
    stationary_tree_value,
    tunstall_bound,
)
from spectheory.limits.claims import BOUNDED, BRANCHING_FORMS, RANK_TREES, LimitClaim
from spectheory.reports import BoundsAnswer
from spectheory.reports.bounds import DETERMINISTIC, RANKS
from spectheory.verification import rank_entropy

Cells = dict[str, Interval | float | None]

CLOSED_FORMS: tuple[Literal["published", "lorden", "best_t", "sharp"], ...] = ("published", "lorden", "best_t", "sharp")
MOST_TREES = 100_000
MOST_TREE_WORK = 1 << 31
"""Probabilities sorted for random trees: a few minutes."""
MOST_TREE_NODES = 100_000
"""Nodes of a rank tree: a chain of these takes seconds."""


def closed_forms(mu: float, mu2: float, capacity: int) -> Cells:
    """Tokens per call by the closed forms (B1, B2, B2')."""
    return {form: branching_bound(mu, mu2, capacity, form) + 1 for form in CLOSED_FORMS}


def of_moments(mu: float | None, mu2: float | None, nodes: Iterable[int]) -> BoundsAnswer:
    """The closed forms from the two moments."""
    if mu is None or mu2 is None:
        raise SettingError(
            f"--mu{'2' if mu2 is None else ''} is missing", limit="both moments are needed", remedy="give both"
        )
    if not (math.isfinite(mu) and math.isfinite(mu2)):
        raise SettingError(f"mu is {mu:g}, mu2 is {mu2:g}", limit="must be finite", remedy="give them in nats")
    columns: dict[str, LimitClaim] = {form: BRANCHING_FORMS[form] for form in CLOSED_FORMS}
    rows = {capacity: closed_forms(mu, mu2, capacity) for capacity in nodes}
    return BoundsAnswer("moments", {"mu": mu, "mu2": mu2}, {DETERMINISTIC: columns}, rows)


def of_pmfs(target: Pmfs, nodes: list[int], trees: int | None, seed: int) -> BoundsAnswer:
    """Every form from the exact law of a step, and the value that they bound."""
    law = StepLaw.from_pmfs(target.rows)
    mu, mu2 = law.mean, max(law.second_moment, law.mean**2)
    value = _value_column(target.rows, nodes, trees)
    columns = {**BRANCHING_FORMS, "best_tree": value} if value else BRANCHING_FORMS
    rows: dict[int, Cells] = {}
    error = 0.0
    with working("working out the limits"):
        for capacity in nodes:
            numeric = _numeric(law, capacity)
            error = max(error, numeric.high - numeric.low)
            rows[capacity] = {**closed_forms(mu, mu2, capacity), "numeric": numeric}
            if value:
                rows[capacity]["best_tree"] = _tree_value(target.rows, capacity, trees, seed) + 1
    notes = [*target.notes, f"numeric is certain; its numerical error is at most {error:.2g}."]
    if len(target.rows) > 1:
        notes.append(f"The {len(target.rows)} pmfs count as all there are, equally likely at every prefix.")
    facts = {"mu": mu, "mu2": mu2, "pmfs": len(target.rows)}
    return BoundsAnswer("pmfs", facts, {DETERMINISTIC: columns}, rows, notes)


def _numeric(law: StepLaw, capacity: int) -> Interval:
    """B3' of a known law with its numerical error, cut at the closed form that it exceeds by its grid at most."""
    found, sharp = renewal_bound(law, capacity) + 1, branching_bound(None, None, capacity, step_law=law) + 1
    return Interval(min(found.low, sharp), min(found.best, sharp), min(found.high, sharp), found.kind)


def _value_column(rows: Floats, nodes: list[int], trees: int | None) -> LimitClaim | None:
    in_range("--trees", trees, MOST_TREES)
    if len(rows) == 1:
        return LimitClaim("best_tree", "best tree", "exact for this one pmf at every prefix", BOUNDED)
    if trees is None:
        return None
    if sum(nodes) * rows.shape[1] * trees > MOST_TREE_WORK:
        raise SettingError(
            f"--trees is {trees}, with {sum(nodes)} nodes of {rows.shape[1]} tokens",
            limit="that would take many minutes",
            remedy="ask for fewer trees or nodes",
        )
    return LimitClaim("best_tree", "best tree", f"{trees} random trees grown best-first, estimate, 95%", BOUNDED)


def _tree_value(rows: Floats, capacity: int, trees: int | None, seed: int) -> Interval:
    """E[X] of the best tree, bonus token left out."""
    if len(rows) == 1 or trees is None:
        return Interval.exact(stationary_tree_value(rows[0], capacity))

    def sample(rng: np.random.Generator, count: int) -> Floats:
        return rows[rng.integers(len(rows), size=count)]

    return random_tree_value(sample, capacity, trees, rng=seed)


def of_ranks(law: Floats, nodes: Iterable[int]) -> BoundsAnswer:
    """T1 beside what it bounds, for ranks i.i.d. along the text."""
    entropy, alphabet = float(rank_entropy(law)), letters(law)
    rows: dict[int, Cells] = {}
    for capacity in nodes:
        in_range("--nodes", capacity, MOST_TREE_NODES)
        rows[capacity] = {
            "chain": float(expected_tokens(Chain(capacity), law)),
            "optimal_tree": float(expected_tokens(optimal_tree(law, capacity), law)),
            "channel": tunstall_bound(entropy, alphabet, capacity),
        }
    facts = {"rank_entropy": entropy, "letters": alphabet}
    note = "Ranks beyond those given are one letter that is never drafted."
    return BoundsAnswer("ranks", facts, {RANKS: RANK_TREES}, rows, [note])
