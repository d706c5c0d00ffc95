"""What is known of an engine: what its settings do in one version, and where that was seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """What a setting does.

    Attributes
    ----------
    setting : str
        The setting as it is written.
    does : str
        What it does, as a sentence.
    evidence : str
        Where this was seen: the engine was run with the built-in pair, or its source or documentation says so.
    """

    setting: str
    does: str
    evidence: str

    @property
    def clause(self) -> str:
        """What it does, after other words of a sentence."""
        return self.does[0].lower() + self.does[1:]

    @property
    def as_rule(self) -> str:
        """What it does, where that is how drafts are verified."""
        return f"Rule: {self.clause}"


@dataclass(frozen=True)
class Engine:
    """A serving engine.

    Attributes
    ----------
    name : str
        What it is called in answers.
    version : str
        The version that the facts are about.
    facts : tuple of Fact
        What its settings do.
    takes_min_p : bool
        Whether min-p holds where it verifies drafts; if not it has no settings for such a trace.
    """

    name: str
    version: str
    facts: tuple[Fact, ...]
    takes_min_p: bool = False


def facts_table(engines: Iterable[Engine]) -> str:
    """The facts of some engines as a table in Markdown.

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
