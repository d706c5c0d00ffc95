"""What ``spectheory simulate``, ``figures`` and ``verify`` write."""

from typing import Annotated, Any, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, says
from spectheory.intervals import Interval


class TaskJson(Part, kw_only=True):
    """What was simulated: the kind, its parameters, the root seed, trials of a batch, version."""

    kind: str
    parameters: dict[str, Any]
    seed: int
    trials: Count
    version: str | int


class TallyJson(Part, kw_only=True):
    """Exact counts, and moments as fractions."""

    trials: Count
    counts: dict[str, list[Count]]
    moments: dict[str, tuple[Count, str, str]]


class ComparedJson(Part, kw_only=True):
    """Theory beside what was counted."""

    class Observed(Part):
        """A count with its confidence interval."""

        low: float
        best: float
        high: float
        confidence: float

    says: str
    statement: str
    side: str
    predicted: float | Interval
    observed: Observed
    agrees: bool
    z: float | None
    alarm: float
    smallest_error_seen: tuple[float | None, float | None]


class SimulationJson(Part, kw_only=True):
    """`spectheory simulate KIND --json`."""

    schema = 1

    task: Annotated[TaskJson, says("what was simulated")]
    id: Annotated[str, says("SHA-256 of all that decides the numbers")]
    tally: Annotated[TallyJson, says("exact counts, and moments as fractions")]
    alarm: Annotated[float, says("probability that a correct theory is called wrong")]
    agree: Annotated[bool, says("whether all comparisons agree")]
    comparisons: Annotated[list[ComparedJson], says("theory beside counts")]


class KindsJson(Part, kw_only=True):
    """`spectheory simulate list --json`."""

    schema = 1

    class Kind(Part):
        """A kind of simulation."""

        kind: str
        trial: str
        batch: Count | None
        options: list[str] | None

    kinds: Annotated[list[Kind], says("what can be simulated; batch and options are null where Python alone runs it")]


class FigureJson(Part, kw_only=True):
    """`NAME.json` beside `NAME.png` of `spectheory figures`."""

    schema = 1

    class Result(TallyJson, kw_only=True):
        """The tally of a simulation."""

        label: str
        task: TaskJson

    class Comparison(ComparedJson, kw_only=True):
        """Theory beside a count, with the label of its simulation."""

        label: str

    figure: Annotated[str, says("its name")]
    title: Annotated[str, says("its title")]
    statements: Annotated[list[str], says("ids of the theory")]
    setting: Annotated[Literal["quick", "full"], says("how much was simulated")]
    seed: Annotated[int, says("root seed")]
    alarm: Annotated[float, says("probability that a correct theory is called wrong")]
    results: Annotated[list[Result], says("tallies of the simulations")]
    theory: Maybe[Annotated[dict[str, TallyJson], says("tallies that theory gives")]] = UNSET
    comparisons: Annotated[list[Comparison], says("theory beside counts")]
    data: Annotated[dict[str, Any], says("what is drawn")]


class FiguresJson(Part, kw_only=True):
    """`spectheory figures --json`."""

    schema = 1

    class Figure(Part):
        """A figure that was made or drawn."""

        figure: str
        title: str
        statements: list[str]
        setting: Literal["quick", "full"]
        seed: int
        alarm: float
        files: list[str]
        comparisons: Count
        disagreements: list[FigureJson.Comparison]

    figures: Annotated[list[Figure], says("every figure that was made or drawn")]


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

    class Refused(Part):
        """A claim that has no value on a case, or assumes what no case meets."""

        claim: str
        why: str

    claims: Annotated[list[Claim], says("every claim of the file that was tried, with what was found")]
    refused: Annotated[list[Refused], says("the others, each with the reason; the status is then 2")]


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
