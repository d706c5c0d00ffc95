"""Limits along the texts of a trace, and the idealised values of the i.i.d. formulas there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from spectheory.cli.iid_bounds import CLOSED_FORMS, Cells, closed_forms
from spectheory.cli.progress import working
from spectheory.drafting import Chain
from spectheory.errors import TraceError
from spectheory.intervals import Interval
from spectheory.limits import StepLaw, renewal_bound
from spectheory.limits.claims import BRANCHING_FORMS, IID_CHANNEL, ONE_CALL, TEXT, LimitClaim
from spectheory.limits.text import MOST_WALK
from spectheory.prediction.one_call import one_call_bound
from spectheory.prediction.over_prompts import Prompts, few_prompts
from spectheory.prediction.trace_limits import Limits, TextLimit
from spectheory.reports import BoundsAnswer
from spectheory.reports.bounds import DETERMINISTIC, SAMPLED
from spectheory.reports.remarks import origin
from spectheory.trace import GIVEN_TEXT, RECORDED_RANKS, Trace
from spectheory.verification import Columns, RankRule
from spectheory.verification.registry import all_rules


def of_trace(trace: Trace, nodes: list[int]) -> BoundsAnswer:
    """B6 and the one-call bound of target-sampled text, and the idealised values of the i.i.d. forms."""
    trace.require_scores("a limit")
    ranked = [rule for rule in _with_ranks() if _channel(rule, trace, 1) is not None]
    with working("working out the limits"):
        measured, notes = _measured(trace, nodes)
        notes += _unranked(trace)
        moments, law = _moments(trace), _sampled_steps(trace)
        rows: dict[int, Cells] = {}
        for capacity in nodes:
            of_text, of_call = measured.get(capacity, (None, None))
            rows[capacity] = {
                "text": of_text,
                **(closed_forms(*moments, capacity) if moments else dict.fromkeys(CLOSED_FORMS, None)),
                "numeric": renewal_bound(law, capacity) + 1 if law else None,
                "one_call": of_call,
                **{f"channel_{rule.name}": _channel(rule, trace, capacity) for rule in ranked},
            }
    facts: dict[str, object] = {"texts": len(trace.texts), "positions": len(trace)}
    if moments:
        facts |= {"mu": moments[0], "mu2": moments[1]}
    else:
        notes.append("The trace has no entropies: the closed forms need full pmfs.")
    return BoundsAnswer("trace", facts, _tables(ranked, trace.columns), rows, notes)


def _tables(ranked: Iterable[RankRule], columns: Columns) -> dict[str, Mapping[str, LimitClaim]]:
    channels = {
        f"channel_{rule.name}": IID_CHANNEL.idealised(
            name=f"T1 {rule.name}", what=f"trees on its ranks up to {rule.known_ranks(columns, RECORDED_RANKS)}"
        )
        for rule in ranked
    }
    forms = {key: form.idealised() for key, form in BRANCHING_FORMS.items()}
    forms["numeric"] = forms["numeric"].idealised(what="B3' from the surprisals of the text, estimate, 95%")
    return {DETERMINISTIC: {TEXT.key: TEXT, **forms}, SAMPLED: {ONE_CALL.key: ONE_CALL, **channels}}


def _measured(trace: Trace, nodes: list[int]) -> tuple[dict[int, tuple[Interval | None, Interval | None]], list[str]]:
    """B6 and the one-call bound for the sizes that texts have room for, and why others are missing."""
    if trace.provenance.get("origin") == GIVEN_TEXT:
        return {}, ["The text was given, not sampled from the target: no B6, 1 call or numeric, which need samples."]
    longest, notes = int(trace.lengths.max()), origin(trace.provenance)
    served = [k for k in nodes if k <= longest and k * len(trace) <= MOST_WALK]
    if len(served) < len(nodes):
        notes.append(f"B6 and 1 call need P tokens after a start, and memory: the longest text has {longest} tokens.")
    if not served:
        return {}, notes
    prompts = Prompts(trace.texts)
    text, calls = TextLimit(prompts, trace, max(served)), one_call_bound(prompts, trace, served)
    return {k: (text.at(k), calls.get(k)) for k in served}, [*notes, *few_prompts(prompts.count)]


def _with_ranks() -> list[RankRule]:
    return [rule for rule in all_rules().values() if isinstance(rule, RankRule)]


def _unranked(trace: Trace) -> list[str]:
    """Why the T1 of a rule is missing whose law is recorded all the same."""
    narrow = [rule for rule in _with_ranks() if rule.known_ranks(trace.columns, 2) < 2]
    return [f"No T1 {rule.name}: {rule.recorded_in} records one rank alone, and T1 needs two." for rule in narrow]


def _moments(trace: Trace) -> tuple[float, float] | None:
    if not {"target_entropy", "target_second_moment"} <= set(trace.columns):
        return None
    mu, mu2 = (float(trace.columns[name].mean()) for name in ("target_entropy", "target_second_moment"))
    return mu, max(mu2, mu * mu)


def _sampled_steps(trace: Trace) -> StepLaw | None:
    """The law of a step from the text's own tokens, the texts of one prompt one draw; none if they are no samples."""
    if trace.provenance.get("origin") == GIVEN_TEXT:
        return None
    prompts = Prompts(trace.texts).of_text
    surprisals = np.split(-trace.columns["log_target"], np.cumsum(trace.lengths)[:-1])
    groups: dict[int, list[np.ndarray]] = {}
    for prompt, text in zip(prompts.tolist(), surprisals, strict=True):
        groups.setdefault(prompt, []).append(text)
    return StepLaw.from_surprisals([np.concatenate(group) for group in groups.values()])


def _channel(rule: RankRule, trace: Trace, capacity: int) -> float | None:
    """T1 with the rule's own mean rank law; None if the trace does not record it, or one rank alone."""
    if rule.known_ranks(trace.columns, 2) < 2:
        return None
    try:
        rule.require(trace.columns)
        rule.rank_law(trace.columns, 2)
    except TraceError:
        return None
    return Limits().of(rule, Chain(capacity), trace).iid_channel
