"""``spectheory plan --export``: what another tool takes, alone on stdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spectheory.answers.plan import ExportJson
from spectheory.cli.answer import print_json
from spectheory.cli.console import remarks
from spectheory.cli.options import PlanOptions
from spectheory.cli.plan_bench import acceptance_of_server
from spectheory.cli.plan_costs import check_shared
from spectheory.cli.plan_inputs import BUILT_IN, built_in, counted, draft_at, sources
from spectheory.cli.readings import Counts
from spectheory.cli.shapes import read_rules
from spectheory.cost import AffineCost, Roofline
from spectheory.deployment import BATCHES, Draft, batch_ranges, best_lengths
from spectheory.deployment.exports import Acceptance, export_named
from spectheory.deployment.ranking import rank_drafts
from spectheory.errors import SettingError
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.trace.calls import CallLog
from spectheory.trace.pooled import pooled
from spectheory.verification import TokenVerification


def run_export(question: PlanOptions) -> None:
    """Print the options; say on stderr what they are of."""
    if question.report:
        raise SettingError(
            "--report is given with --export", limit="an export has no page", remedy="leave one out, or plan again"
        )
    export = export_named(question.export or "")
    found = acceptance_of_server if question.bench else _acceptance
    acceptance, words = found(question, export.by_batch)
    options = export.of(acceptance)
    if question.json:
        named = {"export": export.name, "of": words, "options": options, "text": export.text(options)}
        print_json(ExportJson.view(acceptance, **named))
        return
    print(export.text(options))
    remarks.print(f"{export.meaning}. From: {words}.", markup=False)


def _acceptance(question: PlanOptions, by_batch: bool) -> tuple[Acceptance, str]:
    """Acceptance of the fastest chain at the starts of its own calls, and k by batch where costs know batches."""
    named = sources(question)
    if counts := counted(named, question):
        return _of_counts({name: found for name, (_, found) in counts.items()})
    check_shared(question, len(named) or len(BUILT_IN))
    drafts: Sequence[Draft] = [draft_at(name, path, question) for name, path in named] or list(built_in(question))
    rules = read_rules(question.rule) or [TokenVerification()]
    best = rank_drafts(drafts, rules=rules, k_max=question.k_max, nodes=1).best
    rule, k, trace, cost = best.prediction.rule, best.prediction.shape.nodes, best.draft.trace, best.draft.cost
    schedule: tuple[tuple[int, int, int], ...] = ()
    if by_batch and isinstance(cost, Roofline | AffineCost):
        every = range(1, max(BATCHES) + 1)
        schedule = tuple(batch_ranges(best_lengths(trace, rule, cost, k_max=question.k_max, batches=every)))
    words = f"draft {best.draft.name}, {rule.label}, k = {k} (speed-up {best.speedup}), exact for the trace's texts"
    return Acceptance(tuple(survival_at_starts(trace, rule, k).tolist()), schedule), words


def _of_counts(counts: Mapping[str, Counts]) -> tuple[Acceptance, str]:
    """Survival as one engine counted it, at its own k."""
    (name, found), *others = counts.items()
    survival = (pooled(found) if isinstance(found, CallLog) else found).survival
    if others or not survival:
        raise SettingError(
            f"{', '.join(counts)} says no acceptance by position of one engine",
            limit="an export needs counts by position, or a trace",
            remedy="name one log with counts by position, or a trace",
        )
    return Acceptance(tuple(survival)), f"{name}, as counted, k = {len(survival)}"
