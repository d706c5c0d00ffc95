"""Decoding on Markov chains: the kernels against their twins, the enumerated algorithms and the closed forms.

Every statistical check is Bernstein's inequality with the predicted variance (or, where theory gives none, the one
seen): rigorous for bounded terms. One check fails wrongly with probability `ALARM`; there are fewer than 500, so this
file does with probability below 5e-8, of the 1e-6 that the suite may spend. Each says what error it sees, and each has
a deliberately wrong formula that must fail.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from proofs_check.algorithms import enumeration
from proofs_check.algorithms.batch_algorithm import batch_decoding
from proofs_check.library.strategies import Floats
from proofs_check.twins.batch_recursion import left_after, profile
from simulations.draws.acceptance import acceptance_law, acceptance_rows
from simulations.draws.streams import Stream, Words, words
from simulations.kernels.batch_rejection import batch_rejections
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import (
    LANES,
    horizon_rejections,
    lane_streams,
    token_calls,
)
from simulations.models.chains import CallCounts, Counts, RejectionCounts
from simulations.models.ngram import BYTES, byte_tokens, text_of, text_parameters
from simulations.models.ngram_models import ngram
from simulations.reference.batch import batch_text
from simulations.reference.decoding import (
    block_call,
    horizon_text,
    token_call,
)
from simulations.reference.drawing import from_table
from simulations.reference.markov import Pair, StreamCall, decoded
from spectheory.errors import PmfError, SettingError, ShapeError, SpectheoryError
from spectheory.limits import expected_calls, expected_rejections
from spectheory.limits.rejections import rejection_profile
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import BlockVerification, TokenVerification

ALARM = 1e-10
LOG = math.log(2 / ALARM)

Kernel = Callable[..., CallCounts]
KERNELS: dict[str, Kernel] = {"token": token_calls, "block": block_calls}
TWINS: dict[str, StreamCall] = {"token": token_call, "block": block_call}
OTHER = {"token": "block", "block": "token"}


def strays(total: float, expected: float, variance: float, largest: float) -> bool:
    """Whether a sum of independent terms of that total variance, each within `largest` of its mean, is too far off."""
    slack = largest * LOG / 3
    return abs(total - expected) > slack + math.sqrt(slack**2 + 2 * variance * LOG)


def straying_shares(counts: Counts, trials: int, shares: Floats) -> list[int]:
    """Cells whose counts are too far from their probabilities."""
    return [
        i
        for i, (count, share) in enumerate(zip(counts, shares, strict=True))
        if strays(int(count), trials * share, trials * share * (1 - share), 1.0)
    ]


# The kernels are their twins


def made_up(tokens: int, steps: int, seed: int) -> Pair:
    """A pair whose draft is off by a factor here and there; either lacks a token now and then."""
    rng = np.random.default_rng(seed)
    shape = (steps, tokens, tokens) if steps else (tokens, tokens)
    target = rng.dirichlet(np.full(tokens, 0.7), size=shape[:-1])
    draft = target * np.exp(1.5 * rng.standard_normal(shape))
    for chain in (target, draft):
        chain[rng.random(shape) < 0.1] = 0
        chain[..., -1] += 1e-3
    return Pair(*(chain / chain.sum(axis=-1, keepdims=True) for chain in (target, draft)))


def everywhere(p: Sequence[float], q: Sequence[float]) -> Pair:
    """A pair whose pmfs are the same everywhere."""
    return Pair(np.tile(p, (len(p), 1)), np.tile(q, (len(q), 1)))


EDGES = {
    "equal": everywhere([0.3, 0.7], [0.3, 0.7]),
    "disjoint": everywhere([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]),
    "one-hot": everywhere([0, 1, 0], [0, 1, 0]),
    "one-hot apart": everywhere([0, 1, 0], [1, 0, 0]),
    "the draft lacks tokens": everywhere([0.2, 0.3, 0.5], [0.2, 0.8, 0.0]),
    "the target lacks tokens": everywhere([0.2, 0.8, 0.0], [0.2, 0.3, 0.5]),
    "one token": everywhere([1.0], [1.0]),
    "p/q of 1e305": everywhere([0.5, 0.5], [1.0, 1e-306]),
    "q/p of 1e305": everywhere([1.0, 1e-306], [0.5, 0.5]),
    "equal ratios": everywhere([0.2, 0.2, 0.3, 0.3], [0.1, 0.1, 0.4, 0.4]),
}

SIZES = [(2, 0, 1, 1), (3, 0, 2, 9), (5, 8, 3, 8), (4, 6, 9, 6), (9, 0, 4, 30)]
"""Tokens, steps (0: stationary), drafts per call, length."""


def runs() -> Iterator[tuple[Pair, int, int, int]]:
    """Pair, k, length, seed: some hundreds."""
    for seed in range(40):
        for tokens, steps, k, length in SIZES:
            yield made_up(tokens, steps, seed), k, length, seed
    for seed, pair in product(range(5), EDGES.values()):
        yield pair, 3, 10, seed


def uniform_start(pair: Pair) -> Floats:
    return np.full(pair.target.shape[-1], 1 / pair.target.shape[-1])


def counted(calls: Counter[int], k: int) -> list[int]:
    return [calls[i] for i in range(k + 1)]


def by_calls(calls: list[int], length: int) -> list[int]:
    """Texts by their number of calls."""
    return np.bincount(calls, minlength=length + 1).tolist()


def words_of(stream: Stream) -> list[int]:
    return [int(word) for word in stream.state]


def test_a_token_kernel_text_is_its_twin() -> None:
    for pair, k, length, seed in runs():
        start = uniform_start(pair)
        stream = Stream(lane_streams(words(seed), 1)[:, 0])
        calls = Counter(c.accepted for c in decoded(token_call, pair, from_table(start, stream), length, k, stream))
        found = token_calls(pair.target, pair.draft, start, length=length, k=k, texts=1, state=words(seed))
        assert found.accepted.tolist() == counted(calls, k)
        assert found.texts.tolist() == by_calls([calls.total()], length)


def test_a_block_kernel_text_is_its_twin() -> None:
    """Two texts; the streams end in the same state."""
    for pair, k, length, seed in runs():
        start, state = uniform_start(pair), words(seed)
        stream = Stream(state)
        texts: list[Counter[int]] = []
        for _ in range(2):
            steps = decoded(block_call, pair, from_table(start, stream), length, k, stream)
            texts.append(Counter(step.accepted for step in steps))
        found = block_calls(pair.target, pair.draft, start, length=length, k=k, texts=2, state=state)
        assert found.accepted.tolist() == counted(texts[0] + texts[1], k)
        assert found.texts.tolist() == by_calls([calls.total() for calls in texts], length)
        assert words_of(stream) == state.tolist()


def test_a_horizon_kernel_text_is_its_twin() -> None:
    for pair, _, length, seed in runs():
        start = uniform_start(pair)
        stream = Stream(lane_streams(words(seed), 1)[:, 0])
        rejected = horizon_text(pair, from_table(start, stream), length, stream)
        found = horizon_rejections(pair.target, pair.draft, start, length=length, texts=1, state=words(seed))
        assert np.flatnonzero(found.positions).tolist() == rejected
        assert found.texts[len(rejected)] == found.texts.sum() == 1


@pytest.mark.parametrize("printed", [False, True])
def test_a_batch_kernel_text_is_its_twin(printed: bool) -> None:
    for pair, drafts, length, seed in runs():
        start, state = uniform_start(pair), words(seed)
        stream = Stream(state)
        rejected = batch_text(pair, from_table(start, stream), length, drafts, stream, printed=printed)
        found = batch_rejections(
            pair.target, pair.draft, start, length=length, drafts=drafts, texts=1, state=state, printed=printed
        )
        assert np.flatnonzero(found.positions).tolist() == rejected
        assert found.texts[len(rejected)] == found.texts.sum() == 1
        assert words_of(stream) == state.tolist()


@pytest.mark.parametrize("texts", [1, LANES - 1, LANES, 2 * LANES + 5])
def test_lanes_share_the_texts(texts: int) -> None:
    """Text t is decoded from the stream of lane t mod 64, whatever the number of texts."""
    pair = made_up(4, 7, seed=1)
    start, streams = uniform_start(pair), [Stream(s) for s in lane_streams(words(3), min(LANES, texts)).T]
    calls: Counter[int] = Counter()
    lengths = []
    for t in range(texts):
        stream = streams[t % LANES]
        accepted = [c.accepted for c in decoded(token_call, pair, from_table(start, stream), 7, 2, stream)]
        calls.update(accepted)
        lengths.append(len(accepted))
    found = token_calls(pair.target, pair.draft, start, length=7, k=2, texts=texts, state=words(3))
    assert found.accepted.tolist() == counted(calls, 2)
    assert found.texts.tolist() == by_calls(lengths, 7)


def test_another_algorithm_is_not_the_twin() -> None:
    """Negative control: the printed batch's texts against the intended twin's."""
    wrong = 0
    for pair, drafts, length, seed in runs():
        stream, start = Stream(words(seed)), uniform_start(pair)
        rejected = batch_text(pair, from_table(start, stream), length, drafts, stream)
        found = batch_rejections(
            pair.target, pair.draft, start, length=length, drafts=drafts, texts=1, state=words(seed), printed=True
        )
        wrong += np.flatnonzero(found.positions).tolist() != rejected
    assert wrong > 50


def test_tokens_add_up() -> None:
    pair = made_up(5, 0, seed=2)
    for name, kernel in KERNELS.items():
        for k, length in product((1, 3, 12), (1, 2, 5, 12)):
            counts = kernel(pair.target, pair.draft, uniform_start(pair), length=length, k=k, texts=50, state=words(1))
            assert counts.accepted @ np.arange(1, k + 2) == 50 * length, name
            assert counts.texts.sum() == 50, name
            assert counts.texts @ np.arange(length + 1) == counts.accepted.sum(), name


def test_call_counts_add_up() -> None:
    pair = made_up(4, 0, seed=3)
    for name, kernel in KERNELS.items():
        one, two = (
            kernel(pair.target, pair.draft, uniform_start(pair), length=5, k=2, texts=n, state=words(n)) for n in (3, 4)
        )
        both = one + two
        assert both.texts.tolist() == (one.texts + two.texts).tolist(), name
        assert both.accepted.tolist() == (one.accepted + two.accepted).tolist(), name


# The joint row, against every coin of one draft


def always(pmf: tuple[Fraction, ...]) -> enumeration.Model:
    """A model without memory."""
    return lambda _: pmf


def test_the_joint_law_is_the_enumerated_one() -> None:
    """Acceptance and output together, in fractions; a wrong recovery law is seen."""
    tenths = [([2, 3, 5, 0], [3, 3, 4, 0]), ([7, 0, 3, 0], [1, 6, 0, 3]), ([1, 2, 3, 4], [1, 2, 3, 4])]
    for weights in tenths:
        p, q = (tuple(Fraction(w, 10) for w in side) for side in weights)
        law = np.zeros(8)
        for (tokens, accepted), share in enumeration.token_verification(always(p), always(q), (), 1).items():
            law[2 * tokens[0] + accepted] += float(share)
        np.testing.assert_allclose(acceptance_law(*(np.array(side) / 10 for side in weights)), law, atol=1e-15)
    from_target = np.stack([0.2 * np.array([0.5, 0.5]), np.array([0.5, 0.3])], axis=1).ravel()
    assert np.abs(acceptance_law(np.array([0.5, 0.5]), np.array([0.7, 0.3])) - from_target).max() > 0.05


@pytest.mark.parametrize("tokens", [1, 2, 7, 64, 300])
def test_the_columns_stand_for_the_law(tokens: int) -> None:
    """Added up, 2^-40 apart at most; what has no mass has no column."""
    rng = np.random.default_rng(tokens)
    target, draft = rng.dirichlet(np.full(tokens, 0.3), size=(2, 3))
    draft[0] = target[0]
    law = acceptance_law(target, draft)
    rows = acceptance_rows(law)
    outcomes = (1 << rows.bits) - 1
    for state, masses in enumerate(law):
        columns = rows.columns[rows.begin[state] : rows.begin[state + 1]]
        keep, own, other = (columns >> 2 * rows.bits) * rows.unit, columns >> rows.bits & outcomes, columns & outcomes
        found = np.bincount(own, keep, 2 * tokens) + np.bincount(other, 1 - keep, 2 * tokens)
        np.testing.assert_allclose(found / columns.size, masses, atol=2**-40)
        assert set(own) == set(np.flatnonzero(masses))
    assert np.abs(acceptance_law(draft, target)[1:] - law[1:]).max() > 1e-3 or tokens == 1, "negative control"


# Whole texts, against their enumeration

FEW, LENGTH, K = 3, 4, 2
TEXTS = 400_000
"""Calls of an accepted length are known to 1% of a call per text."""


def tenths_chain(seed: int, tokens: int, steps: int) -> tuple[list[list[list[Fraction]]], Floats]:
    """Non-stationary rows of tenths, zeros among them, in fractions and in floats."""
    weights = np.random.default_rng(seed).multinomial(10, np.full(tokens, 1 / tokens), size=(steps, tokens))
    return [[[Fraction(int(w), 10) for w in row] for row in step] for step in weights], weights / 10


def model(chain: list[list[list[Fraction]]]) -> enumeration.Model:
    """The chain as a function of the prefix, after token 0."""
    return lambda prefix: tuple(chain[len(prefix)][prefix[-1] if prefix else 0])


@cache
def enumerated_calls(name: str) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of the calls of a text with 0, 1, 2 accepted drafts; the law of its number of calls."""
    rule = {"token": enumeration.token_verification, "block": enumeration.block_verification}[name]
    (p, _), (q, _) = tenths_chain(1, FEW, LENGTH), tenths_chain(2, FEW, LENGTH)
    law = enumeration.Decoding(rule, k=K, length=LENGTH, spare=1).law(model(p), model(q))
    shares = np.array([float(share) for share in law.values()])
    counts = np.array([[accepted.count(i) for i in range(K + 1)] for _, accepted in law])
    mean = shares @ counts
    return mean, shares @ (counts - mean) ** 2, np.bincount(counts.sum(axis=1), shares, LENGTH + 1)


@cache
def simulated_calls(name: str) -> CallCounts:
    target, draft = tenths_chain(1, FEW, LENGTH)[1], tenths_chain(2, FEW, LENGTH)[1]
    return KERNELS[name](target, draft, [1, 0, 0], length=LENGTH, k=K, texts=TEXTS, state=words(5))


def wrong_lengths(name: str, law: str) -> list[int]:
    mean, variance, _ = enumerated_calls(law)
    counts = simulated_calls(name).accepted
    return [i for i in range(K + 1) if strays(counts[i], TEXTS * mean[i], TEXTS * variance[i], float(LENGTH))]


@pytest.mark.parametrize("name", KERNELS)
def test_accepted_lengths_are_the_enumerated_ones(name: str) -> None:
    """Several calls in a row, the shortened last one included."""
    assert wrong_lengths(name, name) == []
    assert wrong_lengths(name, OTHER[name]), "negative control: the other rule's enumeration"


@pytest.mark.parametrize("name", KERNELS)
def test_calls_of_a_text_have_the_enumerated_law(name: str) -> None:
    """Not their mean alone: calls of a text are dependent."""
    texts = simulated_calls(name).texts
    assert straying_shares(texts, TEXTS, enumerated_calls(name)[2]) == []
    assert straying_shares(texts, TEXTS, enumerated_calls(OTHER[name])[2]), "negative control: the other rule's"


# Whole texts, against the path theorem in expectation

PATH_TOKENS, PATH_LENGTH, PATH_K, PATH_TEXTS = 3, 6, 3, 200_000
"""The mean of calls per text is known to 0.02, of some three."""

PATH_RULES = {"token": TokenVerification(), "block": BlockVerification()}


def path_case(stationary: bool) -> tuple[Pair, Floats]:
    """A pair and the law of its first token, a stationary one where the chain is."""
    pair = made_up(PATH_TOKENS, 0 if stationary else PATH_LENGTH, seed=6)
    start = uniform_start(pair)
    for _ in range(500 if stationary else 0):
        start = start @ pair.target
    return pair, start / start.sum()


def path_calls(name: str, pair: Pair, start: Floats) -> tuple[float, float]:
    """Mean and variance of the calls of a text: the path theorem for every text, weighted by the target."""
    mean = square = 0.0
    for text in product(range(PATH_TOKENS), repeat=PATH_LENGTH + 1):
        steps = list(pairwise(text))
        p = np.array([pair.p(n, x)[y] for n, (x, y) in enumerate(steps)])
        share = start[text[0]] * p.prod()
        if share > 0:
            with np.errstate(divide="ignore"):
                q = np.log([pair.q(n, x)[y] for n, (x, y) in enumerate(steps)])
            survival = PATH_RULES[name].path_survival({"log_target": np.log(p), "log_draft": q}, PATH_K)
            calls = calls_of_texts(survival, np.array([PATH_LENGTH]))
            mean += share * calls.expected[0]
            square += share * (calls.variance[0] + calls.expected[0] ** 2)
    return mean, square - mean**2


@pytest.mark.parametrize("stationary", [True, False])
def test_calls_are_those_of_the_path_theorem(stationary: bool) -> None:
    pair, start = path_case(stationary)
    predicted = {name: path_calls(name, pair, start) for name in KERNELS}
    for name, kernel in KERNELS.items():
        counts = kernel(pair.target, pair.draft, start, length=PATH_LENGTH, k=PATH_K, texts=PATH_TEXTS, state=words(6))
        seen = {
            law: strays(counts.accepted.sum(), PATH_TEXTS * mean, PATH_TEXTS * variance, float(PATH_LENGTH))
            for law, (mean, variance) in predicted.items()
        }
        assert seen == {name: False, OTHER[name]: True}, "the other rule is the negative control"


# Rejections along long texts, against Y1 and Y3

HORIZON, REJECTED_TEXTS = 50, 200_000
"""A position's rejections are known to 0.008, those of a text to 0.06 of 16.4."""


@cache
def test_bed() -> tuple[Floats, Floats, Floats]:
    """yin2024's chains: seven tokens, uniform matrices normalised by rows, the draft's first."""
    rng = np.random.RandomState(10)
    draft, target = (rng.rand(HORIZON, 7, 7) for _ in range(2))
    return *(m / m.sum(axis=-1, keepdims=True) for m in (target, draft)), np.full(7, 1 / 7)


test_bed.__test__ = False  # type: ignore[attr-defined]


@cache
def rejections(drafts: int, printed: bool = False) -> RejectionCounts:
    """Counted on the test bed; drafts = 0 is the horizon kernel."""
    chains = test_bed()
    if not drafts:
        return horizon_rejections(*chains, length=HORIZON, texts=REJECTED_TEXTS, state=words(7))
    return batch_rejections(
        *chains, length=HORIZON, drafts=drafts, texts=REJECTED_TEXTS, state=words(8, drafts), printed=printed
    )


def mean_strays(texts: Counts, expected: float) -> bool:
    """Whether the mean of a histogram is too far off: empirical Bernstein (Maurer and Pontil 2009, Theorem 4)."""
    values, runs = np.arange(texts.size), int(texts.sum())
    mean = texts @ values / runs
    variance = texts @ (values - mean) ** 2 / (runs - 1)
    log = math.log(4 / ALARM)
    slack = math.sqrt(2 * variance * log / runs) + 7 * (texts.size - 1) * log / (3 * (runs - 1))
    return bool(abs(mean - expected) > slack)


@pytest.mark.parametrize(("drafts", "printed"), [(0, False), (1, False), (2, False), (5, False), (5, True)])
def test_rejections_by_position(drafts: int, printed: bool) -> None:
    """Y1 and Y3 term by term; as printed M drafts reject like one."""
    counts = rejections(drafts, printed)
    expected = rejection_profile(*test_bed(), drafts=1 if printed else max(drafts, 1))
    assert straying_shares(counts.positions, REJECTED_TEXTS, expected) == []
    assert not mean_strays(counts.texts, expected.sum())
    assert counts.texts @ np.arange(HORIZON + 1) == counts.positions.sum()
    wrong = rejection_profile(*test_bed(), drafts=2 if drafts < 2 or printed else drafts - 1)
    assert mean_strays(counts.texts, wrong.sum()), "negative control: another number of drafts"
    assert straying_shares(counts.positions, REJECTED_TEXTS, wrong)


def test_rejections_and_calls_of_the_papers_chains() -> None:
    """16.405 at T = 50, and the calls that they make."""
    counts = rejections(0)
    assert float(expected_rejections(*test_bed())) == pytest.approx(16.405, abs=5e-4)
    assert not mean_strays(counts.texts, 16.405)
    target, draft, start = test_bed()
    before = horizon_rejections(
        target[:-1], draft[:-1], start, length=HORIZON - 1, texts=REJECTED_TEXTS, state=words(13)
    )
    assert not mean_strays(before.texts, float(expected_calls(*test_bed())) - 1)
    assert mean_strays(before.texts, float(expected_rejections(*test_bed()))), "negative control: 1 + all rejections"


def test_calls_to_the_horizon_are_one_and_the_rejections_before_the_end() -> None:
    """The two kernels decode the same texts from the same stream."""
    counts = token_calls(*test_bed(), length=HORIZON, k=HORIZON, texts=REJECTED_TEXTS, state=words(7))
    assert counts.accepted.sum() == REJECTED_TEXTS + rejections(0).positions[:-1].sum()


BATCH_TEXTS = 300_000
"""A share of texts is known to 0.007."""


@pytest.mark.parametrize(("tokens", "drafts"), [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("printed", [False, True])
def test_batches_are_the_enumerated_ones(tokens: int, drafts: int, printed: bool) -> None:
    """Both forms of Algorithm 4, every draft run and coin in fractions: positions, and a text's rejections."""
    steps = 3 if tokens == 2 else 2
    (p, target), (q, draft) = tenths_chain(3, tokens, steps), tenths_chain(4, tokens, steps)
    counts = batch_rejections(
        target,
        draft,
        [1] + [0] * (tokens - 1),
        length=steps,
        drafts=drafts,
        texts=BATCH_TEXTS,
        state=words(9),
        printed=printed,
    )

    def wrong(form: bool) -> int:
        positions, texts = np.zeros(steps), np.zeros(steps + 1)
        for outcome, share in batch_decoding(model(p), model(q), steps, drafts, printed=form).items():
            positions[[n - 1 for n in outcome.rejected]] += float(share)
            texts[len(outcome.rejected)] += float(share)
        return len(straying_shares(counts.positions, BATCH_TEXTS, positions)) + len(
            straying_shares(counts.texts, BATCH_TEXTS, texts)
        )

    assert wrong(printed) == 0
    assert wrong(not printed) > 0, "negative control: the other form"


def test_a_recursion_that_starts_at_zero_is_caught() -> None:
    """Negative control: Y3 with f(empty) = 0 loses the first round's gain."""
    (p, target), (q, draft) = tenths_chain(3, 3, 3), tenths_chain(4, 3, 3)
    prefixes = [prefix for n in range(3) for prefix in product(range(3), repeat=n)]
    p_table, q_table = ({prefix: model(chain)(prefix) for prefix in prefixes} for chain in (p, q))
    counts = batch_rejections(target, draft, [1, 0, 0], length=3, drafts=2, texts=BATCH_TEXTS, state=words(10))
    shares = [
        np.array([float(term) for term in profile(p_table, q_table, left_after(2), first=first)]) for first in (1, 0)
    ]
    assert straying_shares(counts.positions, BATCH_TEXTS, shares[0]) == []
    assert 0 in straying_shares(counts.positions, BATCH_TEXTS, shares[1])


def test_rejections_add_up() -> None:
    pair = made_up(4, 5, seed=3)
    one, two = (
        batch_rejections(pair.target, pair.draft, uniform_start(pair), length=5, drafts=2, texts=n, state=words(n))
        for n in (3, 4)
    )
    both = one + two
    assert both.texts.sum() == 7
    assert both.positions.tolist() == (one.positions + two.positions).tolist()


# Bigrams of real text


def test_rejections_on_real_text() -> None:
    """Two bigram models of the same bytes: Y1 at every position, to 0.011; another draft's is seen."""
    text = byte_tokens(text_of(text_parameters("statistics")))
    models = [ngram(text, BYTES, order=2, weight=weight) for weight in (0.98, 0.6, 0.7)]
    p, q, other = (np.stack([model.pmf((x,)) for x in range(BYTES)]) for model in models)
    start = np.bincount(text, minlength=BYTES) / text.size
    counts = horizon_rejections(p, q, start, length=10, texts=100_000, state=words(12))
    assert straying_shares(counts.positions, 100_000, rejection_profile(p, q, start, horizon=10)) == []
    assert len(straying_shares(counts.positions, 100_000, rejection_profile(p, other, start, horizon=10))) == 10


# The doors

HALF = [[0.5, 0.5], [0.5, 0.5]]

BAD: list[tuple[dict[str, object], type[SpectheoryError]]] = [
    ({"target": [[0.5, 0.6], [0.5, 0.5]]}, PmfError),
    ({"draft": [[-0.5, 1.5], [0.5, 0.5]]}, PmfError),
    ({"target": [[math.nan, 0.5], [0.5, 0.5]]}, PmfError),
    ({"initial": [0.5, 0.6]}, PmfError),
    ({"initial": [1.0]}, ShapeError),
    ({"draft": np.full((3, 3), 1 / 3)}, ShapeError),
    ({"target": [0.5, 0.5]}, ShapeError),
    ({"target": np.full((4, 2, 2), 0.5)}, ShapeError),
    ({"length": 0}, SettingError),
    ({"texts": 0}, SettingError),
    ({"texts": -3}, SettingError),
    ({"texts": 2.5}, SettingError),
    ({"state": np.zeros(4, dtype=np.uint64)}, SettingError),
    ({"state": 7}, SettingError),
]

DOORS: dict[str, tuple[Callable[..., object], str | None]] = {
    "token": (token_calls, "k"),
    "block": (block_calls, "k"),
    "batch": (batch_rejections, "drafts"),
    "horizon": (horizon_rejections, None),
}


def through(door: str, **changed: object) -> object:
    """Call a door with a small good case, but for what is changed."""
    function, drafts = DOORS[door]
    state: Words = words(1)
    given: dict[str, object] = {"target": HALF, "draft": HALF, "initial": [0.5, 0.5], "length": 3, "texts": 2}
    given |= {"state": state} | ({drafts: 2} if drafts else {}) | changed
    chains = [given.pop(name) for name in ("target", "draft", "initial")]
    return function(*chains, **given)


@pytest.mark.parametrize("door", DOORS)
def test_bad_input_is_refused(door: str) -> None:
    assert through(door) is not None
    drafts = DOORS[door][1]
    more: list[tuple[dict[str, object], type[SpectheoryError]]] = [({drafts: 0}, SettingError)] if drafts else []
    for changed, error in BAD + more:
        with pytest.raises(error) as caught:
            through(door, **changed)
        assert "\n" not in str(caught.value)
