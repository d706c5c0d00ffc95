"""What ``spectheory predict`` measures where no trace is given: which folder, and the costs before the prompts."""

from __future__ import annotations

from pathlib import Path

from spectheory.cli.console import ready_folder
from spectheory.cli.inputs import cache_folder
from spectheory.cli.latencies import read_latencies
from spectheory.cli.measure import Session
from spectheory.cli.options import LATENCY_FILE, MeasuringOptions, PairOptions, PredictOptions, TextOptions
from spectheory.cost import ConstantRatio, CostModel
from spectheory.measure.assisted import check_draft
from spectheory.measure.run import check_out
from spectheory.trace import TRACE_FILE

CHECKED_K = (1, 3, 5)
"""Drafts per call of the check."""


def opened(
    question: PredictOptions, pair: PairOptions, text: TextOptions, how: MeasuringOptions
) -> tuple[Session, Path]:
    """The loaded pair and the folder of its measurement; whatever can be refused is refused here."""
    session = Session.load(pair, text, how)
    if question.check:
        check_draft(session.pair)
    session.require_room(longest_call(question))
    folder = ready_folder(question.out or cache_folder() / session.job.fingerprint)
    check_out(session.job, folder / TRACE_FILE)
    return session, folder


def costs(question: PredictOptions, session: Session, folder: Path) -> CostModel:
    """What was given, or latencies; they are measured before the prompts, while nothing else runs."""
    if question.c is not None:
        return ConstantRatio(question.c)
    if question.latency:
        return read_latencies(question.latency, session.pair.describe())
    return session.latencies(folder / LATENCY_FILE, longest=longest_call(question))


def longest_call(question: PredictOptions) -> int:
    """Tokens of the longest call that is predicted or checked."""
    return max([question.k_max, *(CHECKED_K if question.check else ())]) + 1
