"""What the columns of tables mean: one sentence for each heading, the same in every command."""

from __future__ import annotations

from collections.abc import Iterator

from spectheory.limits.claims import BRANCHING_FORMS, IID_FORMULA, ON_TRACES, ONE_CALL, RANK_TREES, LimitClaim
from spectheory.reports.table import Table
from spectheory.verification.registry import BUILT_IN

TERMS = {
    "k": "drafted tokens per call",
    "P": "draft nodes per call",
    "T": "sampling temperature",
    "rule": "verification rule: how drafts are accepted",
    "shape": "draft shape: a chain of k drafts, or a tree of k nodes",
    "rule, shape": "verification rule and draft shape",
    "draft": "the trace whose draft it is",
    "engine": "engine, under the rule that this version of it runs",
    "tokens per call": "output tokens of one target pass: accepted drafts and one more; exact for the texts",
    "speed-up": "tokens per second over those of plain decoding; estimate from the costs given",
    "acceptance": "probability that the first draft, or one of k candidates, is accepted",
    "side": "exact, upper bound, lower bound or estimate",
    "gap to R4": "what is missing to the most that k i.i.d. candidates can give; † where that is no limit",
    "H(R)": "entropy of the rank of the accepted candidate, nats",
    "counted": "tokens per call that were counted",
    "expected": "what the rule expects of the same texts; exact for them",
    "from trace": "what a trace of other texts predicted",
    "predicted": "what a trace of other texts predicted",
    "measured": "speed-up that was timed",
    "z": "difference in standard deviations",
    "z, calls": "counted minus expected calls in standard deviations",
    "z, rounds": "counted minus expected rounds in standard deviations",
    "miss %": "measured over predicted speed-up, minus 1",
    "passes %": "the same for the models' passes alone",
    "largest part": "the part of the error budget that explains most of the miss",
    "off": "counted over expected tokens per call, minus 1",
    "verdict": "fits, or refuted at the stated false-alarm rate",
    "p": "probability of a result at least as far off, if the rule runs",
    "p, all counts": "the same for all counts together",
    "first choices": "share of the target's first choices in the output",
    "drafted": "drafted tokens per call",
    "estimated": "drafted tokens per call that the trace predicted",
    "share": "share of the calls",
    "now": "the value in this plan",
    "needed": "the value at which the speed-up is 1",
    "what": "what is varied",
    "limit": "an upper bound, or an idealised value",
    "reached": "tokens per call over the limit",
    "position": "draft number in a call",
    "calls": "calls that reach it",
    "accepted": "of these, calls that accept it",
    "share of calls": "calls that do",
    "cause": "a known fault that explains the counts",
    "test of the output": "what of the output is tested",
    "statistic": "the value of the test",
    "batch": "sequences decoded together",
    "context": "cached tokens of a sequence",
}


def meanings(table: Table) -> list[str]:
    """A line for each column: its heading, and what it means."""
    return [f"  {one(column.heading)}: {column.meaning or _meaning(column.heading)}" for column in table.columns]


def one(heading: str) -> str:
    """A heading in one line."""
    return " ".join(heading.split())


def _meaning(heading: str) -> str:
    return TERMS.get(one(heading)) or next(iter(_named(one(heading))), "")


def _named(heading: str) -> Iterator[str]:
    """What a heading says that begins with the name of a limit or a rule."""
    for claim in _CLAIMS:
        if heading == claim.heading or heading.startswith(f"{claim.heading} "):
            yield f"{claim.what}. {claim.scope.says}"
    for rule in BUILT_IN:
        if heading == rule.name or heading.startswith((f"{rule.name} ", f"{rule.name},")):
            yield f"{rule.label}{heading.removeprefix(rule.name)}"


_CLAIMS: tuple[LimitClaim, ...] = (
    IID_FORMULA,
    *ON_TRACES,
    ONE_CALL,
    *BRANCHING_FORMS.values(),
    *RANK_TREES.values(),
)
