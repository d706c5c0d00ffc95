"""``spectheory plan``: which draft, rule and shape to deploy, what it gives, and what to paste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from spectheory.cli.answer import View, show
from spectheory.cli.console import answers, ready_folder
from spectheory.cli.inputs import in_range
from spectheory.cli.options import PlanOptions
from spectheory.cli.page import Page, ready_page
from spectheory.cli.plan_bench import run_bench_plan
from spectheory.cli.plan_costs import DEFAULT_CONTEXT, check_costs, check_shared
from spectheory.cli.plan_export import run_export
from spectheory.cli.plan_inputs import BUILT_IN, built_in, counted, draft_at, sources
from spectheory.cli.progress import working
from spectheory.cli.readings import show_readings
from spectheory.cli.shapes import read_rules, read_stops
from spectheory.cli.stops import check_asked, refuse_stops, swept_chain
from spectheory.cost import LatencyTable, LoopedTable, Roofline
from spectheory.deployment import (
    BATCHES,
    ENGINES,
    BatchChoice,
    Candidate,
    Distance,
    Draft,
    EngineSettings,
    LockStepChoice,
    Ranking,
    best_lengths,
    break_even,
    check_comparable,
    distances,
    engine_settings,
    lock_step_lengths,
    rank_drafts,
    without_method,
    without_stop,
)
from spectheory.deployment.lock_step import MOST_TOGETHER
from spectheory.drafting import Stopped
from spectheory.harmless import harmless
from spectheory.limits.claims import BY_START, WHOLE_DECODING
from spectheory.pages.deployment import deployment_charts
from spectheory.plots.deployment import write_batches, write_ranking
from spectheory.prediction import Prediction
from spectheory.prediction.over_prompts import Prompts, few_prompts
from spectheory.prediction.recorded import check_depth
from spectheory.prediction.recorded_readings import RecordedReading, recorded_readings
from spectheory.prediction.whole import ranked_rules
from spectheory.reports import DeploymentAnswer, deployment_report
from spectheory.reports.recorded import heavy, recorded_notes
from spectheory.reports.remarks import IN_LOOP, given, sampled_choices
from spectheory.verification import PathRule, RankRule

LONGEST_CHAIN, LARGEST_TREE = 256, 1024
OF_ENGINES = (
    "An engine's k may differ from the best k above: it is the fastest under the engine's own rule by the time of "
    "passes alone. The engine's own work between passes comes on top."
)
"""Why settings for engines differ from the best setting."""
CHOSEN = (
    "Lengths, sizes and the best setting are chosen on the texts they are scored on, and the intervals do not include "
    "that choice."
)


def run_plan(question: PlanOptions) -> None:
    """Answer the question and show the answer."""
    named = sources(question)
    read_stops(question.stop)
    check_costs(question)
    in_range("--k-max", question.k_max, LONGEST_CHAIN)
    in_range("--nodes-max", question.nodes, LARGEST_TREE)
    if question.export is not None or question.bench:
        refuse_stops(question)
    ready_page(question.report)
    if question.export is not None:
        return run_export(question)
    if question.bench:
        return run_bench_plan(question)
    rules = read_rules(question.rule)
    if question.out:
        ready_folder(question.out)
    if counts := counted(named, question):
        return show_readings(question, counts, "plan")
    check_shared(question, len(named) or len(BUILT_IN))
    drafts = [draft_at(name, path, question) for name, path in named]
    answer = _answer(question, drafts or list(built_in(question)), rules)
    report = deployment_report(answer)
    out = question.out
    file = out / "plan.json" if out else None
    show(
        report,
        as_json=question.json,
        file=file,
        figures=lambda: _figures(answer, out) if out else [],
        page=Page.asked(question.report, "Plan", lambda: deployment_charts(answer, rules, question.k_max)),
        view=View.of(question),
    )
    if question.all and not question.json:
        _paste(answer.engines)


def _answer(question: PlanOptions, drafts: list[Draft], rules: list[PathRule] | None) -> DeploymentAnswer:
    check_comparable(drafts)
    for draft in drafts:
        check_depth(draft.trace, question.k_max)
    settings = {"k_max": question.k_max, "nodes": question.nodes}
    stops, swept = read_stops(question.stop)
    for draft in drafts:
        check_asked(question, draft.trace, rules)
    with working("comparing settings"):
        timed = drafts if question.passes_alone else [draft.in_loop for draft in drafts]
        of_trees = _tree_rules(question, drafts, rules)
        ranking = rank_drafts(timed, rules=rules, tree_rules=of_trees, stops=stops, **settings)
        adaptive = [swept_chain(question, draft, ranking) for draft in timed] if swept else []
        engines = engine_settings(drafts, stops=stops, **settings)
    best = ranking.best
    chain = next(c for c in ranking.candidates if c.kind == "chain" and not isinstance(c.prediction.shape, Stopped))
    fixed = chain if isinstance(best.prediction.shape, Stopped) else best
    batches = _batches(question, chain)
    readings = [reading for draft in drafts for reading in recorded_readings(draft.trace, question.k_max)]
    return DeploymentAnswer(
        ranking=ranking,
        break_even=break_even(fixed.prediction, fixed.draft.cost, question.k_max),
        distances=_distances(best, chain),
        chain=chain,
        batches=batches,
        lock_step=_lock_step(question, chain, batches),
        engines=engines,
        notes=_of_lengths(drafts, best.prediction, readings)
        if readings
        else _notes(question, drafts, ranking, engines),
        recorded=readings,
        adaptive=adaptive,
        prompts=min(Prompts(draft.trace.texts).count for draft in drafts),
    )


def _distances(best: Candidate, chain: Candidate) -> list[Distance]:
    """Limits of the best setting; for a tree also the limit of the fastest chain's decoding, as it is about chains."""
    of_chain = [] if best.kind == "chain" else distances(chain.prediction)
    asides = [
        replace(d, limit=replace(d.limit, name=f"{d.limit.name}, {chain.shape}"), binds=False)
        for d in of_chain
        if d.limit in (WHOLE_DECODING, BY_START)
    ]
    return [*distances(best.prediction), *asides]


def _batches(question: PlanOptions, chain: Candidate) -> list[BatchChoice]:
    cost = chain.draft.cost
    if not isinstance(cost, Roofline):
        return []
    return best_lengths(
        chain.draft.trace,
        chain.prediction.rule,
        cost,
        k_max=question.k_max,
        batches=sorted(set(question.batch or BATCHES)),
        contexts=sorted(set(question.context or [DEFAULT_CONTEXT])),
    )


def _lock_step(question: PlanOptions, chain: Candidate, choices: Sequence[BatchChoice]) -> list[LockStepChoice]:
    """Lock-step batches of the same sizes, as far as they are planned."""
    cost, batches = chain.draft.cost, sorted({choice.batch for choice in choices if choice.batch <= MOST_TOGETHER})
    if not batches or not isinstance(cost, Roofline):
        return []
    contexts = sorted({choice.context for choice in choices})
    ks = range(1, question.k_max + 1)
    return lock_step_lengths(chain.draft.trace, chain.prediction.rule, cost, ks=ks, batches=batches, contexts=contexts)


def _tree_rules(question: PlanOptions, drafts: Sequence[Draft], rules: Sequence[PathRule] | None) -> list[RankRule]:
    """Rules whose ranks every trace records; greedy traces rank no second choices."""
    if question.nodes < 2 or any(draft.fact("settings", "sampling", "temperature") == 0 for draft in drafts):
        return []
    known = [ranked_rules(draft.trace, rules) for draft in drafts]
    shared = [rule for rule in known[0] if all(rule in others for others in known)]
    return [rule for rule in shared if isinstance(rule, RankRule)]


# What is shown


def _of_lengths(drafts: Sequence[Draft], best: Prediction, readings: Sequence[RecordedReading]) -> list[str]:
    """What holds of recorded lengths."""
    lines = heavy(readings, best)
    lines += [line for draft in drafts for line in recorded_notes(draft.trace.provenance, readings)]
    fewest = min(Prompts(draft.trace.texts).count for draft in drafts)
    return [*dict.fromkeys(lines), CHOSEN, *few_prompts(fewest)]


def _notes(
    question: PlanOptions, drafts: Sequence[Draft], ranking: Ranking, engines: Sequence[EngineSettings]
) -> list[str]:
    costs = [draft.cost for draft in drafts]
    lines = [
        "Tokens per call count the recovered or bonus token; exact for the texts of the trace (path theorem).",
        "Intervals (95%) are over prompts and latencies together. Settings whose intervals overlap may still differ, "
        "since they share prompts and latencies.",
        f"Trees are scored on other prompts than those they were found on. {CHOSEN}",
        IN_LOOP if isinstance(ranking.best.draft.cost, LoopedTable) else "Speed-ups are of passes alone.",
        OF_ENGINES,
    ]
    rule = ranking.best.prediction.rule.name
    if rule not in {settings.candidate.prediction.rule.name for settings in engines}:
        lines.append(f"No engine here has {rule} verification, the best rule: see what each engine's own rule gives.")
    lines += [*without_method(drafts), *without_stop(read_stops(question.stop)[0])]
    for cost in costs[:1]:
        if isinstance(cost, LatencyTable):
            lines.append(
                f"Latencies are of batch 1 and context {cost.context}: for other batches and contexts give --hardware."
            )
        elif isinstance(cost, Roofline):
            lines.append(
                f"Seconds are a roofline's, an estimate, at batch {cost.batch} and context {cost.context}; in the "
                "table every sequence has the same context."
            )
            if max(question.batch or [0]) > MOST_TOGETHER:
                lines.append(f"Lock-step is planned up to {MOST_TOGETHER} texts.")
    best = ranking.best.prediction.shape
    if best.nodes == (question.k_max if ranking.best.kind == "chain" else question.nodes):
        lines.append("The best shape is the largest tried: a longer --k-max or a larger --nodes-max may give more.")
    lines += [f"Left out: {what}" for what in ranking.left_out]
    if len({draft.fact("prompts", "sha256") for draft in drafts}) > 1:
        lines.append("The drafts were measured on different prompts: part of their difference is the text's.")
    lines += next(filter(None, (given(draft.trace.provenance) for draft in drafts)), [])
    if drafts[0].fact("settings", "sampling", "min_p"):
        able = [engine.name for engine in ENGINES if engine.takes_min_p]
        lines.append(f"Measured with min-p, which holds where drafts are verified in these engines: {', '.join(able)}.")
    if any(draft.fact("settings", "sampling", "temperature") == 0 for draft in drafts):
        lines.append("Greedy decoding: every rule accepts the target's first choice alone; trees are left out.")
    prompts = [Prompts(draft.trace.texts) for draft in drafts]
    chosen_on = min(filter(None, (each.chosen_on for each in prompts)), default=None)
    return [*lines, *sampled_choices(chosen_on), *few_prompts(min(each.count for each in prompts))]


def _paste(engines: Sequence[EngineSettings]) -> None:
    """Settings as they stand: lines to be pasted are not wrapped."""
    for settings in engines:
        without = "" if settings.candidate.prediction.rule.uses_draft else ", no draft model"
        answers.print(f"\n{settings.engine} {settings.version}{without}", style="bold", highlight=False)
        if not settings.pays:
            answers.print("Does not pay under this engine's rule; the fastest setting would be:", highlight=False)
        print(harmless(settings.paste))
        for line in settings.remarks:
            answers.print(line, style="dim", highlight=False, markup=False)


def _figures(answer: DeploymentAnswer, out: Path) -> list[Path]:
    written = write_ranking(answer.ranking, out)
    return [*written, *write_batches(answer.batches, answer.lock_step, out)] if answer.batches else written
