"""Drafting elsewhere: speed-ups of drafts that are made far away, during verification, or without a pause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spectheory.checks import several, whole
from spectheory.cost import ConstantRatio, CostModel, PassCost
from spectheory.cost.model import a_cost
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError, argument
from spectheory.intervals import Interval, weakest
from spectheory.prediction.outcomes import Outcomes, _check_ahead, _ranked
from spectheory.prediction.over_prompts import Prompts, deviation, interval, ratio
from spectheory.prediction.parallel import MOST_LOOKAHEAD, parallel_seconds
from spectheory.prediction.placement import Ahead, Parallel, Placement, placement
from spectheory.trace import Trace
from spectheory.trace.reading import given_trace
from spectheory.verification import PathRule
from spectheory.verification.base import PositionRule
from spectheory.verification.registry import path_rule

LONGEST = 64


@dataclass(frozen=True)
class Placed:
    """Chains of k drafts made in one place.

    - `tokens_per_call` along the texts; None where drafting never waits for calls.
    - `fan_out`: predicted tokens after 0, 1, ..., k accepted drafts.
    - `hits`: the share of calls, the last ones of texts excepted, whose outcome was predicted. Of parallel drafting the
      share of tokens whose draft is right, and k is its lookahead.
    - `speedup`: over plain decoding with the same target; certain bounds where the trace does not say which draft was
      refused, joined with the 95% error over prompts and latencies.
    """

    where: Placement
    k: int
    speedup: Interval
    tokens_per_call: Interval | None = None
    hits: Interval | None = None
    fan_out: tuple[int, ...] = ()


@dataclass(frozen=True)
class ByLength:
    """Calls that end after `accepted` drafts: their `share`, and how many of them were predicted."""

    accepted: int
    share: float
    guesses: int
    hits: Interval


@dataclass(frozen=True)
class Elsewhere:
    """What a rule gives where its drafts are made elsewhere.

    `rows` are all placements at every k, `best` the fastest of each; `outcomes` is the law of how calls end under the
    best that drafts ahead, with what was predicted. `prompts` is their number.
    """

    rule: str
    rows: tuple[Placed, ...]
    outcomes: tuple[ByLength, ...]
    prompts: int

    @property
    def best(self) -> tuple[Placed, ...]:
        """The fastest k of each placement, in the order that was asked for."""
        fastest: dict[str, Placed] = {}
        for row in self.rows:
            now = fastest.get(str(row.where))
            if now is None or row.speedup.best > now.speedup.best:
                fastest[str(row.where)] = row
        return tuple(fastest.values())


def elsewhere(
    trace: Trace | str,
    drafting: Sequence[str | Placement],
    cost: CostModel,
    *,
    rule: str = "token",
    link: float = 0.0,
    k_max: int = 16,
    prefill_emits_token: bool = False,
) -> Elsewhere:
    r"""Speed-ups of drafts that are made elsewhere, along the texts of a trace (C5/text, C5/ahead).

    With :math:`t_v` the time of verification, d of a call's drafts and L of a message (`link`), the next verification
    begins after :math:`t_v + 2L + d` in turn and far away. `ahead` drafts for predicted outcomes from the moment its
    drafts leave, which takes p: after a predicted outcome the time is :math:`\max(t_v + 2L, p)`, otherwise as in turn.
    Which share is predicted follows from the draft's order at the text's tokens: exactly where the refused draft is
    the draft's first choice, else between certain bounds. The first call of a text is never predicted. Predictions take
    one pass for the bonus token, then k passes on all predicted outcomes together; a constant ratio c takes a pass of
    any width as c. `parallel` drafting is :func:`~spectheory.prediction.parallel.parallel_seconds` with the shortest
    lookahead for which its targets suffice.

    The draft has a device of its own, but in turn. Devices are not counted: a speed-up is of latency.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.0] * 40)])
    >>> answer = elsewhere(trace, ["in-turn", "parallel:5"], ConstantRatio(0.2), k_max=4)
    >>> [(str(row.where), row.k, round(row.speedup.best, 2)) for row in answer.best]
    [('in-turn', 4, 2.78), ('parallel:5', 1, 4.55)]
    """
    texts, chosen = given_trace(trace).in_memory(), path_rule(rule)
    places = [placement(words, link) for words in several("drafting", drafting, remedy='["ahead:8"] is one')]
    longest = whole(argument("k_max"), k_max, most=LONGEST, remedy="16 is the default")
    cost = _checked(texts, chosen, places, a_cost(cost))
    prompts, prefilled = Prompts(texts.texts), int(prefill_emits_token)
    decoded = prompts.sum(texts.lengths - prefilled)
    rows: list[list[Placed]] = [
        [_parallel(texts, chosen, where, cost, prompts, prefilled)] if isinstance(where, Parallel) else []
        for where in places
    ]

    def law_of(k: int) -> Outcomes:
        return Outcomes.of(texts, chosen, k, prefill_emits_token=prefill_emits_token)

    lengths = range(1, longest + 1) if [] in rows else ()
    for law in map(law_of, lengths):
        for where, of_place in zip(places, rows, strict=True):
            if not isinstance(where, Parallel):
                of_place += [row] if (row := _placed(where, law, cost, prompts, decoded)) else []
    answer = Elsewhere(chosen.name, tuple(row for of_place in rows for row in of_place), (), prompts.count)
    shown = next((row for row in answer.best if row.fan_out), None)
    return replace(answer, outcomes=_by_length(law_of(shown.k), shown.fan_out)) if shown else answer


def _checked(trace: Trace, rule: PathRule, places: Sequence[Placement], cost: CostModel) -> CostModel:
    """Refuse costs, rules and traces that say nothing of drafting elsewhere."""
    if not isinstance(cost, PassCost | ConstantRatio):
        raise SettingError(
            f"the cost is {type(cost).__name__}", limit="drafting elsewhere needs times of passes", remedy="give c"
        )
    _check_ahead(trace, rule)
    if any(isinstance(each, Ahead) for each in places) and not _ranked(trace):
        raise TraceError(
            "the trace has no draft_rank",
            limit="which outcomes are predicted follows from the draft's order",
            remedy="measure the pair; in-turn, remote and parallel need log-probabilities alone",
        )
    return cost


def _placed(where: Placement, law: Outcomes, cost: CostModel, prompts: Prompts, decoded: Floats) -> Placed | None:
    """One placement of chains of k; None where the costs of its passes are not known."""
    fan_out = law.fan_out(where.guesses, each=where.each) if isinstance(where, Ahead) else ()
    calls, ended = prompts.sum(law.calls), prompts.sum(law.ended.sum(axis=(1, 2)))
    late = prompts.sum(law.ended[:, -1, fan_out[-1] if fan_out else 0 :].sum(axis=1))
    try:
        models = [cost, *(end for ends in cost.errors() for end in ends)]
        times = [_Times.of(model, law.k, sum(fan_out)) for model in models]
    except SettingError:
        if isinstance(where, Ahead) and law.k > 1:
            return None
        raise
    hits = [prompts.sum(each) for each in law.hits(fan_out)]
    low, high = (_speedup(decoded, (calls, each, late), times, 2 * where.link) for each in hits)
    share = _between(*(ratio(each, ended, limits=(0.0, 1.0)) for each in hits)) if fan_out else None
    return Placed(where, law.k, _between(low, high), ratio(decoded, calls), share, fan_out)


@dataclass(frozen=True)
class _Times:
    """Times of a plain step, of a verification, of a call's drafts and what they take longer after a full acceptance,
    and of drafts for predicted outcomes.
    """

    step: float
    verify: float
    draft: float
    late: float
    ahead: float

    @classmethod
    def of(cls, cost: CostModel, k: int, outcomes: int) -> _Times:
        """By a cost model."""
        chain, step = Chain(k), cost.target_step().best
        if isinstance(cost, PassCost):
            verify, draft = cost.verification(chain).best, cost.draft_passes(chain.passes).best
            late = cost.draft_passes(chain.passes, 1.0).best - draft
            ahead = cost.draft_pass(1).best + k * cost.draft_pass(outcomes).best if outcomes else 0.0
            return cls(step, verify, draft, late, ahead)
        draft = cost.call(chain).best - step
        return cls(step, step, draft, 0.0, draft * (k + 1) / k if outcomes else 0.0)

    def of_calls(self, calls: Floats, hits: Floats, late: Floats, messages: float) -> Floats:
        """Of so many calls, of which so many begin with drafts that were made ahead, and so many after a full
        acceptance with drafts that were not.
        """
        turn = self.verify + messages
        return calls * turn + (calls - hits) * self.draft + late * self.late + hits * max(self.ahead - turn, 0.0)


@np.errstate(invalid="ignore")  # without the only prompt nothing is left
def _speedup(
    decoded: Floats, counts: tuple[Floats, Floats, Floats], times: Sequence[_Times], messages: float
) -> Interval:
    """Over plain decoding (95% over prompts and latencies), from sums over prompts ``[1 + prompts]``: tokens; calls,
    hits and late calls.
    """
    whole = [decoded * each.step / each.of_calls(*counts, messages) for each in times]
    return interval(whole[0], counts[0], other_variance=_of_times([float(each[0]) for each in whole[1:]]))


def _of_times(ends: Sequence[float]) -> float:
    """Variance of a logarithm by its values at both ends of each independent error."""
    return sum(deviation(*sorted(pair)) ** 2 for pair in zip(ends[::2], ends[1::2], strict=True))


def _between(low: Interval, high: Interval) -> Interval:
    """From the lower of two bounds to the higher one, with the errors of both; in the middle no estimate."""
    if low == high:
        return low
    kind = weakest(low.kind, high.kind, "bound")
    return Interval(min(low.low, high.low), (low.best + high.best) / 2, max(low.high, high.high), kind)


@np.errstate(invalid="ignore")  # without the only prompt nothing is left
def _parallel(
    trace: Trace, rule: PathRule, where: Parallel, cost: CostModel, prompts: Prompts, prefilled: int
) -> Placed:
    """Drafting that never waits, with the shortest lookahead that the targets keep up with."""
    if not isinstance(rule, PositionRule):
        raise SettingError(
            f"{where} is asked of rule {rule.name}",
            limit="it verifies each draft by itself",
            remedy="use token or argmax",
        )
    models = [cost, *(end for ends in cost.errors() for end in ends)]
    lookahead = _lookahead(cost, where.targets)
    accepted = rule.accepted_at(trace.columns)
    lengths, tokens = trace.lengths - prefilled, trace.lengths - prefilled
    if prefilled:
        kept = np.ones(len(accepted), bool)
        kept[np.cumsum(trace.lengths) - trace.lengths] = False
        accepted = accepted[kept]
    values = []
    for model in models:
        target, draft = _passes(model, lookahead)
        seconds = parallel_seconds(accepted, lengths, target, draft, lookahead=lookahead, link=where.link)
        values.append(prompts.sum(tokens) * model.target_step().best / prompts.sum(seconds))
    gained = interval(values[0], prompts.sum(tokens), other_variance=_of_times([float(each[0]) for each in values[1:]]))
    of_text = np.repeat(np.arange(len(lengths)), lengths)
    right = ratio(prompts.sum(np.bincount(of_text, accepted, len(lengths))), prompts.sum(lengths), limits=(0.0, 1.0))
    return Placed(where, lookahead, gained, hits=right)


def _passes(cost: CostModel, lookahead: int) -> tuple[float, float]:
    """Times of a target's pass on a block and the token after it, and of a draft pass."""
    if isinstance(cost, PassCost):
        return cost.target_pass(lookahead + 1).best, cost.draft_pass(1).best
    step = cost.target_step().best
    return step, cost.call(Chain(1)).best - step


def _lookahead(cost: CostModel, targets: int) -> int:
    """The shortest lookahead for which no pass of so many targets waits."""
    _, draft = _passes(cost, 1)
    if not 0 < draft <= cost.target_step().best:
        raise SettingError(
            f"a draft pass takes {draft / cost.target_step().best:.3g} target steps",
            limit="parallel drafting needs more than 0 and at most 1",
            remedy="choose a draft that is faster than its target",
        )
    for lookahead in range(1, MOST_LOOKAHEAD + 1):
        target, _ = _passes(cost, lookahead)
        if targets * lookahead * draft >= target * (1 - 1e-12):
            return lookahead
    raise SettingError(
        f"a draft pass takes {draft / cost.target_step().best:.3g} target steps",
        limit=f"{targets} targets keep up with at most {MOST_LOOKAHEAD} drafts a pass",
        remedy="use more targets",
    )


def _by_length(law: Outcomes, fan_out: Sequence[int]) -> tuple[ByLength, ...]:
    """How calls end by the number of accepted drafts, with what was predicted of them."""
    total, rows = float(law.ended.sum()), []
    for j, guesses in enumerate(fan_out):
        only = [each if i == j else 0 for i, each in enumerate(fan_out)]
        here = float(law.ended[:, j].sum())
        low, high = (float(each.sum()) / here if here else 0.0 for each in law.hits(only))
        share = Interval.exact(low) if low == high else Interval(low, (low + high) / 2, high, "bound")
        rows.append(ByLength(j, here / total if total else 0.0, guesses, share))
    return tuple(rows)
