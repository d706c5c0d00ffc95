"""What the limit of a whole decoding says of a plan (§12): what each rule loses to it, and what escapes it."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.intervals import Interval
from spectheory.limits.claims import BY_START, TEXT, WHOLE_DECODING, LimitClaim
from spectheory.prediction import Plan, Prediction
from spectheory.verification import BlockVerification

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
    lost = [f"{_named(p)} {'needs ' if p is row[0] else ''}{_percent(p)}" for p in row]
    losing = f": at k = {best.shape.nodes} {', '.join(lost)} more (paired over prompts)" if lost else ""
    return [f"{says}{losing}. {_BEATEN}", *_escaping(predictions, limit)]


def _named(prediction: Prediction) -> str:
    stop = prediction.label.stop
    return prediction.rule.label + (f" stopped at {stop}" if stop else "")


def _percent(prediction: Prediction) -> str:
    """The regret, which noise may put below zero."""
    of = prediction.regret
    assert of is not None
    return f"{Interval(100 * of.low, 100 * of.best, 100 * of.high, of.kind).short(1)}%"


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
