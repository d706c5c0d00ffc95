"""Facts about an engine: what its settings do in one version, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spectheory.deployment.candidates import DRAFT_MODEL


@dataclass(frozen=True)
class Fact:
    """What a setting does, in a sentence, and the evidence: a run with the built-in pair, source or documentation."""

    setting: str
    does: str
    evidence: str

    @property
    def clause(self) -> str:
        """The sentence as a clause, for the end of another sentence."""
        return self.does[0].lower() + self.does[1:]

    @property
    def as_rule(self) -> str:
        """The sentence as a verification rule."""
        return f"Rule: {self.clause}"


@dataclass(frozen=True)
class Engine:
    """A serving engine and what its settings do in `version`.

    `takes_min_p`: whether min-p applies where drafts are verified; if not, there are no settings for a trace with
    min-p. `methods`: kinds of drafts that it has settings for, each with the engine's name for it. `stops`: kinds of
    stopping rules that it has.
    """

    name: str
    version: str
    facts: tuple[Fact, ...]
    takes_min_p: bool = False
    methods: tuple[tuple[str, str], ...] = ((DRAFT_MODEL, ""),)
    stops: tuple[str, ...] = ()

    def method(self, kind: str) -> str | None:
        """What the engine calls drafts of a kind; None if it has no settings for them."""
        return dict(self.methods).get(kind)


def facts_table(engines: Iterable[Engine]) -> str:
    """The facts of some engines as a Markdown table.

    Examples
    --------
    >>> print(facts_table([Engine("toy", "1.0", (Fact("--k N", "Drafts N tokens.", "run"),))]))
    | engine | setting | what it does | seen |
    |---|---|---|---|
    | toy 1.0 | `--k N` | Drafts N tokens. | run |
    """
    rows = ["| engine | setting | what it does | seen |", "|---|---|---|---|"]
    for engine in engines:
        for number, fact in enumerate(engine.facts):
            name = "" if number else f"{engine.name} {engine.version}"
            rows.append(f"| {name} | `{fact.setting}` | {fact.does} | {fact.evidence} |")
    return "\n".join(rows)
