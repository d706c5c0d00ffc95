"""``spectheory plan``: which draft, rule and shape to deploy, what it gives, and what to paste into other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from spectheory.answers.plan import ExportJson
from spectheory.checks import in_range
from spectheory.cli.answer import print_json, ready_page, show
from spectheory.cli.console import ready_folder, remark
from spectheory.cli.inputs import (
    checked_rules,
    in_commands,
    read_latencies,
    refuse_idle,
    remark_engines_left_out,
)
from spectheory.cli.options import (
    LATENCY_FILE,
    OF_ROOFLINES,
    MeasuringOptions,
    PairOptions,
    PlanOptions,
    RooflineOptions,
    TextOptions,
    recorded_files,
)
from spectheory.cli.plan_budgets import LONGEST_CHAIN, _run_budgets
from spectheory.cli.progress import working
from spectheory.cli.readings import TAKEN, Counts, show_readings
from spectheory.cost import Accelerator, ConstantRatio, CostModel, ModelShape, Roofline, Routing
from spectheory.cost.config import stored_in
from spectheory.cost.head_config import MARK, NATIVE
from spectheory.cost.served import GRAPH_SIZES
from spectheory.deployment import BATCHES, Draft, Load
from spectheory.deployment.deployment import plan
from spectheory.deployment.engines import check_one_names_rules, named_engines
from spectheory.deployment.exports import Acceptance, counted_acceptance, export_named, planned_acceptance
from spectheory.deployment.served import TimedServer, acceptance_of_server, plan_server
from spectheory.deployment.stale_draft import staleness, step_of
from spectheory.errors import FOREIGN, SettingError, reason_of
from spectheory.files import cache_folder, read_text
from spectheory.pages.deployment import deployment_parts, served_charts
from spectheory.pairs import PREFIX, resolve
from spectheory.plots.deployment import write_plan
from spectheory.prediction.plan_answer import named_stops
from spectheory.prediction.recorded import drafts_of, free_part
from spectheory.reports import deployment_report
from spectheory.reports.served import served_report
from spectheory.reports.stale_draft import training_report
from spectheory.trace import TRACE_FILE, Trace
from spectheory.trace.reading import Whole, evidence_file, read_files
from spectheory.trace.timed import timed_runs

LARGEST_TREE = 1024


def run_plan(question: PlanOptions) -> None:
    """Answer the question and show the answer."""
    if question.steps or question.budget:
        return _run_budgets(question)
    named = _sources(question)
    named_stops(question.stop or ())
    named_engines(question.engine)
    _check_costs(question)
    in_range("--k-max", question.k_max, LONGEST_CHAIN)
    in_range("--nodes-max", question.nodes, LARGEST_TREE)
    if question.stop and (question.export is not None or question.bench):
        raise SettingError(
            "--stop is given with --bench or --export",
            limit="both are about chains of a fixed length",
            remedy="leave one of them out",
        )
    ready_page(question.report)
    if question.export is not None:
        return _export(question)
    if question.bench:
        return _plan_server(question)
    rules = checked_rules(question.rule)
    check_one_names_rules(rules, question.engine)
    if question.out:
        ready_folder(question.out)
    if counts := _counted(named, question):
        return show_readings(question, counts, "plan", _costs_of_counts(question))
    training = len(named) > 1 and all(step_of(name) is not None for name, _ in named)
    _check_shared(question, 1 if training else len(named) or len(BUILT_IN))
    drafts = [_draft_at(name, path, question) for name, path in named]
    if training:
        return _run_training(question, drafts)
    drafts = drafts or list(_built_in(question))
    with working("comparing settings"):
        answer = plan(
            drafts,
            rules=rules,
            stops=question.stop or (),
            k_max=question.k_max,
            nodes=question.nodes,
            passes_alone=question.passes_alone,
            load=load_of(question),
            engines=question.engine,
        )
    remark_engines_left_out(question.engine, answer.engines)
    show(
        deployment_report(answer, trace=in_commands(question.trace)),
        question,
        "plan",
        figures=partial(write_plan, answer),
        title="Plan",
        parts=partial(deployment_parts, answer, in_commands(question.trace)),
    )


def _run_training(question: PlanOptions, drafts: list[Draft]) -> None:
    """Answer for the steps of a training, which the drafts are named by."""
    refused = ("stop", "engine", "passes_alone", "tpot", "ttft", "prompt_tokens", "output_tokens")
    if given := [f"--{name.replace('_', '-')}" for name in refused if getattr(question, name)]:
        raise SettingError(
            f"{given[0]} is given with training steps",
            limit="they are compared by chains of a fixed length",
            remedy="leave it out, or name the drafts otherwise than step0 and step100",
        )
    with working("comparing steps"):
        answer = staleness(drafts, rules=question.rule, k_max=question.k_max)
    show(training_report(answer), question, "training", title="A draft by training step")


def _costs_of_counts(question: PlanOptions) -> tuple[Roofline, Load] | None:
    """The roofline of an engine that counted, and the load; counts do not say what drafted."""
    if question.hardware is None:
        return None
    draft = question.draft_architecture
    sizes = read_config(architecture_of(draft, "counts")) if draft else None
    return roofline_of(question, sizes), load_of(question)


def _export(question: PlanOptions) -> None:
    """Print the options; say on stderr what they are of."""
    if question.report or question.out:
        raise SettingError(
            f"--{'report' if question.report else 'out'} is given with --export",
            limit="an export is one line on the terminal",
            remedy="leave one out, or plan again",
        )
    export = export_named(question.export or "")
    acceptance, words = _acceptance(question, export.by_batch)
    options = export.of(acceptance)
    if question.json:
        named = {"export": export.name, "of": words, "options": options, "text": export.text(options)}
        print_json(ExportJson.view(acceptance, **named))
        return
    print(export.text(options))
    remark(f"{export.meaning}. From: {words}.")


def _acceptance(question: PlanOptions, by_batch: bool) -> tuple[Acceptance, str]:
    """Acceptance by position, and k by batch where costs know batches; with words for a remark."""
    if question.bench:
        return acceptance_of_server(_timed_server(question), by_batch=by_batch, contexts=question.context)
    named = _sources(question)
    if counts := _counted(named, question):
        only = "it holds acceptance as it was counted, at the k that was served"
        refuse_idle(question, (TAKEN - {"k_max"}) | {"export"}, "an export of counts", "measure the pair", limit=only)
        return counted_acceptance({name: each for name, (_, each) in counts.items()})
    _check_shared(question, len(named) or len(BUILT_IN))
    drafts = [_draft_at(name, path, question) for name, path in named] or list(_built_in(question))
    rules = checked_rules(question.rule)
    contexts = question.context if question.hardware else None
    return planned_acceptance(drafts, rules, k_max=question.k_max, by_batch=by_batch, contexts=contexts)


# A server that was timed


def _plan_server(question: PlanOptions) -> None:
    """K by concurrency and context."""
    if question.out:
        ready_folder(question.out)
    targets = {"tpot": question.tpot, "ttft": question.ttft}
    answer = plan_server(_timed_server(question), question.batch, question.context, **targets)
    parts = partial(served_charts, answer.choices)
    show(served_report(answer), question, "plan", title="Plan for a server", parts=parts)


def _timed_server(question: PlanOptions) -> TimedServer:
    """The runs and the trace that options name, fitted."""
    if question.traces:
        raise SettingError(
            "--bench is given with --trace", limit="timed runs are of one draft", remedy="name its trace alone"
        )
    runs = [run for path in question.bench or () for run in timed_runs(path)]
    rules = checked_rules(question.rule) or []
    if len(rules) > 1:
        raise SettingError(f"{len(rules)} rules are given", limit="a server has one", remedy="keep the server's --rule")
    files = recorded_files(question)
    trace = read_files([evidence_file(files[0]), *files[1:]]) if files else None
    if trace is not None and not isinstance(trace, Trace):
        raise SettingError(
            f"{files[0]} holds counts of an engine",
            limit="--bench has counts of its own",
            remedy="name a trace, or none",
        )
    sizes = sorted(set(question.graph_size or GRAPH_SIZES))
    return TimedServer.of(runs, trace and replace(trace, lists=()), *rules, k_max=question.k_max, sizes=sizes)


# Drafts that were measured, or the built-in ones, and what they cost

MOST_SEQUENCES, MOST_TOKENS, LARGEST_RATIO = 10**6, 10**9, 1000


def _check_shared(question: PlanOptions, drafts: int) -> None:
    """Refuse one ratio or latency table for several drafts."""
    given = [name for name in ("c", "latency") if getattr(question, name) is not None]
    if drafts > 1 and given:
        raise SettingError(
            f"--{given[0]} is given with {drafts} drafts",
            limit="each has costs of its own",
            remedy="keep the latency.json beside each trace, or use --hardware",
        )


def _check_costs(question: PlanOptions) -> None:
    """Refuse options of costs that contradict each other, before anything is read."""
    given = {
        "--c": question.c is not None,
        "--latency": bool(question.latency),
        "--hardware": question.hardware is not None,
        "--bench": bool(question.bench),
    }
    sources = [name for name, here in given.items() if here]
    if len(sources) > 1:
        raise SettingError(f"{' and '.join(sources)} are given", limit="one source of costs", remedy="leave one out")
    if question.c is not None and question.c > LARGEST_RATIO:
        raise SettingError(
            f"--c is {question.c:g}", limit=f"at most {LARGEST_RATIO}", remedy="pass the draft's step over the target's"
        )
    defaults = PlanOptions()
    idle = [f"--{n.replace('_', '-')}" for n in OF_ROOFLINES if getattr(question, n) != getattr(defaults, n)]
    idle = [name for name in idle if not (question.bench and name in ("--batch", "--context", "--tpot", "--ttft"))]
    if idle and question.hardware is None:
        reasons = {
            "--c": "c is of one batch, where verification costs one step; at larger ones it costs more",
            "--bench": "runs are of one server, and of requests of their own lengths",
        }
        raise SettingError(
            f"{', '.join(idle)} given without --hardware",
            limit=reasons.get("".join(sources), "measured latencies are of one machine, batch 1 and one context"),
            remedy="name an accelerator with --hardware" + ("" if question.bench else ", or time a server for --bench"),
        )
    if question.graph_size and not question.bench:
        raise SettingError(
            "--graph-size is given without --bench",
            limit="it is about timed runs",
            remedy="leave it out, or add --bench",
        )
    for size in question.graph_size or ():
        in_range("--graph-size", size, MOST_TOKENS)
    if question.passes_alone and sources and sources[0] != "--latency":
        raise SettingError(
            f"--passes-alone is given with {sources[0]}",
            limit="only measured latencies include a loop",
            remedy="leave it out",
        )
    if question.hardware is not None:
        check_hardware(question)


def check_hardware(question: RooflineOptions) -> None:
    """Refuse an accelerator that is unknown, or sizes and loads that no roofline takes."""
    Accelerator.named(question.hardware or "")
    if (question.link_latency or question.expert_parallel) and question.devices == 1:
        raise SettingError(
            f"--{'link-latency' if question.link_latency else 'expert-parallel'} is given without --devices",
            limit="one device exchanges nothing",
            remedy="say how many with --devices, or leave it out",
        )
    if question.target_architecture is None:
        raise SettingError(
            "--hardware is given without sizes",
            limit="a roofline needs --target-architecture",
            remedy="give the config.json of the target",
        )
    for name, values, least, most, remedy in (
        ("batch", question.batch, 1, MOST_SEQUENCES, "count sequences"),
        ("context", question.context, 0, MOST_TOKENS, "count cached tokens"),
    ):
        for value in values or ():
            if not least <= value <= most:
                raise SettingError(f"--{name} is {value}", limit=f"must be in {least}..{most}", remedy=remedy)


def _cost_of(question: PlanOptions, name: str, trace_file: Path | None, trace: Trace) -> CostModel:
    """The costs of one draft; of a measured folder those beside its trace."""
    if question.c is not None:
        return ConstantRatio(question.c)
    if question.hardware is not None:
        return roofline_of(question, _draft_config(question, name, trace))
    beside = trace_file.with_name(LATENCY_FILE) if trace_file else None
    file = question.latency or beside
    if file is None or not (question.latency or file.exists()):
        raise SettingError(
            f"the costs of {name} are unknown",
            limit="a speed-up needs latencies, a ratio or hardware",
            remedy="give --latency, --c, --hardware or --bench",
        )
    return read_latencies(file, trace.provenance)


def roofline_of(question: RooflineOptions, draft: Mapping[str, Any] | None) -> Roofline:
    """The roofline that is asked for, with the draft of this config; free drafts without one."""
    assert question.hardware is not None
    assert question.target_architecture is not None
    card, load = Accelerator.named(question.hardware), load_of(question)
    configs = read_config(question.target_architecture), draft
    weights = [question.weights, question.draft_weights or question.weights]
    stored = [given or stored_in(config or {}).weights for given, config in zip(weights, configs, strict=True)]
    peaks = [question.peak or (one if one in card.peak else "bf16") for one in stored]
    target, drafting = (
        ModelShape.from_config(config, weights=given, kv_cache=question.kv_cache) if config else None
        for config, given in zip(configs, weights, strict=True)
    )
    assert target is not None
    experts = target.routed[0][1].experts if target.routed else None
    return Roofline(
        target,
        drafting,
        replace(card, overhead=question.overhead, link_latency=question.link_latency),
        context=load.contexts[0],
        batch=load.batches[0] if question.batch else 1,
        dtype=peaks[0],
        devices=question.devices,
        draft_dtype=peaks[1],
        routing=Routing.read(question.routing, experts) if question.routing else None,
        expert_parallel=question.expert_parallel,
    )


def load_of(question: RooflineOptions) -> Load:
    """The load that is asked about."""
    return Load(
        batches=question.batch or BATCHES,
        contexts=question.context or (),
        **{name: getattr(question, name, None) for name in ("prompt_tokens", "output_tokens", "tpot", "ttft")},
    )


def _draft_config(question: PlanOptions, name: str, trace: Trace) -> Mapping[str, Any] | None:
    """The draft's config; none where no draft is a model. That of MTP modules may be their model's."""
    path = _draft_architecture(question, name, trace)
    config, draft = None if path is None else read_config(path), trace.provenance.get("draft")
    native = config is not None and isinstance(draft, dict) and draft.get("kind") == NATIVE and MARK not in config
    return {MARK: NATIVE, "transformer_layer_config": config} if native else config


def _draft_architecture(question: PlanOptions, name: str, trace: Trace) -> Path | None:
    """Where the draft's config is: an option, else the model that was measured; none where no draft is a model."""
    if question.draft_architecture:
        return architecture_of(question.draft_architecture, name)
    sources = trace.provenance.get("sources")
    source = sources.get("draft") if isinstance(sources, dict) else None
    if isinstance(source, str) and (folder := Path(resolve(source))).is_dir():
        return folder
    if trace.recorded:
        return None
    raise SettingError(
        f"the sizes of draft {name} are unknown",
        limit="a roofline needs them, and the trace does not name a folder with its config.json",
        remedy="add --draft-architecture",
    )


def architecture_of(given: Sequence[str], name: str) -> Path:
    """The draft's config: the only one, or the one of that name."""
    named = dict(entry.split("=", 1) for entry in given if "=" in entry)
    if name in named:
        return Path(named[name])
    if len(given) == 1 and not named:
        return Path(given[0])
    raise SettingError(
        f"no architecture is given for draft {name}",
        limit=f"several --draft-architecture need a name each; named are {', '.join(named) or 'none'}",
        remedy=f"add --draft-architecture {name}=config.json",
    )


def read_config(path: Path) -> dict[str, Any]:
    """A model's config.json, or that of its folder; of a model with vision or sound the part about text."""
    file = path / "config.json" if path.is_dir() else path
    try:
        content = json.loads(read_text(file))
        if isinstance(content, dict):
            stored = {"quantization_config": content.get("quantization_config")}
            content = stored | content["text_config"] if content.get("text_config") else content
        if not isinstance(content, dict):
            raise TypeError("no JSON object")
        return content
    except (OSError, *FOREIGN) as error:
        raise SettingError(
            f"architecture {str(path)!r} cannot be read ({reason_of(error)})",
            limit="needs a config.json of transformers",
            remedy="check the path",
        ) from error


BUILT_IN = ("distilled", "draft")


def _sources(question: PlanOptions) -> list[tuple[str, Path]]:
    """Names of drafts, empty for that of the trace itself, and where they were measured; none for the built-in ones."""
    drafts = []
    for entry in question.traces or ():
        name, equals, folder = entry.partition("=")
        if not (name and equals and folder):
            raise SettingError(
                f"--trace is {entry!r}", limit="needs NAME=FOLDER of a measurement", remedy="write small=measured/small"
            )
        if not name.isprintable():
            raise SettingError(
                f"--trace is named {name!r}",
                limit="names are of characters that print",
                remedy="use letters and digits",
            )
        drafts.append((name, evidence_file(Path(folder))))
    if files := recorded_files(question):
        drafts.insert(0, ("", evidence_file(files[0])))
    return drafts


def _counted(named: Sequence[tuple[str, Path]], question: PlanOptions) -> dict[str, tuple[Path, Counts]]:
    """The logs of counts by name, if all are such; traces and counts are not ranked together."""
    names = [name or path.name for name, path in named]
    logs = [_counts(name, path, question) for name, path in named]
    by_name = {name: (path, each) for name, (_, path), each in zip(names, named, logs, strict=True) if each is not None}
    if twice := [name for name in by_name if names.count(name) > 1]:
        raise SettingError(
            f"{twice[0]} names {names.count(twice[0])} logs",
            limit="each log has a name of its own",
            remedy="rename one: --trace NAME=LOG",
        )
    if by_name and len(by_name) < len(named):
        raise SettingError(
            f"{', '.join(by_name)} holds counts of an engine, the others traces",
            limit="traces are ranked with traces, and counts are read beside counts",
            remedy="name one kind",
        )
    return by_name


def _counts(name: str, path: Path, question: PlanOptions) -> Counts | None:
    evidence = _read(name, path, question)
    return None if isinstance(evidence, Trace) else evidence


def _read(name: str, path: Path, question: PlanOptions) -> Whole:
    """What a named file holds; the nameless one is TRACE, with the draft's log if there is one."""
    return read_files([path] if name else [path, *recorded_files(question)[1:]])


def _draft_at(name: str, path: Path, question: PlanOptions) -> Draft:
    """One draft with its trace and costs; without a name that of the trace."""
    read = _read(name, path, question)
    assert isinstance(read, Trace), "counts are read elsewhere"
    whole = read.in_memory() if question.stop else read
    trace = replace(whole, lists=())  # plans rest on exact predictions alone
    recorded = trace.provenance.get("draft")
    file = path.parent.name if path.name == TRACE_FILE else path.stem
    name = name or str(
        (recorded.get("name") if isinstance(recorded, dict) else None) or (file if trace.recorded else "draft")
    )
    given = question.c is not None or bool(question.hardware) or bool(question.latency)
    known = given or path.with_name(LATENCY_FILE).exists()
    unknown = not known or (question.hardware and not question.draft_architecture)
    if trace.recorded and unknown:
        free, how = free_part(trace), "--draft-architecture" if question.hardware else "--c"
        if dear := [each for each in drafts_of(trace) if each not in drafts_of(free)]:
            remark(f"left out, as the costs of their passes are unknown: {', '.join(dear)}; give {how}")
        return Draft(name, free, roofline_of(question, None) if question.hardware else ConstantRatio(0.0))
    return Draft(name, trace, _cost_of(question, name, path, trace))


def _built_in(question: PlanOptions) -> Iterator[Draft]:
    """The built-in drafts, measured here and now."""
    from spectheory.cli.measure import Session

    longest = max(question.k_max, question.nodes) + 1
    for name in BUILT_IN:
        session = Session.load(PairOptions(draft=f"{PREFIX}{name}"), TextOptions(), MeasuringOptions())
        session.require_room(longest)
        folder = question.out / name if question.out else cache_folder() / session.job.fingerprint
        ready_folder(folder)
        if question.hardware is None:
            with session.timing(folder / LATENCY_FILE, longest=longest) as known:
                trace = session.trace(folder / TRACE_FILE, on_idle=known.reach)
        else:
            trace = session.trace(folder / TRACE_FILE)
        yield Draft(name, trace, _cost_of(question, name, folder / TRACE_FILE, trace))
