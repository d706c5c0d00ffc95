"""Why speculation is no faster: the time of a call, what explains it, and the causes, the largest first (§16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spectheory.checks import amount, real, whole
from spectheory.cost import AffineCost, ConstantRatio, CostModel, LatencyTable, ModelShape, PassCost, Roofline
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TextError, argument
from spectheory.intervals import Interval
from spectheory.judging.difference import Difference, difference
from spectheory.judging.readings import readings
from spectheory.judging.runs import Evidence, Side, Stated, side_of, two_runs
from spectheory.judging.slow.case import Case, Found, Reason, minus
from spectheory.judging.slow.compute_bound import COMPUTE
from spectheory.judging.slow.convention import CONVENTION, readings_of_rate
from spectheory.judging.slow.drafting import DRAFTING
from spectheory.judging.slow.experts import EXPERTS, more_experts
from spectheory.judging.slow.fewer_drafts import FEWER
from spectheory.judging.slow.long_context import CONTEXT
from spectheory.judging.slow.lower_acceptance import LOWER
from spectheory.judging.slow.overhead import OVERHEAD
from spectheory.judging.slow.pairs import Pair, pairs_of
from spectheory.judging.slow.prefill import PREFILL
from spectheory.judging.slow.slow_baseline import BASELINE
from spectheory.judging.slow.unlike_runs import UNLIKE
from spectheory.trace import Trace
from spectheory.trace.calls import MOST_DRAFTS
from spectheory.trace.counters import Counters, pooled
from spectheory.trace.timed import TimedRun

REASONS: tuple[Reason, ...] = (
    *(CONVENTION, UNLIKE, FEWER, LOWER),
    *(EXPERTS, COMPUTE, CONTEXT, DRAFTING, OVERHEAD, PREFILL, BASELINE),
)
"""What is looked for."""
_FASTEST = 1e6
"""Speed-ups are below it."""


@dataclass(frozen=True)
class Share:
    """A part of a call in plain steps, and where it is known from."""

    name: str
    steps: Interval
    source: str


@dataclass(frozen=True)
class Why:
    """Why a run is no faster.

    - `case`: what is known of the run; its `call` is the time of a call in plain steps.
    - `shares`: what explains that time; the last one is what remains.
    - `causes`: those that are there; causes of doubtful numbers first, then by how far each moves the speed-up.
    - `rate_readings`: what an acceptance rate may mean, where it stands alone: words and tokens per call.
    - `pairs`: all timed pairs, the slowest first; the case is of the first one.
    """

    case: Case
    shares: tuple[Share, ...]
    causes: tuple[Found, ...]
    rate_readings: tuple[tuple[str, Interval], ...] = ()
    pairs: tuple[Pair, ...] = ()

    @property
    def as_expected(self) -> bool | None:
        """Whether tokens per call are as expected; None where nothing was expected."""
        given = self.case.difference
        return None if given is None else not given.differs(given.tokens)


def why(
    counts: Evidence | str | Path | None = None,
    *,
    speedup: float | Interval | None = None,
    tokens_per_call: float | None = None,
    acceptance: float | None = None,
    k: int | None = None,
    runs: Sequence[TimedRun] = (),
    expect: Evidence | str | Path | None = None,
    rule: str = "token",
    cost: CostModel | None = None,
    target: ModelShape | None = None,
    plain_step: float | None = None,
    requests: tuple[int, int] | None = None,
    batch: int | None = None,
    context: float | None = None,
) -> Why:
    r"""Why speculation is no faster, from a speed-up and an acceptance (§16).

    .. math:: \frac{t_\text{call}}{t_\text{plain}} = \frac{\text{tokens per call}}{\text{speed-up}}

    Tokens per call are those of `counts` (counters, a log of calls, or a trace under `rule` at `k`), the number
    `tokens_per_call`, or 1 + k times the `acceptance` of drafted tokens. The `speedup` is over plain decoding at the
    same load. Timed `runs` with and without drafts have both; `batch` and `context` choose among them. Numbers are
    known to half a unit of their last digit. A roofline is taken at the batch and context of the run.

    Of the time of a call, `cost` explains verification and drafting: a roofline within its stated error, measured
    latencies, or a ratio c with a verification of one plain step. With `requests`, the prompt and output tokens of a
    request, the speed-up is that of whole requests, and a roofline has the time of the prompts. `plain_step` is the
    measured time of a plain step in seconds, `target` the sizes of a target with experts. `expect` is what tokens per
    call were expected to be: a trace, an earlier run, or the path of one.

    Examples
    --------
    85% accepted of three drafts and 5% faster: a call takes 3.4 plain steps.

    >>> answer = why(speedup=1.05, acceptance=0.85, k=3, cost=ConstantRatio(0.05))
    >>> round(answer.case.call.best, 2), answer.causes[0].cause
    (3.38, 'overhead')
    >>> [(what, round(tokens.best / 1.05, 2)) for what, tokens in answer.rate_readings[:2]]
    [('accepted of drafted tokens', 3.38), ('accepted tokens per call', 1.76)]
    """
    if k is not None:
        whole(argument("k"), k, most=MOST_DRAFTS, remedy="give the drafts per call")
    pairs = _chosen(pairs_of(runs), batch, context) if runs else []
    case = _of_pair(pairs) if pairs else _of_numbers(counts, speedup, tokens_per_call, acceptance, k, rule)
    cost = _at_load(cost, pairs, batch)
    side = case.counters if pairs else (None if counts is None else side_of(counts))
    case = replace(
        case,
        k=k or case.k,
        difference=_expected(case, side, expect, rule),
        target=target,
        plain_step=plain_step or case.plain_step,
        batch=cost.batch if isinstance(cost, Roofline | AffineCost) else batch or case.batch,
    )
    case = _explained(_of_requests(replace(case, cost=cost if isinstance(cost, Roofline) else None), requests), cost)
    found = [each for reason in REASONS if (each := reason.look(case))]
    found.sort(key=lambda each: (not each.of_data, 0.0 if each.of_data else -each.effect(case.speedup)))
    alone = case.rate is not None and tokens_per_call is None and case.k is not None
    said = readings_of_rate(case.rate, case.k) if alone and case.rate and case.k else []
    return Why(case, tuple(_shares(case, cost)), tuple(found), tuple(said), tuple(pairs))


# What was observed


def _as_written(name: str, value: float | Interval, least: float, most: float) -> Interval:
    """A number as it is written, known to half a unit of its last digit."""
    if isinstance(value, Interval):
        return value
    number = real(
        name, value, lambda v: least <= v <= most, limit=f"must be in [{least:g}, {most:g}]", remedy="check the number"
    )
    text = repr(number)
    digits = len(text.partition(".")[2]) if "e" not in text else 0
    half = 0.5 * 10.0**-digits
    return Interval(max(number - half, least), number, min(number + half, most), "bound")


def _of_numbers(
    counts: Evidence | str | Path | None,
    speedup: float | Interval | None,
    tokens: float | None,
    acceptance: float | None,
    k: int | None,
    rule: str,
) -> Case:
    """A case from counts or numbers, and a speed-up."""
    if speedup is None:
        raise SettingError(
            "there is no speed-up",
            limit="the time of a call follows from tokens per call and a speed-up over plain decoding",
            remedy=f"give {argument('speedup')}, or timed runs with {argument('runs', '--bench')}",
        )
    if not isinstance(speedup, Interval):
        amount(argument("speedup"), speedup, positive=True, below=_FASTEST, remedy="1 is plain decoding")
    gained = _as_written(argument("speedup"), speedup, 1e-6, _FASTEST)
    given = [each is not None for each in (counts, tokens, acceptance)]
    if counts is not None and sum(given) > 1:
        raise SettingError(
            f"counts and {argument('tokens_per_call' if tokens is not None else 'acceptance')} are both given",
            limit="one source of tokens per call",
            remedy="leave one out",
        )
    if counts is not None:
        return _of_counts(counts, gained, k, rule)
    if not any(given) or (tokens is None and k is None):
        missing = "k" if any(given) else "tokens_per_call"
        raise SettingError(
            f"{argument(missing)} is not given",
            limit="tokens per call come from counts, a number, or an acceptance rate with k",
            remedy=argument(
                "give a number of tokens, or a rate with k", "give --tokens-per-call, or --acceptance with --k"
            ),
        )
    rate = None if acceptance is None else _as_written(argument("acceptance"), acceptance, 0.0, 1.0)
    most = 1.0 + (k or MOST_DRAFTS)
    if tokens is None:
        assert rate is not None
        return Case(rate * float(k or 0) + 1.0, gained, k, rate)
    return Case(_as_written(argument("tokens_per_call"), tokens, 0.0 if rate else 1.0, most), gained, k, rate)


def _of_counts(counts: Evidence | str | Path, speedup: Interval, k: int | None, rule: str) -> Case:
    """A case from counted calls, or from those expected of a trace."""
    side = side_of(counts)
    if isinstance(side, Stated):
        return Case(side.tokens, speedup, side.k)
    if isinstance(side, Trace):
        from spectheory.prediction import predict

        if k is None:
            raise SettingError(
                f"{argument('k')} is not given", limit="a trace has tokens per call of every k", remedy="give it"
            )
        return Case(predict(side, rule, Chain(k), ConstantRatio(0.0)).tokens_per_call, speedup, k)
    read, counters = readings(side), pooled(side)
    return Case(read.counted.tokens_per_call, speedup, counters.k or read.k, counters=counters)


def _chosen(pairs: Sequence[Pair], batch: int | None, context: float | None) -> list[Pair]:
    """The pairs, those of the batch and context asked for first."""
    asked = [
        pair
        for pair in pairs
        if batch in (None, pair.drafted.batch)
        and (context is None or abs(pair.drafted.context - context) <= 0.1 * max(context, pair.drafted.context))
    ]
    if not asked:
        loads = ", ".join(sorted({f"{pair.drafted.batch} ({pair.drafted.context:.0f})" for pair in pairs}))
        raise SettingError(
            f"no run has batch {batch or 'any'} and context {context or 'any'}",
            limit=f"there are concurrencies (cached tokens) {loads}",
            remedy="choose one of them",
        )
    return [*asked, *(pair for pair in pairs if pair not in asked)]


def _of_pair(pairs: Sequence[Pair]) -> Case:
    """The case of the first pair, beside the others."""
    pair, others = pairs[0], pairs[1:]
    run = pair.drafted
    tokens = None if run.decoded is None else round(run.decoded)
    counts = None if run.calls is None else Counters(calls=run.calls, survival=run.survival, k=run.k, tokens=tokens)
    return Case(
        pair.tokens,
        pair.speedup,
        run.k,
        whole=pair.whole,
        fixed=_fixed(pair, others),
        plain_step=pair.step,
        counters=counts,
        pair=pair,
        beside=others,
        batch=run.batch,
    )


def _fixed(pair: Pair, others: Sequence[Pair]) -> Interval | None:
    """Plain steps of a call besides its drafts: where the line through the times of two k meets k = 0, less one."""
    same = [each for each in others if pair.same_but(each, "k")]
    if not same:
        return None
    far = max(same, key=lambda each: abs(each.drafted.k - pair.drafted.k))
    slope = (far.call - pair.call) / (far.drafted.k - pair.drafted.k)
    return Interval.estimate((pair.call - slope * pair.drafted.k) / pair.step - 1)


def _expected(case: Case, side: Side | None, expect: Evidence | str | Path | None, rule: str) -> Difference | None:
    """Tokens per call as expected and as counted."""
    if expect is None:
        return None
    given = side_of(expect)
    counted = Stated(case.tokens, case.k) if side is None or isinstance(side, Trace) else side
    return difference(
        *two_runs(("expected", "counted"), (given, counted), rule=rule, k=case.k if side is None else None)
    )


# What explains it


def _at_load(cost: CostModel | None, pairs: Sequence[Pair], batch: int | None) -> CostModel | None:
    """The cost at the load of the run that is explained, or at the batch that is named."""
    if isinstance(cost, LatencyTable) and pairs and pairs[0].drafted.batch > 1:
        raise SettingError(
            f"measured latencies are given for a run at concurrency {pairs[0].drafted.batch}",
            limit="they are of one sequence",
            remedy="choose a run with " + argument("batch=1", "--batch 1") + ", or give sizes and hardware",
        )
    if not isinstance(cost, Roofline | AffineCost):
        return cost
    if pairs:
        run = pairs[0].drafted
        return replace(cost, batch=run.batch, context=round(run.context))
    return replace(cost, batch=batch or cost.batch)


def _explained(case: Case, cost: CostModel | None) -> Case:
    """With what a cost, the log's own times, or experts explain of a call."""
    drafting, verify = _drafting_in(case), None
    if cost is not None and case.k is None:
        raise SettingError(f"{argument('k')} is not given", limit="a cost is of calls of k drafts", remedy="give it")
    if isinstance(cost, PassCost) and case.k:
        chain = Chain(case.k)
        models = [cost, *(end for ends in cost.errors() for end in ends if isinstance(end, PassCost))]
        verifies = [each.verification(chain).best / each.target_step().best for each in models]
        drafts = [each.draft_passes(chain.passes).best / each.target_step().best for each in models]
        verify = _around(verifies)
        drafting = drafting or (_around(drafts) if drafts[0] else None)
    elif isinstance(cost, ConstantRatio):
        drafting = drafting or Interval.exact(cost.c * (case.k or 0))
    if verify is None and (more := more_experts(case.target, case.k, case.batch)):
        verify = more + 1.0
    return replace(case, verify=verify, drafting=drafting)


def _around(values: Sequence[float]) -> Interval:
    """The first value, with the errors that the others are ends of."""
    kind = "statistical" if max(values) > min(values) else "exact"
    return Interval(min(values), values[0], max(values), kind)  # type: ignore[arg-type]


def _drafting_in(case: Case) -> Interval | None:
    """Plain steps of drafting by the log's own times: its share of the time of all calls."""
    counts = case.counters
    if counts is None or not counts.seconds or counts.draft_seconds is None:
        return None
    return case.call * (counts.draft_seconds / counts.seconds)


def _of_requests(case: Case, requests: tuple[int, int] | None) -> Case:
    """The case whose speed-up is of whole requests, with that of decoding alone.

    With s the share of prompts in plain requests, :math:`1/S = s' + (1 - s)/D` for a speed-up D of decoding.
    """
    if requests is None:
        return case
    if case.cost is None:
        raise SettingError(
            "lengths of requests are given without a roofline",
            limit="the time of prompts is that of a roofline",
            remedy=f"add {argument('cost', '--hardware')}, or leave the lengths out",
        )
    prompt, output = requests
    decoding = (output - 1) * case.cost.target_step().best
    prompts = [case.cost.batch * case.cost.prompt_pass(prompt, drafted=drafted) for drafted in (False, True)]

    def alone(gained: float) -> float:
        left = (prompts[0] + decoding) / gained - prompts[1]
        if left <= 0:
            raise TextError(
                f"a speed-up of {gained:g} of whole requests",
                limit=f"their prompts alone take {prompts[1]:.3g} of {prompts[0] + decoding:.3g} s",
                remedy="check the lengths, or leave them out: the speed-up is then that of decoding",
            )
        return decoding / left

    low, best, high = (alone(each) for each in (case.speedup.low, case.speedup.best, case.speedup.high))
    return replace(case, speedup=Interval(low, best, high, case.speedup.kind), whole=case.speedup)


def _shares(case: Case, cost: CostModel | None) -> list[Share]:
    """What a call's time is made of; the last one is what remains."""
    timed = "roofline" if isinstance(cost, Roofline) else "measured latencies"
    if case.verify is None:
        how = "one plain step (assumed)"
    else:
        how = timed if cost is not None else "weights of experts, at most"
    rows = [Share("verifying", case.verify or Interval.exact(1.0), how)]
    if case.drafting is not None:
        given = f"c = {cost.c:g}" if isinstance(cost, ConstantRatio) else timed
        rows.append(Share("drafting", case.drafting, given if _drafting_in(case) is None else "the log's own times"))
    named = "not explained" if case.drafting is not None else "drafting and what is not explained"
    return [*rows, Share(named, minus(case.call, *(each.steps for each in rows)), "what remains")]
