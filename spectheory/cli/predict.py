"""``spectheory predict``: find or make the trace, predict, check, show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from spectheory.cli.answer import show
from spectheory.cli.console import ready_folder, remarks
from spectheory.cli.inputs import cache_folder
from spectheory.cli.latencies import read_latencies
from spectheory.cli.options import LATENCY_FILE, PairOptions, PredictOptions, TextOptions, recorded_at, recorded_files
from spectheory.cli.progress import working
from spectheory.cli.readings import show_readings
from spectheory.cli.shapes import SWEPT, read_rules, read_shapes, read_stops, tree_sizes, with_ranks
from spectheory.cli.stops import with_stops
from spectheory.cli.where import show_where
from spectheory.cost import ConstantRatio, CostModel, LatencyTable, LoopedTable
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.plots import write_figures
from spectheory.prediction import Plan, plan
from spectheory.prediction.adaptive import AdaptiveWorth
from spectheory.prediction.bias_tradeoff import BiasPoint, bias_tradeoff
from spectheory.prediction.certified import by_lists
from spectheory.prediction.grown_trees import grown_rules, measured_shape
from spectheory.prediction.recorded import check_depth, recorded_rules
from spectheory.prediction.recorded_readings import recorded_readings
from spectheory.prediction.shape_calls import BestTree, Wanted
from spectheory.reports import prediction_report
from spectheory.trace import TRACE_FILE, Trace, trace_file
from spectheory.trace.reading import read_files
from spectheory.verification import GrownMatch, PathRule
from spectheory.verification.biased import BiasedVerification
from spectheory.verification.by_start import within
from spectheory.verification.registry import DEFAULT_RULES

if TYPE_CHECKING:
    from spectheory.cli.measure import Session

CHECKED_K = (1, 3, 5)
LONGEST_CHAIN = 1024


def run_predict(question: PredictOptions, pair: PairOptions, text: TextOptions) -> None:
    """Answer the question and show the answer."""
    _validate(question, pair, text)
    rules = read_rules(question.rule)
    read_shapes(question.shape or (), question.k_max)
    stops, swept = read_stops(question.stop)
    for share in question.bias or ():
        BiasedVerification(share)
    if question.out:
        ready_folder(question.out)
    files = recorded_files(question)
    found = read_files(files) if files else None
    if found is not None and not isinstance(found, Trace):
        return show_readings(question, {files[0].name: (files[0], found)}, "prediction")
    trace, passes, session = _evidence(question, pair, text, found)
    if question.passes_alone and not isinstance(passes, LatencyTable):
        raise SettingError(
            "--passes-alone is given without latencies",
            limit="it says how measured latencies count",
            remedy="leave it out, or give --latency",
        )
    deepest = within(trace.columns, question.k_max)
    shapes = read_shapes(question.shape, question.k_max, deepest) if question.shape else None
    cost = passes.looped if isinstance(passes, LatencyTable) and not question.passes_alone else passes
    adaptive: list[AdaptiveWorth] = []
    with working("predicting"):
        answer = _answer(question, trace, cost, rules, shapes)
        if stops or swept:
            answer, adaptive = with_stops(question, trace, cost, rules, answer)
        biased = _bias(question, trace, cost, answer)
    if deepest < question.k_max:
        remarks.print(f"the trace records the draft to depth {deepest}: no chain or tree is deeper", markup=False)
    check = session.check(passes, CHECKED_K) if session and question.check else None
    readings = tuple(recorded_readings(trace, question.k_max, prefill_emits_token=question.prefill_token))
    in_loop = isinstance(cost, LoopedTable)
    report = prediction_report(answer, in_loop=in_loop, bias=biased, check=check, recorded=readings, adaptive=adaptive)
    if question.where:
        return show_where(question, pair, trace, answer, report)
    out = question.out
    file = out / "prediction.json" if out else None
    show(report, as_json=question.json, file=file, figures=lambda: write_figures(answer, out) if out else [])


def _answer(
    question: PredictOptions,
    trace: Trace,
    cost: CostModel | None,
    rules: Sequence[PathRule] | None,
    shapes: Sequence[Wanted] | None,
) -> Plan:
    """Every rule with every shape asked for; without shapes chains, and trees for the rules whose ranks are known."""
    settings = {"prefill_emits_token": question.prefill_token}
    if shapes is None and rules == [GrownMatch()]:
        shapes = [measured_shape(trace)]
    if shapes:
        usual = recorded_rules(trace) or [*with_ranks(trace), *grown_rules(trace)]
        return plan(trace, cost, rules=rules or usual, shapes=shapes, **settings)
    longest = check_depth(trace, within(trace.columns, question.k_max))
    chains = [Chain(k) for k in range(1, longest + 1)]
    try:
        answer = plan(trace, cost, rules=rules, shapes=chains, **settings)
    except SettingError as error:
        if not isinstance(cost, LatencyTable):
            raise
        cost = None  # latencies of shorter calls: tokens are known all the same
        answer = plan(trace, cost, rules=rules, shapes=chains, **settings)
        remarks.print(f"speed-ups are left out: {error}, or give --c", markup=False)
    if bounded := [rule for rule in DEFAULT_RULES if rules is None and by_lists(rule, trace)]:
        answer += plan(trace, cost, rules=bounded, shapes=chains, **settings)
    searched: list[Wanted] = [BestTree(k) for k in tree_sizes(question.k_max)]
    grown = grown_rules(trace) if rules is None or GrownMatch() in rules else []
    for of_trees, trees in ((with_ranks(trace, rules), searched), (grown, [measured_shape(trace)] if grown else [])):
        if not of_trees:
            continue
        try:
            answer += plan(trace, cost, rules=of_trees, shapes=trees, **settings)
        except SettingError as error:  # latencies of chains alone
            remarks.print(f"trees are left out: {error}", markup=False)
    return answer


def _bias(question: PredictOptions, trace: Trace, cost: CostModel | None, answer: Plan) -> tuple[BiasPoint, ...]:
    """The bias trade-off at the chain length that is best for token verification."""
    if not question.bias:
        return ()
    chains = answer.of("token")
    k = max(chains, key=lambda p: p.gain).shape.nodes if chains else question.k_max
    return bias_tradeoff(trace, k, question.bias, cost)


def _validate(question: PredictOptions, pair: PairOptions, text: TextOptions) -> None:
    if not 1 <= question.k_max <= LONGEST_CHAIN:
        raise SettingError(
            f"--k-max is {question.k_max}", limit=f"must be >= 1 and <= {LONGEST_CHAIN}", remedy="16 is the default"
        )
    recorded = recorded_at(question)
    measured = replace(pair, target=PairOptions.target) if question.where else pair  # it names the tokens of a trace
    idle = _changed(measured, PairOptions()) + _changed(text, TextOptions())
    if recorded and idle:
        raise SettingError(
            f"{', '.join(idle)} given with a recorded trace",
            limit="they only affect measuring, and this trace is already recorded",
            remedy="leave them out, or measure again",
        )
    if question.check and recorded:
        raise SettingError(
            "--check is given with a recorded trace",
            limit="it runs the models themselves",
            remedy="leave the trace out, and name the models with --target and --draft",
        )
    unseen = {"--check": question.check, "--bias": question.bias, "--stop best": SWEPT in (question.stop or ())}
    if question.where and not (question.json or question.out) and any(unseen.values()):
        raise SettingError(
            f"{' and '.join(name for name, given in unseen.items() if given)} given with --where",
            limit="--where shows where calls are lost, and the JSON alone holds the rest",
            remedy="add --json or --out, or leave one out",
        )
    if question.c is not None and question.latency:
        raise SettingError("--c and --latency are both given", limit="one cost model", remedy="leave one out")
    if question.c is not None and question.passes_alone:
        raise SettingError(
            "--passes-alone is given with --c", limit="a ratio knows no loop around the passes", remedy="leave one out"
        )


def _changed(options: Any, defaults: Any) -> list[str]:
    """The options that differ from their defaults, as they are written on the command line."""
    given, default = asdict(options), asdict(defaults)
    return [f"--{name.replace('_', '-')}" for name in given if given[name] != default[name]]


def _evidence(
    question: PredictOptions, pair: PairOptions, text: TextOptions, recorded: Trace | None
) -> tuple[Trace, CostModel | None, Session | None]:
    """The trace to predict from, the cost model, and the loaded pair if there is one."""
    cost: CostModel | None = ConstantRatio(question.c) if question.c is not None else None
    if recorded:
        beside = trace_file(recorded_files(question)[0]).with_name(LATENCY_FILE)
        if cost is None and (question.latency or beside.exists()):
            cost = read_latencies(question.latency or beside, recorded)
        return recorded, cost, None
    from spectheory.cli.measure import Session
    from spectheory.measure.assisted import check_draft

    session = Session.load(pair, text)
    if question.check:
        check_draft(session.pair)
    longest = max([question.k_max, *(CHECKED_K if question.check else ())]) + 1
    session.require_room(longest)
    folder = question.out or cache_folder() / session.fingerprint
    trace = session.trace(ready_folder(folder) / TRACE_FILE)
    if question.latency:
        cost = read_latencies(question.latency, trace)
    if cost is None:
        cost = session.latencies(folder / LATENCY_FILE, longest=longest)
    return trace, cost, session
