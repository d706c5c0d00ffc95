"""Counts at several k read together: against exact counts of the built-in pair, coverage of counting, bad input."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from spectheory.cli import main
from spectheory.errors import SettingError, TextError
from spectheory.judging import several_k
from spectheory.judging.readings import readings
from spectheory.judging.several_k import alike, together
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.reports.readings import readings_report
from spectheory.trace import Trace
from spectheory.trace.counters import Counters
from spectheory.trace.samples import PAIR
from spectheory.verification import PATH_RULES
from tests.made_up import each

MANY = 10**9
"""Calls whose counts have no error that would be seen."""
RUNS, FAILS = 300, 1e-7


@cache
def shares(rule: str, k: int) -> tuple[float, ...]:
    """The exact survival of chains of k drafts at the starts of their own calls."""
    return tuple(survival_at_starts(_pair(), PATH_RULES[rule], k).tolist())


@cache
def _pair() -> Trace:
    return Trace.read(PAIR).in_memory()


def counts(rule: str, k: int, calls: int = MANY, rng: np.random.Generator | None = None) -> Counters:
    """What an engine would count."""
    survival: NDArray[np.float64] = np.array(shares(rule, k))
    if rng is not None:
        law = -np.diff(survival, prepend=1.0, append=0.0)
        ends = rng.multinomial(calls, law)
        survival = 1 - np.cumsum(ends)[:-1] / calls
    return Counters(calls=calls, survival=tuple(survival.tolist()), k=k)


WEIGHTS = {"token": 0.0, "argmax": 0.0, "lookup": 0.0, "block": 0.5}


@cache
def off(rule: str) -> tuple[float, float]:
    """Largest misses between k = 1 and 8: of both counts together, and of the readings of k = 8 alone."""
    answer = together([counts(rule, 1), counts(rule, 8)], k_max=8)
    exact = {k: 1 + sum(shares(rule, k)) for k in range(1, 9)}
    misses = [abs(row.tokens_per_call.best / exact[row.k] - 1) for row in answer.rows]
    rows = readings(counts(rule, 8), k_max=8).rows
    alone = [abs(value / exact[row.k] - 1) for row in rows for value in (row.renewal, row.summed) if value]
    return max(misses), max(alone)


@each("rule", WEIGHTS)
def test_every_k_between_is_closer_than_from_one_k(rule: str) -> None:
    """Within 0.9%, where one of the two readings of k = 8 alone misses by twice as much or more."""
    answer = together([counts(rule, 1), counts(rule, 8)], k_max=8)
    miss, alone = off(rule)
    assert miss < 0.009
    assert miss < alone / 2
    assert answer.weight.best == pytest.approx(WEIGHTS[rule], abs=0.1)
    assert [row.k for row in answer.rows if row.counted] == [1, 8]


def test_what_is_said_of_the_built_in_pair_is_what_it_gives() -> None:
    miss, alone = (f"{max(of_rules):.1%}" for of_rules in zip(*map(off, WEIGHTS), strict=True))
    assert f"within {miss} (" in (several_k.__doc__ or "")
    assert f"miss by up to {alone}." in (several_k.__doc__ or "")
    runs = [counts("token", k) for k in (1, 8)]
    notes = readings_report({str(run.k): readings(run) for run in runs}, together(runs)).notes
    assert any(f"misses by up to {miss} " in note for note in notes)


def test_ranges_hold_the_error_of_counting() -> None:
    """95% ranges at k = 3 around the reading of exact counts: misses are binomial, at most 1.3 times the stated rate.

    Control: ranges of a quarter of the length, which has the reading's own error too, miss far more often.
    """
    rng = np.random.default_rng(5)
    right = together([counts("block", 1), counts("block", 8)]).rows[2].tokens_per_call.best
    off, half = [], []
    for _ in range(RUNS):
        row = together([counts("block", k, 3000, rng) for k in (1, 8)]).rows[2].tokens_per_call
        off.append(abs(row.best - right))
        half.append((row.high - row.low) / 2)
    missed = int((np.array(off) > half).sum())
    most = binom.isf(FAILS, RUNS, 1.3 * 0.05)
    assert missed <= most
    assert (np.array(off) > np.array(half) / 4).sum() > most, "the control"


def test_where_both_readings_agree_noise_does_not_lead() -> None:
    """Accepted with probability 0.7 whatever was before: no k is off by more than six deviations of 1,000 counts at it.

    Of 480 nearly normal numbers one is, without a fault, with probability 1e-6. They rise with k.
    """
    rng, drafts = np.random.default_rng(3), np.arange(9)
    laws = [np.append(0.7 ** drafts[:k] * 0.3, 0.7**k) for k in range(1, 9)]
    moments = [[law @ drafts[: len(law)] ** power for power in (1, 2)] for law in laws]
    deviations = np.sqrt([(square - mean**2) / 1000 for mean, square in moments])
    for _ in range(60):
        runs = []
        for k in (1, 5):
            law = np.append(0.7 ** np.arange(k) * 0.3, 0.7**k)
            survival = 1 - np.cumsum(rng.multinomial(1000, law))[:-1] / 1000
            runs.append(Counters(calls=1000, survival=tuple(survival.tolist()), k=k))
        rows = together(runs, k_max=8).rows
        tokens = np.array([row.tokens_per_call.best for row in rows])
        exact = np.cumsum(0.7 ** np.arange(9))[1:]
        assert (abs(tokens - exact) < 6 * deviations).all()
        assert (np.diff(tokens) >= 0).all()
    exactly_between = [Counters(calls=1000, survival=(0.6,)), Counters(calls=1000, survival=(0.5, 0.25, 0.125))]
    second = together(exactly_between).rows[1].tokens_per_call
    assert second.high - second.low > 0.05, "both readings are one, and their error stays"


def test_two_k_of_two_drafts_are_told() -> None:
    """Totals that fit each other, and shares by position that do not."""
    counted = (0.906, 0.497, 0.203), (0.702, 0.493, 0.36, 0.255, 0.165)
    assert together([Counters(calls=4774, survival=counted[0]), Counters(calls=1000, survival=counted[1])]).doubtful


def test_counts_without_calls_have_the_error_of_the_reading_alone() -> None:
    runs = [Counters(survival=tuple(round(x, 3) for x in shares("token", k))) for k in (1, 2, 4)]
    answer = together(runs, k_max=4)
    assert not answer.doubtful
    row = answer.rows[2].tokens_per_call
    assert 0 < row.high - row.low < 0.1


def test_a_third_k_shows_what_does_not_fit() -> None:
    fine = together([counts("block", k, 20_000) for k in (1, 3, 8)])
    assert not fine.doubtful
    other = Counters(calls=20_000, survival=(0.5, 0.3, 0.1), k=3)
    assert together([counts("block", 1, 20_000), other, counts("block", 8, 20_000)]).doubtful


def test_what_cannot_be_read_together() -> None:
    one = counts("token", 2)
    with pytest.raises(SettingError, match="k = 2, 2: needs two or more, each once"):
        together([one, one])
    with pytest.raises(TextError, match="k = 3 are not by position"):
        together([one, Counters(calls=9, accepted=9, k=3, drafted=27)])
    assert alike([one, counts("token", 3)])
    assert not alike([one, one])
    assert not alike([one])


def test_the_command_reads_logs_of_several_k_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for k in (1, 8):
        paths.append(tmp_path / f"k{k}.json")
        counts("block", k, 5000).write(paths[-1])
    assert main(["plan", *(f"--trace=k{i}={path}" for i, path in enumerate(paths)), "--c", "0.1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)["together"]
    assert answer["ks"] == [1, 8]
    assert answer["rows"][2]["speedup"]["best"] == pytest.approx(answer["rows"][2]["tokens_per_call"]["best"] / 1.3)
    assert not answer["doubtful"]
