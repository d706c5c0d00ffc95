"""Which verification rule an engine runs: its counts against what every rule expects of its own output (§13)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri

from spectheory.checks import in_range, instance, located
from spectheory.distributions import Floats, Sampling
from spectheory.drafting import Chain, Shape, StoppingRule, read_stop
from spectheory.errors import SettingError, TextError, TraceError, argument
from spectheory.judging.causes import CAUSES, Context, Finding, Reread, stops_early
from spectheory.judging.comparison import READINGS
from spectheory.judging.counting import Counting, counted, counting_of, past_end, rule_of, shape_of, torn
from spectheory.judging.divergence import engine_dtype as dtype_of
from spectheory.judging.divergence import greedy_tests, known_dtype, rounding_bound
from spectheory.judging.expected import ExpectedCounts
from spectheory.judging.output import POSSIBLE, POWER, OutputTest, bonus_test, output_tests
from spectheory.judging.standing import FALSE_ALARMS, Bench, Standing
from spectheory.judging.starts import Calls
from spectheory.prediction.ngrams import in_trace
from spectheory.prediction.remarks import exchanged
from spectheory.prediction.shape_calls import check_shapes, takes
from spectheory.trace import TextInfo, Trace, read_evidence
from spectheory.trace.calls import MOST_DRAFTS, CallLog, Request
from spectheory.trace.counters import Counters
from spectheory.trace.reading import given_trace
from spectheory.verification import GrownMatch, PathRule, RankRule
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch
from spectheory.verification.registry import ALL, RULES, path_rule, read_rules

T = TypeVar("T")

_READER = "functools.partial(spectheory.measure.judged.judged_trace, pair, log)"
"""What reads the texts of a log with both models."""
_USUAL_DTYPE = "bfloat16"
"""Precision in which engines serve by default, taken where a log says none."""

STEPS = 12
"""Halvings of the interval that holds the loss: to 1/4096."""

LOG_IDS = "log them (ask vLLM for return_token_ids)"
"""How the ids of texts come into a log."""
COUNTS_ALONE = (
    "The causes explain the counts alone. The output is refuted too, and no fault of the draft or of the counting "
    "changes the output: look at the verification first."
)


@dataclass(frozen=True)
class Judgement:
    """What an engine's counts say of the rule that it runs.

    - `standings`: every rule that the trace has columns for; those that engines run first, the least refuted first.
    - `stated`: names of the rules that the engine is said to run; empty if none is.
    - `output`: tests that the text is a sample of the target, or at temperature 0 its first choices.
    - `causes`: faults that explain what was refuted: certain ones first, the others by their fit, the closest first.
    - `shape`: what a call drafts; causes are looked for of chains alone.
    - `smallest`: the share by which acceptance would have to be lower for these counts to refute the rule in question
      with probability 0.9, computed under that loss (an estimate, rather too large); None if none would show.
    - `doubt`: the question whether the models are exchanged; empty if nothing says so.
    - `notes`: what biases the counts, one sentence each.
    """

    log: CallLog
    counting: Counting
    standings: tuple[Standing, ...]
    stated: tuple[str, ...] = ()
    output: tuple[OutputTest, ...] = ()
    causes: tuple[Finding, ...] = ()
    shape: Shape | None = None
    smallest: float | None = None
    doubt: str = ""
    notes: tuple[str, ...] = ()

    @property
    def fitting(self) -> tuple[Standing, ...]:
        """The rules that are not refuted."""
        return tuple(one for one in self.standings if not one.refuted)

    @property
    def questioned(self) -> tuple[Standing, ...]:
        """The standings of the stated rules; of all if none is stated."""
        return tuple(s for s in self.standings if not self.stated or {s.rule, *s.same} & set(self.stated))

    @property
    def refuted(self) -> bool:
        """Whether every stated rule, or without one every rule, is refuted."""
        return all(one.refuted for one in self.questioned)

    @property
    def doubtful(self) -> bool:
        """Whether, no rule being stated, only rules fit that no serving engine is known to run."""
        refuted = {one.refuted for one in self.standings if one.served}
        return not self.stated and not self.refuted and refuted == {True}

    @property
    def output_refuted(self) -> bool:
        """Whether the text is no sample of the target under the settings."""
        return any(test.refuted for test in self.output)


def judge(
    log: CallLog | str | Path,
    trace: Trace | str | Path | None = None,
    *,
    rules: PathRule | str | Iterable[PathRule | str] = (),
    k: int | None = None,
    counters: Counters | str | Path | None = None,
    reread: Reread | None = None,
    stop: StoppingRule | str | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    engine_dtype: str | None = None,
) -> Judgement:
    """Hold an engine's counts against what every rule expects of the engine's own output (§13).

    Expected counts are exact given the texts, for the log's k and its way of counting. A rule is refuted at a
    false-alarm rate of :data:`~spectheory.judging.standing.FALSE_ALARMS` over all its comparisons: calls, and calls
    with at least i accepted tokens, over whole texts and, where the log lists calls, at their own starts. Tokens past
    the end of a text have unknown acceptance: what may hold them is compared with the nearer end of an interval.

    Calls draft a chain of k, or the tree or stopped chain that the log's provenance states (``shape``, ``stop``). Of a
    tree whose rank law is estimated the calls alone are compared, over several readings.

    At temperature 0 nothing is random: a draft is accepted where the draft's first choice is the text's token, and
    counts must be equal.

    Parameters
    ----------
    log
        Requests with the token ids of their outputs. This, the trace and the counters may be files of any format that
        is known.
    trace
        Both models' statistics of these texts, under the log's sampling settings (at temperature 0 under temperature
        1 or 0). Texts are joined by id and output, else by prompt and output; there may be more of them. Without one,
        `reread` makes it.
    rules
        The rules that the engine is said to run, or their names, by default what the log's provenance states
        (``rule``). Without any, and with ``all``, every rule is asked.
    k
        Drafted tokens of a full call, where the log does not say.
    counters
        The engine's totals over these requests, in place of what the requests counted.
    reread
        Reads the pair again with changed logits, for causes that need it, or another key, for laws that are estimated.
    stop
        Ends the chains of the engine (§11). At temperature 0 engines compare the plain softmax, which a trace under
        temperature 1 has, as has ``draft_top`` of one under temperature 0; a rule by entropy is refused there.
    temperature, top_k, top_p, min_p, engine_dtype
        Settings and number type of the engine, where the log does not say them or is wrong (:func:`stated`).

    Raises
    ------
    TextError
        Output without token ids, calls that are not counted, or k that is unknown.
    TraceError
        A trace of other texts or settings, or one that lacks what the stated rules read.

    Examples
    --------
    >>> from spectheory.trace import TextInfo
    >>> from spectheory.trace.calls import Request
    >>> columns = {"token": np.array([3, 1, 4, 1]), **dict.fromkeys(["log_target", "log_draft"], np.log([0.5] * 4))}
    >>> settings = {"settings": {"sampling": {"temperature": 1.0}}}
    >>> trace = Trace(columns, (TextInfo("a", 4),), settings)
    >>> request = Request("a", output=(3, 1, 4, 1), accepted=(1, 1), drafted=(1, 1))
    >>> log = CallLog((request,), k=1, temperature=1.0, prefill_emits_token=False)
    >>> [(one.rule, one.refuted) for one in judge(log, trace, rules=["token"]).questioned]
    [('token', False)]
    """
    settings = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    log = stated(_held("log", log, CallLog), engine_dtype=engine_dtype, **settings)
    totals, stop = _checked(log, trace, counters, stop, reread, k)
    named = tuple(read_rules(rules, path_rule, list))  # with all, none is stated
    if not named and not (isinstance(rules, Collection) and ALL in rules):
        known = rule_of(log)
        named = (known,) if known else ()
    counting = counting_of(log, k)
    if trace is None and reread is not None:
        counted(log, counting.k, totals)  # refuses what cannot be judged before models run
        trace = reread()
    assert trace is not None
    trace = given_trace(trace)
    _check_settings(trace, log)
    trace = align_texts(trace, log)
    greedy = log.temperature == 0
    bench = _bench(log, counting, totals, shape_of(log, counting.k, stop))
    if bench.stop is not None and greedy:
        bench.stop.check_temperature(0)
    named = tuple(in_trace(rule, trace) for rule in named)
    asked = _asked(trace, named, greedy, bench.shape, reread)
    first = greedy and bench.shape.is_chain
    made = Judgement(
        log,
        counting,
        tuple(sorted(_standings(bench, trace, asked, reread), key=_order)),
        tuple(dict.fromkeys(GreedyMatch.name if first and rule.uses_draft else rule.name for rule in named)),
        _output(bench, trace, log),
        shape=bench.shape,
        doubt=exchanged(*((trace.provenance.get(one) or {}).get("parameters") for one in ("draft", "target"))),
        notes=tuple(_notes(log, bench, asked)),
    )
    by_name = {rule.name: rule for rule in asked}
    likeliest = min(made.questioned, key=lambda one: one.refuted)
    expected = ExpectedCounts(bench.survival(by_name[likeliest.rule], trace), bench.lengths, counting)
    made = replace(made, smallest=_smallest_loss(expected, likeliest))
    again = partial(_again, log, trace, totals, by_name, bench.shape)
    return _explained(made, trace, bench, again, lambda name: bench.survival(by_name[name], trace), reread)


def stated(log: CallLog, *, engine_dtype: str | None = None, **settings: float | None) -> CallLog:
    """The log under stated sampling settings and a stated number type; None leaves what the log says."""
    given: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    Sampling(**given)  # refuses values that are none
    if engine_dtype is not None:
        instance("engine_dtype", engine_dtype, str, remedy="bfloat16 is usual")
        rounding_bound(1.0, known_dtype(engine_dtype) or engine_dtype)  # refuses an unknown one
        given["provenance"] = {**log.provenance, "dtype": engine_dtype}
    return replace(log, **given)


def _pair() -> str:
    """How both models are named."""
    return argument(f"reread={_READER}", "the pair with --target and --draft")


def _checked(
    log: CallLog, trace: Any, counters: Any, stop: Any, reread: Any, k: int | None
) -> tuple[Counters | None, StoppingRule | None]:
    """The totals and the stopping rule as they are given or named; refuses what is none, and a log of nothing."""
    if not log.requests:
        raise TextError("the log has no request", limit="needs one at least", remedy="check the log")
    totals = None if counters is None else _held("counters", counters, Counters)
    stop = read_stop(stop) if isinstance(stop, str) else stop
    if stop is not None:
        instance("stop", stop, StoppingRule, remedy="write it as token<0.4")
    if reread is not None:
        instance("reread", reread, Callable, remedy=f"{_READER} is one")
    in_range(argument("k"), None if k is None else [k], MOST_DRAFTS)
    if trace is None and reread is None:
        raise TraceError(
            "there is no trace of the texts",
            limit="expected calls are computed from both models' statistics",
            remedy=f"pass a trace, or reread={_READER}",
        )
    return totals, stop


def _held(name: str, given: Any, kind: type[T]) -> T:
    """What is given itself, or by the path of a file of it."""
    evidence: Any = read_evidence(located(given)) if isinstance(given, str | Path) else given
    return instance(name, evidence, kind, remedy="spectheory.trace.read_evidence reads one")


def _standings(bench: Bench, trace: Trace, asked: Sequence[PathRule], reread: Reread | None) -> Iterator[Standing]:
    """Every rule against the counts; rules that accept the same drafts of these texts are one."""
    more = _more(asked, bench, reread)
    groups = list(_alike([(rule.name, bench.survival(rule, trace)) for rule in asked]))
    exact = [survival for names, survival in groups if names[0] not in more]
    served, by_name = {rule.name for rule in asked if rule.served}, {rule.name: rule for rule in asked}
    for names, survival in groups:
        others = [each for each in exact if each is not survival]
        undecided = bench.undecided(by_name[names[0]], trace)
        standing = bench.standing(names[0], survival, others, names[1:], undecided, more.get(names[0], ()))
        yield replace(standing, served=bool(served.intersection(names)))


def _output(bench: Bench, trace: Trace, log: CallLog) -> tuple[OutputTest, ...]:
    """Tests of the output: first choices at temperature 0, else samples, and bonus tokens where calls are listed."""
    if log.temperature == 0:
        return greedy_tests(trace, dtype=dtype_of(log) or _USUAL_DTYPE)
    tests = output_tests(trace)
    if not tests or tests[0].name == POSSIBLE or bench.calls is None or bench.stop is not None:
        return tests
    bonus = bonus_test(trace, bench.calls.bonus)
    return tests + ((bonus,) if bonus else ())


def _explained(
    made: Judgement,
    trace: Trace,
    bench: Bench,
    again: Callable[..., Any],
    survival: Callable[[str], Floats],
    reread: Reread | None,
) -> Judgement:
    """The judgement with the causes that explain it, if anything in it asks for one."""
    unexplained = made.refuted or made.doubtful
    tried = [
        cause
        for cause in (CAUSES if bench.shape.is_chain else ())
        if unexplained
        or (cause.structural and torn(made.log, made.counting))
        or (cause.of_output and made.output_refuted)
    ]
    if not tried:
        return made
    blamed = [one for one in made.questioned if one.served and unexplained] or list(made.questioned)
    others = [one for one in made.standings if one not in blamed]
    context = Context(made.log, trace, made.counting, blamed, others, again, survival, bench.calls, reread)
    findings = [(cause, finding) for cause in tried if (finding := cause.explains(context))]
    # What is certain first, then by how close the counts are.
    causes = sorted((finding for _, finding in findings), key=lambda one: [-value for value in one.closeness or ()])
    half = made.output_refuted and findings and not any(cause.of_output for cause, _ in findings)
    return replace(made, causes=tuple(causes), notes=made.notes + (COUNTS_ALONE,) * bool(half))


def _bench(log: CallLog, counting: Counting, counters: Counters | None, shape: Shape) -> Bench:
    requests = log.requests
    return Bench(
        np.array([len(r.output) for r in requests], dtype=np.int64),
        tuple(r.id for r in requests),
        tuple(None if counters else r.calls for r in requests),
        counted(log, counting.k, counters),
        counting,
        Calls.of(log, counting, stopped=shape.stop is not None),
        shape,
        log.temperature == 0,
        dtype_of(log) or _USUAL_DTYPE,
    )


def _asked(
    trace: Trace, stated: tuple[PathRule, ...], greedy: bool, shape: Shape, reread: Reread | None
) -> list[PathRule]:
    """The stated rules, and all about two pmfs that the trace has columns for; greedy text has one of these."""
    if not isinstance(shape, Chain):
        return _asked_of_tree(trace, stated, greedy, shape, reread)
    if greedy:
        copied = [rule for rule in stated if not rule.uses_draft]
        for rule in (*copied, *([] if copied else [ArgmaxDraft()])):
            rule.require(trace.columns)
        has_draft = not ArgmaxDraft().missing_columns(trace.columns)
        return [*copied, *([GreedyMatch()] if has_draft else [])]
    for rule in stated:
        rule.require(trace.columns)
    named = {rule.name for rule in stated}
    others = [r for r in RULES.values() if r.name not in named and r.output == "sample"]
    return [*stated, *(rule for rule in others if not rule.missing_columns(trace.columns))]


def _asked_of_tree(
    trace: Trace, stated: tuple[PathRule, ...], greedy: bool, shape: Shape, reread: Reread | None
) -> list[PathRule]:
    """The stated rules, and all about two pmfs that take the shape and that the trace has columns for."""
    for rule in stated:
        check_shapes(trace, rule, [shape])
    if greedy and shape.fixed:
        raise SettingError(
            f"calls of {shape} are judged at temperature 0",
            limit="a draft has one token there, and what stands beside it in a tree is the engine's choice",
            remedy="judge chains or grown trees, or compare the calls with spectheory validate",
        )
    named = [rule.name for rule in stated]
    ranked = [rule for rule in RULES.values() if isinstance(rule, RankRule) and rule.output == "sample"]
    known = [rule for rule in ranked if rule.recorded_in in trace.columns and (reread or not rule.estimated)]
    others = [rule for rule in known if rule.known_ranks(trace.columns, shape.max_rank) == shape.max_rank]
    lossless = [rule for rule in (GrownMatch(), *others) if rule.name not in named and takes(rule, shape)]
    asked = [*stated, *(rule for rule in lossless if not rule.missing_columns(trace.columns))]
    if not asked:
        raise TraceError(
            f"the trace has no columns by which {shape} is judged",
            limit="needs the laws of ranks, or the drafts of grown trees",
            remedy=f"give {_pair()} in place of the trace",
        )
    return asked


def _more(asked: Sequence[PathRule], bench: Bench, reread: Reread | None) -> dict[str, list[Floats]]:
    """By rule the further readings of laws that are estimated; exact ones need none."""
    estimated = [r for r in asked if isinstance(r, RankRule) and r.estimated and bench.shape.max_rank > 1]
    if not estimated:
        return {}
    if reread is None:
        raise TraceError(
            f"{estimated[0].name} is judged on trees from one trace",
            limit=f"its law is estimated and needs {READINGS} readings",
            remedy=f"give {_pair()} in place of the trace",
        )
    traces = [reread(key=number) for number in range(1, READINGS)]
    return {rule.name: [bench.survival(rule, trace) for trace in traces] for rule in estimated}


def _alike(read: list[tuple[str, Floats]]) -> Iterator[tuple[tuple[str, ...], Floats]]:
    """Rules with the same survival as one."""
    groups: list[tuple[list[str], Floats]] = []
    for name, survival in read:
        same = next((names for names, known in groups if np.allclose(known, survival, rtol=0, atol=1e-12)), None)
        if same is None:
            groups.append(([name], survival))
        else:
            same.append(name)
    for names, survival in groups:
        yield tuple(names), survival


def _order(one: Standing) -> tuple[bool, bool, float, float]:
    """Rules that engines run first, of these the least refuted one."""
    return not one.served, one.refuted, -one.p, abs(one.worst.z)


def _again(
    log: CallLog,
    trace: Trace,
    counters: Counters | None,
    rules: Mapping[str, PathRule],
    shape: Shape,
    rule: str | Floats,
    counting: Counting,
    other: Trace | None = None,
) -> Standing:
    """How a rule, or a survival of its own, stands under another way of counting or another reading of the pair."""
    bench = _bench(log, counting, counters, shape)
    if isinstance(rule, str):
        read = other or trace
        return bench.standing(rule, bench.survival(rules[rule], read), undecided=bench.undecided(rules[rule], read))
    return bench.standing("", rule)


def _notes(log: CallLog, bench: Bench, asked: Sequence[PathRule]) -> Iterator[str]:
    """What a reader must know of the counts."""
    if bench.greedy:
        yield "Temperature 0: nothing is random given the texts, and counts must be equal."
    if not dtype_of(log) and (bench.greedy or any(isinstance(rule, ArgmaxDraft) for rule in asked)):
        yield f"The log does not say its precision: {_USUAL_DTYPE} is taken, in which near-ties are undecided."
    if log.prefill_emits_token is None:
        first = "the prompt's own pass emits the first token" if bench.counting.prefill else "the first call drafts"
        yield f"The log does not say where the first token comes from; assumed: {first}."
    if log.temperature is None:
        yield "The log does not say its temperature; the trace's settings are assumed."
    if torn_ids := torn(log, bench.counting):
        yield (
            f"The calls of {len(torn_ids)} requests do not make up their texts ({', '.join(torn_ids[:3])}): the starts "
            "of calls are unknown, and totals alone are judged."
        )
    if past := past_end(log, bench.counting):
        tokens, calls = sum(bench.lengths), bench.totals.calls
        yield (
            f"Counts hold {past} accepted tokens past the end of texts: 1 + accepted / calls overstates the "
            f"{(tokens - len(bench.lengths) * bench.counting.prefill) / calls:.3f} tokens per call."
        )
    if (
        isinstance(bench.shape, Chain)
        and bench.stop is None
        and (early := stops_early(log, bench.counting, bench.calls))
    ):
        yield f"{early[0].upper()}{early[1:]}."


def _smallest_loss(expected: ExpectedCounts, one: Standing) -> float | None:
    """The smallest share d for which an engine that accepts each draft with 1 - d times the rule's probability would
    be refuted with probability :data:`~spectheory.judging.output.POWER`; None if these texts would show no loss.

    An estimate that is rather too large: the calls of the whole texts alone decide, their number under the loss is
    taken as normal, and the rule's p-value is Chernoff's bound.
    """

    def shown(loss: float) -> bool:
        depth = np.arange(1, expected.survival.shape[1] + 1)
        other = replace(expected, survival=expected.survival * (1 - loss) ** depth, undecided=None)
        mean, variance = float(other.calls.expected.sum()), float(other.calls.variance.sum())
        calls = math.floor(mean - ndtri(POWER) * math.sqrt(variance))
        if one.calls.deviation == 0:
            return calls > one.calls.high
        return expected.more_calls(calls) < FALSE_ALARMS / (len(one.every) + 1)

    if not shown(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) else (middle, high)
    return high


_ONE = 1e-9
"""Two temperatures closer than this are the same setting."""


def align_texts(trace: Trace, log: CallLog) -> Trace:
    """The trace with one text per request, in their order; a request whose output is no text of it is refused."""
    for request in log.requests:
        if not request.output:
            raise TextError(
                f"request {request.id!r} has no output token ids",
                limit="texts are judged by their ids",
                remedy=LOG_IDS,
            )
    if "token" not in trace.columns:
        raise TraceError(
            "the trace has no token ids", limit="texts are matched by them", remedy="measure the pair again"
        )
    ends = np.cumsum(trace.lengths)
    rows = [slice(end - n, end) for end, n in zip(ends.tolist(), trace.lengths.tolist(), strict=True)]
    places: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows):
        places.setdefault(tuple(trace.columns["token"][row].tolist()), []).append(number)
    twins: dict[tuple[int, ...], list[Request]] = {}
    for request in log.requests:
        twins.setdefault(request.output, []).append(request)
    numbers = [_place(trace, rows, places.get(r.output, []), twins[r.output], r) for r in log.requests]
    if numbers == list(range(len(trace.texts))):
        return trace
    order = np.concatenate([np.arange(rows[place].start, rows[place].stop) for place in numbers])
    columns = {name: column[order] for name, column in trace.columns.items()}
    texts = tuple(replace(trace.texts[place], id=r.id) for place, r in zip(numbers, log.requests, strict=True))
    return Trace(columns, texts, trace.provenance)


def _place(
    trace: Trace, rows: Sequence[slice], places: Sequence[int], twins: Sequence[Request], request: Request
) -> int:
    """The text of a request, of the places and requests with its output: by its id, or the only one it can be."""
    fitting = [place for place in places if _same_length(trace.texts[place], request)]
    if not fitting:
        raise TextError(
            f"request {request.id!r}: its output is no text of the trace",
            limit="the trace must be of these very token ids after these prompts, by one tokenizer",
            remedy=f"give {_pair()}",
        )
    named = [place for place in fitting if trace.texts[place].id == request.id]
    if len(named) == 1 and sum(other.id == request.id for other in twins) == 1:
        return named[0]
    alike = all(_equal(trace, rows[fitting[0]], rows[place]) for place in fitting[1:])
    if alike and (len(fitting) > 1 or all(other.prompt == request.prompt for other in twins)):
        return fitting[0]
    raise TextError(
        f"request {request.id!r}: its output is that of {max(len(fitting), len(twins))} texts after different prompts",
        limit="a request is found by its id, or by a prompt and output that no other has",
        remedy=f"give the texts of the trace the ids of the requests, or {_pair()}",
    )


def _same_length(text: TextInfo, request: Request) -> bool:
    """Whether the prompts can be the same, as far as their lengths are known."""
    return text.prompt_tokens is None or not request.prompt or text.prompt_tokens == len(request.prompt)


def _equal(trace: Trace, one: slice, other: slice) -> bool:
    """Whether every column has the same numbers in two places."""
    return all(np.array_equal(column[one], column[other]) for column in trace.columns.values())


def _check_settings(trace: Trace, log: CallLog) -> None:
    """Refuse a trace that was read under other sampling settings than the log's."""
    stated, read = log.sampling, trace.sampling
    if stated is None or read is None or stated.temperature == 0:
        return
    differing = [
        name
        for name in ("temperature", "top_k", "top_p", "min_p")
        if abs((getattr(stated, name) or 0) - (getattr(read, name) or 0)) > _ONE
    ]
    if differing:
        name = differing[0]
        raise TraceError(
            f"{name} is {getattr(read, name)} in the trace and {getattr(stated, name)} in the log",
            limit="both must have the settings that made the text",
            remedy="read the texts again under the log's settings",
        )
