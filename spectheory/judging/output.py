r"""Is sampled output right? Tests that each token is a sample of the target's pmf given the text before it (§13).

Under this null hypothesis every term below has conditional mean zero, or a known conditional law, whatever the pmfs
are. So the sums are martingales over all texts in their order, and a text may end when it wants to. Each test has the
false-alarm rate :data:`FALSE_ALARM`; all together stay below 1e-3 (union bound).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spectheory.trace import IMPOSSIBLE, READ, Trace

Floats = NDArray[np.float64]
Side = Literal["exact", "guaranteed", "asymptotic", "estimate"]

FALSE_ALARM = 1e-4
"""Probability that one test refutes a right output."""
POWER = 0.9
"""Probability with which the smallest departure named would be caught."""
NULL = "each token is a sample of the target's pmf under the stated settings, given the text before it"
SEED = 13
"""Of the uniform numbers that place a token within its mass, so that an answer is the same each time."""
SHAPES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0)
"""Exponents a and b of the Beta laws that the bets of :func:`evidence` are on."""
TILTS = np.concatenate([-(2.0 ** np.arange(-8, 4)), 2.0 ** np.arange(-8, 4)])
"""Exponents t of the bets of :func:`_martingale`."""
POSSIBLE = "possible tokens"
"""Name of the test that a token of probability 0 fails."""
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

    def as_dict(self) -> dict[str, Any]:
        """All fields and the verdict."""
        return {**asdict(self), "refuted": self.refuted}


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
    found, n = trace.provenance[IMPOSSIBLE], len(trace)
    return OutputTest(
        name=POSSIBLE,
        asks=f"tokens that the target cannot output under the stated settings, the first one {found[0]}",
        statistic=float(len(found)),
        symbol="tokens",
        p=0.0,
        side="exact",
        approximation="",
        smallest=-math.log(1 - POWER) / n,
        unit="share of tokens",
        tokens=n,
    )


def heights(trace: Trace) -> Floats:
    """PIT values ``[N]``: above + u · tied, u uniform, the heights of the tokens in their cumulative pmfs.

    Given the text before it, a sample of the pmf has an exactly uniform height, as its token's interval has the length
    of the token's probability and u is uniform on it. This holds whatever came before, so the heights are independent.
    """
    above, tied = (np.asarray(trace.columns[name], np.float64) for name in ("target_above", "target_tied"))
    u = np.random.default_rng(SEED).random(len(trace))
    return np.clip(above + u * tied, _EDGE, 1 - _EDGE)


def evidence(u: Floats) -> float:
    r"""Log of the mean of the likelihood ratios :math:`\prod_n f_{ab}(u_n)` of Beta laws against the uniform law.

    Each ratio is a martingale of mean 1 under the null, and so is their mean, a test martingale: by Ville's inequality
    it ever exceeds 1/alpha with probability at most alpha, wherever the texts end.
    """
    a, b = (x.ravel() for x in np.meshgrid(SHAPES, SHAPES))
    logs = (a - 1) * np.log(u).sum() + (b - 1) * np.log1p(-u).sum() - len(u) * special.betaln(a, b)
    return float(special.logsumexp(logs) - math.log(len(a)))


def _martingale(steps: Floats, variances: Floats, **about: Any) -> OutputTest:
    r"""The z of a martingale with these steps and conditional variances, and a p-value that holds for any steps.

    For every exponent t, :math:`\exp(t M - t^2 (\sum X^2 + 2 \sum \sigma^2) / 6)` is a supermartingale, as
    :math:`\exp(x - x^2/6) \le 1 + x + x^2/3`. By Ville's inequality 1 over the mean over :data:`TILTS` is a p-value. A
    normal z has none: where the target is nearly certain, two rare tokens are six deviations.
    """
    n, spread = len(steps), math.sqrt(max(float(variances.sum()), 0.0))
    total = float(steps.sum())
    z = total / spread if spread > 0 else (0.0 if abs(total) < _EDGE * n else math.copysign(math.inf, total))
    if math.isfinite(z):
        logs = TILTS * total - TILTS**2 * float((steps**2).sum() + 2 * spread**2) / 6
        p = math.exp(-max(float(special.logsumexp(logs)) - math.log(len(TILTS)), 0.0))
    else:
        p = 0.0
    needed = np.min(math.log(len(TILTS) / FALSE_ALARM) / abs(TILTS) + abs(TILTS) * spread**2 / 2)
    return OutputTest(
        statistic=z,
        symbol="z",
        p=p,
        side="guaranteed",
        approximation="the engine's rounding is not counted",
        smallest=float((needed + special.ndtri(POWER) * spread) / n),
        tokens=n,
        **about,
    )


def _surprisal(trace: Trace) -> OutputTest:
    """Martingale of -log p less the entropy; its variance is the sum of M2 - H^2."""
    entropy = np.asarray(trace.columns["target_entropy"], np.float64)
    return _martingale(
        -trace.columns["log_target"] - entropy,
        np.maximum(trace.columns["target_second_moment"] - entropy**2, 0.0),
        name="surprisal",
        asks="mean surprisal of the tokens against the target's entropy",
        unit="nats per token",
    )


def _first_choices(trace: Trace) -> OutputTest:
    """Martingale of the first choices less their probabilities."""
    top = np.minimum(np.asarray(trace.columns["target_top"], np.float64), 1.0)
    return _martingale(
        (trace.columns["target_rank"] == 1) - top,
        top * (1 - top),
        name="first choices",
        asks="share of tokens that are the target's most probable one against their probabilities",
        unit="share of tokens",
    )


def _uniform(trace: Trace) -> OutputTest:
    """Kolmogorov's and Smirnov's test that the heights are uniform."""
    from scipy import stats  # slow to import

    u = heights(trace)
    found, n = stats.kstest(u, "uniform"), len(u)
    ended = any(text.ended for text in trace.texts)
    return OutputTest(
        name="heights",
        asks="heights of the tokens in the target's cumulative pmf (PIT) against the uniform law",
        statistic=float(found.statistic),
        symbol="largest distance",
        p=float(found.pvalue),
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
    u = heights(trace)
    return _bet(evidence(u), len(u), 1, name="bets", asks="bets against uniform heights, all texts in a row")


def _single_texts(trace: Trace) -> OutputTest:
    """The text with the largest evidence; `p` is corrected for the number of texts."""
    found = [(evidence(u), len(u), text.id) for u, text in _by_text(trace)]
    logs, n, text = max(found)
    about = {"name": "single texts", "asks": "the same bets on each text alone, the worst of them", "text": text}
    return _bet(logs, n, len(found), **about)


def _by_text(trace: Trace) -> Iterator[tuple[Floats, Any]]:
    pieces = np.split(heights(trace), np.cumsum(trace.lengths)[:-1])
    return zip(pieces, trace.texts, strict=True)


_PLACE = ("target_above", "target_tied")
TESTS: tuple[tuple[Callable[[Trace], OutputTest], tuple[str, ...]], ...] = (
    (_surprisal, ("target_entropy", "target_second_moment")),
    (_first_choices, ("target_rank", "target_top")),
    (_uniform, _PLACE),
    (_all_texts, _PLACE),
    (_single_texts, _PLACE),
)
"""Each test and the columns it reads."""
