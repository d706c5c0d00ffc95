"""Where the calls of a decoding start, and where they are lost (§13): by depth, position, context and token.

Everything is exact for the texts of the trace, given a rule and a shape; intervals are over prompts. A call is *lost*
at a token if it ends there with a rejection: had that draft been accepted, the call would have gone on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain, Shape
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction.answer import Plan, Prediction
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.shape_calls import BestTree
from spectheory.prediction.where_groups import Group, contexts, lost_by_class, lost_by_id, positions, started
from spectheory.prediction.where_text import OneText, one_text
from spectheory.trace import Trace
from spectheory.trace.strings import TokenStrings
from spectheory.verification import PathRule
from spectheory.verification.by_start import within

Floats = NDArray[np.float64]
LENGTHS = (1, 2, 4, 8, 16, 32)
"""Chain lengths whose acceptance by depth is compared."""


@dataclass(frozen=True)
class AtDepths:
    """Acceptance by depth of one shape at the starts of its own calls (§13).

    `survival` is P(tau >= i), `conditional` P(tau >= i | tau >= i - 1); `everywhere` is the mean survival over all
    positions of the text, which is another number. Starts without room for all drafts are left out of all three.
    """

    shape: Shape
    survival: tuple[Interval, ...]
    conditional: tuple[Interval, ...]
    everywhere: tuple[float, ...]


@dataclass(frozen=True)
class Where:
    """Where the calls of one rule and shape start and where they are lost.

    `calls` is their expected number, of which `lost` end with a rejection, `full` after all drafts were accepted (or
    none were made), and one for each text with the text. `by_context` counts the prompt too, and is empty where the
    trace does not know its length.
    `classes` and `ids` are empty without token ids; `named` says what the strings were read from.
    """

    rule: PathRule
    shape: Shape
    calls: float
    lost: float
    full: float
    depths: tuple[AtDepths, ...]
    by_position: tuple[Group, ...]
    by_context: tuple[Group, ...]
    classes: tuple[Group, ...]
    ids: tuple[Group, ...]
    text: OneText
    named: str | None


def settings_of(plan: Plan, *, all_rules: bool = False) -> list[tuple[PathRule, Shape]]:
    """Rules of a plan with their best shapes: token verification's chain, or with `all_rules` all; the best last.

    Each stopping rule that was asked for follows, with its best length. Settings that a trace only bounds (from lists
    of the most probable tokens) have no calls to place.

    Raises
    ------
    SettingError
        If the trace settles none of them.
    """
    settled = [p for p in plan.predictions if not p.certified]

    def shown(p: Prediction) -> bool:
        usual = all_rules or (p.rule.name == "token" and p.wanted.is_chain)
        return usual or p is plan.best or p.wanted.stop is not None

    by_gain = sorted(filter(shown, settled), key=lambda p: p.gain)
    best = {(p.rule, p.wanted.stop): p for p in by_gain}
    if not best:
        raise SettingError(
            "where calls start is asked for, and the trace bounds the rules alone",
            limit="it needs full pmfs of this rule",
            remedy="use the rule token",
        )
    ordered = sorted(best.values(), key=lambda p: (p.wanted.stop is not None, p is plan.best))
    return [(p.rule, p.shape if isinstance(p.wanted, BestTree) else p.wanted) for p in ordered]


def where(
    trace: Trace,
    rule: PathRule,
    shape: Shape,
    strings: TokenStrings | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    prefill_emits_token: bool = False,
) -> Where:
    """Where the calls of a rule and shape start and are lost, along the texts of a trace (§13, exact for them).

    Chains are compared with chains of the other `lengths` that are no longer than they are. `strings` name the tokens;
    without them classes are by frequency, and without token ids there are none.

    Raises
    ------
    TraceError
        If the trace lacks what the rule reads.

    Examples
    --------
    Of two tokens in turn one is always accepted and one never: calls of two drafts are lost at every second token.

    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-0.5, -0.5] * 8, [-0.1, -50.0] * 8)])
    >>> found = where(trace, TokenVerification(), Chain(2))
    >>> round(found.calls, 3), round(found.lost, 3), found.text.accepted[:4]
    (8.0, 7.0, (1.0, 0.0, 1.0, 0.0))
    """
    starts = CallStarts.of(trace, rule, shape, prefill_emits_token=prefill_emits_token)
    rejected, full = starts.ends
    prompts = Prompts(trace.texts)
    several = _shapes(trace, rule, shape, lengths)
    by_shape = [CallStarts.of(trace, rule, each, prefill_emits_token=prefill_emits_token) for each in several]
    return Where(
        rule,
        shape,
        calls=float(starts.visits.sum()),
        lost=float(rejected.sum()),
        full=float(full.sum()),
        depths=tuple(
            _depths(prompts, each, at) for each, at in zip(several, by_shape, strict=True) if at.counted.sum() > 0
        ),
        by_position=tuple(started(prompts, starts, positions(trace))),
        by_context=tuple(started(prompts, starts, contexts(trace))),
        classes=tuple(lost_by_class(prompts, rejected, trace, strings)),
        ids=tuple(lost_by_id(prompts, rejected, trace, strings)),
        text=one_text(trace, strings, rejected, rejected + full, int(prefill_emits_token)),
        named=strings.source if strings else None,
    )


def _shapes(trace: Trace, rule: PathRule, shape: Shape, lengths: Iterable[int]) -> list[Shape]:
    if not isinstance(shape, Chain):
        return [shape]
    longest = rule.longest(trace.columns)
    most = within(trace.columns, shape.k if longest is None else min(shape.k, longest))
    return [shape.of_length(k) for k in sorted({*(k for k in lengths if k < most), most})]


def _depths(prompts: Prompts, shape: Shape, starts: CallStarts) -> AtDepths:
    weights, survival = starts.counted, starts.survival
    sums = [prompts.sum_rows(weights), *(prompts.sum_rows(weights * column) for column in survival.T)]
    return AtDepths(
        shape,
        tuple(ratio(each, sums[0], limits=(0.0, 1.0)) for each in sums[1:]),
        tuple(ratio(each, before, limits=(0.0, 1.0)) for before, each in pairwise(sums) if before[0] > 0),
        tuple(survival[starts.whole].mean(axis=0).tolist()),
    )
