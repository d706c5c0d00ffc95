"""Two policies of a parallel head: what a trace says of both, and the sentence that compares them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from spectheory.drafting import Chain
from spectheory.prediction import plan, predict
from spectheory.reports import prediction_report
from spectheory.trace import TextInfo, Trace
from spectheory.verification import ArgmaxDraft, BlockVerification, TokenVerification

HEAD = {"draft": {"kind": "dflash", "parallel": True}, "settings": {"depth": 2}}
HALF = math.log(0.5)


def trace_of(provenance: dict[str, Any], texts: int = 6) -> Trace:
    """Texts 00 and 11 by turns, of probability 1/2 each; at every start both marginals are (1/2, 1/2)."""
    token = np.repeat(np.arange(texts) % 2, 2)
    rank = (token + 1).astype(np.uint16)
    columns = {
        "token": token.astype(np.int32),
        "log_target": np.tile([HALF, 0.0], texts),
        "log_draft": np.full(2 * texts, HALF),
        "draft_rank": rank,
        "start_log_draft": np.full((2 * texts, 2), HALF, dtype=np.float32),
        "start_draft_rank": np.stack([rank, rank], axis=1),
    }
    return Trace(columns, tuple(TextInfo(str(i), 2) for i in range(texts)), provenance)


@pytest.mark.parametrize(
    ("rule", "accepted"), [(TokenVerification(), 1.5), (BlockVerification(), 1.5), (ArgmaxDraft(), 1.0)], ids=str
)
def test_a_call_accepts_what_marginals_allow(rule: Any, accepted: float) -> None:
    trace = trace_of(HEAD)
    survival = rule.path_survival(trace.columns, 2)[::2]
    assert survival.sum(axis=1).mean() == pytest.approx(accepted, abs=1e-6)


def test_the_answer_compares_both_policies_at_the_best_k() -> None:
    trace = trace_of(HEAD)
    answer = plan(trace)
    said = next(note for note in prediction_report(answer).notes if note.startswith("One pass"))
    match = re.match(r"One pass .* argmax drafts ([\d.]+), sampled ([\d.]+) \(\w+ verification\) .* k = (\d);", said)
    assert match is not None
    expected = [predict(trace, rule, Chain(int(match[3]))) for rule in (ArgmaxDraft(), TokenVerification())]
    assert [float(match[1]), float(match[2])] == [round(p.tokens_per_call.best, 2) for p in expected]
    assert float(match[1]) < float(match[2])


def test_a_draft_with_one_pass_a_token_has_no_such_sentence() -> None:
    other = {**HEAD, "draft": {"kind": "eagle3", "parallel": False}}
    answer = plan(trace_of(other))
    assert all(p.rule.name != "argmax" for p in answer.predictions)
    assert not any("One pass" in note for note in prediction_report(answer).notes)
