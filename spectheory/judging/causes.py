"""Why counts are not as expected: faults of an engine or of its counting under which they are, in :data:`CAUSES`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from spectheory.distributions import Floats, Sampling
from spectheory.errors import TextError, TraceError
from spectheory.judging.changes import DRAFT_CUTS, SETTINGS_CHANGES, LogitChange
from spectheory.judging.counting import Counting, past_end, torn
from spectheory.judging.output import FALSE_ALARM, OF_DRAFT, SHARES, bonus_test, output_tests
from spectheory.judging.standing import FALSE_ALARMS, Standing
from spectheory.judging.starts import Calls, tilted
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog
from spectheory.verification.by_start import missing, read_as
from spectheory.verification.registry import find_rule

EXPLAINED = 0.05
"""Under a cause, counts have at least this p-value: the true cause is passed over with at most this probability. Fifty
times the level at which a rule is refuted, so that counts which barely refute it are no sign of every cause."""

Reread = Callable[..., Trace]
"""Both models on the same texts: with changed logits (keywords `draft_change` and `target_change`), or under another
`key`, the randomness of estimated laws."""


@dataclass(frozen=True)
class Context:
    """What a cause may look at.

    - `refuted`: the standings to be explained, of the stated rules, of every rule if none fits, or of the `served`
      ones if only others fit; `others`: the rest.
    - `judge(rule, counting, trace=None)`: how a rule, by name or by its survival ``[N, k]``, stands under a way of
      counting and on another reading of the pair.
    - `survival(rule)`: P(tau >= i) of a rule by name, ``[N, k]``; `calls`: the calls with known starts, or None.
    - `reread`: reads the pair again; None where there are no models.
    """

    log: CallLog
    trace: Trace
    counting: Counting
    refuted: Sequence[Standing]
    others: Sequence[Standing]
    judge: Callable[..., Standing]
    survival: Callable[[str], Floats]
    calls: Calls | None = None
    reread: Reread | None = None


@dataclass(frozen=True)
class Finding:
    """A cause that explains: one sentence with its numbers, the rule that it is about, and the evidence as data.

    `closeness` is that of the rule's standing under the cause; None for what is certain or has a test of its own.
    """

    cause: str
    sentence: str
    rule: str = ""
    evidence: Standing | Mapping[str, Any] = field(default_factory=dict)
    closeness: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Cause:
    """A fault and its test.

    `explains` returns a finding where the hypothesis without the fault is refuted and the one with it fits
    (:data:`EXPLAINED`). A right
    engine is blamed with at most the probability with which its rule is refuted
    (:data:`~spectheory.judging.standing.FALSE_ALARMS`), if it runs a rule that is `served`: causes are looked for only
    where each of these is refuted. A `structural`
    one is looked for also where listed calls do not make up their texts, which is certain, and one `of_output` also
    where the output alone is refuted.
    """

    name: str
    meaning: str
    explains: Callable[[Context], Finding | None]
    structural: bool = False
    of_output: bool = False


def _best_fit(
    context: Context, survivals: Mapping[str, str | Floats], counting: Counting
) -> tuple[str, Standing] | None:
    """Of some rules (by the names of `survivals`) the one that fits best under a way of counting, if one fits; those
    that engines are known to run go first.
    """
    served = {one.rule for one in context.refuted if one.served}
    tried = [(name, context.judge(survival, counting)) for name, survival in survivals.items()]
    fitting = [(name, one) for name, one in tried if one.p >= EXPLAINED]
    return max(fitting, key=lambda pair: (pair[0] in served, pair[1].closeness), default=None)


def _by_counting(context: Context, counting: Counting, cause: str, sentence: str) -> Finding | None:
    """A finding where a refuted rule fits under another way of counting, and listed calls make up their texts."""
    if torn(context.log, counting):
        return None
    best = _best_fit(context, {one.rule: one.rule for one in context.refuted}, counting)
    if best is None:
        return None
    rule, standing = best
    said = f"{sentence}: then rule {rule} fits (p = {standing.p:.2g})"
    return Finding(cause, said, rule, standing, standing.closeness)


FAR_BELOW = 0.5
"""Deeper drafts are accepted less than this times as often as expected."""


def _ends_at_a_depth(context: Context) -> Finding | None:
    """Nothing is accepted beyond a depth and all else fits; or the first draft is as expected, later ones are not."""
    if not context.refuted[0].positions:
        return None
    for depth in range(1, context.counting.k):
        survivals: Mapping[str, str | Floats] = {
            one.rule: context.survival(one.rule) * (np.arange(context.counting.k) < depth) for one in context.refuted
        }
        if best := _best_fit(context, survivals, context.counting):
            rule, standing = best
            what = f"nothing is accepted beyond position {depth} of a call, and up to there rule {rule} fits"
            return Finding(DEPTH.name, f"{what} (p = {standing.p:.2g}): {SUSPECTS}", rule, standing, standing.closeness)
    falling = [
        one
        for one in context.refuted
        if len(one.starts) > 1
        and one.starts[0].p >= FALSE_ALARMS
        and all(at.p < FALSE_ALARMS and at.counted < FAR_BELOW * at.low for at in one.starts[1:])
    ]
    if not falling:
        return None
    rule, starts = falling[0].rule, falling[0].starts
    counts = ", ".join(f"{one.counted} of {one.low:.0f}" for one in starts[1:])
    sentence = f"the first draft of a call is accepted as expected, later ones far less ({counts} expected): {SUSPECTS}"
    return Finding(DEPTH.name, sentence, rule, {"starts": starts})


SUSPECTS = "look at the hidden states or the cache that drafts after the first one read"
DEPTH = Cause(
    "dead beyond a depth", "acceptance is zero, or far below, beyond the first drafts of a call", _ends_at_a_depth
)


def _samples_again(context: Context) -> Finding | None:
    """A verified token x then has the law min(p, q) + TV p, and was accepted with probability m / (m + TV), where
    m = min(1, q/p) at x. Bets are on the target's and the draft's own law in its place. The texts must refute the
    target's law by this one: where TV is small, bets tell hardly any law from it.
    """
    wrong = min(output_tests(context.trace), key=lambda test: test.p, default=None)
    columns = context.trace.columns
    if wrong is None or not wrong.refuted or context.calls is None or missing(columns, OF_DRAFT):
        return None
    bonus = bonus_test(context.trace, context.calls.bonus)
    if bonus is not None and bonus.refuted:
        return None
    starts, within, accepted = context.calls.verified
    read = (np.asarray(columns[read_as(columns, name)], np.float64) for name in OF_DRAFT)
    log_draft, log_target, lost = (each[starts, within] if each.ndim == 2 else each[starts + within] for each in read)
    log_ratio = log_draft - log_target
    kept = np.exp(np.minimum(0.0, log_ratio))
    chance = np.divide(kept, kept + lost, out=np.ones_like(kept), where=kept + lost > 0)
    log_law = np.log(np.maximum(kept + lost, 1e-300))
    counts = tilted(accepted.astype(np.int64), np.stack([1 - chance, chance], axis=1), np.ones(len(chance)))
    law = math.exp(-max(_bets([-log_law, log_ratio - log_law]), 0.0))
    if min(counts, law) < EXPLAINED / 2 or log_law.sum() < -math.log(FALSE_ALARM):
        return None
    said = (
        "rejected drafts are replaced by samples of the target instead of the residual: tokens and acceptance are then "
        f"as expected (p = {law:.2g} and {counts:.2g}), and the texts exp({log_law.sum():.1f}) times as probable"
    )
    return Finding(
        RESIDUAL.name, said, "token", {"p_tokens": law, "p_accepted": counts, "log_likelihood_ratio": log_law.sum()}
    )


def _bets(logs: Sequence[Floats]) -> float:
    """Log evidence against a law of tokens: bets that a share of them is drawn from others instead.

    `logs` are log-ratios ``[M]`` of the other laws to it. Each factor 1 - e + e r has mean 1 at most, so this is a test
    martingale.
    """
    each = [
        np.log(np.maximum(1 - share + share * np.exp(np.minimum(log, 27.0)), 1e-300)).sum()
        for log in logs
        for share in SHARES
    ]
    return float(np.logaddexp.reduce(each) - math.log(len(each)))


RESIDUAL = Cause(
    "residual not taken", "rejected drafts are replaced by samples of the target", _samples_again, of_output=True
)


def _another_bonus(context: Context) -> Finding | None:
    """Where a position was drafted does not depend on its token, so the rest of the texts is tested as it stands."""
    if context.calls is None:
        return None
    bonus = bonus_test(context.trace, context.calls.bonus)
    if bonus is None or not bonus.refuted:
        return None
    tests = output_tests(_without(context.trace, context.calls.bonus))
    rest = min(tests, key=lambda test: test.p, default=None)
    if rest is None or rest.p < EXPLAINED / len(tests):
        return None
    said = (
        f"bonus tokens are no samples of the target (p = {bonus.p:.2g}, {bonus.tokens} of them), and all other tokens "
        f"are (smallest p = {rest.p:.2g})"
    )
    return Finding(BONUS.name, said, "", {"bonus": bonus, "rest": rest})


def _without(trace: Trace, rows: np.ndarray) -> Trace:
    """The texts without some of their tokens, as tests of single tokens read them."""
    kept = np.ones(len(trace), bool)
    kept[rows] = False
    ends = np.cumsum(trace.lengths)
    counts = [int(kept[end - length : end].sum()) for end, length in zip(ends, trace.lengths, strict=True)]
    columns = {name: column[kept] for name, column in trace.columns.items()}
    texts = tuple(replace(text, tokens=n) for text, n in zip(trace.texts, counts, strict=True) if n)
    return replace(trace, columns=columns, texts=texts)


BONUS = Cause(
    "bonus of another law",
    "tokens after fully accepted calls are drawn from another law",
    _another_bonus,
    of_output=True,
)


LEAST_TREND = 3.0
"""Deviations of the score test; its p-value alone is also 0 where a rule excludes a single call."""
MILDER = 0.5
"""The loss per call in the first third of the texts is less than this times that in the last third."""


def _decays(context: Context) -> Finding | None:
    """The score test of a trend finds one, and early calls lose little of what late calls lose."""
    calls = context.calls
    if calls is None:
        return None
    for one in context.refuted:
        survival = context.survival(one.rule)
        p, z = calls.trend(survival)
        early, late = _losses(calls, survival)
        if p < FALSE_ALARMS and z < -LEAST_TREND and late > 0 and abs(early) < MILDER * late:
            sentence = (
                f"acceptance decays along the text: {early:.2f} accepted tokens fewer than expected per call in "
                f"the first third, {late:.2f} in the last (score test z = {z:.1f}): look at the context of the draft"
            )
            return Finding(DECAY.name, sentence, one.rule, {"z": z, "p": p, "early": early, "late": late})
    return None


def _losses(calls: Calls, survival: Floats) -> tuple[float, float]:
    """Expected less counted accepted tokens per call in the first and the last third of the texts."""
    lost = calls.means(survival) - calls.accepted
    place = calls.positions / (calls.positions + calls.left)
    thirds = lost[place < 1 / 3], lost[place >= 2 / 3]
    early, late = (float(np.mean(third)) if len(third) else 0.0 for third in thirds)
    return early, late


DECAY = Cause("decay with context", "acceptance falls with the position in the text", _decays)


def _drafts_less(context: Context) -> Finding | None:
    """Calls draft fewer tokens than k away from the end of a text."""
    sentence = stops_early(context.log, context.counting, context.calls)
    return None if sentence is None else Finding(EARLY.name, sentence, context.refuted[0].rule)


def stops_early(log: CallLog, counting: Counting, calls: Calls | None) -> str | None:
    """Which calls draft less than they could, and what is biased, in a sentence; certain, so it has no false alarms."""
    k, requests = counting.k, log.requests
    if calls is not None and all(r.drafted for r in requests if r.accepted):
        short = int((calls.drafted < (calls.left - 1).clip(max=k)).sum())
        if not short:
            return None
        how = f"{short} of {len(calls.drafted)} calls draft fewer than {k} tokens where the text has room"
    else:
        known = [r for r in requests if r.calls is not None and r.total_drafted is not None]
        made, full = sum(r.total_drafted or 0 for r in known), sum(k * (r.calls or 0) for r in known)
        # Calls in the last k tokens of a text may draft fewer: those with 1, 2, ..., k tokens to go.
        if not made < full - len(known) * k * (k + 1) // 2:
            return None
        how = f"calls draft {made * k / full:.2f} tokens on average, {k} at most"
    return f"{how}: {BIASED}"


BIASED = (
    "counts over drafts and acceptance per position over calls are biased down, and no rule with a fixed k predicts "
    "them; tokens per call are not biased"
)
EARLY = Cause(
    "early-stopping draft",
    "calls draft fewer tokens than the text has room for, by the draft or by a schedule",
    _drafts_less,
)


def _counts_the_prompt(context: Context) -> Finding | None:
    """Counts fit with one call more for each request, or with another start of the first call."""
    counting = context.counting
    first = "drafts already" if counting.prefill else "has no drafts and is not counted"
    listed = any(r.accepted for r in context.log.requests)
    counted = replace(counting, prompt_counted=True)
    sentence = "one call more is counted for each request, the prompt's own pass"
    finding = None if listed else _by_counting(context, counted, PROMPT_TOKEN.name, sentence)
    return finding or _by_counting(
        context,
        replace(counting, prefill=not counting.prefill),
        PROMPT_TOKEN.name,
        f"against what the log says, the pass that emits the first token {first}",
    )


PROMPT_TOKEN = Cause(
    "prompt's token",
    "the prompt's pass is counted as a call, or the first call starts elsewhere",
    _counts_the_prompt,
    True,
)


def _counts_past_the_end(context: Context) -> Finding | None:
    """Counts fit where they may hold tokens past the end, though the log says that they hold none."""
    if context.counting.past_end is not False:
        return None
    certain = past_end(context.log, context.counting)
    if certain:
        return Finding(
            PAST_END.name, f"{certain} accepted tokens lie past the end of their texts", "", {"tokens": certain}
        )
    sentence = "counts hold accepted tokens past the end of a text, so tokens per call are overstated"
    return _by_counting(context, replace(context.counting, past_end=True), PAST_END.name, sentence)


PAST_END = Cause("past the end", "accepted tokens past the end of a text are counted", _counts_past_the_end)


def _drafts_first_choices(context: Context) -> Finding | None:
    """The rule of first choices fits, and the refuted rule samples its drafts."""
    fits = [one for one in context.others if "argmax" in (one.rule, *one.same) and not one.refuted]
    sampled = [one for one in context.refuted if find_rule(one.rule).drafts in ("drawn", "distinct")]
    if not (fits and sampled):
        return None
    sentence = "the engine drafts first choices, not samples of the draft: every count is that of rule argmax"
    return Finding(ARGMAX.name, sentence, "argmax", fits[0], fits[0].closeness)


ARGMAX = Cause("argmax drafts", "drafts are the draft's first choices instead of samples", _drafts_first_choices)


def _skips_undrafted(context: Context) -> Finding | None:
    """Counts fit without the calls that have one token to go, for which nothing is drafted; none of them is listed."""
    if context.calls is not None and (context.calls.drafted == 0).any():
        return None
    sentence = "calls without drafts (one token to go) are not counted, so tokens per call are overstated"
    return _by_counting(context, replace(context.counting, skips_undrafted=True), UNDRAFTED.name, sentence)


UNDRAFTED = Cause("calls without drafts", "calls that draft nothing are not counted", _skips_undrafted, True)


Model = Literal["draft", "target", "draft and target"]


@dataclass(frozen=True)
class _Explained:
    """A rule that is refuted as stated and not under a change."""

    change: LogitChange
    before: Standing
    after: Standing


def _draft_changed(name: str, meaning: str, changes: Sequence[LogitChange]) -> Cause:
    """A cause in how drafts are sampled; the output stays right."""

    def explains(context: Context) -> Finding | None:
        read = _readings(context, "draft", changes)
        fits = [one for change, trace in read for one in _fitting(context, change, trace)]
        return _finding(name, fits) if fits else None

    return Cause(name, meaning, explains)


def _target_changed(name: str, meaning: str, model: Model) -> Cause:
    """A cause in how the output is sampled: refuted as stated it must, with the counts, be right under the change."""

    def explains(context: Context) -> Finding | None:
        wrong = min(output_tests(context.trace), key=lambda test: test.p, default=None)
        if wrong is None or not wrong.refuted:
            return None
        unexplained = bool(context.refuted) and all(one.refuted for one in context.refuted)
        for change, trace in _readings(context, model, SETTINGS_CHANGES):
            least = min(output_tests(trace), key=lambda test: test.p)
            fitting = _fitting(context, change, trace)
            if least.refuted or (unexplained and not fitting):
                continue
            sentence = (
                f"the {model} {'are' if ' ' in model else 'is'} {change.says}: the output is then right "
                f"(smallest p = {least.p:.2g}), and as stated it is not ({wrong.name}: p = {wrong.p:.2g})"
            )
            evidence = {"change": change.name, "before": wrong, "after": least}
            after = max((one.after for one in fitting), key=lambda one: one.closeness, default=None)
            return Finding(name, sentence, after.rule if after else "", evidence, after.closeness if after else None)
        return None

    return Cause(name, meaning, explains, of_output=True)


def _readings(context: Context, model: Model, changes: Sequence[LogitChange]) -> Iterator[tuple[LogitChange, Trace]]:
    """The pair read under each change that can matter; one that cannot be read is left out."""
    sampling = context.log.sampling or context.trace.sampling or Sampling()
    if context.reread is None:
        return
    for change in changes:
        if change.differs(sampling):
            changed = {f"{one}_change": change for one in ("draft", "target") if one in model}
            with suppress(TextError):
                yield change, context.reread(**changed)


def _fitting(context: Context, change: LogitChange, trace: Trace) -> list[_Explained]:
    """Refuted rules that are not refuted on this reading; those that need columns it lacks are left out."""
    fits = []
    for before in context.refuted:
        try:
            after = context.judge(before.rule, context.counting, trace)
        except TraceError:
            continue
        if before.refuted and after.p >= EXPLAINED:
            fits.append(_Explained(change, before, after))
    return fits


def _finding(name: str, fits: Sequence[_Explained]) -> Finding:
    """The best fit in one sentence, with the calls before and after, and what else fits."""
    best = max(fits, key=lambda one: (one.before.served, one.after.closeness))
    before, after = best.before.calls, best.after.calls
    others = [one.change.name for one in fits if one.before is best.before and one is not best]
    sentence = (
        f"the draft is {best.change.says}: rule {best.before.rule} then expects {_expected(after.low, after.high)} "
        f"calls, {after.counted} are counted (z = {after.z:+.1f}, p = {best.after.p:.2g}); as stated it expects "
        f"{_expected(before.low, before.high)} (z = {before.z:+.1f})"
    ) + (f"; {', '.join(others)} would fit too" if others else "")
    evidence = {"change": best.change.name, "before": before, "after": after, "others": others}
    return Finding(name, sentence, best.before.rule, evidence, best.after.closeness)


def _expected(low: float, high: float) -> str:
    return f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}"


DRAFT_CUT = _draft_changed("draft cut", "drafts are drawn from the draft's most probable tokens alone", DRAFT_CUTS)
DRAFT_SETTINGS = _draft_changed(
    "draft settings",
    "temperature or filters are left out, applied twice or in another order when drafts are drawn",
    SETTINGS_CHANGES,
)
TARGET_SETTINGS = _target_changed(
    "target settings", "temperature or filters of the output are other than stated, those of drafts as stated", "target"
)
PAIR_SETTINGS = _target_changed(
    "settings of both", "temperature or filters of output and drafts are other than stated", "draft and target"
)


__all__ = ["CAUSES", "Cause", "Context", "Finding"]

CAUSES: tuple[Cause, ...] = (
    *(ARGMAX, PROMPT_TOKEN, PAST_END, UNDRAFTED, DEPTH, DECAY, EARLY),
    *(BONUS, RESIDUAL),
    *(DRAFT_CUT, DRAFT_SETTINGS, TARGET_SETTINGS, PAIR_SETTINGS),
)
"""Every cause, in the order in which they are tried and reported."""
