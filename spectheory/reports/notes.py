"""The sentences under the tables of predictions and plans: what is exact, what is estimated, what limits claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectheory.cost import LatencyTable, LoopedTable, Roofline
from spectheory.cost.roofline import DRAFTING_OFF, VERIFYING_OFF
from spectheory.cost.table import DISTURBED, ROUNDS
from spectheory.deployment import serving_engines, without_method, without_stop
from spectheory.deployment.candidates import in_words
from spectheory.deployment.deployment import Deployment
from spectheory.deployment.lock_step import MOST_TOGETHER
from spectheory.intervals import Interval
from spectheory.limits.claims import (
    BY_START,
    IID_BRANCHING,
    IID_CHANNEL,
    IID_FORMULA,
    ON_DECODINGS,
    ON_TRACES,
    TEXT,
    WHOLE_DECODING,
    LimitClaim,
    footnotes,
)
from spectheory.prediction import Plan, Prediction
from spectheory.prediction.answer import RecordedReading
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.guessed_ratio import AtRatio
from spectheory.prediction.over_prompts import Prompts, few_prompts
from spectheory.prediction.per_prompt import HEAVY
from spectheory.prediction.recorded import BEST
from spectheory.prediction.remarks import about_texts, origin, sampled_choices
from spectheory.prediction.shape_calls import by_parallel_head
from spectheory.reports.base import short
from spectheory.trace import LEFT_OUT, PROVISIONAL
from spectheory.trace.calls import is_count
from spectheory.verification import BlockVerification, GreedyMatch, RankRule

_IN_LOOP = (
    "Speed-ups include the measured time of our decoding loop around the passes; --passes-alone leaves it out. An "
    "engine has a loop of its own."
)


def guessed_notes(guessed: Sequence[AtRatio]) -> list[str]:
    """What would be best at half and at twice a c that was given.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> x = Interval.exact
    >>> low, high = AtRatio(0.05, "token", Chain(5), x(3.0), x(2.4)), AtRatio(0.2, "token", Chain(2), x(2.1), x(1.5))
    >>> guessed_notes([low, high])
    ['c is a guess until it is timed: at c = 0.05 best is token, k = 5: 2.40x; at c = 0.2 token, k = 2: 1.50x.']
    """
    if not guessed:
        return []
    said = [f"{', '.join(filter(None, [one.rule, in_words(one.shape)]))}: {one.speedup.best:.2f}x" for one in guessed]
    (low, high), (first, second) = (one.c for one in guessed), said
    return [f"c is a guess until it is timed: at c = {low:g} best is {first}; at c = {high:g} {second}."]


NO_COST = "No speed-up without costs: give --c or a latency table."


def provisional_words(provenance: Mapping[str, Any]) -> str:
    """``Provisional, from 12 of 48 prompts spread evenly over the file``; empty for a whole trace."""
    counts = provenance.get(PROVISIONAL)
    if not counts:
        return ""
    return f"Provisional, from {counts['prompts']} of {counts['of']} prompts spread evenly over the file"


# Predictions

_COUNTED = "Tokens per call count accepted drafts and the recovered or bonus token of each target call."


def prediction_notes(plan: Plan, in_loop: bool, recorded: Sequence[RecordedReading] = ()) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each; `recorded` lengths have no limits."""
    provenance, few = plan.best.provenance, few_prompts(plan.prompts)
    cost = [] if plan.timed and not in_loop else [_IN_LOOP if plan.timed else NO_COST]
    if recorded:
        return [*heavy_tail(recorded, plan.best), _COUNTED, *recorded_notes(provenance, recorded), *cost, *few]
    estimated = [
        p.rule.name
        for p in plan.predictions
        if isinstance(p.rule, RankRule) and p.rule.estimated and p.shape.max_rank > 1
    ]
    greedy = any(isinstance(p.rule, GreedyMatch) for p in plan.predictions) and _temperature(provenance) != 0
    ideal = "Greedy verification outputs the target's first choices: on other text its numbers are idealised."
    return [
        *_policies(plan),
        *whole_decoding(plan.predictions),
        _COUNTED,
        "They are exact for the texts of the trace; intervals (95%) are over prompts.",
        *(
            f"{name} with several candidates is not exact: its rank laws are unbiased estimates, whose noise the "
            "intervals include."
            for name in dict.fromkeys(estimated)
        ),
        *origin(provenance),
        *_without_pmfs(plan),
        *_searched(plan),
        *cost,
        *([ideal] if greedy else []),
        *sampled_choices(plan.chosen_on),
        *few,
        *_claims(plan),
    ]


def _without_pmfs(plan: Plan) -> list[str]:
    """What a trace without full pmfs bounds, and what it leaves out."""
    lines = []
    absent = [claim.name for claim in (IID_BRANCHING, IID_CHANNEL) if plan.best.compared(claim) is None]
    bounded = dict.fromkeys(p.rule.name for p in plan.predictions if p.certified)
    if bounded:
        lines.append(
            f"{', '.join(bounded)}: not exact, but from lists of the most probable tokens. The range that they allow "
            "(`certified`) is certain for these texts; intervals join the 95% ones over prompts at both of its ends "
            "(with one prompt, the ends alone). The middle is no estimate: settings are compared by the low end."
        )
    elif absent:
        absent = ["the race rule", *absent]
    if absent:
        lines.append(f"Absent, as they need full pmfs: {', '.join(absent)}.")
    return lines


def _searched(plan: Plan) -> list[str]:
    """How trees were found and scored."""
    if not any(isinstance(p.wanted, BestTree) for p in plan.predictions):
        return []
    return [
        "Trees are the best that a local search found, one for each rule and size.",
        "Each text is scored by a tree found on other prompts; the intervals treat the trees as fixed."
        if all(p.held_out for p in plan.predictions)
        else "With one prompt they are scored on the text they were found on: too high.",
    ]


def formulas(plan: Plan) -> list[LimitClaim]:
    """C1, which knows no stopping rule, where the first chains have none."""
    return [] if plan.chains[0].stop else [IID_FORMULA]


def _claims(plan: Plan) -> list[str]:
    """What the limits claim that the tables show."""
    others = [claim for claim in ON_TRACES if claim.scope is not ON_DECODINGS]
    shown = [*limits_of_decodings(plan), *others, *formulas(plan)] if plan.chains else others
    known = [claim for claim in shown if any(p.compared(claim) is not None for p in plan.predictions)]
    lumped = (
        "T1 counts all ranks above 8 (or above those recorded) as one. For rules without ranks it uses the ranks of "
        "recursive rejection."
    )
    return [*footnotes(known), *([lumped] if IID_CHANNEL in known else [])]


def _temperature(provenance: Mapping[str, Any]) -> float | None:
    """At which the text was decoded; None where that is unknown."""
    settings = provenance.get("settings")
    sampling = settings.get("sampling") if isinstance(settings, dict) else None
    return sampling.get("temperature") if isinstance(sampling, dict) else None


def _policies(plan: Plan) -> list[str]:
    """One sentence that compares both policies at the best k of either; none for other drafts."""
    if not by_parallel_head(plan.best.provenance):
        return []
    chains = [p for p in plan.predictions if p.label.chain and not p.label.stop and p.rule.output == "sample"]
    of = {way: [p for p in chains if p.rule.drafts == way] for way in ("chosen", "drawn")}
    if not all(of.values()):
        return []
    k = max(chains, key=lambda p: p.gain).shape.nodes
    argmax, sampled = (max((p for p in of_way if p.shape.nodes == k), key=lambda p: p.gain) for of_way in of.values())
    return [
        f"One pass drafts all depths: argmax drafts {argmax.tokens_per_call.best:.2f}, sampled "
        f"{sampled.tokens_per_call.best:.2f} ({sampled.rule.label}) tokens per call at k = {k}; both are lossless."
    ]


# The limit of a whole decoding (§12)

_BEATEN = "Longer chains, a better draft, several drafts at a position, or drafts that do not sample may need fewer."


def whole_decoding(predictions: Sequence[Prediction]) -> list[str]:
    """One sentence with the calls that each rule loses at the best k of a chain, and which settings escape the limit.

    The predictions are of one trace; nothing if it has no such limit.
    """
    chains = [p for p in predictions if p.shape.is_chain and p.regret is not None]
    chains = [p for p in chains if p.label.stop is None] or chains  # whole chains first: stopped ones lose by stopping
    if not chains:
        return []
    best = max(chains, key=lambda p: p.gain)
    row = [p for p in chains if p.shape.nodes == best.shape.nodes]
    if best.limits.decoding_by_start is None:
        limit, on, least = WHOLE_DECODING, "this draft", "block"
        row = [p for p in row if p.rule != BlockVerification() or p.label.stop]
    else:
        limit, on, least = BY_START, "this head", "a bound that need not be reached"
    says = (
        f"No lossless fresh rule on chains of k drafts from {on} needs fewer expected calls than {least} ({limit.name})"
    )
    lost = [_lost(p, "needs " if p is row[0] else "") for p in row]
    losing = f": at k = {best.shape.nodes} {', '.join(lost)} more (paired over prompts)" if lost else ""
    return [f"{says}{losing}. {_BEATEN}", *_escaping(predictions, limit)]


def _lost(prediction: Prediction, verb: str) -> str:
    """The rule and its regret, which noise may put below zero."""
    stop, of = prediction.label.stop, prediction.regret
    assert of is not None
    share = Interval(100 * of.low, 100 * of.best, 100 * of.high, of.kind).short(1)
    return f"{prediction.rule.label}{f' stopped at {stop}' if stop else ''} {verb}{share}%"


def _escaping(predictions: Sequence[Prediction], limit: LimitClaim) -> list[str]:
    """Which settings the limit does not bind."""
    free = list(dict.fromkeys(p.rule.name for p in predictions if limit.key not in p.rule.bound_by))
    unsampled = list(dict.fromkeys(p.rule.name for p in predictions if TEXT.key in p.rule.bound_by))
    free += ["trees"] if not all(p.label.chain for p in predictions) else []
    lines = [
        f"{limit.name} does not bind {', '.join(free)}: their drafts are not one chain drawn from the draft's pmfs."
    ]
    if unsampled:
        lines.append(
            f"B6 of {', '.join(unsampled)}, whose drafts do not sample, is a bound on one call, averaged over the "
            "starts of their own calls: an estimate, as other such drafts start elsewhere. A table's B6 is that of the "
            "first rule."
        )
    return lines if free else []


def limits_of_decodings(plan: Plan) -> list[LimitClaim]:
    """The limit of whole decodings, unless a column of the table is that limit: block verification is B7."""
    chains = [p for label in plan.chains for p in plan.of(label)]
    if not plan.of("block") and any(p.limits.decoding for p in chains):
        return [WHOLE_DECODING]
    return [BY_START] if any(p.limits.decoding_by_start for p in chains) else []


# Recorded lengths (§10)

_OF_LENGTHS = (
    "From accepted lengths at every start: exact for the texts of the log and the decoding it was recorded in, for "
    "every k up to the longest length of each draft ({most}); intervals (95%) are over requests."
)
_OF_BEST = (
    f"{BEST}: the draft that accepts more at each start, a choice that knows the text. No choice made before drafting "
    "is known to reach it. Every call is charged the draft model's passes."
)


def recorded_notes(provenance: Mapping[str, Any], readings: Sequence[RecordedReading]) -> list[str]:
    """What holds of recorded lengths, a sentence each."""
    drafts = {each.draft: each for each in readings if each.draft != BEST}.values()
    most = ", ".join(f"{each.draft} {each.most}" for each in drafts)
    temperature = _temperature(provenance)
    lines = [
        _OF_LENGTHS.format(most=most),
        "The log does not say at which temperature it was recorded."
        if temperature is None
        else f"Recorded at temperature {temperature:g}; other settings accept other lengths.",
    ]
    if temperature == 0:
        lines.append("At temperature 0 every rule that verifies a chain of the draft's tokens accepts these lengths.")
    for each in drafts:
        if each.recut is None:
            continue
        fails = "" if each.recut == 1.0 else ": a log of one k cannot be re-cut into another k"
        lines.append(
            f"{each.draft}: after a start that accepts a drafts, 0 < a < {each.most}, the next start accepts a - 1 in "
            f"{100 * (each.recut or 0):.1f}% of the cases{fails}."
        )
    if any(each.draft == BEST for each in readings):
        lines.append(_OF_BEST)
    return [*lines, *(f"{_of_largest(each)}." for each in readings[:1] if not each.largest.heavy)]


def requests_left_out(provenance: Mapping[str, Any], readings: Sequence[RecordedReading]) -> str:
    """How many requests of the log the answer is of, where some are left out."""
    left_out = provenance.get(LEFT_OUT)
    if not (readings and is_count(left_out) and left_out):
        return ""
    requests = readings[0].largest.of
    return f"{requests} of {requests + left_out} requests: the others' lists are not of their text's length"


def heavy_tail(readings: Sequence[RecordedReading], best: Prediction) -> list[str]:
    """A warning where a few long requests decide, with the mean over requests of the best setting."""
    here = [each for each in readings if (each.draft, each.k) == (best.rule.name, best.shape.nodes)]
    if not (here and here[0].largest.heavy):
        return []
    return [
        f"{_of_largest(here[0])}, above {100 * HEAVY:.0f}%: they decide tokens per call, whose 95% intervals are then "
        f"too short. The mean over requests is {here[0].over_requests} at this setting (pooled {here[0].by_start})."
    ]


def _of_largest(reading: RecordedReading) -> str:
    few = reading.largest
    return f"The longest 1% of the requests, {few.prompts} of {few.of}, hold {100 * few.share:.1f}% of the tokens"


# Plans

_OF_ENGINES = (
    "An engine's k may differ from the best k above: it is the fastest under the engine's own rule. The engine's own "
    "work between passes is not in it."
)
"""Why settings for engines differ from the best setting."""
_CHOSEN = (
    "Lengths, sizes and the best setting are chosen on the texts they are scored on, and the intervals do not include "
    "that choice."
)


_OVER_BOTH = (
    "Intervals (95%) are over prompts and latencies together. Settings whose intervals overlap may still differ, "
    "since they share prompts and latencies."
)
ROOFLINE_ERROR = (
    f"Ranges hold the roofline's stated error beside that of the texts: draft passes of 1/{DRAFTING_OFF:g} to "
    f"{DRAFTING_OFF:g} times the time, as of a guessed c, and verification off by {VERIFYING_OFF:.0%}, by which "
    "published steps on an RTX 5090 (qwen38-mtp) leave a straight line at most. Overheads that are not given are not "
    "in it: llama.cpp#25908 reports 90% accepted and slower, so calls of 1.9 plain steps or more."
)
"""What the range of a speed-up by a roofline holds."""


def _of_target(cost: Roofline) -> list[str]:
    """What experts and states of a target do to its times."""
    lines = []
    if cost.target.routed and cost.routing is None:
        lines.append(
            "Experts: times are midway between tokens of a sequence that all share their experts and tokens routed "
            "independently; the range holds both, bounds for one sequence, an estimate for several."
        )
    elif cost.target.routed:
        lines.append("Experts are counted by the routing log: exact for its texts for one sequence, else an estimate.")
    if state := cost.target.state_bytes:
        lines.append(
            f"Verification writes a state of {state / 1e6:.3g} MB per token and sequence, to go back to after a "
            "rejection; an engine that computes a second pass instead takes longer."
        )
    return lines


def deployment_notes(answer: Deployment) -> list[str]:
    """What must be known to trust a plan, a sentence each."""
    drafts, ranking = answer.drafts, answer.ranking
    if answer.recorded:
        lines = heavy_tail(answer.recorded, ranking.best.prediction)
        lines += [line for draft in drafts for line in recorded_notes(draft.trace.provenance, answer.recorded)]
        off = [ROOFLINE_ERROR] if isinstance(drafts[0].cost, Roofline) else []
        return [*dict.fromkeys(lines), _CHOSEN, *off, *few_prompts(answer.prompts)]
    costs = [draft.cost for draft in drafts]
    lines = [
        "Tokens per call count the recovered or bonus token; exact for the texts of the trace (path theorem).",
        ROOFLINE_ERROR if isinstance(costs[0], Roofline) else _OVER_BOTH,
        f"Trees are scored on other prompts than those they were found on. {_CHOSEN}",
        _IN_LOOP if isinstance(ranking.best.draft.cost, LoopedTable) else "Speed-ups are of passes alone.",
        _OF_ENGINES,
    ]
    lines += [*_not_run(answer), *without_method(drafts), *without_stop(answer.stops)]
    for cost in costs[:1]:
        if isinstance(cost, LatencyTable):
            lines.append(
                f"Latencies are of batch 1 and context {cost.context}: for other batches and contexts give --hardware."
            )
            lines += timing_notes(cost)
        elif isinstance(cost, Roofline):
            lines.append(
                f"Seconds are a roofline's, an estimate, at batch {cost.batch} and context {cost.context}; in the "
                "table every sequence has the same context."
            )
            lines += _of_target(cost)
            if max((choice.batch for choice in answer.batches), default=0) > MOST_TOGETHER:
                lines.append(f"Lock-step is planned up to {MOST_TOGETHER} texts.")
    best = ranking.best.prediction.shape
    if best.nodes == (answer.k_max if ranking.best.kind == "chain" else answer.nodes):
        lines.append("The best shape is the largest tried: a longer --k-max or a larger --nodes-max may give more.")
    lines += [f"Left out: {what}" for what in ranking.left_out]
    if len({draft.fact("prompts", "sha256") for draft in drafts}) > 1:
        lines.append("The drafts were measured on different prompts: part of their difference is the text's.")
    lines += next(filter(None, (about_texts(draft.trace.provenance) for draft in drafts)), [])
    if drafts[0].fact("settings", "sampling", "min_p"):
        able = [engine.name for engine in serving_engines() if engine.takes_min_p]
        lines.append(f"Measured with min-p, which holds where drafts are verified in these engines: {', '.join(able)}.")
    if any(draft.fact("settings", "sampling", "temperature") == 0 for draft in drafts):
        lines.append("Greedy decoding: every rule accepts the target's first choice alone; trees are left out.")
    prompts = [Prompts(draft.trace.texts) for draft in drafts]
    chosen_on = min(filter(None, (each.chosen_on for each in prompts)), default=None)
    return [*lines, *sampled_choices(chosen_on), *few_prompts(min(each.count for each in prompts))]


def _not_run(answer: Deployment) -> list[str]:
    """Where no engine runs the best rule: what the fastest one runs."""
    best, fastest = answer.ranking.best, max(answer.engines, key=lambda each: each.candidate.speedup.best, default=None)
    if fastest is None or any(each.candidate.prediction.rule == best.prediction.rule for each in answer.engines):
        return []
    rule, runs = (short(each.prediction.rule.name) for each in (best, fastest.candidate))
    return [f"No engine here runs {rule} verification; {fastest.engine} runs {runs}."]


# Latencies

_TIMED = (ROUNDS, "pass_rounds", "loop_rounds")
"""Keys of a table's provenance that say how its rounds ended; the last two are of earlier versions."""


QUIET = "Quiet the machine, remove the file of latencies and run again for a narrower range."
"""What to do where other processes disturbed the timing."""


def timing_notes(table: LatencyTable) -> list[str]:
    """One sentence if other processes ran meanwhile, or if the time was over before all intervals were narrow enough.

    Examples
    --------
    >>> from spectheory.intervals import Interval
    >>> ended = {"stopped": "budget", "seconds": 62.0, "others": 1.71, "widths": {"target 64": 0.12}}
    >>> second = Interval.exact(1.0)
    >>> timing_notes(LatencyTable({1: second}, {}, 64, {"rounds": ended}))[0]
    'Latencies: other processes used 1.7 cores; the time was over after 62 s, with intervals up to 12% wide.'
    """
    endings = [ended for key in _TIMED if isinstance(ended := table.provenance.get(key), Mapping)]
    busiest = max((ended.get("others") or 0.0 for ended in endings), default=0.0)
    said = [f"other processes used {busiest:.1f} cores"] if busiest > DISTURBED else []
    if table.disturbed:
        said.append(f"above {DISTURBED:g} the 95% interval is that of a single group of rounds, not of their mean")
    if cut := [ended for ended in endings if ended.get("stopped") == "budget"]:
        widest = max((width for ended in cut for width in ended.get("widths", {}).values()), default=None)
        wide = f", with intervals up to {widest:.0%} wide" if widest is not None else ""
        said.append(f"the time was over after {sum(ended['seconds'] for ended in cut):.0f} s{wide}")
    return [*([f"Latencies: {'; '.join(said)}."] if said else []), *([QUIET] if table.disturbed else [])]


def disturbed_words(best: Prediction, cost: object) -> str:
    """That other processes disturbed the timing, with the range over its groups; empty if they did not."""
    if not (best.disturbed and isinstance(cost, LatencyTable)):
        return ""
    low, high = (f"{end:.2f}x" for end in (best.disturbed.low, best.disturbed.high))
    return f"This timing looks disturbed (others used {cost.others or 0:.1f} cores): {low} to {high} over rounds"
