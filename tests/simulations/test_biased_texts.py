"""Biased decoding of whole texts (Y5, Y6): batches of the simulator against a twin that reads every prefix anew.

Two sets of comparisons have a false-alarm rate of `ALARM` each (means by Student's approximation).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simulations.counts import Mean
from simulations.draws import Stream, words
from simulations.simulators.biased_texts import Trio, accepted_with, texts_of
from simulations.verdicts.predictions import Predicted, compare, predictions
from spectheory.limits import biased_loss, uno_loss
from tests.simulations.model_cases import PROMPTS, pmf_of

Floats = NDArray[np.float64]

ROUNDING, ALARM = 1e-4, 1e-9


@pytest.fixture(scope="module")
def trio(tiny_pair: Any) -> Trio:
    networks = (tiny_pair.target.network, tiny_pair.draft.network, tiny_pair.draft.network)
    return Trio(*networks, tiny_pair.vocabulary, tiny_pair.window, PROMPTS)


def token_at(pmf: Floats, uniform: float) -> int:
    return int(np.searchsorted(np.cumsum(pmf), uniform * np.cumsum(pmf)[-1], side="right"))


@pytest.mark.parametrize(("form", "amount"), [("threshold", 0.1), ("share", 0.5)])
def test_trials_are_those_of_the_twin(trio: Trio, form: str, amount: float) -> None:
    length, trials, state = 5, 3, words(41)
    stream = Stream(state)
    tally = texts_of(trio, {"form": form, "amount": amount, "tokens": length}, trials, state)
    p_after, q_after = pmf_of(trio.target), pmf_of(trio.draft)
    sums: dict[str, float] = {}
    for _ in range(trials):
        prompt = list(PROMPTS[int(stream.uniform() * len(PROMPTS))])
        for decoder in ("opt", "uno", "plain"):
            text = list(prompt)
            for _ in range(length):
                p, q = p_after(text), q_after(text)
                u_draft, u_coin, u_recovery = stream.uniform(), stream.uniform(), stream.uniform()
                accept = np.zeros_like(p) if decoder == "plain" else accepted_with(p, q, form, amount)
                recovery = np.maximum(p - q, 0) if decoder == "opt" else p
                token = token_at(q, u_draft)
                rejected = u_coin >= accept[token]
                token = token_at(recovery, u_recovery) if rejected else token
                counted = {"rejections": float(rejected), "distance": float(np.abs(p - q).sum() / 2)}
                if decoder != "plain":
                    loss = biased_loss if decoder == "opt" else uno_loss
                    counted["loss"] = float(loss(p, q, accept))
                for name, value in counted.items():
                    sums[f"{decoder}: {name}"] = sums.get(f"{decoder}: {name}", 0.0) + value
                sums[f"target: {decoder}"] = sums.get(f"target: {decoder}", 0.0) + float(np.log(p[token]))
                sums[f"judge: {decoder}"] = sums.get(f"judge: {decoder}", 0.0) + float(np.log(q[token]))
                text.append(token)
    assert state.tolist() == stream.state.tolist(), "as many draws"
    for name in tally.moments.keys() & sums.keys():
        assert float(tally.moments[name].mean) == pytest.approx(sums[name] / trials / length, abs=ROUNDING), name
    assert {"opt: loss", "uno: loss", "judge: plain"} <= tally.moments.keys() & sums.keys()


@pytest.mark.parametrize("amount", [0.0, 0.1])
def test_the_statements_hold_along_texts(trio: Trio, amount: float) -> None:
    parameters = {"form": "threshold", "amount": amount, "tokens": 6}
    tally = texts_of(trio, parameters, 600, words(11))
    assert all(compare(tally, predictions("biased-texts", parameters), ALARM))
    wrong = [Predicted("UNO pays no more than OPT", "none", Mean("uno: excess"), 0.0)] if amount == 0 else []
    wrong.append(Predicted("OPT rejects as often as the lossless rule", "none", Mean("opt: rejections"), 0.99))
    assert not any(compare(tally, wrong, ALARM)), "negative control"
