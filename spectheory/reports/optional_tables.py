"""What options add to a prediction, a plan or a measurement: adaptive lengths, bias, a check by transformers, recorded
lengths, settings of sampling beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import ndtri

from spectheory.cost import LatencyTable
from spectheory.deployment.candidates import in_words
from spectheory.intervals import CONFIDENCE
from spectheory.judging.comparison import CERTAIN
from spectheory.prediction import Plan, plan
from spectheory.prediction.answer import AdaptiveWorth, RecordedReading
from spectheory.prediction.bias_tradeoff import BiasPoint
from spectheory.prediction.law import in_deviations
from spectheory.prediction.per_prompt import PerPrompt
from spectheory.reports.base import deviations
from spectheory.reports.table import Column, Table
from spectheory.trace import Trace

# Adaptive lengths (§11)


def adaptive_sentence(answers: Sequence[AdaptiveWorth]) -> str:
    """What adapting is worth for the rule that is fastest with fixed lengths."""
    best = max(answers, key=lambda each: each.fixed.gain)
    fixed, stopped = best.fixed.speedup, best.stopped.speedup
    assert fixed is not None
    assert stopped is not None
    of = f"with {best.rule.label}" + (f" of draft {best.draft}" if best.draft else "")
    return (
        f"Adaptive lengths are worth at most {100 * best.worth:.1f}% {of}: best fixed k {best.fixed.shape.nodes} gives "
        f"{fixed.best:.2f}x, the best stopping rule {best.stopped.label.stop} {stopped.short()}x, no adaptive length "
        f"more than {best.limit.best:.2f}x"
    )


def adaptive_tables(answers: Sequence[AdaptiveWorth]) -> list[Table]:
    """What adaptive lengths are worth, and those that earlier calls decide; nothing where none was asked for."""
    return [_worth_table(answers), _history_table(answers)] if answers else []


def _history_table(answers: Sequence[AdaptiveWorth]) -> Table:
    """A row per rule and policy."""
    rows = [{"of": answer, "by": each} for answer in answers for each in answer.histories]
    columns = [
        *([Column("draft", kind="words", at="of.draft")] if answers[0].draft else []),
        Column("rule", kind="words", at="of.rule.name"),
        Column(
            "length by", kind="names", at="by.policy.name", meaning="what sets the drafts of a call from calls before"
        ),
        Column("engine", kind="names", at="by.policy.engine"),
        Column("tokens per call", at="by.prediction.tokens_per_call"),
        Column("drafted\nper call", aside=True, at="by.prediction.drafted"),
        Column("speed-up", "x", at="by.prediction.speedup"),
        Column("best\nfixed k", "x", meaning="its speed-up", at="of.fixed.speedup", aside=True),
    ]
    return Table.of("Lengths that earlier calls decide, one request at a time", columns, rows, _OF_HISTORY)


_OF_HISTORY = (
    "Heuristic: two more drafts after a call that accepted all, else one less (exact for the texts). Moving average: "
    "one of a few k by the average of accepted drafts; its calls are replayed with drawn acceptances. Moving threshold "
    "(at temperature 0): up to a token below a probability that the drafts judged so far decide; exact calls, and "
    "drafted tokens within a range.",
)


def _worth_table(answers: Sequence[AdaptiveWorth]) -> Table:
    """A row per rule: fixed lengths, stopping rules, and the limit of all adaptive lengths."""
    columns = [
        *([Column("draft", kind="words")] if answers[0].draft else []),
        Column("rule", kind="words", at="rule.name"),
        Column("best\nfixed k", at="fixed.shape.nodes"),
        Column("speed-up", "x", meaning="with that k", at="fixed.speedup"),
        Column("best\nstopping rule", kind="names", at="stopped.label.stop"),
        Column(
            "speed-up",
            "x",
            meaning="with that stopping rule, on prompts it was not chosen on",
            at="stopped.speedup",
        ),
        Column("drafted\nper call", aside=True, at="stopped.drafted"),
        Column("most with\nthis rule", "x", meaning="upper bound for every adaptive length", at="limit"),
        *([_OF_ANY_RULE] if any(answer.any_rule for answer in answers) else []),
    ]
    title = f"What adaptive lengths are worth, at most {answers[0].stopped.shape.nodes} drafts a call"
    return Table.of(title, columns, answers, _OF_ADAPTIVE)


_OF_ANY_RULE = Column(
    "most with\nany rule",
    "x",
    meaning="upper bound for every adaptive length and every lossless fresh rule on one chain",
    at="any_rule",
)
_OF_ADAPTIVE = (
    "Best stopping rule: thresholds at quantiles of what the trace records of the draft. The one shown is best on all "
    "prompts; each prompt is scored with the one that is best on others.",
    "Most with this rule: no length that drafts, pmfs and earlier calls decide is faster. Most with any rule: nor with "
    "any lossless fresh rule on one chain of this draft. Both are upper bounds that need not be reached.",
)

# New prompts


def new_prompts_table(plan: Plan, per_prompt: Sequence[PerPrompt]) -> Table:
    """The best rule's pooled tokens per call, the mean over prompts, and the range of the mean over new ones."""
    pooled = {each.wanted: each for each in plan.of(plan.best.label)}
    columns = [
        Column("k", at=lambda each: pooled[each.wanted].shape.nodes),
        Column("pooled", at=lambda each: pooled[each.wanted].tokens_per_call),
        Column("mean of prompts", at="mean"),
        Column(f"mean of {per_prompt[0].prompts} new", at="new"),
    ]
    notes = [
        "pooled: tokens of all prompts over their calls. mean of prompts: of each one's own tokens per call. Both have "
        "95% confidence intervals, for all prompts of this kind. new: 95% prediction interval of the second over so "
        "many new prompts of the same kind."
    ]
    return Table.of(f"{plan.best.label}: tokens per call of prompts to come", columns, per_prompt, notes)


# Bias (Y6)

_SHARE = "how far acceptance is raised, b = (1 - share) min(1, p/q) + share; 0 is lossless, 1 outputs the draft"
_CUT = (
    "The target's tokens are cut (temperature 0, or a filter), or the trace does not say. After a draft that the "
    "target cannot output, tokens per call and speed-up count what the share alone accepts, of other rules nothing: a "
    "lower estimate. The upper estimate counts every draft. Noise may swap the two where they are close."
)


def bias_table(points: Sequence[BiasPoint]) -> Table:
    """Tokens per call and speed-up against what rules that change the text cost; both sides where they differ."""
    cut = any(point.upper_tokens_per_call for point in points)
    shares, uno = (any(getattr(point, name) is not None for point in points) for name in ("share", "uno_bias"))
    columns = [
        Column("rule", kind="names", at="rule.name"),
        *([Column("share", meaning=_SHARE, at="share")] if shares else []),
        Column("k"),
        Column("tokens per call"),
        *([Column("upper estimate", at="upper_tokens_per_call")] if cut else []),
        Column("speed-up", at="speedup"),
        Column("bias per token", digits=4, at="bias.best"),
        Column("nats per token", digits=4, at=lambda point: point.nats.best if point.nats else None),
        *([Column("UNO's bias", digits=4, at=lambda p: p.uno_bias.best if p.uno_bias else None)] if uno else []),
    ]
    notes = [
        "These rules change the text: their output is not the target's.",
        *([f"share: {_SHARE}."] if shares else []),
        "The starts and prefixes of a biased decoder drift; these calls start where lossless ones do.",
        *([_CUT] if cut else []),
        "bias: total variation per verified token, the least share of them that changes (Y6 with the best recovery, Y7)"
        f"{', and with recovery from the target (UNO)' if uno else ''}. nats: KL(output || target) per verified "
        "token, where it is finite; of relaxed the log-probability that it gives up against the first choice.",
    ]
    return Table.of("Rules that change the text, estimated along texts of the target", columns, points, notes)


# The calls of transformers' assisted generation

Records = Sequence[Mapping[str, Any]]
"""For each k: tokens, calls counted and predicted, standard error of the difference and ``z`` in standard errors."""
POWER = 0.9
"""Probability with which a difference of the size that is stated is found."""


def of_all(records: Records) -> dict[str, Any]:
    """Sums over every k, whose texts are independent: variances add up.

    ``found`` is the share by which all calls must be off to be found with probability :data:`POWER` by a two-sided test
    with 5% false alarms (asymptotic, to first order): more calls, as drafts are accepted less often, and with the
    variance that calls then have. Fewer calls vary less, so they are found with no smaller probability.
    """
    made = {name: sum(record[name] for record in records) for name in ("tokens", "counted", "predicted")}
    variance = sum(record["standard_error"] ** 2 for record in records)
    error, slope = math.sqrt(variance), max(sum(r["variance_slope"] * r["predicted"] for r in records), 0.0)
    z = in_deviations(made["counted"] - made["predicted"], error, CERTAIN)
    reach, power = float(ndtri((1 + CONFIDENCE) / 2)) * error, float(ndtri(POWER))
    # Calls off by x have the variance v + s x, and x = reach + power * sqrt(v + s x).
    half = power**2 * slope / made["predicted"] / 2 if error else 0.0
    smallest = (reach + half + math.sqrt(half**2 + 2 * half * reach + power**2 * variance)) / made["predicted"]
    return {**made, "standard_error": error, "z": z if math.isfinite(z) else None, "found": smallest}


def check_table(records: Records) -> Table:
    """Predicted against counted target calls, and predicted against measured speed-up."""
    columns = [
        Column("k"),
        Column("tokens", meaning="tokens decoded"),
        Column("calls counted", at="counted"),
        Column(
            "predicted",
            digits=1,
            meaning="target calls that the trace predicts for these texts",
            at=lambda record: float(record["predicted"]),
        ),
        Column("diff / s.e.", signed=True, at=lambda each: deviations(each["z"], each["counted"] - each["predicted"])),
        Column("measured", "x", at="measured_speedup"),
        Column("loop without overhead", "x", at="predicted_speedup"),
    ]
    every = {**of_all(records), "k": "all"}
    notes = [
        f"Calls that are {100 * every['found']:.1f}% more or fewer than predicted at every k would be found with "
        f"probability {POWER:.0%} or more (5% false alarms)."
    ]
    rows = [*records, *([every] if len(records) > 1 else [])]
    return Table.of("Against transformers' assisted generation (token verification)", columns, rows, notes)


# Recorded lengths (§10)


def recorded_table(readings: Sequence[RecordedReading]) -> Table:
    """Tokens per call by start, by position and i.i.d., for every draft and k."""
    columns = [
        Column("draft", kind="words"),
        Column("k"),
        Column("by start"),
        Column("mean of requests", at="over_requests"),
        Column("by position", aside=True),
        Column("i.i.d. (C1)", aside=True, at="iid"),
        Column(
            "off",
            "%",
            digits=1,
            signed=True,
            aside=True,
            at=lambda each: 100 * (each.by_position / each.by_start.best - 1),
        ),
    ]
    notes = (
        "by start: the calls of all requests pooled; mean of requests: of each one's own tokens per call.",
        "by position: each position's first draft, as if it did not depend on where the call starts; i.i.d.: the share "
        "of first drafts accepted, at every depth. Both are idealised values. off: by position against by start.",
    )
    return Table.of("What other readings of the log would have said, tokens per call", columns, readings, notes)


# Settings of sampling that were measured


def settings_table(measured: Mapping[str, tuple[Trace, LatencyTable]]) -> Table:
    """The best chain of token verification for each setting, by name."""
    rows = [
        {
            "name": name,
            "best": plan(trace, table, rules="token", trees=False).best,
            "entropy": float(trace.columns["target_entropy"].mean()),
            "c": table.ratio,
        }
        for name, (trace, table) in measured.items()
    ]
    columns = [
        Column("sampling", kind="names", at="name"),
        Column("acceptance", at="best.acceptance", meaning="mean over positions of a call's first draft"),
        Column("entropy", at="entropy", aside=True, meaning="mean entropy of the target, nats"),
        Column("c", meaning="time of a draft step over that of a target step"),
        Column("best k", kind="names", at=lambda row: in_words(row["best"].shape)),
        Column("tokens per call", at="best.tokens_per_call"),
        Column("speed-up", "x", at="best.speedup"),
    ]
    return Table.of("The best chain of token verification, by sampling", columns, rows)
