"""A validation of the tiny pair, which its tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectheory.drafting import Chain, KAry
from spectheory.measure import MeasureSettings, ModelPair
from spectheory.measure.validation import Validation, validate
from spectheory.prompts import Prompt

PROMPTS = tuple(Prompt(str(i), "", f"t{i % 60 + 1} t{i % 7 + 1} t9") for i in range(1, 9))


WARM = 0.8


HOW = MeasureSettings(tokens=30, seed=3, count=1)


QUESTION = Validation((), (Chain(1), Chain(3), KAry((2, 2))), (0.0, WARM), HOW)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the validation leaves behind."""
    return tmp_path_factory.mktemp("validation")


@pytest.fixture(scope="module")
def found(tiny_pair: ModelPair, folder: Path, quick_latencies: None) -> dict[str, Any]:
    """Every rule with two chains and a tree, at two temperatures."""
    return validate(tiny_pair, PROMPTS, QUESTION, folder)
