"""The options of ``spectheory rules``, ``bounds``, ``tree`` and ``verify``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from spectheory.errors import SettingError

DEFAULT_NODES = (1, 8, 64)
"""Numbers of draft nodes for which bounds are shown."""


@dataclass(frozen=True)
class AnswerOptions:
    """What form the answer has."""

    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False


@dataclass(frozen=True)
class DrawOptions(AnswerOptions):
    """The same, and how random numbers are drawn."""

    seed: Annotated[int, Option(help="Seed of what is drawn: the same seed gives the same numbers.")] = 0

    def check(self) -> None:
        """Refuse a negative seed."""
        if self.seed < 0:
            raise SettingError(f"seed is {self.seed}", limit="must be >= 0", remedy="0 is the default")


@dataclass(frozen=True)
class RulesOptions:
    """Two pmfs or a trace, and the number of candidates."""

    trace: Annotated[Path | None, Argument(help="A trace, the folder of one, or a log.", show_default=False)] = None
    target: Annotated[
        str | None, Option(help="Pmf of the target: .npy, .json, text file, or numbers as 0.5,0.3,0.2; [V] or [n, V].")
    ] = None
    draft: Annotated[str | None, Option(help="Pmf of the draft, in the same forms.")] = None
    k: Annotated[int, Option("--k", help="Candidates at one position.")] = 4
    rule: Annotated[list[str] | None, Option(help="Rule that is shown; repeatable. All if absent.")] = None


@dataclass(frozen=True)
class BoundsOptions:
    """What the limits are worked out from, and for how many nodes."""

    trace: Annotated[Path | None, Argument(help="A trace, the folder of one, or a log.", show_default=False)] = None
    mu: Annotated[float | None, Option(help="Mean entropy of the target, nats; with --mu2.")] = None
    mu2: Annotated[float | None, Option(help="Mean of sum p log^2 p, nats squared.")] = None
    target: Annotated[
        str | None, Option(help="Conditional pmfs of the target: .npy, .json, text file, or numbers; [V] or [n, V].")
    ] = None
    rank_pmf: Annotated[str | None, Option(help="P(R = 1), P(R = 2), ... of one position, in the same forms.")] = None
    nodes: Annotated[list[int] | None, Option(help="Draft nodes P per call; repeatable. 1, 8 and 64 if absent.")] = None
    trees: Annotated[
        int | None, Option(help="With --target: grow this many random trees from its rows, the value at finite P.")
    ] = None


@dataclass(frozen=True)
class TreeOptions:
    """What the tree is best for, and its limits."""

    trace: Annotated[Path | None, Argument(help="A trace, the folder of one, or a log.", show_default=False)] = None
    rule: Annotated[
        str | None,
        Option(
            help="With a trace: race, poisson, recursive, recursive-distinct or topk; race if absent.",
            show_default=False,
        ),
    ] = None
    rank_pmf: Annotated[
        str | None, Option(help="P(R = 1), P(R = 2), ...: .npy, .json, text file, or numbers as 0.6,0.3.")
    ] = None
    nodes: Annotated[int, Option(help="Draft nodes per call.")] = 8
    max_depth: Annotated[int | None, Option(help="Largest depth of a node: draft passes per call.")] = None
    max_width: Annotated[int | None, Option(help="Most nodes of one depth; with --rank-pmf.")] = None
    consecutive: Annotated[
        bool, Option("--consecutive", help="Siblings have ranks 1..m, as recursive rejection tries them in order.")
    ] = False


@dataclass(frozen=True)
class VerifyOptions:
    """Which statements are checked, and how long."""

    ids: Annotated[
        list[str] | None, Argument(help="Ids of statements, as A3 or B2'; all if absent.", show_default=False)
    ] = None
    paper: Annotated[str | None, Option(help="Statements of one paper by its key, as kobus2025.")] = None
    kind: Annotated[
        str | None, Option(help="One kind of evidence: symbolic, exact, certified, search, simulation.")
    ] = None
    deep: Annotated[bool, Option("--deep", help="Larger grids and longer searches: some ten times as long.")] = False
    seed: Annotated[int, Option(help="Seed of random cases: the same seed checks the same cases.")] = 0
    workers: Annotated[
        int | None, Option(help="Processes; as many as there are cores if absent.", show_default=False)
    ] = None
    out: Annotated[
        Path | None, Option(help="File that keeps every finished check; the same command goes on from it.")
    ] = None
    claim: Annotated[
        Path | None,
        Option(help="A Python file with claims of your own, tried instead of the ledger; status 1 if one is refuted."),
    ] = None
    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False
