"""What a run of the ledger shows: a row for each statement, the checks of those asked for, or one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from proofs_check.evidence.entries import Entry
from proofs_check.evidence.formal import missing
from proofs_check.evidence.symbolic import Step, in_parts, parts
from proofs_check.run.verify import Checked, Key, Outcome
from proofs_check.statement.findings import KINDS, Effort, Finding

if TYPE_CHECKING:
    from rich.table import Table

WORSE: tuple[Outcome, ...] = ("failed", "undecided", "refuted", "proved", "holds")
"""What an entry's checks come to is the first of these among them."""

STYLES = {"failed": "bold red", "undecided": "bold yellow", "unfinished": "yellow"}

LETTERS = {"formal": "F", "symbolic": "P", "exact": "E", "certified": "C", "search": "S", "simulation": "M"}

WORDS = {
    "formal": "formal",
    "symbolic": "proof",
    "exact": "exact",
    "certified": "certified",
    "search": "search",
    "simulation": "simulated",
}


@dataclass(frozen=True)
class Report:
    """The entries that were asked for, the keys of their checks, those that ran, and wall-clock seconds."""

    entries: Sequence[Entry]
    keys: Sequence[Key]
    checks: Sequence[Checked]
    effort: Effort
    seconds: float

    def of(self, entry: Entry) -> list[Checked]:
        """The checks of an entry, in its order."""
        return sorted((each for each in self.checks if each.id == entry.id), key=lambda each: each.place)

    def outcome(self, entry: Entry) -> str:
        """What its checks come to; "not run" or "unfinished" if they did not all run."""
        outcomes = {each.outcome for each in self.of(entry)}
        worst = next((word for word in WORSE if word in outcomes), "not run")
        missing = sum(key[0] == entry.id for key in self.keys) - len(self.of(entry))
        return "unfinished" if outcomes and missing and worst not in ("failed", "undecided") else worst

    @property
    def as_expected(self) -> bool:
        """Whether every check ran and came out as the ledger says."""
        fine = all(each.outcome not in ("failed", "undecided") for each in self.checks)
        return fine and len(self.checks) == len(self.keys)

    @property
    def headline(self) -> str:
        """The run in a line."""
        outcomes = [self.outcome(entry) for entry in self.entries]
        words = (*reversed(WORSE), "unfinished", "not run")
        counts = [f"{outcomes.count(word)} {word}" for word in words if word in outcomes]
        verdict = "all as the ledger says" if self.as_expected else "NOT as the ledger says"
        if len(self.checks) < len(self.keys):
            verdict = f"{len(self.keys) - len(self.checks)} checks did not run"
        ran = f"{len(self.checks)} check{'s' * (len(self.checks) != 1)} in {self.seconds:.0f} s"
        return f"{len(outcomes)} statement{'s' * (len(outcomes) != 1)}: {', '.join(counts)}; {ran}: {verdict}"


def steps_line(report: Report) -> str:
    """The steps of the proofs that were checked, by what they are; empty if no proof was."""
    counted = parts(_steps(report))
    return f"Steps of the proofs: {in_parts(counted)}" if any(counted.values()) else ""


def formal_line(report: Report) -> str:
    """What was left out of a run for want of Coq; empty if nothing was."""
    proofs = sum(each.kind == "formal" for entry in report.entries for each in entry.evidence)
    return f"Formal: not run here, {missing()}; {proofs} checks left out" if proofs and missing() else ""


def _steps(report: Report) -> list[Step]:
    """The steps of the proofs that ran."""
    entries = {entry.id: entry for entry in report.entries}
    return [step for each in report.checks for step in entries[each.id].evidence[each.place].steps]


LONGEST_CASE = 160
"""Letters of a case in the table of all statements."""


def statements_table(report: Report) -> Table:
    """A row for each statement."""
    table = _table(
        "Cases judged as F formal (theorems in Coq), P proof (steps that carry the argument), E exact, C certified, "
        "S search, M simulated"
    )
    for name in ("id", "statement", "status", "evidence", "tightest"):
        table.add_column(name)
    table.add_column("s", justify="right")
    for entry in report.entries:
        checks = report.of(entry)
        kinds = [kind for kind in KINDS if any(each.kind == kind for each in checks)]
        table.add_row(
            entry.id,
            _escaped(entry.title),
            _styled(report.outcome(entry)),
            " ".join(f"{LETTERS[kind]}{_cases(checks, kind)}" for kind in kinds),
            _escaped(_cut(_tightest(checks))),
            f"{sum(each.seconds for each in checks):.1f}",
        )
    return table


def checks_table(report: Report, entry: Entry) -> Table:
    """Every check of one statement: what was checked, what came out, and the control that was rejected."""
    table = _table(_escaped(f"{entry.id}  {entry.title}: {entry.plain}"))
    table.add_column("evidence", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("s", justify="right", no_wrap=True)
    table.add_column("what was checked")
    for each in report.of(entry):
        tokens = ", ".join(map(str, entry.evidence[each.place].tokens))  # of a proof that is one for these alone
        table.add_row(
            WORDS[each.kind],
            _styled(each.outcome) + (f", V = {tokens}" if tokens else ""),
            f"{each.finding.cases:,}" if each.finding else "-",
            f"{each.seconds:.1f}",
            _escaped("\n".join(_lines(each, entry))),
        )
    return table


def facts(entry: Entry) -> list[str]:
    """What a reader should know of a statement besides its checks."""
    first = f"{entry.source[0]} {entry.number}".strip() if entry.source else "derived here"
    lines = ["; ".join([entry.kind, ", ".join((first, *entry.source[1:]))])]
    lines += [f"assumes: {'; '.join(entry.assumptions)}"] * bool(entry.assumptions)
    return lines + [f"no {WORDS[kind]} evidence: {reason}" for kind, reason in entry.without.items()]


def _lines(each: Checked, entry: Entry) -> list[str]:
    """What a check says, the steps of a proof, where it is tightest, and its control."""
    evidence = entry.evidence[each.place]
    lines = [evidence.says]
    if len(evidence.steps) > 1:
        lines += [f"  {number}. {step.says} [{step.how}]" for number, step in enumerate(evidence.steps, start=1)]
    if each.trouble:
        return [*lines, f"trouble: {each.trouble}"]
    place = _place(each.finding)
    if each.finding and each.finding.note and (each.expected == "held" or evidence.kind == "simulation"):
        lines.append(each.finding.note)
    if each.expected == "refuted":
        return [*lines, f"counterexample: {place}", f"true, and not refuted: {evidence.control.says}"]
    return [*lines, *([f"tightest: {place}"] if place else []), f"rejected as it must be: {evidence.control.says}"]


def _table(title: str) -> Table:
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 0, 0, 2))


def _styled(outcome: str) -> str:
    return f"[{STYLES[outcome]}]{outcome}[/]" if outcome in STYLES else outcome


def as_dict(report: Report) -> dict[str, Any]:
    """The run as one JSON object."""
    return {
        "effort": {"deep": report.effort.deep, "seed": report.effort.seed},
        "as_expected": report.as_expected,
        "summary": report.headline,
        "seconds": report.seconds,
        "steps": parts(_steps(report)),
        "entries": [_entry(report, entry) for entry in report.entries],
    }


def _entry(report: Report, entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "title": entry.title,
        "kind": entry.kind,
        "status": report.outcome(entry),
        "plain": entry.plain,
        "latex": entry.latex,
        "source": list(entry.source),
        "number": entry.number,
        "assumptions": list(entry.assumptions),
        "calculators": list(entry.calculators),
        "evidence": [_check(each, entry) for each in report.of(entry)],
        "without": dict(entry.without),
    }


def _check(each: Checked, entry: Entry) -> dict[str, Any]:
    evidence = entry.evidence[each.place]
    return {
        "kind": each.kind,
        "says": evidence.says,
        "status": each.outcome,
        "steps": [{"says": step.says, "how": step.how, "part": step.part} for step in evidence.steps],
        "tokens": list(evidence.tokens),
        "finding": each.finding.as_dict() if each.finding else {},
        "control": {"says": evidence.control.says, **(each.control.as_dict() if each.control else {})},
        "trouble": each.trouble,
        "seconds": round(each.seconds, 3),
    }


def _cases(checks: Sequence[Checked], kind: str) -> int:
    """Cases of one kind of evidence: steps that carry the argument, for proofs."""
    return sum(each.finding.cases for each in checks if each.kind == kind and each.finding)


def _tightest(checks: Sequence[Checked]) -> str:
    """What went wrong; or the counterexample; or the least gap and where it is."""
    trouble = next((each.trouble for each in checks if each.trouble), "")
    if trouble:
        return trouble
    refutation = next((each.finding for each in checks if each.outcome == "refuted" and each.finding), None)
    if refutation:
        return refutation.at
    findings = [each.finding for each in checks if each.finding and each.finding.gap is not None]
    return _place(min(findings, key=lambda finding: finding.gap or 0.0)) if findings else ""


def _cut(text: str) -> str:
    """The beginning of a long case; a statement's own table shows all of it.

    Examples
    --------
    >>> _cut("0 at k = 1"), len(_cut("x" * 1000))
    ('0 at k = 1', 163)
    """
    return text if len(text) <= LONGEST_CASE else f"{text[:LONGEST_CASE]}..."


def _place(finding: Finding | None) -> str:
    if finding is None:
        return ""
    if finding.status == "refuted" or finding.gap is None:
        return finding.at
    return f"{max(finding.gap, 0.0):.2g} at {finding.at}"  # below 0: within what intervals certify


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
