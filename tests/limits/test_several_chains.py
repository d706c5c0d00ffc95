"""k i.i.d. chains of drafts (§12/chains): the bounds against linear programmes over all rules, and their numerics."""

from __future__ import annotations

import math
from itertools import pairwise, product
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from spectheory.cli import main
from spectheory.limits.several_chains import log_drawn, several_chain_terms, several_chains_bound
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.text_limit import one_call_bound
from spectheory.trace import Trace

Floats = NDArray[np.float64]
ROUNDING = 1e-12
"""Relative: sums of a few dozen terms in double precision."""
SOLVED = 1e-8
"""What the optimum of a linear programme may be off."""
PAIRS = 25
SIZES = ((2, 2, 2), (2, 3, 2), (2, 2, 3), (3, 2, 2), (2, 3, 1))
"""Tokens, depth and chains."""


def conditionals(rng: np.random.Generator, tokens: int, depth: int) -> list[Floats]:
    """A pmf after every run of fewer than `depth` tokens, some of them sharp."""
    sharpness = rng.uniform(0.3, 2.0)
    return [rng.dirichlet(np.full(tokens, sharpness), size=(tokens,) * i) for i in range(depth)]


def law(pmfs: list[Floats]) -> dict[tuple[int, ...], float]:
    """The probability of every run of so many tokens."""
    runs = product(range(pmfs[0].shape[-1]), repeat=len(pmfs))
    return {run: math.prod(float(pmf[run[: i + 1]]) for i, pmf in enumerate(pmfs)) for run in runs}


def most_accepted(target: list[Floats], draft: list[Floats], chains: int) -> float:
    """The largest mean number of leading tokens that a text shares with one of the chains, over all joint laws."""
    texts, drafts = law(target), law(draft)
    lists = {each: math.prod(drafts[run] for run in each) for each in product(drafts, repeat=chains)}
    agreed = [
        max(sum(text[:i] == run[:i] for i in range(1, len(text) + 1)) for run in each)
        for each in lists
        for text in texts
    ]
    margins = sparse.vstack(
        [
            sparse.kron(sparse.eye_array(len(lists)), np.ones((1, len(texts)))),
            sparse.kron(np.ones((1, len(lists))), sparse.eye_array(len(texts))),
        ]
    )
    shares = [*lists.values(), *texts.values()]  # the last margin follows from the others
    solution = linprog(-np.array(agreed), A_eq=margins.tocsr()[:-1], b_eq=shares[:-1], method="highs")
    assert solution.success
    return -float(solution.fun)


def from_two_numbers(target: list[Floats], draft: list[Floats], chains: int) -> float:
    """The mean over target-sampled text of the terms' sum."""
    total = 0.0
    for run, share in law(target).items():
        scores = [np.log([pmf[run[: i + 1]] for i, pmf in enumerate(pmfs)]) for pmfs in (target, draft)]
        total += share * several_chain_terms(*scores, chains).sum()
    return total


def test_no_verification_accepts_more() -> None:
    """On 25 pairs the optimum is below both bounds; the control, Q in place of D, fails on most of them."""
    rng = np.random.default_rng(12)
    slack, exceeded = [], 0
    for number in range(PAIRS):
        tokens, depth, chains = SIZES[number % len(SIZES)]
        target, draft = (conditionals(rng, tokens, depth) for _ in range(2))
        most = most_accepted(target, draft, chains)
        sharp, loose = several_chains_bound(target, draft, chains), from_two_numbers(target, draft, chains)
        assert most <= sharp + SOLVED
        assert sharp <= loose * (1 + ROUNDING)
        slack.append((sharp - most, loose - most))
        exceeded += most > from_two_numbers(target, draft, 1) + SOLVED
        if chains == 1:
            assert most == pytest.approx(sharp, abs=SOLVED)
            assert sharp == pytest.approx(loose, rel=ROUNDING)
    assert exceeded >= PAIRS // 2
    sharp_slack, loose_slack = np.max(slack, axis=0)
    assert sharp_slack < 0.08, "tokens, of at most 3"
    assert loose_slack < 0.14


def test_one_chain_is_the_one_call_bound() -> None:
    rng = np.random.default_rng(13)
    target, draft = -rng.exponential(2.0, (2, 40, 6))
    plain = np.minimum(1, np.exp(np.cumsum(draft - target, axis=1)))
    np.testing.assert_allclose(several_chain_terms(target, draft, 1), plain, rtol=ROUNDING)


def test_more_chains_accept_more_and_no_more_than_so_many_times() -> None:
    """D rises in k and is below kQ, the bound without the second term, and below 1."""
    log_draft = -np.logspace(-12, 3, 200)
    reach = [np.exp(log_drawn(log_draft, k)) for k in range(1, 9)]
    for k, (fewer, more) in enumerate(pairwise(reach), 2):
        assert np.all(fewer <= more * (1 + ROUNDING))
        assert np.all(more <= np.minimum(1, k * np.exp(log_draft)) * (1 + ROUNDING))


@pytest.mark.parametrize("log_draft", [-1e-300, -1e-12, -0.3, -20.0, -599.0, -601.0, -1e3])
@pytest.mark.parametrize("chains", [1, 2, 7, 1000])
def test_against_many_digits(log_draft: float, chains: int) -> None:
    with mpmath.workdps(1_000):
        q = mpmath.exp(mpmath.mpf(log_draft))
        exact = mpmath.log(1 - (1 - q) ** chains)
        assert float(log_drawn(np.float64(log_draft), chains)) == pytest.approx(float(exact), rel=1e-13, abs=1e-13)


def test_what_cannot_be_drawn_adds_nothing() -> None:
    np.testing.assert_array_equal(several_chain_terms(np.zeros(2), np.array([-np.inf, 0.0]), 3), [0.0, 0.0])
    np.testing.assert_array_equal(several_chain_terms(np.zeros(2), np.zeros(2), 3), [1.0, 1.0])


# Along a trace


def pair() -> Trace:
    """Texts known by two numbers per token."""
    rng = np.random.default_rng(14)
    scores = [-rng.exponential(1.0, (2, 24)) for _ in range(8)]
    return Trace.from_log_probabilities(list(map(tuple, scores)))


def test_along_a_trace_by_hand() -> None:
    trace, terms = pair(), []
    for target, draft in zip(*(np.split(trace.columns[name], 8) for name in ("log_target", "log_draft")), strict=True):
        for n in range(24 - 2):
            reach = [1 - (1 - math.exp(draft[n : n + i].sum())) ** 4 for i in (1, 2, 3)]
            terms.append(1 + sum(min(1, d / math.exp(target[n : n + i].sum())) for i, d in enumerate(reach, 1)))
    bound = one_call_bound(Prompts(trace.texts), trace, [3], chains=4)[3]
    assert bound.best == pytest.approx(np.mean(terms), rel=ROUNDING)
    assert bound.kind == "statistical"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair().write(tmp_path / "trace.parquet")
    assert main(["bounds", str(tmp_path), "--chains", "2", "--chains", "1", "--nodes", "3"]) == 0
    out = capsys.readouterr().out
    assert "2 chains ≤" in out
    assert "1 chains" not in out
    assert main(["bounds", "--mu", "1", "--mu2", "3", "--chains", "2"]) == 2
    assert "--chains is given without a trace" in capsys.readouterr().err
