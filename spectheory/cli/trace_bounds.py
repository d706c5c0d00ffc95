"""Limits along the texts of a trace, and the idealised values of the i.i.d. formulas there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from spectheory.cli.iid_bounds import CLOSED_FORMS, Cells, closed_forms
from spectheory.cli.progress import working
from spectheory.drafting import Chain
from spectheory.errors import TraceError
from spectheory.limits import StepLaw, renewal_bound
from spectheory.limits.claims import BRANCHING_FORMS, IID_CHANNEL, ONE_CALL, TEXT, LimitClaim, several_chains
from spectheory.limits.text import MOST_WALK
from spectheory.prediction.means import MeanLaws
from spectheory.prediction.over_prompts import Prompts, few_prompts
from spectheory.prediction.text_limit import TextLimit, one_call_bound
from spectheory.prediction.trace_limits import Limits
from spectheory.reports import BoundsAnswer
from spectheory.reports.bounds import DETERMINISTIC, SAMPLED
from spectheory.reports.notes import origin, sampled_choices
from spectheory.trace import GIVEN_TEXT, RECORDED_RANKS, Trace
from spectheory.verification import Columns, RankRule
from spectheory.verification.registry import all_rules

NO_ENTROPIES = "The trace has no entropies: the closed forms need full pmfs."


def of_trace(trace: Trace, nodes: list[int], chains: Sequence[int] = ()) -> BoundsAnswer:
    """B6 and the bounds on one call of target-sampled text, and the idealised values of the i.i.d. forms.

    `chains` are numbers of i.i.d. chains of drafts, each with a bound of its own beside that of one chain.
    """
    trace.require_scores("a limit")
    ranked = [rule for rule in _with_ranks() if _channel(rule, trace, 1) is not None]
    with working("working out the limits"):
        measured, notes = _measured(trace, nodes, chains)
        notes += _unranked(trace)
        moments, law = _moments(trace), _sampled_steps(trace)
        rows: dict[int, Cells] = {}
        for capacity in nodes:
            found = measured.get(capacity, {})
            rows[capacity] = {
                "text": found.get("text"),
                **(closed_forms(*moments, capacity) if moments else dict.fromkeys(CLOSED_FORMS, None)),
                "numeric": renewal_bound(law, capacity) + 1 if law else None,
                "one_call": found.get("one_call"),
                **{f"chains_{k}": found.get(f"chains_{k}") for k in chains},
                **{f"channel_{rule.name}": _channel(rule, trace, capacity) for rule in ranked},
            }
    facts: dict[str, object] = {"texts": len(trace.texts), "positions": len(trace)}
    if moments:
        facts |= {"mu": moments[0], "mu2": moments[1]}
    else:
        notes.append(NO_ENTROPIES)
    return BoundsAnswer("trace", facts, _tables(ranked, trace.columns, chains), rows, notes)


def _tables(ranked: Iterable[RankRule], columns: Columns, chains: Sequence[int]) -> dict[str, Mapping[str, LimitClaim]]:
    channels = {
        f"channel_{rule.name}": IID_CHANNEL.idealised(
            name=f"T1 {rule.name}", what=f"trees on its ranks up to {rule.known_ranks(columns, RECORDED_RANKS)}"
        )
        for rule in ranked
    }
    forms = {key: form.idealised() for key, form in BRANCHING_FORMS.items()}
    forms["numeric"] = forms["numeric"].idealised(what="B3' from the surprisals of the text, estimate, 95%")
    of_call = {claim.key: claim for claim in (ONE_CALL, *(several_chains(k) for k in chains))}
    return {DETERMINISTIC: {TEXT.key: TEXT, **forms}, SAMPLED: {**of_call, **channels}}


def _measured(trace: Trace, nodes: list[int], chains: Sequence[int]) -> tuple[dict[int, Cells], list[str]]:
    """B6 and the bounds on one call for the sizes that texts have room for, and why others are missing."""
    if trace.provenance.get("origin") == GIVEN_TEXT:
        return {}, ["The text was given, not sampled from the target: no B6, 1 call or numeric, which need samples."]
    longest, notes = int(trace.lengths.max()), origin(trace.provenance)
    served = [k for k in nodes if k <= longest and k * len(trace) <= MOST_WALK]
    if len(served) < len(nodes):
        notes.append(f"B6 and 1 call need P tokens after a start, and memory: the longest text has {longest} tokens.")
    if not served:
        return {}, notes
    prompts = Prompts(trace.texts)
    text = TextLimit(prompts, trace, served)
    calls = {number: one_call_bound(prompts, trace, served, chains=number) for number in (1, *chains)}
    keys = {1: ONE_CALL.key, **{number: several_chains(number).key for number in chains}}
    found: dict[int, Cells] = {
        k: {TEXT.key: text.at(k), **{keys[number]: calls[number].get(k) for number in calls}} for k in served
    }
    return found, [*notes, *sampled_choices(prompts.chosen_on), *few_prompts(prompts.count)]


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
    return Limits().of(rule, Chain(capacity), MeanLaws(trace)).iid_channel
