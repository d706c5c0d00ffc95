"""Whole texts by the readable algorithms, given the texts: calls against the path theorem, the race by its outputs.

A check is refuted wrongly with probability 1e-11 at most (two-sided Bernstein with the variance that the library
predicts, or exact binomial tails) and there are fewer than 300, so this file fails wrongly with probability below 3e-9,
of the suite's 1e-6.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from proofs_check.algorithms import enumeration
from simulations.draws import Stream, words
from simulations.reference.decoding import ALGORITHMS, Pair, TreeCall, decoded, race_with_kept_clocks
from simulations.reference.positions import finish
from spectheory.divergences import hockey_stick
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import BlockVerification, IndependentMatch, RaceVerification, Rule, TokenVerification
from tests.simulations.decoding_cases import chain_of, everywhere
from tests.simulations.laws import Floats, straying, strays

LIBRARY: dict[str, Rule] = {
    "token": TokenVerification(),
    "block": BlockVerification(),
    "race": RaceVerification(),
    "independent": IndependentMatch(),
    "kept race": RaceVerification(),
}


RULES: dict[str, TreeCall] = {name: ALGORITHMS[name].call for name in ("token", "block", "race", "independent")}


class Decoded(NamedTuple):
    """A text, and the accepted drafts of each of its calls."""

    tokens: tuple[int, ...]
    accepted: tuple[int, ...]

    @property
    def calls(self) -> int:
        """How many it took."""
        return len(self.accepted)


def decode(name: str, pair: Pair, *, length: int, k: int, stream: Stream) -> Decoded:
    """A text after token 0; the kept race has fresh clocks for each text."""
    if name == "kept race":
        tokens = pair.target.shape[-1]
        rule = race_with_kept_clocks(np.array([[stream.exponential() for _ in range(tokens)] for _ in range(length)]))
    else:
        rule = RULES[name]
    calls = [*decoded(rule, chain_of(k), pair, 0, length, stream)]
    return Decoded(tuple(x for call in calls for x in call.tokens), tuple(call.accepted for call in calls))


def made_up_pair(tokens: int, positions: int, seed: int) -> Pair:
    """A non-stationary pair whose draft is off by a factor here and there and lacks a token now and then."""
    rng = np.random.default_rng(seed)
    target = rng.dirichlet(np.full(tokens, 0.7), size=(positions, tokens))
    draft = target * np.exp(1.2 * rng.standard_normal(target.shape))
    draft[rng.random(draft.shape) < 0.05] = 0
    draft[..., 0] += 1e-3
    return Pair(target, draft / draft.sum(axis=-1, keepdims=True))


# The output is a sample of the target

LAW_TEXTS = 6_000
"""Texts of three tokens over three: a probability of 0.04 is known to 0.018, one of 0.01 to 0.01."""

SMALL = made_up_pair(tokens=3, positions=3, seed=8)


def text_shares(chain: Floats) -> dict[tuple[int, ...], float]:
    """The chain's law of three tokens after token 0."""
    return {
        text: math.prod(chain[n, ((0, *text)[n]), text[n]] for n in range(3)) for text in product(range(3), repeat=3)
    }


def straying_texts(counts: Counter[tuple[int, ...]], shares: dict[tuple[int, ...], float]) -> list[tuple[int, ...]]:
    return [
        text for text, share in shares.items() if straying([counts[text], LAW_TEXTS - counts[text]], [share, 1 - share])
    ]


@pytest.mark.parametrize("name", ["race", "kept race"])
def test_the_output_is_a_sample_of_the_target(name: str) -> None:
    """Several calls in a row, k = 2: the frequency of every text is the target's probability; impossible ones none."""
    stream = Stream(words(2))
    counts = Counter(decode(name, SMALL, length=3, k=2, stream=stream).tokens for _ in range(LAW_TEXTS))
    assert straying_texts(counts, text_shares(SMALL.target)) == []
    assert len(straying_texts(counts, text_shares(SMALL.draft))) > 3, "negative control: the draft's own law"


# One call, cell by cell, against its enumeration

CALLS = 12_000
CALL_PMFS = [([5, 5, 0], [8, 2, 0]), ([5, 5, 0], [1, 3, 6]), ([2, 3, 5], [3, 3, 4])]
"""Tenths of target and draft at three positions."""


def enumerated_call(rule: enumeration.Rule) -> dict[tuple[int, ...], float]:
    """The law of the tokens of one call of two drafts, in fractions and then floats."""
    tenths = [[tuple(Fraction(weight, 10) for weight in pmf) for pmf in pair] for pair in CALL_PMFS]
    law = rule(lambda prefix: tenths[len(prefix)][0], lambda prefix: tenths[len(prefix)][1], (), 2)
    return {tokens: float(share) for (tokens, _), share in law.items()}


def test_a_call_of_the_race_has_its_enumerated_law() -> None:
    """Accepted drafts and last token together; a cell of 0.1 is known to 0.018. Negative controls: other rules."""
    target, draft = (np.repeat(np.array(side)[:, None] / 10, 3, axis=1) for side in zip(*CALL_PMFS, strict=True))
    stream = Stream(words(9))
    counts = Counter(RULES["race"](chain_of(2), Pair(target, draft), 0, 0, stream).tokens for _ in range(CALLS))
    for rule in (enumeration.race_verification, enumeration.token_verification, enumeration.block_verification):
        law = enumerated_call(rule)
        wrong = straying([counts[tokens] for tokens in law], list(law.values()), CALLS)
        assert (wrong == [] and set(counts) <= set(law)) == (rule is enumeration.race_verification)


# Whole texts against the path theorem

TEXTS, LENGTH, K = 1_500, 10, 4
"""Texts of ten tokens, some 7,000 calls: the mean number of calls is known to 4.5%, a survival to at most 0.09."""

LARGE = made_up_pair(tokens=5, positions=LENGTH, seed=3)


def columns(text: tuple[int, ...], pair: Pair) -> dict[str, Floats]:
    """What a trace would hold along one text after token 0."""
    at = [(pair.p(n, last), pair.q(n, last), x) for n, (last, x) in enumerate(zip((0, *text), text, strict=False))]
    with np.errstate(divide="ignore"):
        return {
            "log_target": np.log([p[x] for p, _, x in at]),
            "log_draft": np.log([q[x] for _, q, x in at]),
            "race_g": np.array([hockey_stick(p, q, p[x] / q[x]) if q[x] > 0 else math.inf for p, q, x in at]),
        }


def decoded_texts(name: str) -> list[Decoded]:
    stream = Stream(words(4))
    return [decode(name, LARGE, length=LENGTH, k=K, stream=stream) for _ in range(TEXTS)]


TEXT_CACHE: dict[str, tuple[list[Decoded], list[dict[str, Floats]]]] = {}


def simulated(name: str) -> tuple[list[Decoded], list[dict[str, Floats]]]:
    """The decoded texts of a rule with the statistics along them, worked out once."""
    if name not in TEXT_CACHE:
        texts = decoded_texts(name)
        TEXT_CACHE[name] = texts, [columns(text.tokens, LARGE) for text in texts]
    return TEXT_CACHE[name]


def calls_stray(name: str, survival: list[Floats]) -> bool:
    """Whether the counted calls of all texts are too far from what the path theorem says given the texts."""
    texts, _ = simulated(name)
    predicted = calls_of_texts(np.concatenate(survival), np.full(TEXTS, LENGTH))
    counted = sum(text.calls for text in texts)
    return strays(counted, float(predicted.expected.sum()), float(predicted.variance.sum()), float(LENGTH))


@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_calls_given_the_texts(name: str) -> None:
    """C(0) and its variance, rule by rule; the race with fresh and with kept clocks alike."""
    _, traces = simulated(name)
    assert not calls_stray(name, [LIBRARY[name].path_survival(trace, K) for trace in traces])


@pytest.mark.parametrize("name", sorted(LIBRARY))
def test_survival_of_the_first_call_given_the_text(name: str) -> None:
    """How often the first call accepts i drafts or more, i = 1..k, given the whole texts."""
    texts, traces = simulated(name)
    first = np.array([LIBRARY[name].path_survival(trace, K)[0] for trace in traces])
    accepted = np.array([text.accepted[0] for text in texts])
    for i in range(1, K + 1):
        chance = first[:, i - 1]
        counted = float(np.sum(accepted >= i))
        assert not strays(counted, float(chance.sum()), float(np.sum(chance * (1 - chance))), 1.0)


@pytest.mark.parametrize(
    ("name", "wrong"), [("token", "block"), ("block", "token"), ("race", "token"), ("independent", "race")]
)
def test_another_rules_survival_is_caught(name: str, wrong: str) -> None:
    """Negative control: the calls of one rule against another's prediction on the same texts."""
    _, traces = simulated(name)
    assert calls_stray(name, [LIBRARY[wrong].path_survival(trace, K) for trace in traces])


def test_the_one_call_terms_are_caught() -> None:
    """Negative control: min(1, prod rho), made a survival by its running minimum with the wrong end, mispredicts."""
    _, traces = simulated("block")

    def look_alike(trace: dict[str, Floats]) -> Floats:
        log_ratio = np.concatenate([trace["log_draft"] - trace["log_target"], np.zeros(K - 1)])
        rows: NDArray[np.float64] = np.lib.stride_tricks.sliding_window_view(log_ratio, K)
        terms = np.exp(np.minimum(0.0, np.cumsum(rows, axis=1)))
        return np.maximum.accumulate(terms[:, ::-1], axis=1)[:, ::-1]

    assert calls_stray("block", [look_alike(trace) for trace in traces])


# The pieces, decided


def test_the_race_by_hand() -> None:
    """Clocks (1, 2): the target (.5, .5) takes 0; the draft (.1, .9) waits 10 for token 0 and 2.2 for token 1."""
    pair, clocks, unused = everywhere([0.5, 0.5], [0.1, 0.9]), [[1.0, 2.0], [30.0, 2.0], [1.0, 2.0]], Stream(words(1))
    assert finish([1.0, 2.0], pair.p(0, 0)) == [0, 1]
    assert finish([1.0, 2.0], pair.q(0, 0)) == [1, 0]
    call = race_with_kept_clocks(np.array(clocks))
    assert call(chain_of(2), pair, 0, 0, unused).tokens == (0,)
    assert call(chain_of(1), pair, 1, 0, unused).tokens == (1, 0)
    assert finish([0.1, 5.0], np.array([0.0, 1.0])) == [1, 0]


def test_decoding_ends_where_the_text_ends() -> None:
    """The last call drafts no more than fits, so that no token is left over."""
    equal = everywhere([0.3, 0.7], [0.3, 0.7])
    for length, k in product((1, 2, 7, 8), (1, 3)):
        text = decode("token", equal, length=length, k=k, stream=Stream(words(1)))
        assert len(text.tokens) == length
        assert text.calls == math.ceil(length / (k + 1))
        assert sum(text.accepted) + text.calls == length
