"""Predictions from a trace: expected calls along its texts (§7), intervals over prompts, limits, the best plan."""

from spectheory.prediction.answer import Plan, Prediction
from spectheory.prediction.labels import Label
from spectheory.prediction.prediction import DEFAULT_SHAPES, plan, predict
from spectheory.verification.registry import DEFAULT_RULES

__all__ = ["DEFAULT_RULES", "DEFAULT_SHAPES", "Label", "Plan", "Prediction", "plan", "predict"]
