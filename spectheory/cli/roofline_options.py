"""Options of a roofline and a load, which `plan` and `why` share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from spectheory.cli import vocabulary as the
from spectheory.cli.vocabulary import shown


@dataclass(frozen=True, kw_only=True)
class RooflineOptions:
    """An accelerator, sizes of models and a load."""

    hardware: Annotated[str | None, the.HARDWARE] = None
    target_architecture: Annotated[Path | None, the.TARGET_ARCHITECTURE] = None
    draft_architecture: Annotated[list[str] | None, the.DRAFT_ARCHITECTURE] = None
    weights: Annotated[str | None, shown(the.WEIGHTS, "as its config says, else bf16")] = None
    draft_weights: Annotated[str | None, shown(the.DRAFT_WEIGHTS, "as --weights, else as its config says")] = None
    kv_cache: Annotated[str | None, shown(the.KV_CACHE, "as the config says, else bf16")] = None
    routing: Annotated[Path | None, the.ROUTING] = None
    expert_parallel: Annotated[bool, the.EXPERT_PARALLEL] = False
    peak: Annotated[str | None, shown(the.PEAK, "as --weights where it has one, else bf16")] = None
    devices: Annotated[int, the.DEVICES] = 1
    link_latency: Annotated[float, the.LINK_LATENCY] = 0.0
    overhead: Annotated[float, the.OVERHEAD] = 0.0
    batch: Annotated[list[int] | None, shown(the.BATCH, 1, 2, 4, 8, 16, 32, 64, 128, 256)] = None
    context: Annotated[list[int] | None, shown(the.CONTEXT, 1024)] = None
    prompt_tokens: Annotated[int | None, the.PROMPT_TOKENS] = None
    output_tokens: Annotated[int | None, the.OUTPUT_TOKENS] = None


OF_ROOFLINES = (
    *("target_architecture", "draft_architecture", "weights", "draft_weights", "kv_cache", "peak", "overhead"),
    *("routing", "expert_parallel"),
    *("devices", "link_latency", "batch", "context", "prompt_tokens", "output_tokens", "tpot", "ttft"),
)
"""Options that go with ``--hardware``."""
