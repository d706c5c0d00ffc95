"""What every rule accepts at a position, next to the optimum; a draft tree, drawn and compared with others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from spectheory.answers.theory import RulesJson, TreeJson
from spectheory.intervals import Interval
from spectheory.limits.claims import IID_CHANNEL, RANK_TREES
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.remarks import GIVEN, OF_FIRST_DRAFT
from spectheory.prediction.rules_answer import RulesAnswer
from spectheory.prediction.tree_answer import TreeAnswer
from spectheory.reports.base import Brief, Report, short
from spectheory.reports.table import Cell, Column, Drawing, Row, Table, number
from spectheory.verification import RuleStanding

_LONGEST_RULE = 36
"""Letters of a rule with its settings."""


def rules_report(answer: RulesAnswer) -> Report:
    """The rules by candidates and acceptance, the largest first, with the optimum, TV and KL."""
    rows = sorted(answer.rows, key=lambda row: (-row.k, -row.acceptance.best if row.acceptance else math.inf))
    known = [f"alpha*_{k} = {value:.4f}" for k, value in sorted(answer.optimum.items())]
    distance = "-" if answer.total_variation is None else number(answer.total_variation, 4)
    standings = [
        RulesJson.Rule.view(
            row,
            side=row.side if row.acceptance else None,
            optimum_is_limit=row.limited if row.optimum is not None else None,
            rank_entropy=row.rank_entropy if row.iid else None,  # a smaller one next to KL would mislead
            reason=row.note or None,
        )
        for row in rows
    ]
    content = RulesJson.view(answer, optimum=answer.optimum or dict.fromkeys([answer.k]), rules=standings)
    headline = ", ".join([*known, f"TV = {distance}", f"KL {_divergence(answer.kl)}"])
    return Report(content, [_table(answer, rows)], headline, _notes(answer, rows), _brief(answer, rows))


def _brief(answer: RulesAnswer, rows: Sequence[RuleStanding]) -> Brief:
    """The rules whose acceptance is known, with as many candidates; a gap stands where R4 is a limit alone."""
    known = [row for row in rows if row.acceptance]
    alike = {k: [row for row in known if row.k == k] for k in dict.fromkeys(row.k for row in known)}
    unknown = [] if known else _reasons(rows)
    changing = [note for note in answer.notes if note in (OF_FIRST_DRAFT, GIVEN) or note.endswith("changes the text.")]
    tables = [_of_candidates(answer, k, group) for k, group in alike.items()]
    return Brief.of(_verdict(answer, alike), tables, [*unknown, *changing, *few_prompts(answer.prompts)])


def _of_candidates(answer: RulesAnswer, k: int, rows: Sequence[RuleStanding]) -> Table:
    """The rules with k candidates."""
    gap = Column(
        "gap to the limit",
        digits=4,
        meaning="largest acceptance with as many i.i.d. candidates, less this one",
        at=lambda row: Cell(row.gap if row.limited else None, "≤" if row.side == "lower bound" else ""),
    )
    columns = [
        Column("rule", kind="names", at=lambda row: short(row.rule, _LONGEST_RULE)),
        Column("acceptance", digits=4, at=lambda row: Cell(row.acceptance, best=row is rows[0])),
        Column("side", kind="words"),
        *([gap] if answer.optimum else []),
    ]
    return Table.of(f"Acceptance with {_candidates(k)}", columns, rows)


def _verdict(answer: RulesAnswer, alike: Mapping[int, Sequence[RuleStanding]]) -> list[str]:
    if not alike:
        return ["The acceptance of no rule is known from this"]
    most = [f"Most accepted with {_candidates(k)}: {_most(rows)}" for k, rows in alike.items()]
    optimum = answer.optimum.get(answer.k)
    limit = "" if optimum is None else f"Limit with {_candidates(answer.k)}, i.i.d.: {optimum:.2f}. "
    apart = "" if answer.total_variation is None else f"Total variation {number(answer.total_variation)}, "
    distance = f"{apart}KL {_divergence(answer.kl, 2).removeprefix('= ')}" if answer.kl else ""
    return [*most, limit + distance]


def _most(rows: Sequence[RuleStanding]) -> str:
    """The rules that accept the most, and how much."""
    most = rows[0].acceptance
    assert most is not None
    alike = [
        short(row.rule, _LONGEST_RULE) for row in rows if row.acceptance and row.acceptance.best >= most.best - 5e-5
    ]
    names = " and ".join(alike) if len(alike) < 3 else f"{alike[0]} and {len(alike) - 1} others"
    return f"{names}: {number(most)}"


def _candidates(k: int) -> str:
    return f"{k} candidate{'s' if k > 1 else ''}"


def _divergence(kl: Interval | None, digits: int = 4) -> str:
    if kl is None:
        return "= -"
    return f"= {number(kl, digits)} nats" if math.isfinite(kl.best) else "infinite"


def _table(answer: RulesAnswer, rows: Sequence[RuleStanding]) -> Table:
    """Every rule; where pmfs are given, what is missing to R4 and H(R)."""
    columns = [
        Column("rule", kind="words"),
        Column("side", kind="words", at=lambda row: row.side if row.acceptance else None),
        Column("k", meaning="candidates at the position"),
        Column("acceptance", digits=4),
    ]
    if answer.source == "pmfs":
        columns += [
            Column("gap to R4", digits=4, at=_gap),
            Column("H(R)", digits=4, at=lambda row: row.rank_entropy if row.iid else None),
        ]
    return Table.of(f"Acceptance with k = {answer.k} candidates", columns, rows)


def _gap(row: RuleStanding) -> Cell:
    """What is missing to R4, marked where R4 is no limit; of a lower bound the most that may be missing."""
    mark = " " if row.limited or row.gap is None else "†"
    return Cell(row.gap, "≤" if row.side == "lower bound" else "", mark)


def _notes(answer: RulesAnswer, rows: Sequence[RuleStanding]) -> list[str]:
    notes = list(answer.notes)
    if any(row.k != answer.k for row in rows):
        notes.append("Rules shown with k = 1 verify a single candidate.")
    if answer.source == "pmfs":
        notes.append(
            "Gap to R4: alpha*_k minus the acceptance. alpha*_k is the maximum over lossless rules with k candidates "
            "drawn i.i.d. from the draft."
        )
        if any(not row.limited and row.gap is not None for row in rows):
            notes.append(
                "† The candidates are not i.i.d. draws of the draft: R4 is no limit there, and the gap may be negative."
            )
        notes.append(
            "H(R), in nats, is the entropy of the whole rank where candidates are i.i.d. and R is not cut: there it is "
            'at least KL. Elsewhere ("-") it is not comparable with KL and may lie below it.'
        )
    if answer.kl is not None and not math.isfinite(answer.kl.best):
        notes.append("KL is infinite: the draft lacks a token of the target.")
    return notes + _reasons(rows)


def _reasons(rows: Sequence[RuleStanding]) -> list[str]:
    """Why something is missing, or what a bound is: a line for each reason."""
    why = dict.fromkeys(row.note for row in rows if row.note)
    return [f"{', '.join(row.rule for row in rows if row.note == note)}: {note}." for note in why]


# Draft trees

_MOST_DRAWN_NODES, _MOST_DRAWN_DEPTH = 64, 14
"""A larger tree is summed up by depth: at four columns a depth these fit a terminal of 80."""

OTHER_TREES = {
    "same_texts": "this tree on the same texts",
    "greedy": "greedy tree",
    "iid_optimal": "i.i.d.-optimal tree",
    "chain": "chain",
}
"""Trees that a found one is compared with."""


def tree_report(answer: TreeAnswer) -> Report:
    """The tree drawn node by node, or summed up by depth if it is large, and what it gives."""
    tree = answer.tree
    channel = RANK_TREES["channel"] if answer.source == "ranks" else IID_CHANNEL
    words = channel.words if channel.scope.side == "limit" else f"idealised value for {channel.words}"
    limit = "" if answer.channel is None else f"; {words}: {answer.channel:.2f}"
    tokens = number(answer.tokens_per_call)
    headline = f"Tree of {tree.nodes} nodes, depth {tree.depth}: {tokens} tokens per call{limit}"
    content = TreeJson.view(
        answer, **answer.facts, nodes=tree.nodes, depth=tree.depth, draft_pass_tokens=tree.passes, paths=tree.paths
    )
    pieces: list[Table | Drawing] = [_depths_table(answer)]
    if tree.nodes <= _MOST_DRAWN_NODES and tree.depth <= _MOST_DRAWN_DEPTH:
        nodes = zip(tree.paths, answer.weights.tolist(), strict=True)
        shown = {path: (str(path[-1]), f"{weight:.4f}") for path, weight in nodes}
        pieces.insert(0, Drawing("the text so far", "rank  weight", shown))
    if answer.others:
        this = [Cell("this tree", best=True), Cell(answer.tokens_per_call, best=True)]
        columns = [Column("tree", kind="words"), Column("tokens per call", digits=3)]
        others: list[Row] = [[OTHER_TREES[key], value] for key, value in answer.others.items()]
        pieces.append(Table("Compared", columns, [this, *others]))
    return Report(content, pieces, headline, answer.notes)


def _depths_table(answer: TreeAnswer) -> Table:
    """Some depths: all of a shallow tree, then powers of two and the last."""
    tree, survival, rows = answer.tree, answer.survival, []
    doubled = [2**i for i in range(3, tree.depth.bit_length())]
    for depth in sorted({*range(1, min(tree.depth, 8) + 1), *doubled, tree.depth}):
        here = tree.depths == depth
        rows.append([depth, int(here.sum()), int(tree.ranks[here].max()), tree.passes[depth - 1], survival[depth - 1]])
    counts = [Column(heading) for heading in ("depth", "nodes", "largest rank", "draft pass tokens")]
    return Table("By depth", [*counts, Column("P(tau >= depth)", digits=4)], rows)
