"""Budgets over a batch: tokens per second of every policy by concurrency, and the law of a step's tokens."""

from __future__ import annotations

from spectheory.answers.plan import BudgetPointJson, BudgetsJson
from spectheory.deployment.budgets import CONFIDENT, FIXED, PLAIN, BudgetAnswer, BudgetChoice, BudgetPoint
from spectheory.reports.base import Brief, Report
from spectheory.reports.table import Cell, Column, Table

_NOTES = (
    "Of decoding alone, with every place filled again at once: prompts are not in it. Step times are taken as they "
    "are; 95% intervals are over prompts. Thresholds and k are chosen on the texts that they are scored on.",
    "fixed: k drafts of every call are verified. budget: drafts whose confidence, multiplied along the draft, reaches "
    "the threshold. true: the same with the probability of acceptance given the text, which no engine knows.",
    "limit: an upper bound for every rule that decides which drafts to verify, with this draft, verification and "
    "these step times, on these texts; a rule that reaches it knows what will be accepted.",
)
_LOSSLESS = (
    "The budget is lossless: whether a draft is verified depends on {column} alone, which is known before that draft "
    "is drawn, and on no other request. A threshold that is set from the same step's confidences is not lossless."
)


def budgets_report(answer: BudgetAnswer) -> Report:
    """The plan in tables and as JSON."""
    sentences = _sentences(answer)
    why = _LOSSLESS.format(column=answer.column) if answer.column else f"No budget by confidence: {answer.reason}."
    notes = [f"Tokens: {answer.rule.name} verification, exact for {answer.texts} texts.", why, *_NOTES]
    tables = [_rates(answer), _steps(answer)]
    brief = Brief.of(sentences, tables[:1], [why, *_NOTES[1:2]])
    content = BudgetsJson.view(answer, choices=[*map(_choice_json, answer.choices)], goodput=_goodput_json(answer))
    return Report(content, tables, " ".join(sentences), notes, brief)


def _choice_json(choice: BudgetChoice) -> BudgetsJson.Choice:
    return BudgetsJson.Choice.view(choice, best=choice.best.policy)


def _goodput_json(answer: BudgetAnswer) -> BudgetPointJson | None:
    point = answer.goodput
    return None if point is None or answer.tpot is None else BudgetPointJson.view(point)


def _sentences(answer: BudgetAnswer) -> list[str]:
    """The best policy, and how far it is from the limit and from the other policies."""
    most = answer.goodput
    if most is None:
        least = min(point.tpot for choice in answer.choices for point in choice.points)
        return [f"Out of reach: {answer.tpot:g} ms per token (at least {least:.3g})."]
    within = "" if answer.tpot is None else f" within {answer.tpot:g} ms"
    choice = next(each for each in answer.choices if each.batch == most.batch)
    rest = "" if most.policy == PLAIN else f", {most.per_second.best / choice.plain.per_second.best:.2f}x plain"
    said = f"{_setting(most)} at concurrency {most.batch}{within}: {most.per_second.best:.0f} tokens/s{rest}."
    return [said, f"No lossless budget exceeds {choice.limit:.0f} there{_ahead(answer)}."]


def _setting(point: BudgetPoint) -> str:
    if point.policy == PLAIN:
        return "Do not speculate"
    if point.policy == FIXED or not point.threshold:
        return f"Verify k = {point.k}"
    return f"Verify confidence >= {point.threshold:.2g}"


def _ahead(answer: BudgetAnswer) -> str:
    """How much a budget by confidence adds to the better of a fixed length and plain decoding, where it adds most."""
    gains = {
        choice.batch: choice.confident.per_second.best / max(p.per_second.best for p in (choice.plain, choice.fixed))
        - 1
        for choice in answer.choices
        if choice.confident
    }
    if not gains:
        return ""
    where = max(gains, key=gains.__getitem__)
    return f"; confidence adds {max(gains[where], 0.0):.1%} at most (at {where})"


def _rate(policy: str) -> Column:
    meanings = {
        PLAIN: "tokens per second of all requests without drafts",
        FIXED: "with the best k of every call",
        "confident": "with the best threshold on confidence",
        "informed": "with the best threshold on the true probability of acceptance",
    }
    names = {"confident": "budget", "informed": "true"}
    return Column(
        names.get(policy, policy), digits=0, meaning=meanings[policy], at=lambda choice: _best_rate(choice, policy)
    )


def _best_rate(choice: BudgetChoice, policy: str) -> Cell | None:
    point = getattr(choice, policy)
    return None if point is None else Cell(point.per_second.best, best=point is choice.best)


def _rates(answer: BudgetAnswer) -> Table:
    columns = [
        Column("concurrency", at="batch", meaning="requests decoded together"),
        _rate(PLAIN),
        _rate(FIXED),
        Column("k", at=lambda choice: Cell(choice.fixed.k), meaning="the best fixed one"),
        _rate("confident"),
        Column("at", at=_threshold, meaning="the threshold, and the most drafts of a call"),
        _rate("informed"),
        Column("limit", digits=0, meaning="upper bound for every lossless budget"),
    ]
    return Table.of("Tokens per second", columns, answer.choices)


def _threshold(choice: BudgetChoice) -> str | None:
    point = choice.confident
    return None if point is None else f"{point.threshold:.2g}, k <= {point.k}"


def _steps(answer: BudgetAnswer) -> Table:
    columns = [
        Column("concurrency", at="batch", meaning="requests decoded together"),
        Column(
            "policy",
            kind="names",
            meaning="the one of most tokens per second",
            at=lambda point: "budget" if point.policy == CONFIDENT else point.policy,
        ),
        Column("tokens/s", digits=0, at="per_second", meaning="of all requests, with its 95% interval over prompts"),
        Column("drafts", at="drafts", meaning="verified of a request in a step, mean"),
        Column("tokens", at="step_mean", digits=1, meaning="of a step, mean"),
        Column("sd", at="step_deviation", digits=1, meaning="standard deviation of a step's tokens"),
        Column(
            "5%, 50%, 95%", at=lambda point: ", ".join(map(str, point.step_quantiles)), meaning="of a step's tokens"
        ),
        Column("TPOT, ms", at="tpot", meaning="per output token of a request"),
    ]
    return Table.of("The best policy that an engine can run, and its steps", columns, [c.best for c in answer.choices])
