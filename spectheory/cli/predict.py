"""``spectheory predict``: find or make the trace, predict, show, check; ``--where`` shows where calls are lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.checks import in_range
from spectheory.cli.answer import ready_page, show
from spectheory.cli.console import ready_folder, remark
from spectheory.cli.elsewhere import _check_drafting, _show_elsewhere
from spectheory.cli.inputs import (
    _remark_others,
    checked_rules,
    in_commands,
    refuse_idle,
    remark_engines_left_out,
)
from spectheory.cli.options import (
    LATENCY_FILE,
    MeasuringOptions,
    PairOptions,
    PredictOptions,
    TextOptions,
    _recorded_at,
    recorded_files,
)
from spectheory.cli.progress import loading_torch, working
from spectheory.cli.readings import show_readings
from spectheory.cli.what_if import _check_what_if, _show_of_trace, show_of_chains
from spectheory.cost import ConstantRatio, CostModel, LatencyTable
from spectheory.deployment import EngineSettings, deployable
from spectheory.deployment.engines import check_one_names_rules, named_engines
from spectheory.deployment.next_steps import steps_of
from spectheory.errors import SettingError, TraceError
from spectheory.pages import Coloured, Commands
from spectheory.pairs import resolve
from spectheory.plots import write_figures
from spectheory.plots.where import write_where
from spectheory.prediction import Plan, plan
from spectheory.prediction.from_acceptance import from_acceptance
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.plan_answer import SWEPT, named_rules, named_shapes, named_stops
from spectheory.prediction.where import settings_of, where
from spectheory.reports import Report, prediction_report
from spectheory.reports.bounds import acceptance_report
from spectheory.reports.optional_tables import Records
from spectheory.reports.prediction import provisional_report
from spectheory.reports.where import where_report
from spectheory.trace import SOURCES, TRACE_FILE, Trace, trace_file
from spectheory.trace.reading import read_files
from spectheory.trace.sample import of_texts, spread
from spectheory.trace.strings import TOKENIZER_FILE, TokenStrings
from spectheory.verification import LossyRule
from spectheory.verification.biased import BiasedVerification

if TYPE_CHECKING:
    from spectheory.pages import Part


LONGEST_CHAIN = 1024
ACCEPTANCE_TAKES = ("acceptance", "counted_k", "what_if", "c", "k_max", "json", "out", "report", "all", "explain")


def run_predict(question: PredictOptions, pair: PairOptions, text: TextOptions, how: MeasuringOptions) -> None:
    """Answer the question and show the answer."""
    if question.acceptance is not None or question.counted_k is not None:
        return _from_acceptance(question, pair, text, how)
    _validate(question, pair, text, how)
    rules = checked_rules(question.rule, lossy=not question.where)
    check_one_names_rules(rules, question.engine)
    named_shapes(question.shape or (), question.k_max)
    named_stops(question.stop or ())
    named_engines(question.engine)
    for share in question.bias or ():
        BiasedVerification(share)
    if question.c is not None:
        ConstantRatio(question.c)
    if question.latency:
        LatencyTable.read(question.latency)
    if question.out:
        ready_folder(question.out)
    ready_page(question.report)
    files = recorded_files(question)
    if question.what_if:
        _check_what_if(question, recorded=bool(files))
    if question.drafting or question.remote_latency:
        _check_drafting(question, recorded=bool(files))
    evidence = read_files(files) if files else None
    if evidence is not None and not isinstance(evidence, Trace):
        return show_readings(question, {files[0].name: (files[0], evidence)}, "prediction")
    if evidence is None:
        for rule in named_rules(rules, lossy=True) or ():
            if isinstance(rule, LossyRule):
                rule.check_temperature(text.temperature)
        return _measured(question, pair, text, how, rules)
    if question.where:
        evidence = evidence.in_memory()
    file = question.latency or trace_file(files[0]).with_name(LATENCY_FILE)
    passes: CostModel | None = ConstantRatio(question.c) if question.c is not None else None
    if passes is None and (question.latency or file.exists()):
        passes = LatencyTable.read(file)
    if question.drafting:
        return _show_elsewhere(question, rules, evidence, passes)
    if question.what_if:
        return _show_of_trace(question, rules, evidence, passes, _asked(question))
    _show(question, pair, rules, evidence, passes, table=file)


def _from_acceptance(question: PredictOptions, pair: PairOptions, text: TextOptions, how: MeasuringOptions) -> None:
    """From an acceptance rate and nothing else."""
    if _recorded_at(question):
        raise SettingError("a trace and --acceptance are both given", limit="one source", remedy="leave one out")
    refuse_idle(question, ACCEPTANCE_TAKES, "an acceptance rate", "give a trace in its place")
    for given in (pair, text, how):
        refuse_idle(given, [], "an acceptance rate", "give a trace in its place")
    if question.acceptance is None:
        raise SettingError("--counted-k is given alone", limit="it says of what --acceptance is", remedy="add the rate")
    ready_page(question.report)
    answer = from_acceptance(question.acceptance, question.c, k_max=question.k_max, counted_k=question.counted_k)
    if question.what_if:
        return show_of_chains(question, answer.rows)
    show(acceptance_report(answer), question, "prediction", title="From an acceptance rate")


def _measured(
    question: PredictOptions,
    pair: PairOptions,
    text: TextOptions,
    how: MeasuringOptions,
    rules: list[str] | None,
) -> None:
    """Measure first: the prompts, with latencies before, between and after them; the check is the last step."""
    loading_torch("spectheory.cli.measure")
    from spectheory.cli.measure import costs, opened

    session, folder = opened(question, pair, text, how)
    with costs(question, session, folder) as known:

        def brief(trace: Trace, seconds: float | None) -> Report:
            answer = plan(trace, known.now(), rules=rules, trees=False, **_asked(question))
            return provisional_report(answer, seconds=seconds, trees_follow=not question.shape)

        trace = session.trace(folder / TRACE_FILE, quick=question.quick, brief=brief, on_idle=known.reach)
    passes = known.now()
    check = partial(session.check, passes) if question.check else None
    _show(question, pair, rules, trace, passes, check)


def _show(
    question: PredictOptions,
    pair: PairOptions,
    rules: list[str] | None,
    trace: Trace,
    passes: CostModel | None,
    check: Callable[[], Records] | None = None,
    *,
    table: Path | None = None,
) -> None:
    """Everything that is asked of a trace; latencies are read from `table`."""
    asked: dict[str, Any] = {"stops": question.stop or (), "bias": question.bias or ()}
    with working("predicting"):
        answer = plan(trace, passes, rules=rules, new_prompts=question.new_prompts, **asked, **_asked(question))
    if table and isinstance(passes, LatencyTable):
        _remark_others(passes, table, trace.provenance)
    for line in answer.left_out:
        remark(line)
    alone = question.rule or question.shape or question.stop or question.bias
    engines = () if alone and not question.engine else deployable(answer, trace, question.engine)
    remark_engines_left_out(question.engine, engines)
    report = partial(prediction_report, answer, engines=engines, trace=in_commands(question.trace))
    if question.where:
        return _show_where(question, pair, trace, answer, report, check)
    show(
        report(),
        question,
        "prediction",
        figures=partial(write_figures, answer),
        last=None if check is None else lambda: report(check=check()),
        title="Prediction",
        parts=partial(_parts, question, trace, answer, engines),
    )


def _parts(question: PredictOptions, trace: Trace, answer: Plan, engines: Sequence[EngineSettings]) -> list[Part]:
    """What a page shows: what to do, charts of the plan, and a text with its lost calls."""
    from spectheory.pages.prediction import prediction_charts

    best = engines[0].candidate.prediction if engines else answer.best
    steps = [*steps_of(answer, best, in_commands(question.trace))] if answer.timed else []
    charts: list[Part] = [*Commands.of(engines, steps), *prediction_charts(answer, engines)]
    if trace.recorded or answer.best.certified:  # nothing says where its calls end
        return charts
    few = of_texts(trace, spread(trace.lengths, np.zeros(len(trace.texts), np.int64))).in_memory()
    losses = where(few, *settings_of(answer)[-1], _strings_of(few, None), prefill_emits_token=question.prefill_token)
    return [*charts, Coloured.of(losses, len(few.texts), sampled_of=len(trace.texts))]


def _asked(question: PredictOptions) -> dict[str, Any]:
    return {
        "shapes": question.shape or None,
        "k_max": question.k_max,
        "prefill_emits_token": question.prefill_token,
        "passes_alone": question.passes_alone,
    }


def _validate(question: PredictOptions, pair: PairOptions, text: TextOptions, how: MeasuringOptions) -> None:
    if not 1 <= question.k_max <= LONGEST_CHAIN:
        raise SettingError(
            f"--k-max is {question.k_max}", limit=f"must be >= 1 and <= {LONGEST_CHAIN}", remedy="16 is the default"
        )
    in_range("--new-prompts", question.new_prompts, 10**9)
    recorded = _recorded_at(question)
    measured = replace(pair, target=PairOptions.target) if question.where else pair  # it names the tokens of a trace
    idle = [*_changed(measured, PairOptions()), *_changed(text, TextOptions()), *_changed(how, MeasuringOptions())]
    if recorded and idle:
        raise SettingError(
            f"{', '.join(idle)} given with a recorded trace",
            limit="they only affect measuring, and this trace is already recorded",
            remedy="leave them out, or measure again",
        )
    if question.quick and recorded:
        raise SettingError(
            "--quick is given with a recorded trace",
            limit="it says how much is measured, and this trace is already recorded",
            remedy="leave it out",
        )
    if question.check and recorded:
        raise SettingError(
            "--check is given with a recorded trace",
            limit="it runs the models themselves",
            remedy="leave the trace out, and name the models with --target and --draft",
        )
    unseen = {
        "--check": question.check,
        "--bias": question.bias,
        "--stop best": SWEPT in (question.stop or ()),
        "--new-prompts": question.new_prompts,
    }
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
            "--passes-alone is given with --c",
            limit="--c has no time of the loop around the passes",
            remedy="leave one out",
        )


def _changed(options: Any, defaults: Any) -> list[str]:
    """The options that differ from their defaults, as they are written on the command line."""
    given, default = asdict(options), asdict(defaults)
    return [f"--{name.replace('_', '-')}" for name in given if given[name] != default[name]]


def _show_where(
    question: PredictOptions,
    pair: PairOptions,
    trace: Trace,
    answer: Plan,
    report: Callable[..., Report],
    check: Callable[[], Records] | None,
) -> None:
    """The tables of the best settings of a plan; its own answer stays in the JSON."""
    strings = _strings_of(trace, None if pair.target == PairOptions().target else pair.target)
    chosen = settings_of(answer, all_rules=bool(question.rule))
    settings = [where(trace, *each, strings, prefill_emits_token=question.prefill_token) for each in chosen]
    few = few_prompts(answer.prompts)
    if question.out and not question.report:
        remark("one text with its lost calls in colour: --report FILE.html")
    show(
        where_report(settings, report(), few),
        question,
        "prediction",
        figures=partial(write_where, settings),
        last=None if check is None else lambda: where_report(settings, report(check=check()), few),
        title="Where calls are lost",
        parts=lambda: [Coloured.of(settings[-1], len(trace.texts))],
    )


def _strings_of(trace: Trace, target: str | None) -> TokenStrings | None:
    """The strings of the target's tokenizer: of the one that is named, or that the trace was measured with if it is
    still there; None where neither is known. Nothing is downloaded.
    """
    known = trace.provenance.get("tokenizer_size")
    ids = known if isinstance(known, int) else None
    if target is not None:
        if (file := _tokenizer(target)) is None:
            raise SettingError(
                f"--target {target} has no {TOKENIZER_FILE}",
                limit="a folder, or a model in the hub's cache; nothing is downloaded",
                remedy="name the folder of the target",
            )
        return TokenStrings.read(file, ids=ids)
    sources = trace.provenance.get(SOURCES)
    source = sources.get("target") if isinstance(sources, dict) else None
    file = _tokenizer(source) if isinstance(source, str) else None
    try:
        return TokenStrings.read(file, ids=ids) if file else None
    except TraceError as error:
        remark(f"tokens are shown by their ids: {error}")
        return None


def _tokenizer(source: str) -> Path | None:
    """The tokenizer's file of a folder, or of a model in the hub's cache."""
    folder = Path(resolve(source))
    if folder.is_dir():
        return folder / TOKENIZER_FILE if (folder / TOKENIZER_FILE).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(source, TOKENIZER_FILE)
    except (ImportError, ValueError):  # without the extra models; or a path that is no longer there
        return None
    return Path(path) if isinstance(path, str) else None
