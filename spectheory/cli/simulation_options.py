"""The options of ``spectheory simulate`` and ``figures``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


@dataclass(frozen=True)
class FiguresOptions:
    """Which figures, how much is simulated for them, and where they go."""

    names: Annotated[list[str] | None, Argument(help="Figures; all if absent.", show_default=False)] = None
    out: Annotated[Path, Option(help="Folder for pictures, data and results.")] = Path("figures")
    full: Annotated[bool, Option("--full", help="As many trials as in the docs: some ten times as long.")] = False
    seed: Annotated[int, Option(help="Root seed: the same seed gives the same numbers.")] = 0
    workers: Annotated[int | None, Option(help="Processes; all processors if absent.", show_default=False)] = None
    redraw: Annotated[bool, Option("--redraw", help="Draw again from the data in the folder; simulate nothing.")] = (
        False
    )
    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False


@dataclass(frozen=True)
class SettingOptions:
    """What is simulated; each kind takes some of these, and names what it lacks or does not take."""

    kind: Annotated[str, Argument(help="What is simulated; `spectheory simulate list` shows all.")]
    target: Annotated[
        str | None, Option(help="Pmf of the target, or a row per state of a chain: .npy, .json, text file, or numbers.")
    ] = None
    draft: Annotated[str | None, Option(help="That of the draft, in the same forms.")] = None
    initial: Annotated[str | None, Option(help="Chains: pmf of the token before the text; uniform if absent.")] = None
    length: Annotated[int | None, Option(help="Tokens of a text.")] = None
    k: Annotated[int | None, Option("--k", help="Drafts per call, or races of a Gumbel list.")] = None
    max_rank: Annotated[int | None, Option(help="Ranks that are told apart; 8 if absent.")] = None
    drafts: Annotated[int | None, Option(help="M, the drafts of a batch.")] = None
    printed: Annotated[bool | None, Option("--printed", help="Algorithm 4 as printed.", show_default=False)] = None
    rank_pmf: Annotated[str | None, Option(help="P(R = 1), P(R = 2), ... of a position.")] = None
    shape: Annotated[str | None, Option(help="Draft tree: chain or batch with --k, 2x2x1, or paths as 1,2,1-1.")] = None
    rule: Annotated[str | None, Option(help="Verification rule, as token or race.")] = None
    bias: Annotated[float | None, Option(help="Share of over-acceptance in [0, 1].")] = None
    recovery: Annotated[str | None, Option(help="Recover from: optimal or target.")] = None
    text: Annotated[str | None, Option(help="n-grams of a text file, or of a module's source, as argparse.")] = None
    order: Annotated[int | None, Option(help="n of the target's n-grams; 3 if absent.")] = None
    draft_order: Annotated[int | None, Option(help="n of the draft's n-grams; 2 if absent.")] = None
    family: Annotated[str | None, Option(help="Family of random pmfs, in place of --target.")] = None
    nodes: Annotated[list[int] | None, Option(help="Draft nodes P of random trees; repeatable.")] = None


@dataclass(frozen=True)
class RunOptions:
    """How much is simulated, by whom, and what is kept."""

    trials: Annotated[int, Option(help="Trials: positions, calls, texts or trees; a whole number of batches.")] = (
        100_000
    )
    batch: Annotated[int | None, Option(help="Trials of a batch; another size draws other numbers.")] = None
    width: Annotated[
        float | None, Option(help="Stop before, when the first interval is so narrow, relative to its value.")
    ] = None
    alarm: Annotated[float, Option(help="Probability that a right theory is called wrong.")] = 1e-6
    seed: Annotated[int, Option(help="Root seed: the same seed gives the same numbers.")] = 0
    workers: Annotated[int | None, Option(help="Processes; all processors if absent.", show_default=False)] = None
    results: Annotated[
        Path | None, Option(help="File that keeps every finished batch; the same command goes on from it.")
    ] = None
    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False
