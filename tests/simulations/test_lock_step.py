"""Simulated lock-step batches (§12): the law of a text's calls, and batches of one."""

from __future__ import annotations

import numpy as np

import simulations.simulators  # noqa: F401  registers them
from simulations.draws import words
from simulations.experiments.tasks import registered
from simulations.models.pairs import chains_of
from simulations.verdicts.markov_calls import markov_call_law, markov_calls
from simulations.verdicts.predictions import predictions
from spectheory.drafting import Chain
from spectheory.verification import RULES
from tests.made_up import each

CHAINS = {"chains": "yin2024", "length": 12}


@each("name", ("token", "race", "argmax"))
def test_the_law_of_calls_has_the_moments_of_the_recursion(name: str) -> None:
    settings = {"length": 12, "tree": Chain(3).tree()}
    law = markov_call_law(RULES[name], *chains_of(CHAINS), **settings)  # type: ignore[arg-type]
    calls = markov_calls(RULES[name], *chains_of(CHAINS), **settings)  # type: ignore[arg-type]
    numbers = np.arange(13)
    np.testing.assert_allclose([law.sum(), law @ numbers], [1, calls.expected], rtol=1e-12)
    np.testing.assert_allclose(law @ numbers**2 - (law @ numbers) ** 2, calls.variance, rtol=1e-9)


def test_batches_of_one_are_texts_and_larger_ones_are_slower() -> None:
    """The same stream decodes the same texts; every batch has as many rounds as its slowest text."""
    one, four = ({**CHAINS, "k": 3, "batch": batch} for batch in (1, 4))
    texts = registered("token").run({**CHAINS, "k": 3}, 400, words(5))
    assert (registered("lock-step").run(one, 400, words(5)).counts["batches"] == texts.counts["texts"]).all()
    batches = registered("lock-step").run(four, 100, words(5)).counts["batches"]
    assert batches.sum() == 100
    assert np.flatnonzero(batches).max() == np.flatnonzero(texts.counts["texts"]).max()
    (small,), (large,) = (predictions("lock-step", each) for each in (one, four))
    assert large.value > small.value + 1  # type: ignore[operator]
