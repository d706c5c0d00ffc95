"""Over-acceptance, simulated, against Y5 and Y6; what yin2024's figures count.

A comparison of a tally with theory shares the alarm rate `ALARM` among its predictions; there are fewer than 40
comparisons, so this file fails wrongly with probability below 1e-7, of the suite's 1e-6. With `TRIALS` trials a
probability of 0.1 is known to 0.003, one of 0.5 to 0.005.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import simulations.simulators  # noqa: F401  registers them
from simulations.counts import Mean, Share, Tally
from simulations.draws import words
from simulations.experiments.collect import Failure, run_batch
from simulations.experiments.tasks import Task, registered, task
from simulations.kernels.markov_decoding import horizon_rejections
from simulations.models.pairs import paper_chains as bed
from simulations.sweeps import Scale, gain, pareto, rejections
from simulations.verdicts.predictions import Predicted, compare, predictions
from spectheory import total_variation
from spectheory.limits import biased_loss, expected_rejections, uno_loss
from spectheory.verification import RecursiveRejection
from tests.simulations import laws

ALARM = 1e-9
TRIALS = 500_000

Floats = NDArray[np.float64]

PAIRS: dict[str, tuple[Floats, Floats]] = {
    "figure": (np.array(pareto.TARGET), np.array(pareto.DRAFT)),
    **{name: laws.PAIRS[name] for name in ("draft lacks a token", "target lacks a token", "one-hot draft")},
    "one-hot target": (np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.3, 0.2])),
    "disjoint": (np.array([1.0, 0.0]), np.array([0.0, 1.0])),
    "equal": (np.array([0.25, 0.75]), np.array([0.25, 0.75])),
}


def least_accept(p: Floats, q: Floats) -> Floats:
    return np.minimum(p, q) / np.where(q > 0, q, 1.0)


def an_accept(p: Floats, q: Floats, seed: int = 0) -> Floats:
    """An over-acceptance of another share for every token."""
    least, share = least_accept(p, q), np.random.default_rng(seed).random(p.size)
    return (1 - share) * least + share


def simulated(name: str, recovery: str, seed: int = 0) -> tuple[dict[str, Any], Tally]:
    p, q = PAIRS[name]
    parameters = {"target": p, "draft": q, "accept": an_accept(p, q, seed), "recovery": recovery}
    return parameters, done(task("biased", parameters, seed=3, trials=TRIALS))


def done(asked: Task) -> Tally:
    tally = run_batch(asked, 0, registered(asked.kind).run.__module__)
    assert not isinstance(tally, Failure), tally.error
    return tally


@pytest.mark.parametrize("recovery", ["optimal", "target"])
@pytest.mark.parametrize("name", PAIRS)
def test_rejections_and_outputs_are_those_of_theory(name: str, recovery: str) -> None:
    """Y6 for the rejections, Y5 for the law of the output."""
    parameters, tally = simulated(name, recovery)
    assert all(compare(tally, predictions("biased", parameters), ALARM))


def test_the_plug_in_bias_holds_its_loss() -> None:
    for recovery, loss, other in (("optimal", biased_loss, uno_loss), ("target", uno_loss, biased_loss)):
        parameters, tally = simulated("figure", recovery)
        given = (parameters["target"], parameters["draft"], parameters["accept"])
        interval = pareto.observed_bias(tally, pareto.TARGET, 1 - ALARM)
        assert interval.low <= float(loss(*given)) <= interval.high
        assert not interval.low <= float(other(*given)) <= interval.high, "negative control"


def test_wrong_theory_is_caught() -> None:
    """Negative controls: the other recovery law, the unbiased acceptance, and a front that is not straight."""
    for recovery, other in (("optimal", "target"), ("target", "optimal")):
        parameters, tally = simulated("figure", recovery)
        wrong = predictions("biased", {**parameters, "recovery": other})
        assert compare(tally, wrong, ALARM)[0], "the rejections are the same"
        assert not all(compare(tally, wrong, ALARM)[1:])
        unbiased = predictions("biased", {**parameters, "accept": least_accept(*PAIRS["figure"])})
        assert not compare(tally, unbiased, ALARM)[0]
        given = (parameters["target"], parameters["draft"], parameters["accept"])
        bent = float(total_variation(*given[:2])) - float(uno_loss(*given))
        assert not all(compare(tally, [Predicted("TV - UNO's loss", "none", Share("rejected"), bent)], ALARM))


# What the figures count


def running(checkpoints: list[int], trials: int) -> Task:
    parameters = {"chains": "yin2024", "length": 50, "checkpoints": checkpoints}
    return task("rejections-running", parameters, seed=2, trials=trials)


def test_a_running_count_is_the_sum_of_its_segments() -> None:
    asked = running([1, 10, 5000], 5000)
    tally, state = done(asked), words(2, *asked.key, 0)
    parts = [horizon_rejections(*bed(50), length=50, texts=n, state=state) for n in (1, 9, 4990)]
    assert tally.counts["running"].tolist() == np.cumsum([part.positions.sum() for part in parts]).tolist()
    assert tally.counts["texts"].tolist() == sum(part.texts for part in parts).tolist()


def test_running_means_agree_with_y1() -> None:
    tally = done(running([20_000, 200_000], 200_000))
    stated = predictions("rejections-running", {"chains": "yin2024", "length": 50})
    assert [each.says for each in stated] == ["rejections per text"]
    assert all(compare(tally, stated, ALARM))
    wrong = Predicted("of T = 51", "none", Mean("rejections", 0, 50), float(expected_rejections(*bed(51))))
    assert not all(compare(tally, [wrong], ALARM)), "negative control"


@pytest.mark.parametrize("checkpoints", [[], [0, 10], [5, 5, 10], [1, 9]])
def test_checkpoints_rise_to_the_trials(checkpoints: list[int]) -> None:
    failure = run_batch(running(checkpoints, 10), 0, "simulations.simulators.rejections")
    assert isinstance(failure, Failure)
    assert failure.error.endswith("must rise from 1 or more to 10; end at the trials")


def test_the_law_of_rejections_has_the_mean_y1() -> None:
    """And the spread that texts have; a text's law is that of the counts, cell by cell."""
    law = rejections.law_of_rejections(bed(50))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert law @ np.arange(51) == pytest.approx(float(expected_rejections(*bed(50))), abs=1e-12)
    tally = done(task("rejections", {"chains": "yin2024", "length": 50}, seed=4, trials=200_000))
    cells = [Predicted(f"P(N = {n})", "none", Share("texts", n), float(share)) for n, share in enumerate(law)]
    assert all(compare(tally, cells, ALARM))
    shifted = [Predicted(f"P(N = {n})", "none", Share("texts", n), float(law[n - 1])) for n in range(1, 51)]
    assert not all(compare(tally, shifted, ALARM)), "negative control"


def test_the_band_holds_what_it_says() -> None:
    """For sums of few texts the law of the mean is worked out: outside the band lies 5% at most, and not far less."""
    law = rejections.law_of_rejections(bed(50))
    of_sum, mass = np.ones(1), {}
    for n in range(1, 21):
        of_sum = np.convolve(of_sum, law)
        [[low, high]] = rejections.band(law, [n])
        means = np.arange(of_sum.size) / n
        mass[n] = float(of_sum[(means < low) | (means > high)].sum())
    assert 0.001 < min(mass.values()) <= max(mass.values()) <= rejections.MISS


def test_gains_are_those_of_recursive_rejection() -> None:
    """The two formulas of one position, against R3; their places swapped, they differ."""
    for one in gain.asks(Scale(full=False)):
        given = one.task.parameters
        law = RecursiveRejection().rank_pmf(given["target"], given["draft"], gain.MOST)
        value = float(one.label[4:])
        for m in range(1, gain.MOST + 1):
            uniform = one.label.startswith("r")
            formula = gain.uniform_gain(value, m) if uniform else gain.bernoulli_gain(value, gain.TARGET_SHARE, m)
            assert float(formula) == pytest.approx(float(np.sum(law[1:m])), abs=1e-14)
    assert float(gain.uniform_gain(2.0, 3)) != pytest.approx(float(gain.bernoulli_gain(0.5, 0.0, 2)))
