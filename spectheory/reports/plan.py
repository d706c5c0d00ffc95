"""A plan as a terminal table and as JSON; nothing here prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.prediction import Plan, Prediction
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.shape_calls import BestTree
from spectheory.trace import GIVEN_TEXT, SAMPLED_TEXT
from spectheory.verification import GreedyMatch, RankRule

if TYPE_CHECKING:
    from rich.table import Table

    from spectheory.prediction.bias_tradeoff import BiasPoint

SIDES = {
    "C1": "tokens per call if acceptances were i.i.d. at the first draft's rate (leviathan2023); not a limit",
    "1 call": "upper bound for any lossless verification of a chain drawn from the draft, over starts all alike",
    "B6": "upper bound for drafts that do not sample (deterministic trees of k nodes), over starts all alike",
    "B2'": "what B6 would be for i.i.d. conditional pmfs: a reading on real text, no limit",
    "T1": "channel limit for i.i.d. ranks up to 8 (recursive-distinct: 4), trees of k nodes (recursive rejection "
    "beside rules without ranks): a reading, no limit",
}
"""What each comparison column claims, and when."""
OF_CHAINS = ("C1", "1 call")
"""Those that stand beside chains alone."""


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """The plan as one JSON-ready object: the best prediction's fields at the top, all predictions below."""
    best = plan.best.as_dict()
    return {
        **best,
        "best": {
            "rule": best["rule"],
            "shape": best["shape"],
            "by": "speedup" if best["speedup"] else "tokens_per_call",
        },
        "predictions": [prediction.as_dict() for prediction in plan.predictions],
        "prompts": plan.prompts,
        "notes": notes(plan),
        "provenance": dict(plan.best.provenance),
    }


def headline(plan: Plan) -> str:
    """The answer in one sentence."""
    best = plan.best
    setting = f"{best.rule.name} verification, {_shape(best)}"
    tokens = f"{best.tokens_per_call} tokens per target call"
    if best.speedup is None:
        return f"Most tokens per call: {setting}: {tokens}"
    if best.speedup.high < 1 and best.speedup.kind != "estimate":
        return f"Do not speculate: the best setting ({setting}) gives {best.speedup}x"
    return f"Best: {setting}: speed-up {best.speedup}x, {tokens}"


def _shape(prediction: Prediction) -> str:
    shape = prediction.shape
    return f"k = {shape.nodes}" if isinstance(shape, Chain) else str(shape)


IN_LOOP = (
    "Speed-ups count the loop of our decoders around the passes, as measured; --passes-alone leaves it out. An engine "
    "has a loop of its own."
)
"""What speed-ups from a latency table with the loop's time are of."""


def notes(plan: Plan) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    provenance = plan.best.provenance
    estimated = dict.fromkeys(p.rule.name for p in plan.predictions if _from_estimates(p))
    lines = [
        "Tokens per call count accepted drafts and the recovered or bonus token of each target call.",
        "They are exact for the texts of the trace; intervals (95%) are over prompts.",
        "Limits are estimates for one call, averaged over all starting positions; consecutive calls may exceed them.",
    ]
    lines += [
        f"{name} with several candidates is not exact: unbiased estimates of its rank laws, whose noise the intervals "
        "cover."
        for name in estimated
    ]
    if provenance.get("origin") == GIVEN_TEXT:
        lines.append("The text was given, not sampled from the target: the numbers are for that text as output.")
    elif provenance.get("source") == "log-probabilities":
        lines.append("From log-probabilities alone: limits assume that the target sampled the text.")
    elif provenance.get("origin") != SAMPLED_TEXT:
        lines.append("The trace does not say where its text is from: limits assume that the target sampled it.")
    absent = [
        name
        for name, value in (("B2'", plan.best.limits.iid_branching), ("T1", plan.best.limits.iid_channel))
        if value is None
    ]
    bounded = list(dict.fromkeys(p.rule.name for p in plan.predictions if p.certified))
    if bounded:
        lines.append(
            f"{', '.join(bounded)}: not exact, but from lists of the most probable tokens. The range that they allow "
            "(`certified`) is certain for these texts; intervals join the 95% ones over prompts at both of its ends "
            "(with one prompt, the ends alone). Their middle claims nothing: settings are compared by the low end."
        )
    elif absent:
        absent = ["the race rule", *absent]
    if absent:
        lines.append(f"Absent, as they need full pmfs: {', '.join(absent)}.")
    if any(isinstance(p.wanted, BestTree) for p in plan.predictions):
        lines.append(
            "Trees are the best that a local search found, one for each rule and size. "
            + (
                "Each text is scored by a tree found on other prompts; intervals take the trees as given."
                if all(p.held_out for p in plan.predictions)
                else "With one prompt they are scored on the text they were found on: too high."
            )
        )
    if plan.best.speedup is None:
        lines.append("No speed-up without costs: give --c or a latency table.")
    if any(isinstance(p.rule, GreedyMatch) for p in plan.predictions) and not _greedy(provenance):
        lines.append("Greedy verification outputs the target's first choices: on other text its numbers are a reading.")
    return [*lines, *few_prompts(plan.prompts)]


def _greedy(provenance: Mapping[str, Any]) -> bool:
    """Whether the text was decoded at temperature 0."""
    settings = provenance.get("settings")
    sampling = settings.get("sampling") if isinstance(settings, dict) else None
    return isinstance(sampling, dict) and sampling.get("temperature") == 0


def bias_notes(points: Sequence[BiasPoint]) -> list[str]:
    """What the columns of the bias table mean."""
    share = "share: of over-acceptance, b = (1 - share) min(1, p/q) + share; 0 is lossless, 1 outputs the draft."
    starts = "The starts and prefixes of a biased decoder drift; these calls start where lossless ones do."
    paid = "Bias: total variation per token with the best recovery (Y6), and with recovery from the target (UNO)."
    sides = (
        "The target's tokens are cut (temperature 0, or a filter), or the trace does not say: after a draft that "
        "it cannot output, tokens per call and speed-up count what the share alone accepts, a lower estimate; "
        "the upper one counts every draft. Noise may swap the two where they are close."
    )
    cut = any(point.upper_tokens_per_call for point in points)
    return [share, starts, *([sides] if cut else []), paid] if points else []


def _from_estimates(prediction: Prediction) -> bool:
    rule = prediction.rule
    return isinstance(rule, RankRule) and rule.estimated and prediction.shape.max_rank > 1


def tokens_table(plan: Plan) -> Table:
    """Tokens per target call of chains with a row per k: each rule, then the i.i.d. formula and the limits."""
    labels = plan.chains
    table = _table("Tokens per target call", ["k", *labels])
    ranked = plan.of(labels[0])[0].rule
    channel = ranked.name if isinstance(ranked, RankRule) else "recursive"
    for name in (f"C1 {labels[0]}", "1 call ≤", "B6 ≤", "B2'", "T1" if channel == "recursive" else f"T1 {channel}"):
        table.add_column(_heading(name), justify="right", style="dim")
    for nodes, row in _rows(plan, labels):
        first = row[0]
        limits = first.limits
        table.add_row(
            str(nodes),
            *_cells(row, labels, plan, lambda p: p.tokens_per_call),
            f"{first.iid_tokens_per_call:.2f}",
            *(_plain(i.best if i else None) for i in (limits.one_call, limits.text)),
            *(_plain(value) for value in (limits.iid_branching, limits.iid_channel)),
        )
    return table


def trees_table(plan: Plan) -> Table:
    """Tokens per target call of the other shapes with a row per number of nodes, then the limits."""
    labels = plan.trees
    table = _table("Tokens per target call, trees of k nodes", ["k", *labels])
    known = (p for label in labels for p in plan.of(label) if p.limits.iid_channel is not None)
    channels = list(dict.fromkeys(p.rule.name for p in known))
    for name in ("B6 ≤", "B2'", *(f"T1 {rule}" for rule in channels)):
        table.add_column(_heading(name), justify="right", style="dim")
    for nodes, row in _rows(plan, labels):
        of_rule = {p.rule.name: p.limits.iid_channel for p in row}
        text, branching = row[0].limits.text, row[0].limits.iid_branching
        table.add_row(
            str(nodes),
            *_cells(row, labels, plan, lambda p: p.tokens_per_call),
            *(_plain(value) for value in (text.best if text else None, branching)),
            *(_plain(of_rule.get(rule)) for rule in channels),
        )
    return table


def speedup_table(plan: Plan) -> Table:
    """Predicted speed-up over plain decoding with a row per number of nodes and a column per rule and shape."""
    table = _table("Speed-up over plain decoding", ["k", *plan.labels])
    for nodes, row in _rows(plan, plan.labels):
        table.add_row(str(nodes), *_cells(row, plan.labels, plan, lambda p: p.speedup))
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 0, 0, 2))
    for name in columns:
        table.add_column(_heading(name), justify="right")
    return table


def _heading(name: str) -> str:
    """A long heading in lines, so that the usual tables fit 80 columns."""
    return name.replace("recursive-", "recursive-\n").replace("C1 ", "C1\n").replace("T1 ", "T1\n")


def _rows(plan: Plan, labels: Sequence[str]) -> list[tuple[int, list[Prediction]]]:
    """Predictions by their number of nodes, in the order of the columns."""
    of_label = {label: {p.shape.nodes: p for p in plan.of(label)} for label in labels}
    sizes = sorted({nodes for found in of_label.values() for nodes in found})
    return [(nodes, [found[nodes] for found in of_label.values() if nodes in found]) for nodes in sizes]


def _cells(
    row: Sequence[Prediction], labels: Sequence[str], plan: Plan, value: Callable[[Prediction], Interval | None]
) -> list[str]:
    """One cell per column, the best of all marked; "-" where the column has no such size or value."""
    by_label = {p.label: p for p in row}
    cells = []
    for label in labels:
        prediction = by_label.get(label)
        interval = value(prediction) if prediction else None
        cells.append("-" if interval is None else _cell(interval, prediction is plan.best))
    return cells


def _cell(interval: Interval, best: bool) -> str:
    return f"[bold green]{interval.short()}[/]" if best else interval.short()


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def bias_table(points: Sequence[BiasPoint]) -> Table:
    """Tokens per call against the bias paid, a row per share of over-acceptance; both sides where they differ."""
    cut = any(point.upper_tokens_per_call for point in points)
    table = _table(
        f"Token verification with over-acceptance, calls from lossless starts, chains of k = {points[0].k}",
        ["share", "tokens per call", *(["upper estimate"] if cut else []), "speed-up", "bias per token", "UNO's bias"],
    )
    for point in points:
        table.add_row(
            f"{point.rule.share:g}",
            point.tokens_per_call.short(),
            *([point.upper_tokens_per_call.short() if point.upper_tokens_per_call else "-"] if cut else []),
            point.speedup.short() if point.speedup else "-",
            *(f"{i.best:.4f}" if i else "-" for i in (point.bias, point.uno_bias)),
        )
    return table


def check_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """Predicted against counted target calls, and predicted against measured speed-up."""
    table = _table(
        "Against transformers' assisted generation (token verification)",
        ["k", "tokens", "calls counted", "predicted", "diff / s.e.", "measured", "loop without overhead"],
    )
    for record in records:
        expected = record["predicted_speedup"]
        table.add_row(
            str(record["k"]),
            str(record["tokens"]),
            str(record["counted"]),
            f"{record['predicted']:.1f}",
            "inf" if record["z"] is None else f"{record['z']:+.2f}",
            f"{record['measured_speedup']:.2f}x",
            "-" if expected is None else f"{expected:.2f}x",
        )
    return table
