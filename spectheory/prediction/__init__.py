"""Predictions from a trace: expected calls along its texts (§7), intervals over prompts, limits, the best plan."""

from spectheory.prediction.answer import Label, Plan, Prediction
from spectheory.prediction.bounds_answer import BoundsAnswer, EarlyAnswer, bounds
from spectheory.prediction.from_acceptance import FromAcceptance, from_acceptance
from spectheory.prediction.plan_answer import plan
from spectheory.prediction.prediction import predict
from spectheory.prediction.rules_answer import RulesAnswer, rules
from spectheory.prediction.tree_answer import TreeAnswer, tree
from spectheory.prediction.what_if_answer import WhatIf, what_if
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
    "WhatIf",
    "bounds",
    "from_acceptance",
    "plan",
    "predict",
    "rules",
    "tree",
    "what_if",
]
