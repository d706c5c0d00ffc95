"""Predictions from a trace: expected calls along its texts (§7), intervals over prompts, limits, the best plan."""

from spectheory.prediction.answer import Label, Plan, Prediction
from spectheory.prediction.from_acceptance import FromAcceptance, from_acceptance
from spectheory.prediction.prediction import predict
from spectheory.prediction.whole import plan
from spectheory.prediction.whole_bounds import BoundsAnswer, EarlyAnswer, bounds
from spectheory.prediction.whole_rules import RulesAnswer, rules
from spectheory.prediction.whole_tree import TreeAnswer, tree
from spectheory.verification.registry import DEFAULT_RULES

__all__ = [
    "DEFAULT_RULES",
    "BoundsAnswer",
    "EarlyAnswer",
    "FromAcceptance",
    "Label",
    "Plan",
    "Prediction",
    "RulesAnswer",
    "TreeAnswer",
    "bounds",
    "from_acceptance",
    "plan",
    "predict",
    "rules",
    "tree",
]
