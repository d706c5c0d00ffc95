"""A question about the tiny pair, which tests share."""

from __future__ import annotations

from spectheory.drafting import Chain, KAry
from spectheory.measure import MeasureSettings
from spectheory.measure.validation import Validation
from spectheory.prompts import Prompt

PROMPTS = tuple(Prompt(str(i), "", f"t{i % 60 + 1} t{i % 7 + 1} t9") for i in range(1, 9))

WARM = 0.8

HOW = MeasureSettings(tokens=30, seed=3, count=1)

QUESTION = Validation((), (Chain(3), KAry((2, 2))), (0.0, WARM), HOW)
