"""What ``spectheory rules``, ``bounds``, ``tree`` and ``verify`` take; the docstrings are their help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument

from spectheory.cli import vocabulary as the
from spectheory.cli.vocabulary import shown


@dataclass(frozen=True)
class RulesOptions:
    """Acceptance of every verification rule with k candidates.

    For two pmfs, or averaged along a trace.
    """

    trace: Annotated[Path | None, the.THE_TRACE] = None
    target_pmf: Annotated[str | None, the.TARGET_PMF] = None
    draft_pmf: Annotated[str | None, the.DRAFT_PMF] = None
    candidates: Annotated[int, the.CANDIDATES] = 4
    rule: Annotated[list[str] | None, shown(the.COMPARED_RULE, "all")] = None
    seed: Annotated[int, the.SEED] = 0
    json: Annotated[bool, the.JSON] = False
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class BoundsOptions:
    """Upper bounds on tokens per call.

    From moments, pmfs, rank probabilities or a trace. Also, before a draft exists, bounds on acceptance from entropies,
    and the acceptance that a speed-up needs.
    """

    trace: Annotated[Path | None, the.THE_TRACE] = None
    mu: Annotated[float | None, the.MU] = None
    mu2: Annotated[float | None, the.MU2] = None
    target_pmf: Annotated[str | None, the.TARGET_PMF] = None
    rank_pmf: Annotated[str | None, the.RANK_PMF] = None
    target_logprobs: Annotated[Path | None, the.TARGET_LOGPROBS] = None
    target_nats: Annotated[float | None, the.TARGET_NATS] = None
    draft_nats: Annotated[float | None, the.DRAFT_NATS] = None
    vocabulary: Annotated[int | None, the.VOCABULARY] = None
    need: Annotated[float | None, the.NEED] = None
    c: Annotated[float | None, the.C] = None
    k: Annotated[list[int] | None, shown(the.K, "all up to 64")] = None
    nodes: Annotated[list[int] | None, shown(the.NODES, 1, 8, 64)] = None
    chains: Annotated[list[int] | None, the.CHAINS] = None
    trees: Annotated[int | None, the.TREES] = None
    seed: Annotated[int, the.SEED] = 0
    json: Annotated[bool, the.JSON] = False
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class TreeOptions:
    """Find the best draft tree of a size.

    The tree is best for the texts of a trace, or for i.i.d. ranks.
    """

    trace: Annotated[Path | None, the.THE_TRACE] = None
    rule: Annotated[str | None, shown(the.RANKED_RULE, "{first}")] = None
    rank_pmf: Annotated[str | None, the.RANK_PMF] = None
    nodes: Annotated[int, the.NODES] = 8
    max_depth: Annotated[int | None, the.MAX_DEPTH] = None
    max_width: Annotated[int | None, the.MAX_WIDTH] = None
    consecutive: Annotated[bool, the.CONSECUTIVE] = False
    json: Annotated[bool, the.JSON] = False


@dataclass(frozen=True)
class VerifyOptions:
    """Check the theory: every statement with its evidence.

    Or try a claim of your own. Status 0 if everything came out as the ledger says, 1 if not.
    """

    ids: Annotated[list[str] | None, Argument(metavar="ID", help="Statements, as A3 or B2'.", show_default="all")] = (
        None
    )
    paper: Annotated[str | None, the.PAPER] = None
    evidence: Annotated[str | None, shown(the.EVIDENCE, "all")] = None
    claim: Annotated[Path | None, the.CLAIM] = None
    full: Annotated[bool, the.FULL] = False
    seed: Annotated[int, the.SEED] = 0
    workers: Annotated[int | None, shown(the.WORKERS, the.ALL_PROCESSORS)] = None
    out: Annotated[Path | None, the.OUT] = None
    json: Annotated[bool, the.JSON] = False
