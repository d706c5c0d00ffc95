"""Y5-Y6 as a rule and along a text: tokens per call against the bias paid."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.algorithms import enumeration
from proofs_check.library.strategies import pairs
from spectheory.cost import LatencyTable
from spectheory.divergences import total_variation
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.limits import bias_frontier, mixture_target, uno_loss
from spectheory.prediction import plan, predict
from spectheory.prediction.bias_tradeoff import bias_tradeoff
from spectheory.prediction.paths import calls_and_visits
from spectheory.reports import Table, prediction_report
from spectheory.trace import UNO_SHARES, TextInfo, Trace
from spectheory.verification import TokenVerification
from spectheory.verification.biased import BiasedVerification

ROUNDING = 1e-13
"""Sums of a few dozen float64 products of order one."""


def target_model(prefix: enumeration.Prefix) -> enumeration.Pmf:
    return enumeration.normalised((Fraction(1 + sum(prefix)), Fraction(2), Fraction(1 + len(prefix))))


def draft_model(prefix: enumeration.Prefix) -> enumeration.Pmf:
    return enumeration.normalised((Fraction(2), Fraction(1 + len(prefix)), Fraction(3)))


def columns_of(texts: list[tuple[int, ...]], target: enumeration.Model = target_model) -> dict[str, np.ndarray]:
    """Log p and log q along texts of the two models."""
    at = [(text[:n], text[n]) for text in texts for n in range(len(text))]
    pmfs = [(target(prefix), draft_model(prefix), x) for prefix, x in at]
    return {
        "log_target": np.log([float(p[x]) for p, _, x in pmfs]),
        "log_draft": np.log([float(q[x]) for _, q, x in pmfs]),
        "total_variation": np.array(
            [float(total_variation(list(map(float, p)), list(map(float, q)))) for p, q, _ in pmfs]
        ),
    }


@given(pairs(max_tokens=6), st.floats(0, 1))
def test_the_rule_is_token_verification_for_the_mixture(pair: tuple[np.ndarray, np.ndarray], share: float) -> None:
    p, q = pair
    rule, mixture = BiasedVerification(share), mixture_target(p, q, share)
    assert rule.acceptance(p, q) == pytest.approx(float(TokenVerification().acceptance(mixture, q)), abs=ROUNDING)
    assert rule.acceptance(p, q) == pytest.approx(1 - (1 - share) * float(total_variation(p, q)), abs=ROUNDING)
    support = mixture > 0
    given_output = TokenVerification().acceptance_given(mixture, q)
    np.testing.assert_allclose(rule.acceptance_given(p, q)[support], given_output[support], atol=ROUNDING)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4), Fraction(1)])
def test_weighted_survival_is_unbiased(share: Fraction) -> None:
    """Averaged over target texts it is the survival of one call of the biased algorithm, enumerated in fractions."""
    k = 2

    def mixture(prefix: enumeration.Prefix) -> enumeration.Pmf:
        both = zip(target_model(prefix), draft_model(prefix), strict=True)
        return tuple((1 - share) * a + share * b for a, b in both)

    law = enumeration.token_verification(mixture, draft_model, (), k)
    exact = [float(sum(w for (_, accepted), w in law.items() if accepted >= i)) for i in (1, 2)]
    texts = list(product(range(3), repeat=k))
    survival = BiasedVerification(float(share)).weighted_survival(columns_of(texts), k)
    probability = [float(enumeration.text_law(target_model, k)[text]) for text in texts]
    averaged = np.array(probability) @ survival[::k]
    np.testing.assert_allclose(averaged, exact, atol=ROUNDING)
    above = BiasedVerification(float(share)).weighted_survival_above(columns_of(texts), k)
    np.testing.assert_allclose(np.array(probability) @ above[::k], exact, atol=ROUNDING)
    conditional = BiasedVerification(float(share)).path_survival(columns_of(texts), k)
    if 0 < share < 1:
        assert abs(np.array(probability) @ conditional[::k] - exact).max() > 1e-3, "the control: weights left out"


def cut_target(prefix: enumeration.Prefix) -> enumeration.Pmf:
    """A target that cannot output every token the draft can draw."""
    return enumeration.normalised((Fraction(1 + sum(prefix)), Fraction(2), Fraction(len(prefix) % 2)))


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 4), Fraction(3, 4), Fraction(1)])
def test_survival_lies_between_both_sides_where_the_target_is_cut(share: Fraction) -> None:
    """Averaged over target texts: below and above one call of the algorithm, enumerated; equal where they must be."""
    k = 3

    def mixture(prefix: enumeration.Prefix) -> enumeration.Pmf:
        return tuple((1 - share) * a + share * b for a, b in zip(cut_target(prefix), draft_model(prefix), strict=True))

    law = enumeration.token_verification(mixture, draft_model, (), k)
    exact = np.array([float(sum(w for (_, accepted), w in law.items() if accepted >= i)) for i in (1, 2, 3)])
    low, high, weights = np.zeros(k), np.zeros(k), np.zeros(k)
    for text, chance in enumeration.text_law(cut_target, k).items():
        if chance > 0:
            columns, rule = columns_of([text], cut_target), BiasedVerification(float(share))
            low += float(chance) * rule.weighted_survival(columns, k)[0]
            high += float(chance) * rule.weighted_survival_above(columns, k)[0]
            rho = np.exp(columns["log_draft"] - columns["log_target"])
            weights += float(chance) * np.cumprod(np.minimum(1 - float(share) + float(share) * rho, rho))
    assert low[0] == pytest.approx(exact[0], abs=ROUNDING)
    assert high[0] == pytest.approx(exact[0], abs=ROUNDING)
    if share in (0, 1):
        np.testing.assert_allclose([low, high], [exact, exact], atol=ROUNDING)
    else:
        assert (low[1:] < exact[1:] - 1e-3).all()
        assert (exact[1:] < high[1:] - 1e-3).all()
    if share > 0:
        assert (weights < low - 1e-2).all(), "the control: likelihood ratios alone lose every such call"


def test_a_draft_the_target_cannot_output_is_accepted_by_the_share() -> None:
    """With p = (1, 0), q = (1/2, 1/2) a draft is accepted with probability (1 + t)/2, whatever the texts show."""
    trace = Trace(
        {"log_target": np.zeros(10), "log_draft": np.full(10, np.log(0.5)), "total_variation": np.full(10, 0.5)},
        (TextInfo("a", 10),),
    )
    points = bias_tradeoff(trace, 1, [0.0, 0.5, 1.0])
    visits = np.eye(1, 12)[0]
    for n in range(10):  # calls of token verification that start at n
        visits[n + 1] += visits[n] / 2
        visits[n + 2] += visits[n] / 2
    for point in points:
        tokens = 1 + (1 + point.rule.share) / 2 * (np.arange(10) < 9)  # the last token ends the text
        exact = visits[:10] @ tokens / visits[:10].sum()
        assert point.tokens_per_call.best == pytest.approx(exact, rel=ROUNDING)
        assert point.upper_tokens_per_call is not None
        assert point.upper_tokens_per_call.best == pytest.approx(exact, rel=ROUNDING)
    assert points[2].tokens_per_call.best > points[0].tokens_per_call.best + 0.4
    assert points[1].tokens_per_call == Interval.estimate(points[1].tokens_per_call.best)


SIDES = [
    ({"temperature": 1.0, "top_k": None, "top_p": None}, False),
    ({"temperature": 0.7, "top_p": 1.0}, False),
    ({"temperature": 0.0}, True),
    ({"temperature": 1.0, "top_k": 50}, True),
    ({"temperature": 1.0, "top_p": 0.9}, True),
    ({"temperature": 1.0, "min_p": 0.0}, False),
    ({"temperature": 1.0, "min_p": 0.1}, True),
    ({"top_k": None, "top_p": None}, True),
    (None, True),
]


@pytest.mark.parametrize(("sampling", "cut"), SIDES)
def test_the_side_is_told_from_the_settings_of_the_target(sampling: dict[str, float] | None, cut: bool) -> None:
    """Cut tokens, or settings not recorded: both sides, in the table and its notes too."""
    columns = columns_of([(0, 1, 2, 0), (1, 1, 2, 1)])
    provenance = {} if sampling is None else {"settings": {"sampling": sampling}}
    trace = Trace(columns, (TextInfo("a", 4), TextInfo("b", 4)), provenance)
    points = bias_tradeoff(trace, 2, [0.0, 0.5])
    assert [point.upper_tokens_per_call is not None for point in points] == [cut, cut]
    assert {point.side for point in points} == {"lower estimate" if cut else "estimate"}
    table = prediction_report(plan(trace, rules=[TokenVerification()], shapes=[Chain(2)], bias=[0.0, 0.5])).pieces[-1]
    assert isinstance(table, Table)
    assert ("upper estimate" in [column.heading for column in table.columns]) == cut
    assert any("lower estimate" in note for note in table.notes) == cut


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("log_ratio", [-720.0, -30.0, -1e-9, 0.0, 0.5, 709.0, 720.0, 1e5])
def test_the_rules_own_text_at_any_ratio(share: float, log_ratio: float) -> None:
    """a(x) = min(1, rho/((1-t) + t rho)) at 60 digits."""
    columns = {"log_target": np.array([min(0.0, -log_ratio)]), "log_draft": np.array([min(0.0, log_ratio)])}
    with mpmath.workdps(60):
        rho, t = mpmath.exp(log_ratio), mpmath.mpf(share)
        exact = float(min(1, rho / (1 - t + t * rho)))
    (value,) = BiasedVerification(share).accepted_at(columns)
    assert value == pytest.approx(exact, rel=ROUNDING, abs=1e-300)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(columns["log_draft"] - columns["log_target"])
        quotient = float(np.minimum(1, ratio / (1 - share + share * ratio))[0])
    if log_ratio > 710 and share > 0:
        assert np.isnan(quotient), "the control: the quotient of two numbers beyond the floats"


def test_the_rules_own_text_where_a_pmf_is_zero() -> None:
    columns = {"log_target": np.array([-np.inf, -1.0, -np.inf]), "log_draft": np.array([-1.0, -np.inf, -np.inf])}
    for share in (0.0, 0.5, 1.0):
        assert BiasedVerification(share).accepted_at(columns).tolist() == [1.0, 0.0, 0.0]


def test_survival_past_a_weight_beyond_the_floats() -> None:
    columns = {"log_target": np.array([-1000.0, -1.0]), "log_draft": np.array([-1.0, -np.inf])}
    rule = BiasedVerification(0.5)
    assert rule.weighted_survival(columns, 2)[0].tolist() == [1.0, 0.5]
    assert rule.weighted_survival_above(columns, 2)[0].tolist() == [1.0, -np.inf]


def test_share_zero_is_the_prediction_of_token_verification() -> None:
    rng = np.random.default_rng(1)
    texts = [tuple(rng.integers(3, size=int(n))) for n in rng.integers(1, 9, size=20)]
    trace = Trace(columns_of(texts), tuple(TextInfo(str(i), len(t)) for i, t in enumerate(texts)))
    second = Interval.exact
    # A costly first pass on two tokens: full acceptances must be counted alike.
    cost = LatencyTable({1: second(1.0), 8: second(1.0)}, {1: second(0.1), 2: second(0.5)}, context=8)
    (point,) = bias_tradeoff(trace, 3, [0.0], cost)
    lossless = predict(trace, TokenVerification(), Chain(3), cost)
    assert point.tokens_per_call.best == pytest.approx(lossless.tokens_per_call.best, rel=ROUNDING)
    assert point.speedup is not None
    assert lossless.speedup is not None
    assert point.speedup.best == pytest.approx(lossless.speedup.best, rel=ROUNDING)
    assert point.bias.high == 0


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
def test_biased_calls_from_lossless_starts(share: Fraction) -> None:
    """Over all target texts the estimate is exactly that of biased calls from the starts of a lossless decoder.

    A whole biased decoder, whose own starts and prefixes drift, gives another number: no bound either way is claimed.
    """
    k, length = 2, 4

    def mixture(prefix: enumeration.Prefix) -> enumeration.Pmf:
        both = zip(target_model(prefix), draft_model(prefix), strict=True)
        return tuple((1 - share) * a + share * b for a, b in both)

    def tokens_and_calls(starts: enumeration.Model, biased: enumeration.Model) -> tuple[Fraction, Fraction]:
        running: dict[enumeration.Prefix, Fraction] = {(): Fraction(1)}
        tokens = calls = Fraction(0)
        while running:
            following: dict[enumeration.Prefix, Fraction] = {}
            for prefix, weight in running.items():
                calls += weight
                for (_, accepted), chance in enumeration.token_verification(biased, draft_model, prefix, k).items():
                    tokens += weight * chance * min(accepted + 1, length - len(prefix))
                for (output, _), chance in enumeration.token_verification(starts, draft_model, prefix, k).items():
                    if len(prefix) + len(output) < length:
                        key = prefix + output
                        following[key] = following.get(key, Fraction(0)) + weight * chance
            running = following
        return tokens, calls

    texts = list(product(range(3), repeat=length))
    chances = [float(share) for share in enumeration.text_law(target_model, length).values()]
    ours = np.zeros(2)
    for text, chance in zip(texts, chances, strict=True):
        columns = columns_of([text])
        _, visits = calls_and_visits(TokenVerification().path_survival(columns, k), np.array([length]))
        survival = BiasedVerification(float(share)).weighted_survival(columns, k)
        left = length - np.arange(length)
        inside = np.where(np.arange(1, k + 1) < left[:, None], survival, 0.0)
        ours += chance * np.array([np.sum(visits * (1 + inside.sum(axis=1))), np.sum(visits)])
    exact = tokens_and_calls(target_model, mixture)
    np.testing.assert_allclose(ours, [float(value) for value in exact], rtol=ROUNDING)
    whole_tokens, whole_calls = tokens_and_calls(mixture, mixture)
    assert whole_tokens == length
    assert abs(float(exact[0] / exact[1]) - float(whole_tokens / whole_calls)) > 1e-4 * float(share)


def test_bias_of_the_text_and_uno() -> None:
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(5), 30), rng.dirichlet(np.ones(5), 30)
    tokens = np.array([rng.choice(5, p=row) for row in p])
    at = np.arange(30), tokens
    losses = [uno_loss(p, q, (1 - t) * np.minimum(1, p / q) + t) for t in UNO_SHARES]
    columns = {
        "log_target": np.log(p[at]),
        "log_draft": np.log(q[at]),
        "total_variation": total_variation(p, q),
        "uno_loss": np.stack(losses, axis=1),
    }
    trace = Trace(columns, tuple(TextInfo(str(i), 10) for i in range(3)))
    shares = [0.0, 0.1, 0.25, 0.5, 0.9, 1.0]
    for point in bias_tradeoff(trace, 2, shares):
        front = bias_frontier(p, q, points=101)
        at_share = round(100 * point.rule.share)
        assert point.bias.best == pytest.approx(front.loss[..., at_share].mean(), rel=1e-12)
        assert point.uno_bias is not None
        exact = front.uno[..., at_share].mean()
        if point.rule.share in (*UNO_SHARES, 1.0):
            assert point.uno_bias.best == pytest.approx(exact, rel=1e-12)
        else:
            # A chord of the convex loss between the recorded shares, position by position.
            shares_known = [*UNO_SHARES, 1.0]
            known = np.column_stack([columns["uno_loss"], columns["total_variation"]])
            chord = np.mean([np.interp(point.rule.share, shares_known, row) for row in known])
            assert exact <= point.uno_bias.best == pytest.approx(chord, rel=1e-12)
        assert point.uno_bias.best >= point.bias.best - ROUNDING
    assert [p.tokens_per_call.best for p in bias_tradeoff(trace, 2, shares)] == sorted(
        p.tokens_per_call.best for p in bias_tradeoff(trace, 2, shares)
    )


def test_bad_input() -> None:
    trace = Trace.from_log_probabilities([([-1.0], [-1.0])])
    with pytest.raises(TraceError, match="no total_variation"):
        bias_tradeoff(trace, 1, [0.5])
    with pytest.raises(SettingError, match="bias share is"):
        BiasedVerification(1.5)
    with pytest.raises(SettingError, match="no sample of the target"):
        predict(trace, BiasedVerification(0.5), Chain(1))
    columns = {**trace.columns, "total_variation": np.zeros(1)}
    with pytest.raises(SettingError, match="there is no share"):
        bias_tradeoff(Trace(columns, trace.texts), 1, [])


# A head: its pmf depends on how deep in the call a draft stands

P, HEAD = {0: (0.7, 0.3), 1: (0.4, 0.6)}, {1: (0.5, 0.5), 2: (0.2, 0.8), 3: (0.9, 0.1)}
LENGTH, DEEP = 4, 3
"""The target's pmf after a token, the head's by depth; tokens of a text, drafts of a call."""


def distance_of(p: tuple[float, ...], q: tuple[float, ...]) -> float:
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def judged(last: int, left: int, depth: int, share: float = 0.0) -> tuple[float, float]:
    """Sum of TV over the drafts that lossless decoding judges from here on, and tokens of one call with this share."""
    if left == 0:
        return 0.0, 0.0
    p, q = P[last], HEAD.get(depth)
    if q is None or left == 1:  # the bonus token, or the last one, which is not drafted
        later = sum(p[x] * judged(x, left - 1, 1)[0] for x in (0, 1))
        return later, 1.0
    away, tokens = distance_of(p, q), 1.0
    for x in (0, 1):
        kept, lost = min(p[x], q[x]), max(p[x] - q[x], 0.0)
        away += kept * judged(x, left - 1, depth + 1)[0] + lost * judged(x, left - 1, 1)[0]
        tokens += ((1 - share) * kept + share * q[x]) * judged(x, left - 1, depth + 1, share)[1]
    return away, tokens


def trace_of_head(text: tuple[int, ...]) -> Trace:
    rows, n = [(0, *text)[i : i + 2] for i in range(LENGTH)], LENGTH
    at = np.array([[min(s + d, n - 1) for d in range(DEEP)] for s in range(n)])
    log_draft = [[np.log(HEAD[d + 1][rows[i][1]]) for d, i in enumerate(each)] for each in at]
    away = np.array([[distance_of(P[rows[i][0]], HEAD[d + 1]) for d, i in enumerate(each)] for each in at])
    columns = {
        "log_target": np.log([P[last][x] for last, x in rows]),
        "log_draft": np.array(log_draft)[:, 0],
        "start_log_draft": np.array(log_draft),
        "start_total_variation": away,
    }
    return Trace(columns, (TextInfo("a", n),), {"settings": {"sampling": {"temperature": 1.0}}})


def test_the_bias_of_a_head_is_that_of_the_drafts_that_are_judged() -> None:
    """Over all texts, to rounding: TV of judged drafts, and tokens of the first call. The control: TV by position."""
    share, bias, tokens, by_position = 0.3, 0.0, 0.0, 0.0
    for text in product((0, 1), repeat=LENGTH):
        trace = trace_of_head(text)
        chance = float(np.exp(trace.columns["log_target"].sum()))
        (point,) = bias_tradeoff(trace, DEEP, [share])
        assert point.uno_bias is None
        bias += chance * LENGTH * point.bias.best / share
        by_position += chance * trace.columns["start_total_variation"][:, 0].sum()
        survival = BiasedVerification(share).weighted_survival(trace.columns, DEEP)[0]
        tokens += chance * (1 + survival[: LENGTH - 1].sum())
    away, of_call = judged(0, LENGTH, 1)[0], judged(0, LENGTH, 1, share)[1]
    assert bias == pytest.approx(away, rel=ROUNDING)
    assert abs(by_position - away) > 0.1
    assert tokens == pytest.approx(of_call, rel=1e-12)
