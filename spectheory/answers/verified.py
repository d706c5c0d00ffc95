"""What ``spectheory verify`` writes."""

from typing import Annotated, Any, Literal

from spectheory.answers.base import Count, Part, says


class ClaimsJson(Part, kw_only=True):
    """`spectheory verify --claim FILE --json`."""

    schema = 1

    class Claim(Part):
        """A claim, and what was found."""

        class Finding(Part):
            """Outcome of one check, its cases, the least gap and where it is."""

            status: Literal["held", "refuted", "undecided"]
            cases: Count
            gap: float | None
            at: str
            note: str

        claim: str
        verdict: Literal["refuted", "undecided", "proved for some V", "not refuted"]
        summary: str
        proved_for: list[Count]
        largest: Count
        sizes: list[Count]
        proofs: dict[str, Finding]
        no_proof: str
        grid: Finding | None
        search: Finding | None
        wide: Finding | None

    claims: Annotated[list[Claim], says("every claim of the file, with what was found")]


class LedgerJson(Part, kw_only=True):
    """`spectheory verify --json`."""

    schema = 1

    class Effort(Part):
        """How much was searched."""

        deep: bool
        seed: int

    class Entry(Part):
        """A statement with its evidence."""

        class Evidence(Part):
            """One piece of evidence, with its control."""

            kind: str
            says: str
            status: str
            steps: list[dict[str, Any]]
            tokens: list[Count]
            finding: dict[str, Any]
            control: dict[str, Any]
            trouble: str
            seconds: float

        id: str
        title: str
        kind: str
        status: str
        plain: str
        latex: str
        source: list[str]
        number: str
        assumptions: list[str]
        calculators: list[str]
        evidence: list[Evidence]
        without: dict[str, Any]

    effort: Annotated[Effort, says("how much was searched")]
    as_expected: Annotated[bool, says("whether everything came out as the ledger says")]
    summary: Annotated[str, says("the outcome in a sentence")]
    seconds: Annotated[float, says("time of the run")]
    steps: Annotated[dict[str, Any], says("steps of proofs by how they were checked")]
    entries: Annotated[list[Entry], says("every statement with its evidence")]
