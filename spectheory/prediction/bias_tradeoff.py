"""Tokens per call against what is paid: rules that change the text, along a text of the target (Y5-Y7, §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError, argument
from spectheory.intervals import Interval
from spectheory.prediction.call_times import speedup_of_chain
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.paths import tokens_left, visits_of
from spectheory.trace import UNO_SHARES, Trace
from spectheory.verification import BiasedVerification, LossyRule, TokenVerification
from spectheory.verification.by_start import by_depth, deepest, missing
from spectheory.verification.registry import path_rule


@dataclass(frozen=True)
class BiasPoint:
    """What one rule that changes the text gives and costs.

    `tokens_per_call` is of calls that start where those of the lossless rule do; a biased decoder has other starts and
    prefixes, an effect of the order of the bias that the range over prompts does not include. Unless the trace says
    that the target was sampled with all its tokens, it is a lower estimate, as is `speedup`, and
    `upper_tokens_per_call` an upper one: calls that accept a token that the target cannot output leave its texts, and
    count as accepted to the end. Rules that write first choices (typical, relaxed) leave the target's texts at once:
    theirs are taken to be as hard. `bias` is the total variation between output and target per verified token: the
    least share of them that changes; of a head that of the drafts that lossless calls judge, per token of the text.
    `nats` is KL(output || target) per verified token, None where it may be infinite and of a head; a few rare tokens
    may make most of it, and its range is then too short. Of a greedy rule it is the log-probability given up against
    the first choice. Of over-acceptance `uno_bias` is the bias with recovery from the target itself (UNO), never
    smaller; between recorded shares an upper bound; None of a head.
    """

    rule: LossyRule
    k: int
    tokens_per_call: Interval
    bias: Interval
    uno_bias: Interval | None
    speedup: Interval | None
    upper_tokens_per_call: Interval | None = None
    nats: Interval | None = None

    @property
    def name(self) -> str:
        """What decides, and where calls start."""
        return f"{self.rule.label} calls from the starts of {self.rule.beside}"

    @property
    def share(self) -> float | None:
        """The share of over-acceptance; None of other rules."""
        return self.rule.share if isinstance(self.rule, BiasedVerification) else None

    @property
    def side(self) -> str:
        """Of `tokens_per_call` and `speedup`."""
        return "lower estimate" if self.upper_tokens_per_call else "estimate"


def bias_tradeoff(
    trace: Trace, k: int, rules: Sequence[LossyRule | float], cost: CostModel | None = None
) -> tuple[BiasPoint, ...]:
    """Tokens per call of a chain of k drafts against what each of some rules that change the text costs (Y5-Y7, §7).

    `rules` are such rules, or shares of over-acceptance in [0, 1]. Each position has an expected number of lossless
    calls that start there, and :meth:`~spectheory.verification.LossyRule.weighted_survival` is an unbiased estimate of
    how far a biased call from there goes, *if the target can output every token that the draft can draw*. The sums over
    the text are unbiased for calls from these starts; at share 0 they are the prediction of token verification. For a
    biased decoder they are an *estimate*: its starts and prefixes drift, which moves its tokens per call by an amount
    of the order of the bias.

    Where the target's tokens are cut (temperature 0, a filter, or a provenance that does not say), a biased call may
    accept a token that no text of the target has, and what follows is not recorded. Tokens per call are then a lower
    estimate, as if only the share accepted from there on (of other rules nothing), with an upper one, as if everything
    were accepted. The two are equal for k = 1 and at shares 0 and 1.

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
    if not rules:
        raise SettingError("there is no share", limit="needs one in [0, 1]", remedy="0 is lossless")
    named = [rule if isinstance(rule, LossyRule) else BiasedVerification(rule) for rule in rules]
    return tuple(_point(trace, k, rule, cost) for rule in dict.fromkeys(named))


def _point(trace: Trace, k: int, rule: LossyRule, cost: CostModel | None) -> BiasPoint:
    """What one rule gives and costs."""
    over = rule if isinstance(rule, BiasedVerification) else None
    of_head = deepest(trace.columns) is not None
    if of_head and over is None:
        raise TraceError(
            f"{rule.name} is asked for with a draft whose pmfs depend on where the call starts",
            limit="what it costs is known of over-acceptance alone",
            remedy=f"use {argument('bias')}, or measure a draft model",
        )
    rule.require(trace.columns)
    prompts, limits = Prompts(trace.texts), (1.0, k + 1.0)  # of the truth; the weights, and so the estimates, have none
    tokens = prompts.sum(trace.lengths)
    biased, calls, full = map(prompts.sum_rows, calls_beside(trace, k, rule, rule.weighted_survival(trace.columns, k)))
    cut, above = rule.leaves and (trace.sampling is None or trace.sampling.truncates), None
    if cut:
        most, *_ = calls_beside(trace, k, rule, rule.weighted_survival_above(trace.columns, k))
        above = ratio(prompts.sum_rows(most), calls, limits=limits)
    changed = over.share * _judged_by_head(trace, k) if of_head and over else rule.changed(trace.columns)
    lost = None if of_head else rule.nats(trace.columns)
    known = lost is not None and np.isfinite(lost).all() and not (cut and changed.any())
    errors = tuple(cost.errors()) if cost else ()
    return BiasPoint(
        rule=rule,
        k=k,
        tokens_per_call=ratio(biased, calls, limits=limits),
        bias=ratio(prompts.sum_rows(changed), tokens, limits=(0.0, 1.0)),
        uno_bias=_uno(prompts, trace, over.share, tokens) if over else None,
        speedup=speedup_of_chain(biased, calls, full, Chain(k), cost, errors) if cost else None,
        upper_tokens_per_call=above,
        nats=ratio(prompts.sum_rows(lost), tokens, limits=(0.0, np.inf)) if lost is not None and known else None,
    )


def _judged_by_head(trace: Trace, k: int) -> NDArray[np.float64]:
    """TV at the drafts of calls from every position ``[N]``, by how often lossless calls judge each."""
    lossless, left = TokenVerification().path_survival(trace.columns, k), tokens_left(trace.lengths)
    inside = np.arange(1, k + 1) < left[:, None]  # the text ends with the last token
    judged = np.concatenate([np.ones((len(lossless), 1)), lossless[:, :-1]], axis=1) * inside
    distances = np.stack([at["total_variation"] for at in by_depth(trace.columns, k)], axis=1)
    return np.asarray(visits_of(lossless, trace.lengths) * (judged * distances).sum(axis=1))


def calls_beside(
    trace: Trace, k: int, rule: LossyRule, survival: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Tokens, calls and full calls by the position ``[N]`` where they start: those of the lossless rule beside."""
    beside = path_rule(rule.beside)
    beside.require(trace.columns)
    visits, left = visits_of(beside.path_survival(trace.columns, k), trace.lengths), tokens_left(trace.lengths)
    inside = np.arange(1, k + 1) < left[:, None]  # the text ends with the last token
    # A full acceptance counts where another call follows, as in the calls recursion; the more, the dearer.
    full = visits * np.where(k + 1 < left, survival[:, -1], 0.0)
    return visits * (1 + np.where(inside, survival, 0.0).sum(axis=1)), visits, full


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
