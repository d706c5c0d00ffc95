"""Y1-Y4: expected rejections against whole algorithms in fractions, linear programmes and the paper's test bed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from proofs_check import enumeration
from proofs_check.batch_algorithm import OutcomeLaw, batch_decoding
from proofs_check.enumeration import Model, Pmf, Prefix, normalised, positive_part
from proofs_check.strategies import Floats, pmfs, theorem
from spectheory.errors import PmfError, SettingError, ShapeError, SpectheoryError, TextError
from spectheory.limits import (
    batch_expected_rejections,
    batch_limit,
    expected_calls,
    expected_rejections,
    rejection_profile,
    rejections_of_text,
)

ROUNDING = 1e-12
"""Sums of a few hundred products of order one."""

SINGLE = 1e-6
"""Sums of a few dozen products in single precision, each rounded by 6e-8 of its size."""

PROGRAMME = 1e-6
"""HiGHS takes a constraint for met within 1e-7; each programme here has at most ten."""

PRINTED = 0.0005
"""Half a unit of the last digit of the numbers on the theory page."""

Chain = tuple[tuple[Pmf, ...], ...]
"""A Markov chain in fractions, ``[T][V][V]``."""


# Small non-stationary chains


def fraction_chain(rng: np.random.Generator, steps: int, tokens: int, largest: int = 4) -> Chain:
    """Rows of small integers over their sum, zeros among them, every step its own."""

    def row() -> Pmf:
        weights = rng.integers(0, largest, tokens)
        weights[rng.integers(tokens)] += 1
        return normalised(tuple(Fraction(int(weight)) for weight in weights))

    return tuple(tuple(row() for _ in range(tokens)) for _ in range(steps))


def model_of(chain: Chain) -> Model:
    """The chain as a model of prefixes whose first token is the one before the first step."""
    return lambda prefix: chain[len(prefix) - 1][prefix[-1]] if len(prefix) <= len(chain) else chain[-1][prefix[-1]]


def floats(chain: Chain) -> Floats:
    return np.array([[[float(share) for share in row] for row in matrix] for matrix in chain])


def seeded_chains(seed: int, steps: int, tokens: int) -> tuple[Chain, Chain, Pmf]:
    """Target, draft and the law of the token before the first step."""
    rng = np.random.default_rng([seed, steps, tokens])
    target, draft = fraction_chain(rng, steps, tokens), fraction_chain(rng, steps, tokens)
    return target, draft, fraction_chain(rng, 1, tokens)[0][0]


SIZES = [
    *((2, steps, drafts) for steps, most in ((1, 3), (2, 3), (3, 3), (4, 2)) for drafts in range(1, most + 1)),
    *((3, steps, drafts) for steps, most in ((1, 3), (2, 3), (3, 2)) for drafts in range(1, most + 1)),
]
"""(V, T, M) whose batches of whole drafts are few enough to enumerate: (V^T)^M up to a thousand."""

SEEDS = [1, 2, 3]


@cache
def enumerated(seed: int, tokens: int, steps: int, drafts: int, printed: bool = False) -> list[tuple[int, OutcomeLaw]]:
    """The batch algorithm's law from each first token."""
    target, draft, _ = seeded_chains(seed, steps, tokens)
    return [
        (x, batch_decoding(model_of(target), model_of(draft), steps, drafts, prompt=(x,), printed=printed))
        for x in range(tokens)
    ]


def rejection_shares(laws: list[tuple[int, OutcomeLaw]], initial: Pmf, steps: int) -> list[Fraction]:
    """P(rejection at n), n = 1..T."""
    return [
        sum((initial[x] * share for x, law in laws for out, share in law.items() if n in out.rejected), Fraction(0))
        for n in range(1, steps + 1)
    ]


# Y3 in fractions, prefix by prefix, as the theory page writes it


def total_variation(p: Pmf, q: Pmf) -> Fraction:
    return sum(positive_part(p, q), Fraction(0))


def recursive_residual(p: Pmf, q: Pmf, drafts: int) -> tuple[Fraction, Pmf]:
    """The product of TV(p^m, q) over m <= M, and p^{M+1} (any law where the product is 0)."""
    missed = Fraction(1)
    for _ in range(drafts):
        missed *= total_variation(p, q)
        if missed == 0:
            return missed, p
        p = normalised(positive_part(p, q))
    return missed, p


Start = Callable[[Fraction, Pmf, Pmf], Pmf]
"""What f(x_{<n}) adds to f(x_{<=n}) for each token, and so to the rejections at n, given p and q."""


def batch_start(drafts: int) -> Start:
    def start(weight: Fraction, p: Pmf, q: Pmf) -> Pmf:
        missed, last = recursive_residual(p, q, drafts)
        return tuple(weight * missed * share for share in last)

    return start


def limit_start(weight: Fraction, p: Pmf, q: Pmf) -> Pmf:
    return tuple(weight * a if b == 0 else Fraction(0) for a, b in zip(p, q, strict=True))


def rejections_by_prefix(
    target: Model, draft: Model, prompt: Prefix, steps: int, start: Start, first: int = 1
) -> list[Fraction]:
    """Y3 and Y4 as printed on the theory page: f over all prefixes, f(empty) = `first`; per position."""
    f = {prompt: (Fraction(1), Fraction(first))}
    terms = []
    for _ in range(steps):
        rejected = Fraction(0)
        following = {}
        for prefix, (mass, weight) in f.items():
            p, q = target(prefix), draft(prefix)
            h, added = positive_part(p, q), start(weight, p, q)
            # E_P TV - f (TV - prod): prod times f is what `start` adds up to.
            rejected += mass * total_variation(p, q) - weight * total_variation(p, q) + sum(added)
            for x, share in enumerate(p):
                following[*prefix, x] = (mass * share, h[x] * mass - h[x] * weight + added[x])
        terms.append(rejected)
        f = following
    return terms


@pytest.mark.parametrize(("tokens", "steps", "drafts"), SIZES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_batch_algorithm_is_unbiased_and_rejects_as_stated(seed: int, tokens: int, steps: int, drafts: int) -> None:
    """Output law exactly the target's; P(reject at n) exactly Y3's in fractions, and the library's to rounding."""
    target, draft, initial = seeded_chains(seed, steps, tokens)
    laws = enumerated(seed, tokens, steps, drafts)
    for x, law in laws:
        outputs: dict[Prefix, Fraction] = {}
        for outcome, share in law.items():
            outputs[outcome.text] = outputs.get(outcome.text, Fraction(0)) + share
            assert outcome.calls == 1 + sum(n < steps for n in outcome.rejected)
        texts = enumeration.draft_paths(model_of(target), (x,), steps)
        assert outputs == dict(texts)
    by_prefix = [
        rejections_by_prefix(model_of(target), model_of(draft), (x,), steps, batch_start(drafts)) for x in range(tokens)
    ]
    exact = rejection_shares(laws, initial, steps)
    formula = [sum((initial[x] * by_prefix[x][n] for x in range(tokens)), Fraction(0)) for n in range(steps)]
    assert exact == formula
    arrays = floats(target), floats(draft), [float(share) for share in initial]
    profile = rejection_profile(*arrays, drafts=drafts)
    np.testing.assert_allclose(profile, [float(share) for share in exact], rtol=0, atol=ROUNDING)
    total = batch_expected_rejections(*arrays, drafts=drafts)
    assert total == pytest.approx(float(sum(exact)), abs=ROUNDING)
    calls = sum(initial[x] * share * out.calls for x, law in laws for out, share in law.items())
    assert expected_calls(*arrays, drafts=drafts) == pytest.approx(float(calls), abs=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_as_printed_more_drafts_change_nothing(seed: int) -> None:
    """Algorithm 4 as printed is unbiased too, but rejects as one draft does (Y1), and Y3 does not describe it."""
    target, draft, initial = seeded_chains(seed, 3, 2)
    printed, single = enumerated(seed, 2, 3, 3, printed=True), enumerated(seed, 2, 3, 1)
    assert printed == single
    shares = rejection_shares(printed, initial, 3)
    arrays = floats(target), floats(draft), [float(share) for share in initial]
    assert expected_rejections(*arrays) == pytest.approx(float(sum(shares)), abs=ROUNDING)
    assert batch_expected_rejections(*arrays, drafts=3) < float(sum(shares)) - 0.01


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_batch_formulas_are_caught(seed: int) -> None:
    """Negative control: f(empty) = 0, and p^M for p^{M+1}, are not what the algorithm does."""
    target, draft, initial = seeded_chains(seed, 3, 3)
    exact = rejection_shares(enumerated(seed, 3, 3, 2), initial, 3)

    def early(weight: Fraction, p: Pmf, q: Pmf) -> Pmf:
        missed, _ = recursive_residual(p, q, 2)
        return tuple(weight * missed * share for share in recursive_residual(p, q, 1)[1])

    for start, first in ((batch_start(2), 0), (early, 1)):
        wrong = [
            rejections_by_prefix(model_of(target), model_of(draft), (x,), 3, start, first) for x in range(len(initial))
        ]
        assert exact != [sum(initial[x] * wrong[x][n] for x in range(len(initial))) for n in range(3)]


@pytest.mark.parametrize("seed", SEEDS)
def test_y3_needs_no_markov_chain(seed: int) -> None:
    """Models that look at the whole prefix: the recursion over prefixes is still the algorithm, exactly."""

    def made_up(which: int) -> Model:
        @cache
        def model(prefix: Prefix) -> Pmf:
            return fraction_chain(np.random.default_rng([seed, which, len(prefix), *prefix]), 1, 2)[0][0]

        return model

    target, draft = made_up(1), made_up(2)
    law = batch_decoding(target, draft, 3, 3)
    terms = rejections_by_prefix(target, draft, (), 3, batch_start(3))
    assert rejection_shares([(0, law)], (Fraction(1),), 3) == terms


# Y1


def test_the_test_bed_of_the_paper() -> None:
    """The numbers of the theory page, from the stated seed."""
    for steps, rejections in ((50, 16.405), (100, 33.535)):
        rng = np.random.RandomState(10)
        draft, target = (rng.rand(steps, 7, 7) for _ in range(2))
        draft, target = (chain / chain.sum(axis=-1, keepdims=True) for chain in (draft, target))
        uniform = np.full(7, 1 / 7)
        assert expected_rejections(target, draft, uniform) == pytest.approx(rejections, abs=PRINTED)
        swapped = expected_rejections(draft, target, uniform)
        assert abs(swapped - rejections) > 10 * PRINTED, "negative control: the roles exchanged"


def decoded(chains: tuple[Chain, Chain], rule: enumeration.Rule, x: int) -> list[tuple[Fraction, int, int]]:
    """(probability, rejections, calls) of a rule that drafts to the horizon, from first token x."""
    steps = len(chains[0])

    def shifted(chain: Chain) -> Model:
        return lambda prefix: model_of(chain)((x, *prefix))

    law = enumeration.Decoding(rule, k=steps, length=steps, spare=0).law(*map(shifted, chains))
    # A call that accepts all its drafts reaches the horizon; every other one ends in a rejection.
    outcomes = []
    for (_, accepted), share in law.items():
        reached = sum(accepted) + len(accepted) > steps
        outcomes.append((share, len(accepted) - int(reached), len(accepted)))
    return outcomes


@pytest.mark.parametrize(("tokens", "steps"), [(2, 1), (2, 4), (3, 3)])
@pytest.mark.parametrize("seed", SEEDS)
def test_y1_is_token_verification_to_the_horizon(seed: int, tokens: int, steps: int) -> None:
    """Y1 and its calls against the enumerated decoder of the path theorem, which knows nothing of batches."""
    target, draft, initial = seeded_chains(seed, steps, tokens)
    arrays = floats(target), floats(draft), [float(share) for share in initial]
    rejections = calls = Fraction(0)
    for x in range(tokens):
        for share, rejected, count in decoded((target, draft), enumeration.token_verification, x):
            rejections += initial[x] * share * rejected
            calls += initial[x] * share * count
    assert expected_rejections(*arrays) == pytest.approx(float(rejections), abs=ROUNDING)
    assert expected_calls(*arrays) == pytest.approx(float(calls), abs=ROUNDING)


def test_block_verification_and_batches_are_outside_the_class() -> None:
    """Y2's scope: both reject less than Y1, and are unbiased."""
    third = Fraction(1, 3)
    chain = (((third, 2 * third),) * 2,) * 2, (((2 * third, third),) * 2,) * 2
    target, draft = floats(chain[0]), floats(chain[1])
    least = float(expected_rejections(target, draft, [1, 0]))
    block = sum(share * rejected for share, rejected, _ in decoded(chain, enumeration.block_verification, 0))
    assert least == pytest.approx(2 / 3, abs=ROUNDING)
    assert float(block) < least - 0.05
    assert batch_expected_rejections(target, draft, [1, 0], drafts=2) < least - 0.05


@pytest.mark.parametrize("concentration", [0.1, 1.0])
@pytest.mark.parametrize("tokens", [1, 2, 3, 5])
def test_no_unbiased_rule_of_the_class_rejects_less(tokens: int, concentration: float) -> None:
    """Y2 as linear programmes in a = b q and s = what is recovered, a + s = p: least sum of s is TV, a <= min(p, q).

    A rule of the class treats a prefix the same way however it was reached, so it is unbiased only if the conditional
    law of each position is, and these programmes decide every position.
    """
    for p, q in np.random.default_rng(tokens).dirichlet(np.full(tokens, concentration), (4, 2)):
        unbiased = {"A_eq": np.hstack([np.eye(tokens), np.eye(tokens)]), "b_eq": p, "method": "highs"}
        limits = [(0.0, float(share)) for share in q] + [(0.0, 1.0)] * tokens
        fewest = linprog(np.repeat([0.0, 1.0], tokens), bounds=limits, **unbiased)
        distance = expected_rejections(np.tile(p, (tokens, 1)), np.tile(q, (tokens, 1)), np.eye(tokens)[0], horizon=1)
        assert fewest.fun == pytest.approx(distance, abs=PROGRAMME)
        for x in range(tokens):
            most = linprog(-np.eye(2 * tokens)[x], bounds=limits, **unbiased)
            assert -most.fun == pytest.approx(min(p[x], q[x]), abs=PROGRAMME)


# Y3 and Y4: one position, bounds, limit


def one_position(p: list[float], q: list[float], drafts: float) -> float:
    """What a batch saves at the first position."""
    rows = [[p] * len(p)], [[q] * len(q)]
    first = np.eye(len(p))[0]
    return float(expected_rejections(*rows, first) - batch_expected_rejections(*rows, first, drafts=drafts))


@pytest.mark.parametrize("drafts", [1, 2, 3, 10])
@pytest.mark.parametrize(("inner", "ratio"), [(1, 2), (2, 3), (4, 2)])
def test_the_gain_of_one_position_uniform(inner: int, ratio: int, drafts: int) -> None:
    """Uniform on V' against uniform on r V' tokens: (1 - 1/r) - (1 - 1/r)^M."""
    size = inner * ratio
    target, draft = [1 / inner] * inner + [0.0] * (size - inner), [1 / size] * size
    missed = 1 - 1 / ratio
    assert one_position(target, draft, drafts) == pytest.approx(missed - missed**drafts, abs=ROUNDING)


@pytest.mark.parametrize("drafts", [1, 2, 3, 10])
@pytest.mark.parametrize(("u", "v"), [(0.9, 0.2), (0.5, 0.5), (0.99, 0.98), (1.0, 0.3)])
def test_the_gain_of_one_position_bernoulli(u: float, v: float, drafts: int) -> None:
    """Draft Bernoulli(u), target Bernoulli(v), u >= v: (u - v)(1 - u^{M-1})."""
    gain = one_position([1 - v, v], [1 - u, u], drafts)
    assert gain == pytest.approx((u - v) * (1 - u ** (drafts - 1)), abs=ROUNDING)


Chains = tuple[Floats, Floats, Floats]


def chain_arrays(most_steps: int = 4, most_tokens: int = 4) -> st.SearchStrategy[Chains]:
    """Target, draft and initial pmf of a non-stationary chain, zeros and tiny entries among them."""

    def of_size(size: tuple[int, int]) -> st.SearchStrategy[Chains]:
        steps, tokens = size
        rows = st.lists(pmfs(tokens), min_size=steps * tokens, max_size=steps * tokens)
        chain = rows.map(lambda each: np.array(each).reshape(steps, tokens, tokens))
        return st.tuples(chain, chain, pmfs(tokens))

    return st.tuples(st.integers(1, most_steps), st.integers(1, most_tokens)).flatmap(of_size)


def slow_batch(chains: Chains, drafts: int) -> float:
    """Expected rejections by the cost to go, from the last step back: another recursion, with p^m normalised."""
    target, draft, initial = chains
    size = len(initial)
    fresh, running = np.zeros(size), np.zeros(size)
    for p_of, q_of in zip(target[::-1], draft[::-1], strict=True):
        before = np.zeros((2, size))
        for x, (p, q) in enumerate(zip(p_of, q_of, strict=True)):
            for state, tries in ((0, drafts), (1, 1)):
                missed, law = 1.0, p
                for _ in range(tries):
                    excess = np.maximum(law - q, 0)
                    missed *= excess.sum()
                    if missed < 1e-300:
                        missed, law = 0.0, p
                        break
                    law = excess / excess.sum()
                recovered = missed * law
                before[state, x] = recovered @ (1 + fresh) + (p - recovered) @ running
        fresh, running = before
    return float(initial @ fresh)


@theorem
@given(chain_arrays(), st.integers(1, 6))
def test_y3_is_the_cost_to_go(chains: Chains, drafts: int) -> None:
    """Forward over f, backward over the cost: two recursions, one number; random chains with zeros."""
    assert batch_expected_rejections(*chains, drafts=drafts) == pytest.approx(slow_batch(chains, drafts), abs=1e-9)


@theorem
@given(chain_arrays())
def test_more_drafts_never_reject_more(chains: Chains) -> None:
    """Y4 <= Y3 at M + 1 <= Y3 at M <= Y1; at T = 1 the limit leaves o alone.

    Proof: u^M(x) = prod_m TV(p^m, q) p^{M+1}(x) falls in M at each x, and with C and C' the cost to go at a round's
    start and inside one, C' - C = sum_x (h - u)(x) (1 - (C' - C)(x)) lies in [0, 1] from the last step back; so what a
    larger M moves from u to p - u costs 1 + C before and C' <= 1 + C after.
    """
    values = [float(batch_expected_rejections(*chains, drafts=m)) for m in (1, 2, 3, 5, 50, math.inf)]
    assert all(more <= fewer + ROUNDING for fewer, more in pairwise(values))
    assert values[0] == expected_rejections(*chains)
    assert values[-1] == batch_limit(*chains)
    assert values[-1] >= -ROUNDING
    target, draft, initial = chains
    outside = initial @ np.where(draft[0] > 0, 0, target[0]).sum(axis=-1)
    assert batch_limit(target[:1], draft[:1], initial) == pytest.approx(outside, abs=ROUNDING)


@pytest.mark.parametrize(("tokens", "steps"), [(2, 3), (3, 3), (4, 4)])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_limit_is_reached(seed: int, tokens: int, steps: int) -> None:
    """Y4 in fractions prefix by prefix, and Y3 at M = 2000; the draft lacks tokens of the target in some rows."""
    target, draft, initial = seeded_chains(seed, steps, tokens)
    arrays = floats(target), floats(draft), [float(share) for share in initial]
    exact = sum(
        initial[x] * sum(rejections_by_prefix(model_of(target), model_of(draft), (x,), steps, limit_start))
        for x in range(tokens)
    )
    assert batch_limit(*arrays) == pytest.approx(float(exact), abs=ROUNDING)
    assert batch_expected_rejections(*arrays, drafts=2000) == pytest.approx(float(exact), abs=ROUNDING)


def test_the_paper_s_limit_needs_a_covering_draft() -> None:
    """Negative control: without o, f is 0 after one step, so the paper's form gives TV for T = 2; M = 2000 more."""
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.75, 0.0])
    chains = np.tile(p, (3, 1)), np.tile(q, (3, 1)), [1, 0, 0]
    paper = np.maximum(p - q, 0).sum()
    large = float(batch_expected_rejections(*chains, drafts=2000, horizon=2))
    assert float(batch_limit(*chains, horizon=2)) == pytest.approx(large, abs=ROUNDING)
    assert large > paper + 0.1


def test_a_horizon_repeats_one_matrix() -> None:
    rng = np.random.default_rng(8)
    target, draft, many = rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4), (5, 4))
    initial = rng.dirichlet(np.ones(4))
    long = np.stack([target] * 5), np.stack([draft] * 5)
    for options in ({}, {"drafts": 3}, {"drafts": math.inf}):
        exact = rejection_profile(*long, initial, **options)
        np.testing.assert_array_equal(rejection_profile(target, draft, initial, horizon=5, **options), exact)
        np.testing.assert_array_equal(rejection_profile(long[0], draft, initial, **options), exact)
        assert rejection_profile(many, draft, initial, **options).shape == (5,)


# From text


def texts_of(chain: Chain, initial: Pmf) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    for x, share in enumerate(initial):
        for text, weight in enumeration.draft_paths(model_of(chain), (x,), len(chain)):
            if share * weight > 0:
                yield (x, *text), share * weight


def test_sampled_texts_average_to_y1() -> None:
    """Every text weighted by its target probability; weighted by anything else it is another number."""
    target, draft, initial = seeded_chains(2, 4, 3)
    values: list[float] = []
    shares: list[float] = []
    for text, share in texts_of(target, initial):
        values.extend(float(total_variation(target[n][text[n]], draft[n][text[n]])) for n in range(4))
        shares.append(float(share))
    per_text = rejections_of_text(values, [4] * len(shares))
    exact = float(expected_rejections(floats(target), floats(draft), [float(share) for share in initial]))
    assert per_text @ np.array(shares) == pytest.approx(exact, abs=ROUNDING)
    assert abs(per_text.mean() - exact) > 0.01, "negative control: texts that are no target samples"
    assert rejections_of_text(values) == pytest.approx(per_text.sum())
    np.testing.assert_array_equal(rejections_of_text([0.5, 0.25], [0, 2, 0]), [0, 0.75, 0])


# Array libraries


@pytest.mark.parametrize("drafts", [1, 3, math.inf])
def test_torch_and_the_strict_array_api_give_the_same(drafts: float) -> None:
    strict = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(4)
    chains = (*(rng.dirichlet(np.full(6, 0.3), (4, 6)) for _ in range(2)), rng.dirichlet(np.ones(6)))
    exact = rejection_profile(*chains, drafts=drafts)
    for value in (
        rejection_profile(*map(torch.from_numpy, chains), drafts=drafts),
        rejection_profile(torch.from_numpy(chains[0]), torch.from_numpy(chains[1]), list(chains[2]), drafts=drafts),
        rejection_profile(*(strict.asarray(array) for array in chains), drafts=drafts),
    ):
        assert type(value).__module__.split(".")[0] in ("torch", "array_api_strict")
        np.testing.assert_allclose(np.asarray([float(v) for v in value]), exact, rtol=0, atol=ROUNDING)
    target, draft, initial = map(torch.from_numpy, chains)
    single = rejection_profile(target.float(), draft.float(), chains[2], drafts=drafts)
    assert single.dtype == torch.float32
    mixed = rejection_profile(target.float(), draft, initial.float(), drafts=drafts)
    assert mixed.dtype == torch.float64
    for values in (single, mixed):
        np.testing.assert_allclose(values.numpy(), exact, rtol=0, atol=SINGLE)


# Bad input

FAIR = [[0.5, 0.5], [0.5, 0.5]]
ONES = [1.0, 0.0]


def bent(step: int, row: int, value: float) -> Floats:
    """Four steps of fair rows, one entry changed."""
    chain = np.full((4, 2, 2), 0.5)
    chain[step, row, 0] = value
    return chain


BAD: dict[str, tuple[Callable[[], Any], type[SpectheoryError], str]] = {
    "row": (
        lambda: expected_rejections(bent(2, 1, 0.6), FAIR, ONES),
        PmfError,
        "row 1 of target[2] sums to 1.1, off by 0.1",
    ),
    "row of one matrix": (
        lambda: expected_rejections(FAIR, [[0.5, 0.5], [0.5, 0.4]], ONES, horizon=2),
        PmfError,
        "row 1 of draft sums to 0.9, off by -0.1",
    ),
    "negative": (lambda: expected_rejections(bent(3, 0, -0.5), FAIR, ONES), PmfError, "target[3, 0, 0] is -0.5"),
    "nan": (lambda: expected_rejections(bent(3, 0, math.nan), FAIR, ONES), PmfError, "target[3, 0, 0] is nan"),
    "square": (lambda: expected_rejections([ONES], FAIR, ONES, horizon=1), ShapeError, "target has shape (1, 2)"),
    "axes": (lambda: expected_rejections(ONES, FAIR, ONES), ShapeError, "target has shape (2,)"),
    "no step": (lambda: expected_rejections(np.ones((0, 2, 2)), FAIR, ONES), ShapeError, "(0, 2, 2)"),
    "tokens": (lambda: expected_rejections(FAIR, [[1.0]], ONES, horizon=1), ShapeError, "2 tokens and draft 1"),
    "steps": (
        lambda: expected_rejections(bent(0, 0, 0.5), np.full((3, 2, 2), 0.5), ONES),
        ShapeError,
        "do not broadcast",
    ),
    "no horizon": (lambda: expected_rejections(FAIR, FAIR, ONES), ShapeError, "no step axis"),
    "other horizon": (lambda: expected_rejections(bent(0, 0, 0.5), FAIR, ONES, horizon=3), ShapeError, "have 4 steps"),
    "horizon": (lambda: expected_rejections(FAIR, FAIR, ONES, horizon=0), SettingError, "horizon is 0"),
    "initial": (lambda: expected_rejections(FAIR, FAIR, [1.0], horizon=2), ShapeError, "initial has shape (1,)"),
    "initial sum": (lambda: expected_rejections(FAIR, FAIR, [1.0, 1.0], horizon=2), PmfError, "initial sums to 2"),
    "drafts": (
        lambda: batch_expected_rejections(FAIR, FAIR, ONES, drafts=0, horizon=2),
        SettingError,
        "drafts is 0: must be a whole number >= 1",
    ),
    "half drafts": (lambda: expected_calls(FAIR, FAIR, ONES, drafts=1.5, horizon=2), SettingError, "drafts is 1.5"),
    "nan drafts": (lambda: rejection_profile(FAIR, FAIR, ONES, drafts=math.nan, horizon=2), SettingError, "is nan"),
    "values": (lambda: rejections_of_text([0.5, 1.5]), SettingError, "total_variation[1] is 1.5"),
    "nan value": (lambda: rejections_of_text([math.nan]), SettingError, "total_variation[0] is nan"),
    "lengths": (lambda: rejections_of_text([0.5, 0.5], [1]), TextError, "shape (2,) for texts of 1 tokens"),
    "table": (lambda: rejections_of_text([[0.5, 0.5]]), TextError, "shape (1, 2)"),
    "negative length": (lambda: rejections_of_text([0.5], [2, -1]), TextError, "one value per token"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_named_in_one_line(case: str) -> None:
    call, error, fragment = BAD[case]
    with pytest.raises(error) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)
