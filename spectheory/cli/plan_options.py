"""The options of ``spectheory plan``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option


@dataclass(frozen=True)
class PlanOptions:
    """Which drafts, what they cost, which settings are compared, and where the answer goes."""

    trace: Annotated[
        Path | None,
        Argument(
            help="A trace, its folder, or a log. Without it and without --draft the built-in drafts are measured.",
            show_default=False,
        ),
    ] = None
    draft: Annotated[
        list[str] | None,
        Option(help="NAME=FOLDER of spectheory measure, for one target; repeatable: drafts are ranked."),
    ] = None
    logprobs: Annotated[Path | None, Option(help="Another spelling of the trace, for log-probabilities.")] = None
    c: Annotated[float | None, Option("--c", help="Draft step over target step, in place of latencies.")] = None
    latency: Annotated[Path | None, Option(help="A latency table; if absent, the one beside the trace.")] = None
    passes_alone: Annotated[
        bool,
        Option("--passes-alone", help="Count the models' passes alone, not the time of our decoding loop around them."),
    ] = False
    hardware: Annotated[
        str | None, Option(help="An accelerator, for example H100-SXM, in place of latencies: a roofline.")
    ] = None
    target_architecture: Annotated[
        Path | None, Option(help="With --hardware: the target's config.json, or the folder of one.")
    ] = None
    draft_architecture: Annotated[
        list[str] | None, Option(help="With --hardware: the same of the draft; NAME=FILE with several drafts.")
    ] = None
    peak: Annotated[str, Option(help="With --hardware: the type computed in, bf16 or fp8.")] = "bf16"
    weight_bytes: Annotated[float, Option(help="With --hardware: bytes per weight as served.")] = 2.0
    overhead: Annotated[
        float, Option(help="With --hardware: seconds of a pass beside reading and computing; no data sheet has it.")
    ] = 0.0
    batch: Annotated[
        list[int] | None,
        Option(help="With --hardware: sequences decoded together; repeatable, the plan is for the first; 1 to 256."),
    ] = None
    context: Annotated[
        list[int] | None,
        Option(help="With --hardware: cached tokens of each sequence; repeatable, the plan is for the first; 1024."),
    ] = None
    rule: Annotated[
        list[str] | None,
        Option(help="Verification rule, as in predict; repeatable. If absent: token, block, race, lookup and trees."),
    ] = None
    k_max: Annotated[int, Option(help="Longest chain of drafts.")] = 16
    nodes: Annotated[int, Option(help="Largest draft tree; 1 for none.")] = 32
    seed: Annotated[int, Option(help="Seed of what is drawn: the same seed gives the same numbers.")] = 0
    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False
    out: Annotated[Path | None, Option(help="Folder for plan.json, and a figure where batches are planned.")] = None
