"""Ready-to-paste settings for serving engines, each under the verification rule it really uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from spectheory.deployment.candidates import Draft, all_drafts, all_stops, measured_nodes
from spectheory.deployment.engines.base import Ask, EngineSettings
from spectheory.deployment.engines.facts import Engine
from spectheory.deployment.engines.huggingface import TRANSFORMERS, transformers_settings
from spectheory.deployment.engines.llamacpp import LLAMA_CPP, llama_cpp_settings
from spectheory.deployment.engines.lookup import transformers_lookup, vllm_lookup, vllm_suffix
from spectheory.deployment.engines.onnxruntime import ONNXRUNTIME, onnxruntime_settings
from spectheory.deployment.engines.openvino import OPENVINO, openvino_settings
from spectheory.deployment.engines.sglang import SGLANG, sglang_settings
from spectheory.deployment.engines.tensorrt import TENSORRT_LLM, tensorrt_settings
from spectheory.deployment.engines.vllm import VLLM, vllm_settings
from spectheory.drafting import StoppingRule
from spectheory.drafting.tree import at_least_one
from spectheory.verification.by_start import within

__all__ = ["ENGINES", "EngineSettings", "engine_settings", "without_method", "without_stop"]

ENGINES: dict[Engine, tuple[Callable[[Ask], EngineSettings | None], ...]] = {
    TRANSFORMERS: (transformers_settings, transformers_lookup),
    VLLM: (vllm_settings, vllm_lookup, vllm_suffix),
    SGLANG: (sglang_settings,),
    LLAMA_CPP: (llama_cpp_settings,),
    TENSORRT_LLM: (tensorrt_settings,),
    OPENVINO: (openvino_settings,),
    ONNXRUNTIME: (onnxruntime_settings,),
}
"""The engines, with the functions that make their settings: with a draft, and with what is copied."""


def engine_settings(
    drafts: Sequence[Draft], *, k_max: int = 16, nodes: int = 32, stops: Sequence[StoppingRule] = ()
) -> list[EngineSettings]:
    """The fastest settings of each engine over all drafts for one target, under the engine's own rule.

    `k_max` limits chains and `nodes` trees; `stops` are tried by engines that have the stopping rule. An engine is left
    out if the trace does not predict its rule (recorded lengths are of no rule), or if it does not support the trace's
    filters.
    With a cost model that depends on the batch, vLLM's settings include the best length for every batch size. Prompt
    lookup and suffix decoding come last where traces have them: they need no draft model, use the first such trace (as
    in :func:`~spectheory.deployment.rank_drafts`), and are estimates.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> [s.engine for s in engine_settings([Draft("small", trace, ConstantRatio(0.1))])]
    ['transformers', 'vllm', 'onnxruntime']
    """
    stops = all_stops(stops)
    k_max, nodes = at_least_one("k_max", k_max), at_least_one("nodes", nodes)
    found: dict[tuple[str, str], EngineSettings] = {}
    for draft in (each for each in all_drafts(drafts) if not each.trace.recorded):
        longest = within(draft.trace.columns, measured_nodes(draft.cost, k_max))
        ask = Ask.about(draft, range(1, longest + 1), measured_nodes(draft.cost, nodes), stops)
        for settings in _of_engines(ask):
            rule = settings.candidate.prediction.rule
            copied = "" if rule.uses_draft else rule.name
            before = found.setdefault((copied, settings.engine), settings)
            if not copied and settings.candidate.speedup.best > before.candidate.speedup.best:
                found[copied, settings.engine] = settings
    return [settings for last in (False, True) for (copied, _), settings in found.items() if bool(copied) is last]


def _of_engines(ask: Ask) -> Iterator[EngineSettings]:
    """The settings of every engine that takes the sampling; with the draft where it has the draft's kind."""
    for engine, makers in ENGINES.items():
        if ask.min_p and not engine.takes_min_p:
            continue
        for settings in filter(None, (make(ask) for make in makers)):
            if engine.method(ask.draft.kind) is not None or not settings.candidate.prediction.rule.uses_draft:
                yield settings


def without_method(drafts: Sequence[Draft]) -> list[str]:
    """Which engines have no settings for which kinds of drafts, a sentence for each kind.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0], [-1.0])], provenance={"draft": {"kind": "dflash"}})
    >>> print(without_method([Draft("head", trace, ConstantRatio(0.1))])[0])
    No settings here for dflash drafts: transformers, openvino, onnxruntime.
    """
    lines = []
    for kind in dict.fromkeys(draft.kind for draft in all_drafts(drafts)):
        if lacking := [engine.name for engine in ENGINES if engine.method(kind) is None]:
            lines.append(f"No settings here for {kind} drafts: {', '.join(lacking)}.")
    return lines


def without_stop(stops: Sequence[StoppingRule]) -> list[str]:
    """Which engines lack which stopping rules, a sentence for each kind.

    Examples
    --------
    >>> from spectheory.drafting import read_stop
    >>> print(without_stop([read_stop("top<0.6")])[0])
    Only llama.cpp stops by top; settings of other engines have a fixed length.
    """
    lines = []
    for kind in dict.fromkeys(stop.name for stop in all_stops(stops)):
        having = " and ".join(engine.name for engine in ENGINES if kind in engine.stops)
        who = (
            f"Only {having} stops by {kind}; settings of other"
            if having
            else f"No engine stops by {kind}: settings of all"
        )
        lines.append(f"{who} engines have a fixed length.")
    return lines
