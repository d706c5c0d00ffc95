"""Charts of a plan: candidates, chains of the best draft, other draft costs, batches and contexts; one of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectheory.cost import Roofline
from spectheory.deployment import BatchChoice, Candidate, Deployment, EngineSettings
from spectheory.deployment.batches import every_length
from spectheory.deployment.mismatch import window_of
from spectheory.deployment.served import ServedChoice
from spectheory.drafting import Chain
from spectheory.pages.page import Commands, Part
from spectheory.pages.prediction import batch_chart, prediction_charts
from spectheory.pages.vega import VegaChart, alt, choice, data, ends, numbers, plain, rows, specified
from spectheory.plots.deployment import candidates_chart
from spectheory.plots.prediction import PREDICTED
from spectheory.prediction.plan_answer import measured_nodes
from spectheory.prediction.prediction import planned
from spectheory.verification.by_start import within

_CONTEXTS = tuple(2**i for i in range(8, 18))
"""Contexts of the slider where one alone is asked for: 256 to 131,072."""

_TRAINED = "The target was trained for {window} tokens: the slider has longer contexts only where they were asked for."
_UNKNOWN = "For which contexts the target was trained is not known: acceptance beyond them is not that of the trace."


def deployment_parts(answer: Deployment, trace: str = "TRACE") -> list[Part]:
    """Settings to paste, the fastest first, what to do next with the `trace`, and the charts of a plan."""
    charts: list[Part] = [*Commands.of(_fastest(answer), answer.next_steps(trace))]
    charts.append(rows(candidates_chart(answer.ranking)))
    if answer.batches:
        charts.append(_batches(answer.chain, answer.batches, answer.k_max))
    return [*charts, *_chains(answer)]


def _batches(chain: Candidate, choices: Sequence[BatchChoice], k_max: int) -> VegaChart:
    """Sliders over the batches that were asked for, and over their contexts, or a grid where one alone was."""
    cost, rule = chain.draft.cost, chain.prediction.rule
    assert isinstance(cost, Roofline)
    batches, contexts = (sorted({getattr(choice, name) for choice in choices}) for name in ("batch", "context"))
    window = window_of(chain.draft)
    grid = contexts if len(contexts) > 1 else sorted({*(c for c in _CONTEXTS if c <= (window or c)), *contexts})
    lengths = every_length(chain.draft.trace, rule, cost, k_max=k_max, batches=batches, contexts=grid)
    chart = batch_chart(lengths, rule.label, chain.draft.name, (batches[0], contexts[0]), window)
    trained = _UNKNOWN if window is None else _TRAINED.format(window=window)
    return replace(chart, assumes=[*chart.assumes, trained])


def _chains(answer: Deployment) -> list[VegaChart]:
    """Every chain of the draft whose chain is the fastest."""
    draft = answer.chain.draft
    of_chains = None if answer.rules is None else [rule for rule in answer.rules if not rule.grows]
    longest = within(draft.trace.columns, measured_nodes(draft.cost, answer.k_max))
    chains = planned(draft.trace, draft.cost, of_chains, [Chain(k) for k in range(1, longest + 1)])
    whole = replace(chains, cost=draft.cost, best=answer.ranking.best.prediction)
    charts = prediction_charts(whole, _fastest(answer))
    return [replace(chart, words=f"Chains of draft {draft.name}. {chart.words}") for chart in charts]


def _fastest(answer: Deployment) -> list[EngineSettings]:
    """Of equally fast ones first those that take one line."""
    return sorted(answer.engines, key=lambda each: (-each.candidate.speedup.best, "\n" in each.paste))


def served_charts(choices: Sequence[ServedChoice]) -> list[VegaChart]:
    """The chart of a plan for a server: the best length and its speed-up by concurrency, for a context to choose."""
    placed = [
        ends(one.speedup) | {"batch": one.batch, "context": f"{one.context:.0f}", "k": one.k, "words": f"k = {one.k}"}
        for one in choices
    ]
    contexts = list(dict.fromkeys(f"{one.context:.0f}" for one in choices))
    across = alt.Scale(type="log", base=2, padding=30, nice=False)
    base = data(placed).encode(
        x=alt.X("batch:Q", title="requests decoded together", scale=across),
        tooltip=["context:N", "batch:Q", "k:Q", *numbers("best", "low", "high")],
    )
    shown, blue = base.transform_filter("datum.context == context"), "var(--blue)"
    y = alt.Y("low:Q", title=PREDICTED, scale=alt.Scale(zero=False))
    arms = shown.mark_rule(strokeWidth=3, opacity=0.35, color=blue).encode(y=y, y2="high:Q")
    lines = shown.mark_line(point={"color": blue, "size": 60}, color=blue).encode(y="best:Q")
    named = shown.mark_text(dy=-12).encode(y="high:Q", text="words:N")
    layers = alt.layer(plain(), arms, lines, named).add_params(choice("context", "context", contexts, contexts[-1]))
    return [
        VegaChart(
            "batches",
            "Best k by concurrency",
            "The fastest number of drafted tokens at each concurrency, and its speed-up with the 95% interval of the "
            "times; k = 0 is plain decoding, the dotted line. Choose a context below.",
            specified(layers),
            ["Times are fitted to the server's own runs; tokens per call are those of the trace, or of the runs."],
            [{name: value for name, value in row.items() if name != "words"} for row in placed],
        )
    ]
