"""Rounded raw lists with sampling settings: the ranges hold the truth, and a cut left open is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import truncated
from spectheory.distributions import Sampling
from spectheory.errors import TextError
from spectheory.trace import read_any
from spectheory.verification import RaceVerification


def test_rounded_raw_lists_keep_their_truth_under_a_temperature(tmp_path: Path) -> None:
    """Logs rounded to three digits, then divided by T = 1/4: the race's range still holds the exact acceptance."""
    p, q, settings = np.array([0.52, 0.31, 0.17]), np.array([0.37, 0.41, 0.22]), {"temperature": 0.25}
    logs = {"target": np.log(p).round(3), "draft": np.log(q).round(3)}
    log = tmp_path / "log"
    for token in range(3):
        line: dict[str, Any] = {"token": [token], "vocabulary": 3, "error": 0.0005, "sampling": settings}
        for model, values in logs.items():
            line |= {model: [values[token]], f"{model}_top": [list(enumerate(values))]}
        log.write_text(json.dumps(line))
        (text,) = [read_any(log)]
        sharp_p, sharp_q = (np.exp(Sampling(0.25).log_pmf(np.log(pmf))) for pmf in (p, q))
        exact = RaceVerification().acceptance_given(sharp_p, sharp_q)[token]
        ((target, draft),) = text.lists
        assert target.error == draft.error == pytest.approx(0.004)
        ends = truncated.acceptance_given(RaceVerification(), target, draft, token)
        assert ends.low <= exact <= ends.high
        assert ends.low < ends.high


@pytest.mark.parametrize("sampling", [{"top_k": 1}, {"top_p": 0.6}, {"min_p": 0.99}, {"temperature": 0}])
def test_a_cut_that_rounding_leaves_open_is_refused(sampling: dict[str, float], tmp_path: Path) -> None:
    """The two largest probabilities differ by less than the error; with a small error they are told apart."""
    values = np.log([0.301, 0.299, 0.4]) if "top_p" in sampling else np.log([0.402, 0.4, 0.198])
    log = tmp_path / "log"
    for error, fine in ((0.01, False), (1e-9, True)):
        line = {"token": [0], "vocabulary": 3, "error": error, "sampling": sampling}
        for model in ("target", "draft"):
            line |= {model: [values[0]], f"{model}_top": [list(enumerate(values))]}
        log.write_text(json.dumps(line))
        if fine:
            assert read_any(log).lists
        else:
            with pytest.raises(TextError, match="leaves open which tokens the filters keep"):
                read_any(log)
