"""What verifying reads of a mixture of experts, beside what one token reads (C7)."""

from __future__ import annotations

from dataclasses import dataclass

from spectheory.cost import Roofline, distinct_experts
from spectheory.intervals import Interval


@dataclass(frozen=True)
class ExpertReading:
    """Weights that verifying `tokens` tokens of each of `batch` sequences reads, over those of a plain step.

    `distinct` are the experts of `experts` in a layer that they touch, `chosen` those of one token. Both are bounds for
    one sequence and estimates for several; with a routing log, `logged`, exact for its texts for one sequence. `layers`
    counts the layers with experts.
    """

    tokens: int
    batch: int
    ratio: Interval
    distinct: Interval
    experts: int
    chosen: int
    layers: int
    logged: bool


def expert_reading(cost: object, tokens: int) -> ExpertReading | None:
    """What a roofline says of verifying so many tokens; None without experts."""
    if not isinstance(cost, Roofline) or not cost.target.routed or tokens < 2:
        return None
    layers, part = cost.target.routed[0]
    many, one = (cost.target.pass_bytes(count, cost.batch, cost.routing) for count in (tokens, 1))
    if cost.routing is None:
        distinct = distinct_experts(part.experts, part.chosen, tokens, cost.batch)
    else:
        value = cost.routing.distinct(tokens, cost.batch)
        distinct = Interval.exact(value) if cost.batch == 1 else Interval.estimate(value)
    ratio = Interval(many.low / one.best, many.best / one.best, many.high / one.best, many.kind)
    return ExpertReading(
        tokens=tokens,
        batch=cost.batch,
        ratio=ratio,
        distinct=distinct,
        experts=part.experts,
        chosen=part.chosen,
        layers=layers,
        logged=cost.routing is not None,
    )
