r"""Is sampled output right? Tests that each token is a sample of the target's pmf given the text before it (§13).

Under this null hypothesis every term below has conditional mean zero, or a known conditional law, whatever the pmfs
are. So the sums are martingales over all texts in their order, and a text may end when it wants to. Each test has the
false-alarm rate :data:`FALSE_ALARM`; all seven together stay below 1e-3 (union bound).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spectheory.distributions import Floats
from spectheory.intervals import martingale_p
from spectheory.trace import IMPOSSIBLE, READ, Trace

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
"""Shares of tokens of another law that bets are on."""


Side = Literal["exact", "guaranteed", "asymptotic", "estimate"]

FALSE_ALARM = 1e-4
"""Probability that one test refutes a right output."""
POWER = 0.9
"""Probability with which the smallest departure named would be caught."""
NULL = "each token is a sample of the target's pmf under the stated settings, given the text before it"
SEED = 13
"""Of the uniform numbers that place a token within its mass, so that an answer is the same each time."""
SHAPES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0)
"""Exponents a and b of the Beta laws that the bets of ``_evidence`` are on."""
POSSIBLE = "possible tokens"
"""Name of the test that a token of probability 0 fails."""
OF_DRAFT = ("log_draft", "log_target", "total_variation")
"""Columns of :func:`_of_draft`."""
SHARE = "draft's share"
"""Name of the test by bets on the draft."""
LEANS = (0.1, 0.3, 0.6, 1.0)
"""How far the other bets there lean, in either direction."""
_MOST_RATIO, _TINY, _MOST_TILT = 1e12, 1e-300, 64.0
_EDGE = 2.0**-23
"""Heights are kept so far from 0 and 1: sums of float32 probabilities are not known better."""


@dataclass(frozen=True)
class OutputTest:
    """One test of sampled output.

    - `name`, `asks`: what is compared, in a few words; `null`: the hypothesis that is tested.
    - `statistic`, `symbol`: what was computed; z is in standard deviations.
    - `p`: probability of a statistic at least so extreme under the null, or an upper bound of it.
    - `side`: whether `p` is exact, a guaranteed bound at any number of tokens, asymptotic, or rests on an estimate.
    - `approximation`: what keeps it from being exact; empty if nothing does.
    - `smallest`: the smallest departure that this many tokens would show with probability :data:`POWER`, in `unit`.
    - `text`: the text it is about; empty: all.
    """

    name: str
    asks: str
    statistic: float
    symbol: str
    p: float
    side: Side
    approximation: str
    smallest: float
    unit: str
    tokens: int
    text: str = ""
    false_alarm: float = FALSE_ALARM
    null: str = NULL

    @property
    def refuted(self) -> bool:
        """Whether the output is not a sample of the target, at this false-alarm rate."""
        return self.p < self.false_alarm


def output_tests(trace: Trace) -> tuple[OutputTest, ...]:
    """Every test for which the trace has the columns; none of texts of temperature 0, which have one of their own
    (:func:`spectheory.judging.divergence.greedy_tests`).

    A measured trace gives the first test alone; :func:`spectheory.measure.judged.judged_trace` gives all. Tokens that
    the target cannot output settle it: then no other test is made.

    Examples
    --------
    A target of two tokens, of which the first has probability 3/4, and an engine that outputs it every second time:

    >>> import numpy as np
    >>> from spectheory.trace import TextInfo
    >>> p = np.tile([0.75, 0.25], 200)
    >>> columns = {"log_target": np.log(p), "log_draft": np.log(p)}
    >>> entropy = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    >>> columns["target_entropy"] = np.full(400, entropy)
    >>> columns["target_second_moment"] = np.full(400, 0.75 * np.log(0.75) ** 2 + 0.25 * np.log(0.25) ** 2)
    >>> (test,) = output_tests(Trace(columns, (TextInfo("1", 400),)))
    >>> round(test.statistic, 1), test.refuted
    (11.5, True)
    """
    if trace.provenance.get(IMPOSSIBLE):
        return (_possible(trace),)
    settings = trace.sampling
    if READ in trace.provenance or (settings is not None and settings.temperature == 0):
        return ()
    return tuple(test(trace) for test, needs in TESTS if set(needs) <= set(trace.columns))


def _possible(trace: Trace) -> OutputTest:
    """Tokens of probability 0: one of them is enough."""
    impossible, n = trace.provenance[IMPOSSIBLE], len(trace)
    return OutputTest(
        name=POSSIBLE,
        asks=f"tokens that the target cannot output under the stated settings, the first one {impossible[0]}",
        statistic=float(len(impossible)),
        symbol="tokens",
        p=0.0,
        side="exact",
        approximation="",
        smallest=-math.log(1 - POWER) / n,
        unit="share of tokens",
        tokens=n,
    )


def _heights(trace: Trace) -> Floats:
    """PIT values ``[N]``: above + u · tied, u uniform, the heights of the tokens in their cumulative pmfs.

    Given the text before it, a sample of the pmf has an exactly uniform height, as its token's interval has the length
    of the token's probability and u is uniform on it. This holds whatever came before, so the heights are independent.
    """
    above, tied = (np.asarray(trace.columns[name], np.float64) for name in ("target_above", "target_tied"))
    u = np.random.default_rng(SEED).random(len(trace))
    return np.clip(above + u * tied, _EDGE, 1 - _EDGE)


def _evidence(u: Floats) -> float:
    r"""Log of the mean of the likelihood ratios :math:`\prod_n f_{ab}(u_n)` of Beta laws against the uniform law.

    Each ratio is a martingale of mean 1 under the null, and so is their mean, a test martingale: by Ville's inequality
    it ever exceeds 1/alpha with probability at most alpha, wherever the texts end.
    """
    a, b = (x.ravel() for x in np.meshgrid(SHAPES, SHAPES))
    logs = (a - 1) * np.log(u).sum() + (b - 1) * np.log1p(-u).sum() - len(u) * special.betaln(a, b)
    return float(np.logaddexp.reduce(logs) - math.log(len(a)))


def _martingale(steps: Floats, variances: Floats, tilted: Tilted, **about: Any) -> OutputTest:
    """The z of a martingale with these steps and conditional variances, and a p-value that holds for any steps.

    The p-value is :func:`~spectheory.intervals.martingale_p`. A normal z has none: where the target is nearly certain,
    two rare tokens are six deviations.

    `tilted` gives the mean, the variance and the mean square of the steps when their law is tilted: by it the smallest
    departure is computed under the alternative.
    """
    n, spread = len(steps), math.sqrt(max(float(variances.sum()), 0.0))
    total = float(steps.sum())
    z = total / spread if spread > 0 else (0.0 if abs(total) < _EDGE * n else math.copysign(math.inf, total))
    p = martingale_p(total, float((steps**2).sum()), spread**2) if math.isfinite(z) else 0.0
    return OutputTest(
        statistic=z,
        symbol="z",
        p=p,
        side="guaranteed",
        approximation="the engine's rounding is not counted",
        smallest=max(_least(tilted, n, spread**2, side) for side in (-1, 1)),
        tokens=n,
        **about,
    )


Tilted = Callable[[float], tuple[float, float, float]]
"""Of a tilt: mean, variance and mean square of a step, in the mean over the tokens."""


def _least(tilted: Tilted, n: int, variance: float, side: int) -> float:
    """The smallest mean step, by tilts to one side, that n tokens would show with probability :data:`POWER`: at the
    quantile of their sum under that very tilt (normal) the p-value is at the false-alarm rate.
    """

    def outcome(tilt: float) -> tuple[bool, float]:
        mean, spread, square = tilted(side * tilt)
        total = n * abs(mean) - special.ndtri(POWER) * math.sqrt(max(n * spread, 0.0))
        return total > 0 and martingale_p(total, n * square, variance) < FALSE_ALARM, abs(mean)

    low, high = 0.0, 2.0**-12
    while not outcome(high)[0]:
        low, high = high, 2 * high
        if high > _MOST_TILT:
            return math.inf
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if outcome(middle)[0] else (middle, high)
    return outcome(high)[1]


def _reweighted(steps: Floats) -> Tilted:
    """Steps whose law is tilted exponentially, estimated from those that were seen."""

    def tilted(tilt: float) -> tuple[float, float, float]:
        weights = special.softmax(tilt * steps)
        mean = float(weights @ steps) - float(steps.mean())
        square = float(weights @ steps**2)
        return mean, max(square - float(weights @ steps) ** 2, 0.0), square

    return tilted


def _surprisal(trace: Trace) -> OutputTest:
    """Martingale of -log p less the entropy; its variance is the sum of M2 - H^2."""
    entropy = np.asarray(trace.columns["target_entropy"], np.float64)
    steps = -trace.columns["log_target"] - entropy
    return _martingale(
        steps,
        np.maximum(trace.columns["target_second_moment"] - entropy**2, 0.0),
        _reweighted(steps),
        name="surprisal",
        asks="mean surprisal of the tokens against the target's entropy",
        unit="nats per token",
    )


def _first_choices(trace: Trace) -> OutputTest:
    """Martingale of the first choices less their probabilities."""
    top = np.minimum(np.asarray(trace.columns["target_top"], np.float64), 1.0)

    def tilted(tilt: float) -> tuple[float, float, float]:
        hit = special.expit(special.logit(top) + tilt)
        square = hit * (1 - top) ** 2 + (1 - hit) * top**2
        return float((hit - top).mean()), float((hit * (1 - hit)).mean()), float(square.mean())

    return _martingale(
        (trace.columns["target_rank"] == 1) - top,
        top * (1 - top),
        tilted,
        name="first choices",
        asks="share of tokens that are the target's most probable one against their probabilities",
        unit="share of tokens",
    )


def _uniform(trace: Trace) -> OutputTest:
    """Kolmogorov's and Smirnov's test that the heights are uniform."""
    from scipy import stats  # slow to import

    u = _heights(trace)
    test, n = stats.kstest(u, "uniform"), len(u)
    ended = any(text.ended for text in trace.texts)
    return OutputTest(
        name="heights",
        asks="heights of the tokens in the target's cumulative pmf (PIT) against the uniform law",
        statistic=float(test.statistic),
        symbol="largest distance",
        p=float(test.pvalue),
        side="asymptotic" if ended else "exact",
        approximation="texts that ended by themselves make the number of tokens random" if ended else "",
        smallest=float(stats.kstwo.isf(FALSE_ALARM, n)) + math.sqrt(math.log(2 / (1 - POWER)) / (2 * n)),
        unit="largest distance of the law of heights from the uniform one",
        tokens=n,
    )


def _bet(logs: float, n: int, candidates: int, **about: Any) -> OutputTest:
    """The bets on heights: `logs` of evidence, the largest of so many `candidates`."""
    return OutputTest(
        statistic=logs,
        symbol="log evidence",
        p=min(1.0, candidates * math.exp(min(-logs, 0.0))),
        side="guaranteed",
        approximation="",
        smallest=_growth(math.log(candidates * len(SHAPES) ** 2 / FALSE_ALARM)) / n,
        unit="nats per token that a Beta law of heights gains on the uniform one",
        tokens=n,
        **about,
    )


def _growth(needed: float) -> float:
    """Mean of a log evidence that exceeds `needed` with probability POWER, its variance being twice its mean."""
    spread = special.ndtri(POWER) / math.sqrt(2)
    return float((spread + math.sqrt(spread**2 + needed)) ** 2)


def _all_texts(trace: Trace) -> OutputTest:
    u = _heights(trace)
    return _bet(_evidence(u), len(u), 1, name="bets", asks="bets against uniform heights, all texts in a row")


def _single_texts(trace: Trace) -> OutputTest:
    """The text with the largest evidence; `p` is corrected for the number of texts."""
    by_text = [(_evidence(u), len(u), text.id) for u, text in _by_text(trace)]
    logs, n, text = max(by_text)
    about = {"name": "single texts", "asks": "the same bets on each text alone, the worst of them", "text": text}
    return _bet(logs, n, len(by_text), **about)


def _by_text(trace: Trace) -> Iterator[tuple[Floats, Any]]:
    pieces = np.split(_heights(trace), np.cumsum(trace.lengths)[:-1])
    return zip(pieces, trace.texts, strict=True)


def _of_draft(trace: Trace) -> OutputTest:
    r"""Bets that tokens come from the draft more, or less, often than the target lets them.

    With r = q/p of a token, the factors :math:`1 - e + e r` (a share e of tokens is drawn from the draft) and
    :math:`1 + l (\min(1, r) - 1 + TV)` have mean 1 given the text before: :math:`E_p \min(1, r) = 1 - TV`. With
    l = 1 the second is the likelihood ratio of an engine that samples the target again in place of the residual. Their
    products are test martingales, and so is the mean of these over all e and l.
    """
    return _on_draft(
        trace,
        np.ones(len(trace), bool),
        name=SHARE,
        asks="bets that tokens are the draft's more, or less, often than the target lets them",
    )


def bonus_test(trace: Trace, rows: NDArray[np.int64]) -> OutputTest | None:
    """The same bets on bonus tokens alone, which stand at `rows`: what follows a call whose drafts were all accepted.

    Whatever led there, such a token is a sample of the target. None without bonus tokens or the draft's columns.
    """
    if not len(rows) or not {*OF_DRAFT, "target_rank", "target_top"} <= set(trace.columns):
        return None
    among = np.zeros(len(trace), bool)
    among[rows] = True
    asks = "bets that bonus tokens are the draft's, or the most probable, more or less often than the target lets them"
    return _on_draft(trace, among, name="bonus tokens", asks=asks, tops=True)


def _on_draft(trace: Trace, among: NDArray[np.bool_], *, tops: bool = False, **about: Any) -> OutputTest:
    """Bets on the tokens of some rows; `tops` adds those on first choices."""
    columns = {name: np.asarray(trace.columns[name], np.float64)[among] for name in OF_DRAFT}
    with np.errstate(over="ignore"):
        ratio = np.exp(columns["log_draft"] - columns["log_target"])
    ratio = np.minimum(ratio, _MOST_RATIO)  # less is a smaller bet
    kept = np.minimum(ratio, 1.0) - (1 - np.minimum(columns["total_variation"], 1.0))
    bets = [1 + share * (ratio - 1) for share in SHARES]
    bets += [1 + sign * lean * kept for lean in LEANS for sign in (-1, 1)]
    if tops:
        top = np.minimum(np.asarray(trace.columns["target_top"], np.float64)[among], 1.0)
        first = (trace.columns["target_rank"][among] == 1) - top
        bets += [1 + sign * lean * first for lean in LEANS for sign in (-1, 1)]
    logs = np.array([float(np.log(np.maximum(bet, _TINY)).sum()) for bet in bets])
    evidence = float(np.logaddexp.reduce(logs) - math.log(len(logs)))
    return OutputTest(
        statistic=evidence,
        symbol="log evidence",
        p=min(1.0, math.exp(-max(evidence, 0.0))),
        side="guaranteed",
        approximation="the engine's rounding is not counted",
        smallest=_least_share(ratio, len(bets)),
        unit="share of these tokens that are drawn from the draft in place of the target",
        tokens=int(among.sum()),
        **about,
    )


def _least_share(ratio: Floats, bets: int) -> float:
    """The smallest share e of tokens from the draft whose own bet would win with probability POWER, computed under that
    share: means under it are those of the tokens seen, weighted by their factor.
    """
    needed = math.log(bets / FALSE_ALARM)
    for share in np.geomspace(1e-4, 1.0, 200):
        factor = np.maximum(1 - share + share * ratio, _TINY)
        weights = factor / factor.mean()
        logs = np.log(factor)
        mean = float((weights * logs).mean())
        spread = math.sqrt(max(float((weights * logs**2).mean()) - mean**2, 0.0) * len(ratio))
        if len(ratio) * mean - special.ndtri(POWER) * spread > needed:
            return float(share)
    return math.inf


_PLACE = ("target_above", "target_tied")
TESTS: tuple[tuple[Callable[[Trace], OutputTest], tuple[str, ...]], ...] = (
    (_surprisal, ("target_entropy", "target_second_moment")),
    (_first_choices, ("target_rank", "target_top")),
    (_uniform, _PLACE),
    (_all_texts, _PLACE),
    (_single_texts, _PLACE),
    (_of_draft, OF_DRAFT),
)
"""Each test and the columns it reads."""
