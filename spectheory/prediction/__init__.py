"""Predictions from a trace: expected calls along its texts (§7), intervals over prompts, limits, the best plan."""

from spectheory.prediction.answer import Label, Plan, Prediction
from spectheory.prediction.prediction import predict
from spectheory.prediction.whole import plan
from spectheory.verification.registry import DEFAULT_RULES

__all__ = ["DEFAULT_RULES", "Label", "Plan", "Prediction", "plan", "predict"]
