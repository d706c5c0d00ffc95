"""A made-up answer and its page, for tests of pages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.pages import Coloured, write_page
from spectheory.pages.prediction import prediction_charts
from spectheory.prediction import Plan, plan
from spectheory.reports import Report, prediction_report
from spectheory.trace import Trace
from spectheory.verification import BlockVerification, TokenVerification

SHAPES = [Chain(k) for k in range(1, 13)]
HOSTILE = '</script><script>document.title = "taken"</script><img src=x onerror="document.title = 1">'
"""A token that would run if it were not escaped."""


def made_up_trace() -> Trace:
    """A trace of token and block verification."""
    rng = np.random.default_rng(5)
    texts = [(-rng.exponential(0.7, 60), -rng.exponential(0.9, 60)) for _ in range(6)]
    return Trace.from_log_probabilities(texts)


def planned(trace: Trace, c: float) -> Plan:
    return plan(trace, ConstantRatio(c), rules=[TokenVerification(), BlockVerification()], shapes=SHAPES)


def written(file: Path, c: float = 0.1) -> Report:
    """The page of the answer, with a hostile text and a hostile note."""
    answer = planned(made_up_trace(), c)
    report = prediction_report(answer)
    hostile = Report({**report.content, "said": HOSTILE}, report.pieces, report.headline, [*report.notes, HOSTILE])
    text = Coloured(f"Text {HOSTILE}", [(HOSTILE, "#ffffff", HOSTILE), (" next", "#56b4e9", "90%")], 0)
    write_page(hostile, file, title="Prediction", charts=prediction_charts(answer, c), texts=[text])
    return hostile
