"""The sequential test for a fall: its statistic, its rate of false alarms, and the falls that it finds."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import poisson

from spectheory.drafting import Chain
from spectheory.errors import TextError
from spectheory.judging.falls import FALLS, LEARNING, Expected, FallTest
from spectheory.prediction.at_starts import CallStarts
from spectheory.trace import Trace
from spectheory.trace.counters import Counters
from spectheory.trace.samples import PAIR
from spectheory.verification.token import TokenVerification

K, RATE = 5, 0.01
KNOWN = Expected.of("before", Counters(calls=10**9, survival=(0.8, 0.5)), 2)


def test_what_calls_vary_by() -> None:
    """Variances of one call against its law: 0, 1, 2 accepted with chances 0.2, 0.3, 0.5."""
    law = np.array([0.2, 0.3, 0.5])
    columns = np.arange(3)[:, None] >= np.array([1, 2])
    values = np.column_stack([1 + np.arange(3), columns])
    means = law @ values
    np.testing.assert_allclose(KNOWN.shares, means)
    np.testing.assert_allclose(KNOWN.per_call, law @ (values - means) ** 2)


def test_the_statistic_is_the_sum_over_all_beginnings() -> None:
    """Every scrape may be where the fall begins: the products of likelihood ratios from there on, one by one."""
    rng = np.random.default_rng(1)
    test, ratios, days = FallTest(KNOWN, RATE), [], rng.uniform(0.001, 0.1, 40)
    for _ in range(LEARNING):
        test.add(500, _counted(rng, 500), days=1)
    for day in days:
        calls, variance, least = 400, test.variance, test.least
        counts = _counted(rng, calls)
        lower = [[1 + (least[0] - 1) * (1 - f), *(least[1:] * (1 - f))] for f in FALLS]
        off = counts / calls
        # Normal densities of the mean with the fall, and without.
        logs = calls * ((off - least) ** 2 - (off - np.array(lower)) ** 2) / (2 * variance)
        ratios.append(np.exp(logs))
        test.add(calls, counts, days=day)
    begun = sum(day * np.prod(ratios[n:], axis=0) for n, day in enumerate(days))
    weights = np.array([1 / 2, 1 / 4, 1 / 4]) / len(FALLS)
    assert float(test.evidence) == pytest.approx(float((begun * weights).sum()), rel=1e-9)


def _counted(rng: np.random.Generator, calls: int) -> np.ndarray:
    first = rng.binomial(calls, 0.8)
    second = rng.binomial(first, 0.5 / 0.8)
    return np.array([calls + first + second, first, second], dtype=float)


def test_learned_noise_is_that_of_successive_batches() -> None:
    """Calls that come in blocks of 20 alike have 20 times the variance of independent ones."""
    rng, test = np.random.default_rng(2), FallTest(KNOWN, RATE)
    for _ in range(400):
        blocks = 20 * rng.binomial(500, 0.8)
        test.add(10_000, [10_000 + blocks, blocks, 0], days=1)
        test.restart()
    assert 0.6 < test.variance[1] / (1.3 * 20 * 0.16) < 2.1  # six deviations of 48 squared normal differences


def test_calls_without_doubt_are_told_from_few() -> None:
    with pytest.raises(TextError, match="few has too few calls to expect anything of a server"):
        Expected.of("few", Counters(calls=3, survival=(0.3,)), 1)


# False alarms and power, by requests of the built-in pair


def requests(times: int, joined: int = 1) -> list[np.ndarray]:
    """Accepted drafts of each call of requests; `joined` decodings of one text are one request, which is as hard."""
    trace, rng = Trace.read(PAIR).in_memory(), np.random.default_rng(3)
    starts = CallStarts.of(trace, TokenVerification(), Chain(K))
    ends = np.cumsum(trace.lengths)
    made = []
    for first, end in zip(ends - trace.lengths, ends, strict=True):
        for _ in range(times):
            calls, draws = [], iter(rng.random(joined * (end - first)))
            for _ in range(joined):
                at = first
                while at < end:
                    calls.append(min(int((next(draws) < starts.survival[at]).sum()), end - at))
                    at += calls[-1] + 1
            made.append(np.array(calls, dtype=np.int8))
    return made


def decoded(pool: list[np.ndarray], slots: int, calls: int, rng: np.random.Generator) -> np.ndarray:
    """Accepted drafts ``[slots, calls]`` of requests drawn with replacement, one after another in each slot."""
    lengths, ends = np.array(list(map(len, pool))), np.cumsum(list(map(len, pool)))
    flat, rows = np.concatenate(pool), []
    for _ in range(slots):
        drawn = rng.integers(len(pool), size=int(1.3 * calls / lengths.mean()) + 50)
        first = np.cumsum(lengths[drawn]) - lengths[drawn]
        places = np.arange(lengths[drawn].sum()) - np.repeat(first - (ends - lengths)[drawn], lengths[drawn])
        rows.append(flat[places][rng.integers(lengths.max()) :][:calls])
    return np.stack(rows)


def scraped(accepted: np.ndarray, servers: int, sizes: np.ndarray) -> np.ndarray:
    """Tokens, and calls that accepted 1, ..., K, of scrapes with so many calls of each slot ``[servers, n, K + 1]``."""
    edges, slots = np.cumsum(sizes) - sizes, len(accepted) // servers
    reached = [
        np.add.reduceat(accepted >= i, edges, axis=1, dtype=np.int32).reshape(servers, slots, -1).sum(axis=1)
        for i in range(1, K + 1)
    ]
    return np.stack([slots * sizes + sum(reached), *reached], axis=-1).astype(float)


def watched(counts: np.ndarray, calls: np.ndarray, expected: Expected, test: type[FallTest] = FallTest) -> tuple:
    """Alarms of all servers, and the scrape of each one's first, -1 without."""
    test_of_all, alarms = test(expected, RATE, (len(counts),)), 0
    first = np.full(len(counts), -1)
    for n, size in enumerate(calls.tolist()):
        alarm = test_of_all.add(size, counts[:, n], 1 / PER_DAY)
        alarms, first = alarms + int(alarm.sum()), np.where(alarm & (first < 0), n, first)
        test_of_all.restart(alarm)
    return alarms, first


def expected_of(pool: list[np.ndarray], *, certain: bool) -> Expected:
    """What the trace expects; `certain`: the lower ends are what the requests have in truth, where the test is least
    sure of itself.
    """
    known = Expected.of("builtin:", Trace.read(PAIR), K)
    calls = np.concatenate(pool)
    true = np.array([1 + calls.mean(), *((calls >= i).mean() for i in range(1, K + 1))])
    return replace(known, shares=true, deviations=0 * true, slack=0 * true) if certain else known


class Independent(FallTest):
    """Takes calls of one request as independent."""

    @property
    def variance(self) -> np.ndarray:
        """Of one call."""
        return self.expected.per_call


DAYS, SERVERS, PER_DAY = 4000, 100, 48
STATED = RATE * DAYS


def false_alarms(joined: int, slots: int, sizes: np.ndarray, seed: int, test: type[FallTest] = FallTest) -> int:
    """Of all servers, whose requests accept exactly what is expected at least."""
    pool = requests(20 // joined + 4, joined)
    accepted = decoded(pool, slots * SERVERS, int(sizes.sum()), np.random.default_rng(seed))
    alarms, _ = watched(scraped(accepted, SERVERS, sizes), slots * sizes, expected_of(pool, certain=True), test)
    print(
        f"{joined * 35} calls, {slots} slots, {sizes.mean():.0f} in a scrape: {alarms} false alarms, {STATED:g} stated"
    )
    return alarms


def scrapes(calls: int) -> np.ndarray:
    """Calls of a slot in each scrape."""
    return np.full(DAYS // SERVERS * PER_DAY, calls)


@pytest.mark.evidence
@pytest.mark.parametrize(
    ("joined", "slots", "every"), [(1, 1, 30), (1, 4, 30), (1, 4, 8), (1, 1, 300), (8, 1, 300), (8, 2, 300)]
)
def test_false_alarms_are_no_more_than_stated(joined: int, slots: int, every: int) -> None:
    """4,000 days without a fall, of requests that end within some scrapes, also ones 8 times as long as the trace's.

    Twice the stated rate would pass with probability 1e-6.
    """
    assert poisson.cdf(STATED, 2 * STATED) < 2e-6
    assert false_alarms(joined, slots, scrapes(every), seed=4) <= STATED


@pytest.mark.evidence
@pytest.mark.parametrize(("joined", "mean"), [(1, 60), (8, 300)])
def test_traffic_may_vary(joined: int, mean: int) -> None:
    """By a factor of 11 between day and night, and by chance from scrape to scrape."""
    rng, day = np.random.default_rng(9), np.arange(DAYS // SERVERS * PER_DAY) / PER_DAY
    sizes = mean * np.exp(1.2 * np.sin(2 * np.pi * day) + rng.normal(0, 0.5, len(day)))
    assert false_alarms(joined, 1, sizes.astype(int) + 1, seed=7) <= STATED


@pytest.mark.evidence
@pytest.mark.parametrize(("every", "test"), [(300, Independent), (30, FallTest)])
def test_false_alarms_would_be_seen(every: int, test: type[FallTest]) -> None:
    """Negative controls: calls of one request taken as independent; requests that last nine scrapes."""
    assert false_alarms(8, 1, scrapes(every), seed=5, test=test) > STATED


@pytest.mark.evidence
@pytest.mark.parametrize(("certain", "within"), [(True, 150), (False, 500)])
def test_a_fall_of_a_tenth_is_found(certain: bool, within: int) -> None:
    """Accepted drafts fall by 10% after a day and a half: 100 servers all say so, 9 of 10 within so many requests."""
    pool, rng, fall, slots = requests(20), np.random.default_rng(6), 72, 4
    sizes = np.full(8 * PER_DAY, 30)
    accepted = decoded(pool, slots * SERVERS, int(sizes.sum()), rng)
    refused = next(q for q in np.linspace(0, 0.3, 3001) if kept(accepted, q) <= 0.9)
    after = accepted[:, sizes[:fall].sum() :]
    np.minimum(after, rng.geometric(refused, after.shape) - 1, out=after)
    _, first = watched(scraped(accepted, SERVERS, sizes), slots * sizes, expected_of(pool, certain=certain))
    needed = (first - fall + 1) * slots * sizes[0] / np.mean(list(map(len, pool)))
    print(
        f"certain {certain}: {np.median(needed):.0f} requests in the median, {np.quantile(needed, 0.9):.0f} in 9 of 10"
    )
    assert (first >= fall).all()
    assert np.quantile(needed, 0.9) < within


def kept(accepted: np.ndarray, refused: float) -> float:
    """Accepted drafts left where each draft is refused once more with that chance, as a share."""
    shares = [(accepted >= i).mean() for i in range(1, K + 1)]
    return sum(share * (1 - refused) ** i for i, share in enumerate(shares, start=1)) / sum(shares)


def test_positions_fall_with_the_depth() -> None:
    names = Expected.of("builtin:", Trace.read(PAIR), K)
    assert names.names == ("tokens per call", *(f"position {i}" for i in range(1, K + 1)))
    assert all(one > other for one, other in pairwise(names.least(np.ones(1))[1:]))
