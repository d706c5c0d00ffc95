"""What the path theorem says of ERSD along the texts of :mod:`simulations.simulators.model_races` (§7, R2).

The theorem needs the models' statistics along the texts, which takes seconds: a figure saves its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from simulations.counts.moments import Moments
from simulations.counts.quantities import Mean
from simulations.counts.tally import Tally
from simulations.experiments.tasks import canonical
from simulations.models.positions import Floats
from simulations.models.raced_texts import models, sampling, texts
from simulations.simulators.trees import tree_of
from simulations.verdicts.predictions import Predicted
from spectheory.drafting import Tree
from spectheory.prediction.path_laws import PathLaws
from spectheory.prediction.paths import calls_and_visits, tree_survival
from spectheory.trace import RECORDED_RANKS
from spectheory.verification import RaceVerification


def path_theorem(recipe: Mapping[str, Any]) -> Tally:
    """The expected counts of "model-races" (§7, exact), a sample for each text, by the names of the counts."""
    return _path_theorem(canonical(recipe))


@lru_cache(maxsize=8)
def _path_theorem(recipe_text: str) -> Tally:
    recipe = json.loads(recipe_text)
    shapes = {label: tree_of(paths) for label, paths in recipe["shapes"].items()}
    rows: list[dict[str, float]] = []
    for law in _rank_laws(recipe):
        row = {f"P(R = {r + 1})": float(share) for r, share in enumerate(law.mean(axis=0))}
        for label, shape in shapes.items():
            row |= expected_counts(label, shape, law, nodes=label in recipe["nodes_of"])
        rows.append(row)
    return Tally.of(len(rows), samples={name: [row[name] for row in rows] for name in rows[0]})


def _rank_laws(parameters: Mapping[str, Any]) -> Iterator[Floats]:
    """P(R = r | text) at every position of each text, ``[N, 8]``, from one reading by both models."""
    from spectheory.measure import teacher_forced

    pair = models(parameters["draft"])
    for text in texts(parameters):
        columns = teacher_forced(pair, text.prompt, text.output, sampling(parameters), sampled=True)
        yield RaceVerification().rank_law(columns, RECORDED_RANKS)


def expected_counts(label: str, shape: Tree, law: Floats, *, nodes: bool) -> dict[str, float]:
    """Expected calls of a text with a law ``[N, A]`` of ranks along it, and how many of them accept each node."""
    survival, _ = tree_survival(law, shape)
    calls, starts = calls_and_visits(survival, np.array([len(law)]))
    expected = {f"{label}: calls": float(calls[0])}
    weights: dict[tuple[int, ...], Floats] = {(): np.ones(len(law))}
    for number, path in enumerate(shape.paths if nodes else [], start=1):
        weights[path] = PathLaws(law).times(weights[path[:-1]], len(path), path[-1])
        expected[f"{label}: node {number}"] = float(starts @ weights[path])
    return expected


OFTEN = 1000
"""Counts are judged if theory expects so many in all runs: Student's verdict is too strict on rarer ones."""


def path_predictions(theorem: Tally, runs: int) -> tuple[Predicted, ...]:
    """Sums over the texts of what the theorem expects of a run, if it is :data:`OFTEN` or more in all `runs`."""
    return tuple(
        Predicted(name, "§7", Mean(name), float(moments.total))
        for name, moments in theorem.moments.items()
        if ":" in name and runs * moments.total >= OFTEN
    )


def all_texts(tallies: Iterable[Tally]) -> Tally:
    """The theorem's tallies of several groups of texts as one."""
    parts = [Tally(tally.trials, tally.counts, tally.moments) for tally in tallies]
    return sum(parts[1:], parts[0])


def side_by_side(tallies: Iterable[Tally]) -> Tally:
    """Equally many runs through independent groups of texts, as runs through all texts: means and variances add up."""
    parts = list(tallies)
    runs = parts[0].trials
    made = {}
    for name in parts[0].moments:
        each = [tally.moments[name] for tally in parts]
        total = sum((m.total for m in each), Fraction(0))
        spread = sum((m.squares - m.total**2 / runs for m in each), Fraction(0))
        made[name] = Moments(runs, total, spread + total**2 / runs)
    return Tally(runs, {}, made)
