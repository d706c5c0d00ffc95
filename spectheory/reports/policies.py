"""How a parallel head's drafts are chosen: sampled from its marginals, or the most probable tokens (§10)."""

from __future__ import annotations

from collections.abc import Iterable

from spectheory.prediction import Plan, Prediction
from spectheory.prediction.shape_calls import by_parallel_head


def policies(plan: Plan) -> list[str]:
    """One sentence that compares both policies at the best k of either; none for other drafts."""
    if not by_parallel_head(plan.best.provenance):
        return []
    chains = [p for p in plan.predictions if p.label.chain and not p.label.stop and p.rule.output == "sample"]
    of = {way: [p for p in chains if p.rule.drafts == way] for way in ("chosen", "drawn")}
    if not all(of.values()):
        return []
    k = _best(chains).shape.nodes
    argmax, sampled = (_best(p for p in each if p.shape.nodes == k) for each in of.values())
    return [
        f"One pass drafts all depths: argmax drafts {argmax.tokens_per_call.best:.2f}, sampled "
        f"{sampled.tokens_per_call.best:.2f} ({sampled.rule.label}) tokens per call at k = {k}; both are lossless."
    ]


def _best(predictions: Iterable[Prediction]) -> Prediction:
    return max(predictions, key=lambda p: p.gain)
