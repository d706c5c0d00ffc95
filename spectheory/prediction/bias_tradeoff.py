"""Tokens per call against the bias paid: over-acceptance along a measured text (Y5, Y6, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction.call_times import speedup_of_chain
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.paths import tokens_left, visits_of
from spectheory.trace import UNO_SHARES, Trace
from spectheory.verification import TokenVerification
from spectheory.verification.biased import BiasedVerification
from spectheory.verification.by_start import by_depth, deepest, missing


@dataclass(frozen=True)
class BiasPoint:
    """What one share of over-acceptance gives and costs.

    `tokens_per_call` is of calls that start where lossless ones do; a biased decoder has other starts and prefixes, an
    effect of the order of the share that the range over prompts does not include. Unless the trace says that the target
    was sampled with all its tokens, it is a lower estimate, as is `speedup`, and `upper_tokens_per_call` an upper one:
    calls that accept a token that the target cannot output leave its texts, and count as accepted to the end. `bias` is
    the total variation between output and target per token with the best recovery (OPT): share times mean TV; of a
    head share times the TV of the drafts that lossless calls judge, per token, as bonus tokens have no bias (an
    estimate for a biased decoder). `uno_bias` is the same with recovery from the target itself (UNO), never smaller;
    between recorded shares an upper bound; None of a head.
    """

    rule: BiasedVerification
    k: int
    tokens_per_call: Interval
    bias: Interval
    uno_bias: Interval | None
    speedup: Interval | None
    upper_tokens_per_call: Interval | None = None

    @property
    def name(self) -> str:
        """What decides, and where calls start."""
        return "token verification with over-acceptance, calls from lossless starts"

    @property
    def side(self) -> str:
        """Of `tokens_per_call` and `speedup`."""
        return "lower estimate" if self.upper_tokens_per_call else "estimate"


def bias_tradeoff(
    trace: Trace, k: int, shares: Sequence[float], cost: CostModel | None = None
) -> tuple[BiasPoint, ...]:
    """Tokens per call of a chain of k drafts against the bias, per share of over-acceptance in [0, 1] (Y5, Y6, §7).

    Each position has an expected number of lossless calls that start there, and
    :meth:`~spectheory.verification.BiasedVerification.weighted_survival` is an unbiased estimate of how far a biased
    call from there goes, *if the target can output every token that the draft can draw*. The sums over the text are
    unbiased for calls from these starts; at share 0 they are the prediction of token verification. For a biased decoder
    they are an *estimate*: its starts and prefixes drift, which moves its tokens per call by an amount of the order of
    the share.

    Where the target's tokens are cut (temperature 0, a filter, or a provenance that does not say), a biased call may
    accept a token that no text of the target has, and what follows is not recorded. Tokens per call are then a lower
    estimate, as if only the share accepted from there on, with an upper one, as if everything were accepted. The two
    are equal for k = 1 and at shares 0 and 1.

    Examples
    --------
    >>> columns = {
    ...     "log_target": np.log([0.5, 0.5]), "log_draft": np.log([0.25, 0.75]), "total_variation": np.full(2, 0.25)
    ... }
    >>> from spectheory.trace import TextInfo
    >>> trace = Trace(columns, (TextInfo("a", 1), TextInfo("b", 1)))
    >>> [round(point.bias.best, 3) for point in bias_tradeoff(trace, 1, [0.0, 0.5, 1.0])]
    [0.0, 0.125, 0.25]
    """
    if absent := missing(trace.columns, ["total_variation"]):
        raise TraceError(f"the trace has no {absent[0]}", limit="the bias is a share of it", remedy="measure the pair")
    if not shares:
        raise SettingError("there is no share", limit="needs one in [0, 1]", remedy="0 is lossless")
    lossless = TokenVerification().path_survival(trace.columns, k)
    visits = visits_of(lossless, trace.lengths)
    left = tokens_left(trace.lengths)
    inside = np.arange(1, k + 1) < left[:, None]  # the text ends with the last token
    prompts = Prompts(trace.texts)
    tokens, calls = prompts.sum(trace.lengths), prompts.sum_rows(visits)
    bias = ratio(prompts.sum_rows(_distances(trace, lossless, visits, inside)), tokens, limits=(0.0, 1.0))
    limits = (1.0, k + 1.0)  # of the truth; the weights, and so the estimates, have no bound
    errors = tuple(cost.errors()) if cost else ()

    def output(survival: NDArray[np.float64]) -> NDArray[np.float64]:
        return prompts.sum_rows(visits * (1 + np.where(inside, survival, 0.0).sum(axis=1)))

    points = []
    for rule in (BiasedVerification(share) for share in dict.fromkeys(shares)):
        survival = rule.weighted_survival(trace.columns, k)
        # A full acceptance counts where another call follows, as in the calls recursion; the more, the dearer.
        full = prompts.sum_rows(visits * np.where(k + 1 < left, survival[:, -1], 0.0))
        biased, upper = output(survival), None
        if trace.sampling is None or trace.sampling.truncates:
            upper = ratio(output(rule.weighted_survival_above(trace.columns, k)), calls, limits=limits)
        points.append(
            BiasPoint(
                rule=rule,
                k=k,
                tokens_per_call=ratio(biased, calls, limits=limits),
                bias=bias * rule.share,
                uno_bias=_uno(prompts, trace, rule.share, tokens),
                speedup=speedup_of_chain(biased, calls, full, Chain(k), cost, errors) if cost else None,
                upper_tokens_per_call=upper,
            )
        )
    return tuple(points)


def _distances(
    trace: Trace, lossless: NDArray[np.float64], visits: NDArray[np.float64], inside: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """TV ``[N]`` at every token; of a head those of the drafts of calls from there, by how often each is judged."""
    if deepest(trace.columns) is None:
        return np.asarray(trace.columns["total_variation"])
    judged = np.concatenate([np.ones((len(lossless), 1)), lossless[:, :-1]], axis=1) * inside
    distances = [at["total_variation"] for at in by_depth(trace.columns, lossless.shape[1])]
    return visits * (judged * np.stack(distances, axis=1)).sum(axis=1)


def _uno(prompts: Prompts, trace: Trace, share: float, tokens: NDArray[np.float64]) -> Interval | None:
    """UNO's loss per token: convex in the share, so a chord of the recorded values lies above."""
    if missing(trace.columns, ["uno_loss"]):
        return None
    shares = np.array([*UNO_SHARES, 1.0])
    losses = np.column_stack([trace.columns["uno_loss"], trace.columns["total_variation"]])
    after = int(np.clip(np.searchsorted(shares, share), 1, len(shares) - 1))
    part = (share - shares[after - 1]) / (shares[after] - shares[after - 1])
    loss = (1 - part) * losses[:, after - 1] + part * losses[:, after]
    return ratio(prompts.sum_rows(loss), tokens, limits=(0.0, 1.0))
