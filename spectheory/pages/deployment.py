"""Charts of a plan: its candidates, every chain of the best draft, and other draft costs, batches and contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectheory.cost import Roofline
from spectheory.deployment import BatchChoice, Candidate, Deployment
from spectheory.deployment.batches import every_length
from spectheory.deployment.candidates import measured_nodes
from spectheory.drafting import Chain
from spectheory.pages.chart import Chart, rounded
from spectheory.pages.prediction import prediction_charts
from spectheory.pages.rows import row_chart
from spectheory.pages.what_if import batch_chart
from spectheory.prediction import plan
from spectheory.verification import PathRule
from spectheory.verification.by_start import within

MOST_ROWS = 24
CONTEXTS = tuple(2**i for i in range(8, 18))
"""Contexts of the slider where one alone is asked for: 256 to 131,072."""


def deployment_charts(answer: Deployment, rules: Sequence[PathRule] | None, k_max: int) -> list[Chart]:
    """The charts of a plan of these rules, all that a trace has by default, and of chains to k_max."""
    charts = [_candidates(answer.ranking.candidates)]
    if answer.batches:
        charts.append(_batches(answer.chain, answer.batches, k_max))
    return [*charts, *_chains(answer, rules, k_max)]


def _candidates(candidates: Sequence[Candidate]) -> Chart:
    shown = candidates[:MOST_ROWS]
    rows = [
        {end: rounded(getattr(one.speedup, end)) for end in ("low", "best", "high")}
        | {"name": one.setting, "group": one.draft.name, "says": f"{one.speedup.best:.2f}x"}
        for one in shown
    ]
    cut = f" The first {MOST_ROWS} of {len(candidates)} are drawn." if len(candidates) > MOST_ROWS else ""
    groups = list(dict.fromkeys(one.draft.name for one in shown))
    return Chart(
        "candidates",
        "Candidates by speed-up",
        "The fastest setting of each draft, rule and kind of shape, with its 95% interval; left of the dotted line "
        f"plain decoding is faster.{cut}",
        row_chart(rows, "predicted speed-up over plain decoding", reference=1.0, groups=groups),
        [
            "Tokens per call are exact for the texts of the trace; times are the measured ones, or those of the cost "
            "model that was given.",
            "Intervals are over prompts and latencies together. Settings whose intervals overlap may still differ, "
            "since they share both.",
        ],
    )


def _batches(chain: Candidate, choices: Sequence[BatchChoice], k_max: int) -> Chart:
    """Sliders over the batches that were asked for, and over their contexts, or a grid where one alone was."""
    cost, rule = chain.draft.cost, chain.prediction.rule
    assert isinstance(cost, Roofline)
    batches, contexts = (sorted({getattr(choice, name) for choice in choices}) for name in ("batch", "context"))
    grid = contexts if len(contexts) > 1 else sorted({*CONTEXTS, *contexts})
    found = every_length(chain.draft.trace, rule, cost, k_max=k_max, batches=batches, contexts=grid)
    return batch_chart(found, rule.label, chain.draft.name, (batches[0], contexts[0]))


def _chains(answer: Deployment, rules: Sequence[PathRule] | None, k_max: int) -> list[Chart]:
    """Every chain of the draft whose chain is the fastest."""
    draft = answer.chain.draft
    of_chains = None if rules is None else [rule for rule in rules if not rule.grows]
    longest = within(draft.trace.columns, measured_nodes(draft.cost, k_max))
    found = plan(draft.trace, draft.cost, rules=of_chains, shapes=[Chain(k) for k in range(1, longest + 1)])
    charts = prediction_charts(found, answer.break_even.draft_ratio)
    return [replace(chart, words=f"Chains of draft {draft.name}. {chart.words}") for chart in charts]
