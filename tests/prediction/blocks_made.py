"""Made-up traces whose answers are compared block by block, and all numbers of an answer."""

from __future__ import annotations

import numpy as np

from spectheory.answers import plain
from spectheory.answers.prediction import SettingJson
from spectheory.prediction import Plan
from spectheory.trace import TextInfo, Trace
from tests.made_up import columns, head_columns

SAME = 1e-12
"""Sums of one number in another order."""
LENGTHS = (1, 7, 30, 2, 30, 1, 12, 45, 8, 3, 29, 16)


def made_up(lengths: tuple[int, ...] = LENGTHS, seed: int = 1) -> Trace:
    """Two texts to a prompt, every third ended by itself, with prompt lookup's columns."""
    tokens, rng = sum(lengths), np.random.default_rng(seed)
    drafted = rng.integers(0, 6, tokens)
    texts = tuple(TextInfo(f"t{i}", n, prompt=f"p{i // 2}", ended=i % 3 == 0) for i, n in enumerate(lengths))
    moments = {"target_entropy": np.full(tokens, 1.5), "target_second_moment": np.full(tokens, 3.0)}
    copied = {"lookup_drafted": drafted, "lookup_match": rng.integers(0, drafted + 1)}
    return Trace({**columns(tokens, seed), **moments, **copied}, texts)


def of_head(seed: int = 1) -> Trace:
    """A draft head's trace to depth 4."""
    texts = made_up().texts
    return Trace(head_columns(sum(LENGTHS), 4, seed), texts)


def numbers(answer: Plan) -> list[float]:
    """Every number of an answer."""

    def inside(value: object) -> list[float]:
        if isinstance(value, dict):
            return [number for each in value.values() for number in inside(each)]
        return [float(value)] if isinstance(value, int | float) else []

    return [number for prediction in answer.predictions for number in inside(plain(SettingJson.view(prediction)))]
