"""Costs that are not of this trace or this machine: another pair, a context beyond training, another processor."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from spectheory.cost import ModelShape, Roofline
from spectheory.deployment.candidates import COMMON, DRAFT_MODEL, Draft
from spectheory.errors import argument
from spectheory.prediction.remarks import doubts, exchanged

_SAME = 0.03
"""Numbers of parameters that differ by less, in proportion, are one model's: sizes leave out biases and positions."""


def mismatches(draft: Draft, contexts: Sequence[int] = ()) -> list[str]:
    """What contradicts a plan, a sentence each: texts that the draft explains better; with a roofline other models than
    those of the trace, long contexts.

    Vocabulary and numbers of parameters are compared, as far as the trace records them. A context is long beyond what
    the target was trained for, by its ``config.json``, else by the trace.

    Examples
    --------
    >>> from spectheory import Trace
    >>> from spectheory.cost import ACCELERATORS
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256, window=8192)
    >>> cost = Roofline(large, None, ACCELERATORS["H100-SXM"], context=9000)
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)])
    >>> mismatches(Draft("small", trace, cost))
    ['context 9000 exceeds the 8192 tokens that the target was trained for']
    """
    cost, said = draft.cost, doubts(draft.trace.provenance)
    if not isinstance(cost, Roofline):
        return said
    drafting = cost.draft if cost.draft and not cost.draft.fusion and draft.kind in (DRAFT_MODEL, COMMON) else None
    compared = {"target": cost.target, "draft": drafting}
    other = {who: _other(who, model, draft) for who, model in compared.items() if model is not None}
    said += other.values()
    if drafting and (question := exchanged(drafting.parameters, cost.target.parameters)):
        said.append(question)
    elif drafting and other["target"] and not other["draft"]:
        option = argument("cost.draft", "--draft-architecture")
        said.append(f"the draft is the trace's, {drafting.parameters / 1e6:.4g}M parameters: see {option}")
    window, longest = window_of(draft), max([*contexts, cost.context])
    if window is not None and longest > window:
        said.append(f"context {longest} exceeds the {window} tokens that the target was trained for")
    return [*filter(None, said)]


def window_of(draft: Draft) -> int | None:
    """The longest text that the target was trained for, by its architecture, else by the trace; None if unknown."""
    stated = draft.cost.target.window if isinstance(draft.cost, Roofline) else None
    recorded = draft.fact("target", "window")
    return stated or (recorded if isinstance(recorded, int) else None)


def _other(who: str, model: ModelShape, draft: Draft) -> str:
    """What the trace says of a model where that contradicts its architecture; empty if nothing does."""
    vocabulary, parameters = (draft.fact(who, name) for name in ("outputs", "parameters"))
    differ = []
    if isinstance(vocabulary, int) and vocabulary != model.vocabulary:
        differ.append((f"{vocabulary} outputs", f"{model.vocabulary}"))
    if isinstance(parameters, int) and abs(model.parameters / max(parameters, 1) - 1) > _SAME:
        differ.append((f"{parameters / 1e6:.4g}M parameters", f"{model.parameters / 1e6:.4g}M"))
    there, here = (", ".join(words) for words in zip(*differ, strict=True)) if differ else ("", "")
    return f"trace of another {who}: {there}; here {here}" if differ else ""


def other_machine(hardware: object) -> str | None:
    """How the machine at hand differs, in words; None if it is the same as far as can be checked cheaply.

    `hardware` is that of a latency table's provenance: ``system``, ``cpu``, and ``gpu`` where there is one.
    """
    if not isinstance(hardware, Mapping):
        return None
    here: dict[str, Any] = {"system": f"{platform.system()} {platform.machine()}", "cpu": _cpu()}
    if hardware.get("gpu"):
        here["gpu"] = _gpus()
    for name, value in here.items():
        there = hardware.get(name)
        if there is not None and value is not None and there != value:
            return f"measured on {_words(there)}, this is {_words(value) or 'without one'}"
    return None


def _words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value)


def _cpu() -> str | None:
    """The processor's name as a measurement records it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or None


def _gpus() -> list[str] | None:
    """Names of the accelerators; none without torch, None if it is not installed."""
    with suppress(ImportError):
        import torch

        return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return None
