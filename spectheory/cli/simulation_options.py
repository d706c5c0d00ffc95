"""Which options ``spectheory simulate`` and ``figures`` take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument

from spectheory.cli import vocabulary as the
from spectheory.cli.vocabulary import shown

MAX_RANK, DRAFTS, LENGTH, K, ORDER, DRAFT_ORDER = 8, 4, 50, 4, 3, 2
NODES = (1, 4, 16, 64)
RECOVERY = "optimal"


@dataclass(frozen=True)
class FiguresOptions:
    """Draw bounds against simulations.

    Status 0 if theory and simulations agree, 1 if not.
    """

    names: Annotated[list[str] | None, Argument(metavar="NAME", help="Figures to draw.", show_default="all")] = None
    out: Annotated[Path, the.OUT] = Path("figures")
    full: Annotated[bool, the.FULL] = False
    seed: Annotated[int, the.SEED] = 0
    workers: Annotated[int | None, shown(the.WORKERS, the.ALL_PROCESSORS)] = None
    redraw: Annotated[bool, the.REDRAW] = False
    json: Annotated[bool, the.JSON] = False
    report: Annotated[Path | None, the.REPORT] = None


@dataclass(frozen=True)
class SettingOptions:
    """Simulate one setting and compare it with the theory.

    `spectheory simulate list` shows the kinds and their options. Status 0 if both agree, 1 if not.
    """

    kind: Annotated[str, Argument(metavar="KIND", help="What is simulated; `list` shows every kind with its options.")]
    target_pmf: Annotated[str | None, the.TARGET_PMF] = None
    draft_pmf: Annotated[str | None, the.DRAFT_PMF] = None
    initial: Annotated[str | None, shown(the.INITIAL, "uniform")] = None
    length: Annotated[int | None, shown(the.LENGTH, LENGTH)] = None
    k: Annotated[int | None, shown(the.K, K)] = None
    max_rank: Annotated[int | None, shown(the.MAX_RANK, MAX_RANK)] = None
    drafts: Annotated[int | None, shown(the.DRAFTS, DRAFTS)] = None
    printed: Annotated[bool | None, the.PRINTED] = None
    rank_pmf: Annotated[str | None, the.RANK_PMF] = None
    shape: Annotated[str | None, shown(the.SHAPE, "chain")] = None
    rule: Annotated[str | None, the.RULE] = None
    bias: Annotated[float | None, the.BIAS] = None
    recovery: Annotated[str | None, shown(the.RECOVERY, RECOVERY)] = None
    text: Annotated[str | None, the.NGRAMS] = None
    order: Annotated[int | None, shown(the.ORDER, ORDER)] = None
    draft_order: Annotated[int | None, shown(the.DRAFT_ORDER, DRAFT_ORDER)] = None
    family: Annotated[str | None, the.FAMILY] = None
    nodes: Annotated[list[int] | None, shown(the.NODES, *NODES)] = None


@dataclass(frozen=True)
class RunOptions:
    """How much is simulated, by whom, and what is kept."""

    trials: Annotated[int, the.TRIALS] = 100_000
    batch: Annotated[int | None, shown(the.BATCH_SIZE, "that of the kind")] = None
    width: Annotated[float | None, the.WIDTH] = None
    alarm: Annotated[float, the.ALARM] = 1e-6
    seed: Annotated[int, the.SEED] = 0
    workers: Annotated[int | None, shown(the.WORKERS, the.ALL_PROCESSORS)] = None
    out: Annotated[Path | None, the.OUT] = None
    json: Annotated[bool, the.JSON] = False

    @property
    def results(self) -> Path | None:
        """The file of finished batches."""
        return self.out / "results.jsonl" if self.out else None
