"""Figures of our own, and their simulators: single drafts, k-SEQ, top-k, rank entropies, times of races.

Tallies are compared with A1, A4, R5, R7 and H at a false alarm rate of `ALARM` a comparison; there are fewer than 300,
so this file fails wrongly with probability below 3e-8, of the suite's 1e-6.
With `TRIALS` trials a probability of 0.1 is known to 0.0028, one of 0.5 to 0.0046.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import binom

import simulations.simulators  # noqa: F401  registers the kinds
from proofs_check.library.strategies import Floats
from simulations.counts import Mean, Share, Tally
from simulations.experiments.collect import run_batch
from simulations.experiments.tasks import Task, registered, task
from simulations.kernels.candidates import RULES
from simulations.simulators.rank_entropy import mean_shortfall, seen_entropy
from simulations.simulators.timing import KERNELS
from simulations.sweeps import Scale, entropy, lazy, sweeps
from simulations.verdicts.predictions import agrees, compare, predictions
from spectheory.plots.style import _new_figure
from spectheory.verification import KSeq, TokenVerification
from tests.made_up import each
from tests.simulations import laws

ALARM = 1e-10
TRIALS = 500_000
RANKS = 3
QUICK = Scale(full=False)

PAIRS: dict[str, tuple[Floats, Floats]] = {
    **laws.PAIRS,
    "first choices tie": (np.array([0.4, 0.4, 0.2]), np.array([0.1, 0.45, 0.45])),
    "equal": (laws.UNEVEN[0], laws.UNEVEN[0]),
    "disjoint": (np.array([0.0, 0.0, 1.0]), np.array([0.5, 0.5, 0.0])),
}
KINDS = [("single", {"rule": rule}) for rule in RULES] + [("top-k", {"max_rank": RANKS})]
KINDS += [("k-seq", {"k": k}) for k in (1, 2, 4)] + [("race-numpy", {"max_rank": RANKS})]


def run(made: Task) -> Tally:
    """Its first batch."""
    tally = run_batch(made, 0, "simulations.simulators")
    assert isinstance(tally, Tally), tally
    return tally


def simulated(kind: str, name: str, setting: Mapping[str, Any]) -> tuple[Tally, dict[str, Any]]:
    target, draft = PAIRS[name]
    made = task(
        kind, {"target": target, "draft": draft, **setting}, seed=3, trials=TRIALS // (1 + 9 * ("numpy" in kind))
    )
    return run(made), made.parameters


# Laws


@pytest.mark.evidence
@each("kind, setting", KINDS)
@each("name", ["crossed", "draft lacks a token", "first choices tie", "random"])
def test_simulators_agree_with_theory(name: str, kind: str, setting: dict[str, Any]) -> None:
    tally, parameters = simulated(kind, name, setting)
    predicted = predictions(kind, parameters)
    assert len(predicted) >= 2
    assert [str(one.agreement) for one in compare(tally, predicted, ALARM * len(predicted)) if not one] == []


@pytest.mark.evidence
def test_wrong_laws_are_caught() -> None:
    """Negative controls: each acceptance against another rule's, the output against the draft."""
    for name in ("crossed", "draft lacks a token", "random"):
        p, q = PAIRS[name]
        tallies = {rule: simulated("single", name, {"rule": rule})[0] for rule in RULES}
        token = float(TokenVerification().acceptance(p, q))
        assert agrees(tallies["token"], Share("accepted"), token, ALARM)
        for rule in ("independent", "argmax", "greedy"):
            assert not agrees(tallies[rule], Share("accepted"), token, ALARM)
        first = int(np.argmax(np.abs(p - q)))
        lists = {kind: simulated(kind, name, setting)[0] for kind, setting in (KINDS[4], KINDS[6], KINDS[8])}
        for tally in (tallies["token"], *lists.values()):
            assert not agrees(tally, Share("output", first), float(q[first]), ALARM)
        assert not agrees(lists["top-k"], Share("rank", 0), token, ALARM)
        assert not agrees(lists["race-numpy"], Share("rank", 1), float((p * q).sum()), ALARM)
        unscaled = float(KSeq().acceptance(p, q, 1))
        assert not agrees(lists["k-seq"], Share("rank", 0), unscaled, ALARM)


# The estimate of an entropy


@pytest.mark.parametrize("p", [0.5, 0.2, 0.03])
def test_the_estimate_lacks_what_it_says(p: float) -> None:
    """Its exact mean over 12 draws of two letters; the plain entropy of the shares lacks much more."""
    n = 12
    weights = binom.pmf(range(n + 1), n, p)
    mean = sum(w * seen_entropy(np.array([c, n - c]))[0] for c, w in enumerate(weights))
    plain = sum(w * -(rel_entr(c / n, 1) + rel_entr(1 - c / n, 1)) for c, w in enumerate(weights))
    exact = -(p * math.log(p) + (1 - p) * math.log1p(-p))
    lacks = sum((p * (1 - p) ** v + (1 - p) * p**v) / v for v in range(n, 4000))
    assert mean + lacks == pytest.approx(exact, abs=1e-12)
    assert lacks <= mean_shortfall([p, 1 - p], n)
    assert plain < mean - 0.01


def test_entropies_of_ranks_agree_with_theory() -> None:
    """Three rules; negative control: the entropy of another."""
    p, q = entropy.pair(0.5)
    answers = {}
    for rule in ("poisson", "race", "recursive"):
        setting = {"rule": rule, "target": p, "draft": q, "max_rank": 64, "draws": 20_000}
        made = task("rank-entropy", setting, seed=1, trials=16)
        (predicted,) = predictions("rank-entropy", made.parameters)
        answers[rule] = run(made), predicted.range()
    for rule, (tally, _) in answers.items():
        for other, (_, value) in answers.items():
            assert bool(agrees(tally, Mean("entropy"), value, ALARM)) == (rule == other)


# Times


@pytest.mark.parametrize("kernel", KERNELS)
def test_times_are_measured(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock on which a call takes 100 nanoseconds and a race 7: what a call takes is not the races'."""
    now, played = [0], KERNELS[kernel]

    def clocked(*pair: Floats, trials: int, **options: Any) -> Any:
        now[0] += 100 + 7 * trials
        return played(*pair, trials=trials, **options)

    monkeypatch.setitem(KERNELS, kernel, clocked)
    monkeypatch.setattr("simulations.simulators.timing.time", SimpleNamespace(thread_time_ns=lambda: now[0]))
    setting = {"kernel": kernel, "vocabulary": 128, "noise": 0.5, "worst_ratio": 1e3, "races": 500, "max_rank": 16}
    tally = run(task("race-timing", setting, seed=1, trials=5))
    assert tally.trials == 5
    assert {name: moments.mean for name, moments in tally.moments.items()} == {"nanoseconds": 7.0, "call": 107.0}


# Figures


def small(name: str) -> dict[str, Any]:
    """The figure of a few trials."""
    (sweep,), tallies = sweeps([name]), {}
    for one in sweep.asks(QUICK):
        assert registered(one.task.kind).version == one.task.version
        few = 2 if one.task.kind in ("race-timing", "rank-entropy") else 4000
        tallies[one.label] = run(replace(one.task, trials=few))
    made = json.loads(json.dumps(sweep.made(QUICK, tallies, 1e-8), allow_nan=False))
    assert [one["says"] for one in made["comparisons"] if not one["agrees"]] == []
    figure = _new_figure(sweep.size)
    sweep.draw(figure, made["data"])
    assert figure.axes
    return dict(made["data"])


def test_gaps_of_iid_rules_are_none_below_zero() -> None:
    """R4 bounds what i.i.d. candidates give and nothing else; distinct ones pass it."""
    data = small("gaps")
    for pair in data["pairs"].values():
        for rule in ("poisson", "recursive", "k-seq", "gumbel-list"):
            assert min(pair["lines"][rule]) > -1e-12
        assert pair["lines"]["k-seq"][0] == pytest.approx(0, abs=1e-12)
    assert min(data["pairs"]["peaked"]["lines"]["race-dense"]) < -0.1
    assert min(data["pairs"]["flat"]["lines"]["top-k"]) < 0


def test_entropies_are_on_their_side_of_kl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy, "DOTS", (0.0, 0.5, 0.75))
    data = small("entropy")
    for (kl, low), (_, high) in zip(data["lines"]["poisson"], data["lines"]["recursive"], strict=True):
        assert kl <= min(low + 1e-6, high)
        assert low <= entropy.upper_bound(kl)
    assert data["lines"]["race"][-1][1] < data["lines"]["race"][-1][0], "distinct tokens fall below KL"


@pytest.mark.evidence
def test_the_lazy_figure_needs_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("VOCABULARIES", (2**7, 2**9)), ("LARGEST", 2**9), ("RATIOS", (1e3, 1e300))):
        monkeypatch.setattr(lazy, name, value)
    data = small("lazy")
    assert (len(data["size"]), len(data["ratio"])) == (6, 11)
    assert [sweep.name for sweep in sweeps() if sweep.alone] == ["lazy"]
