"""What adaptive draft lengths are worth for a pair: thresholds scored on other prompts, beside the limit (§11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.drafting import Chain, Shape
from spectheory.drafting.stopping import STOPPING, StoppingRule, TopBelow
from spectheory.errors import SettingError
from spectheory.prediction.answer import AdaptiveWorth
from spectheory.prediction.clairvoyant import clairvoyant_speedup
from spectheory.prediction.drafted_lengths import Drafted, DraftedLengths
from spectheory.prediction.over_prompts import FEW, PARTS, Prompts
from spectheory.prediction.paths import by_text
from spectheory.prediction.prediction import of_calls, planned
from spectheory.prediction.shape_calls import ShapeCalls, by_parallel_head, drafted
from spectheory.prediction.stopped import check_stops, lengths_of_calls
from spectheory.prediction.stopped_times import exactly, stopped_seconds, sum_of
from spectheory.trace import Trace
from spectheory.verification import Columns, PathRule
from spectheory.verification.by_start import lacking, read_as

Floats = NDArray[np.float64]
THRESHOLDS = 32
"""Of each kind of stopping rule, by default."""


def adaptive_worth(
    trace: Trace,
    rule: PathRule,
    k: int,
    cost: CostModel,
    *,
    thresholds: int = THRESHOLDS,
    prefill_emits_token: bool = False,
) -> AdaptiveWorth:
    """Sweep the thresholds of all stopping rules that the trace has columns for, at most k drafts a call (§11).

    Refused are fewer than 8 prompts, since each threshold is scored on other prompts than those it was chosen on.

    Examples
    --------
    >>> import numpy as np
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.verification import TokenVerification
    >>> q = np.log(np.random.default_rng(0).random((16, 40)))
    >>> trace = Trace.from_log_probabilities([(row, row) for row in q])  # draft and target are equal: nothing to gain
    >>> found = adaptive_worth(trace, TokenVerification(), 4, ConstantRatio(0.1))
    >>> str(found.fixed.shape), found.worth < 0.05
    ('chain k=4', True)
    """
    at: dict[str, Any] = {"prefill_emits_token": prefill_emits_token}
    fixed = planned(trace, cost, [rule], [Chain(each) for each in range(1, k + 1)], **at).best
    swept = sweep(trace, rule, k, stopping_grid(trace, thresholds), cost, **at)
    limit = clairvoyant_speedup(trace, rule, k, cost, tuple(cost.errors()), **at)
    return AdaptiveWorth(rule, fixed, of_calls(trace, rule, swept, cost, **at), limit)


def stopping_grid(trace: Trace, thresholds: int = THRESHOLDS) -> list[StoppingRule]:
    """Stopping rules of every kind that the trace has a column for, at quantiles of it; at temperature 0 by the plain
    softmax alone, where ``token<`` compares what ``top<`` does.
    """
    stops: list[StoppingRule] = []
    greedy = trace.sampling is not None and trace.sampling.temperature == 0
    for kind in (kind for kind in STOPPING if kind.greedy or not greedy):
        read = TopBelow.reads if greedy else kind.reads
        if not lacking(trace.columns, [kind.reads, read]):
            stops += map(kind, _quantiles(kind, trace.columns, read, thresholds))
    if not stops:
        raise SettingError(
            "no threshold fits the trace",
            limit="the columns that rules read are missing or constant",
            remedy="use fixed lengths",
        )
    return stops


def _quantiles(kind: type[StoppingRule], columns: Columns, read: str, number: int) -> list[float]:
    """Thresholds in range at equally spaced quantiles of the column that the rule reads."""
    values = np.asarray(columns[read_as(columns, read)], float).ravel()
    found = np.quantile(values[np.isfinite(values)], (np.arange(number) + 0.5) / number)
    found = kind.threshold_of(found) if read == kind.reads else found
    return sorted({float(f"{value:.3g}") for value in found.tolist() if kind.inside(float(f"{value:.3g}"))})


def sweep(
    trace: Trace,
    rule: PathRule,
    k: int,
    stops: Sequence[StoppingRule],
    cost: CostModel,
    *,
    prefill_emits_token: bool = False,
) -> ShapeCalls:
    """The calls of each text with the stopping rule that takes the least seconds on other prompts (cross-fitted)."""
    prompts = Prompts(trace.texts)
    if prompts.count < FEW:
        raise SettingError(
            f"thresholds are swept over {prompts.count} prompts",
            limit=f"needs {FEW}: each is scored on other prompts than those it was chosen on",
            remedy="measure more prompts, or name a threshold with --stop",
        )
    for stop in stops:
        check_stops(rule, stop, trace.columns, trace.sampling)
    parallel = by_parallel_head(trace.provenance)
    shapes = [drafted(rule, Chain(k, stop=stop), parallel=parallel) for stop in stops]
    shared = Drafted(trace, rule, k, prefill_emits_token=prefill_emits_token)
    along, found = zip(*(lengths_of_calls(shared, stop, trace.columns) for stop in stops), strict=True)
    part = prompts.folds(PARTS)

    def fastest(texts: NDArray[np.bool_]) -> int:
        pairs = zip(found, shapes, strict=True)
        return int(np.argmin([_seconds(each, shape, texts, trace.lengths, cost) for each, shape in pairs]))

    chosen = np.array([fastest(part != number) for number in range(part.max() + 1)])
    groups = [(shapes[i], found[i].of_texts(chosen[part] == i)) for i in np.unique(chosen).tolist()]
    of_row = np.repeat(chosen[part], trace.lengths)
    drafts = np.stack(along)[of_row, shared.rows] > 0
    best = shapes[fastest(np.ones(len(part), bool))]
    calls = sum_of(groups).text_calls(prefill_emits_token)
    first = by_text(np.where(drafts, shared.survival[:, 0], 0.0), trace.lengths)
    return ShapeCalls(best, best, calls, first, held_out=True, lengths=groups)


def _seconds(
    found: DraftedLengths, shape: Shape, texts: NDArray[np.bool_], lengths: NDArray[np.int64], cost: CostModel
) -> float:
    """Estimated time of some texts, by the calls that stop: too long, if anything, where the target is cut."""
    calls = float(found.calls[texts].sum())
    at_least = found.stopping[texts].sum(axis=0)
    at_least = np.clip(at_least, found.low[texts].sum(axis=0), found.high[texts].sum(axis=0))
    times = stopped_seconds(cost, shape)
    tokens, full = float(lengths[texts].sum()), float(found.full[texts].sum())
    late = (tokens - calls) / shape.nodes if cost.reads_accepted else full
    return float(exactly(np.array([calls]), at_least[None])[0] @ times[:-1] + late * times[-1])
