"""The grown trees that a trace has measured (§10)."""

from __future__ import annotations

from spectheory.drafting import Grown
from spectheory.errors import SettingError, TraceError
from spectheory.trace import Trace
from spectheory.verification import GrownMatch


def grown_rules(trace: Trace) -> list[GrownMatch]:
    """The rule of grown trees, where the trace has measured them."""
    return [] if GrownMatch().lacks(trace.columns) else [GrownMatch()]


def measured_shape(trace: Trace) -> Grown:
    """The size of the trees that were grown while the trace was measured.

    Raises a :class:`~spectheory.errors.TraceError` where none were.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-1.0, -1.0], [-1.0, -1.0])])
    >>> columns = {**trace.columns, "grown_match": trace.columns["log_target"].astype(int) + 1}
    >>> str(measured_shape(Trace(columns, trace.texts, {"settings": {"grown": "8x2x3"}})))
    'grown 8x2x3'
    """
    GrownMatch().require(trace.columns)
    settings = trace.provenance.get("settings")
    size = settings.get("grown") if isinstance(settings, dict) else None
    if not isinstance(size, str):
        raise TraceError(
            "the trace has grown_match, and no size of its trees",
            limit="settings.grown of its provenance says NODESxTOPxDEPTH",
            remedy="measure again with --grow",
        )
    return Grown.sized_as(size)


def check_grown(trace: Trace, shape: object) -> None:
    """Refuse another shape than that of the measurement."""
    measured = measured_shape(trace)
    if not (isinstance(shape, Grown) and shape.size == measured.size):  # whether in one pass or in several
        raise SettingError(
            f"the rule grown is asked for {shape}",
            limit=f"the trace has measured trees of {measured.size}, and each size is measured by itself",
            remedy=f"use {measured.written}, or measure again with --grow",
        )
