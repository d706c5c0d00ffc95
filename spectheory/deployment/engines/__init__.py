"""Ready-to-paste settings for serving engines, each under the verification rule it really uses."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.cost import AffineCost, Roofline
from spectheory.deployment.batches import BATCHES, batch_ranges, best_lengths
from spectheory.deployment.candidates import Draft, measured_nodes
from spectheory.deployment.engines.base import Ask, EngineSettings
from spectheory.deployment.engines.huggingface import transformers_settings
from spectheory.deployment.engines.lookup import transformers_lookup, vllm_lookup
from spectheory.deployment.engines.sglang import sglang_settings
from spectheory.deployment.engines.vllm import vllm_settings

__all__ = ["EngineSettings", "engine_settings"]


def engine_settings(drafts: Sequence[Draft], *, k_max: int = 16, nodes: int = 32) -> list[EngineSettings]:
    """The fastest settings of each engine over all drafts, under the engine's own rule.

    With a cost model that knows batches, vLLM's come with the best length for every batch size. Where traces have it,
    prompt lookup comes after, by itself: it needs no draft model, is taken from the first such trace, as in
    :func:`~spectheory.deployment.rank_drafts`, and what is predicted is an estimate.

    Parameters
    ----------
    drafts : sequence of Draft
        Drafts for one target.
    k_max, nodes : int
        Longest chain and largest tree.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> [s.engine for s in engine_settings([Draft("small", trace, ConstantRatio(0.1))])]
    ['transformers', 'vllm', 'sglang']
    """
    found: dict[tuple[str, bool], EngineSettings] = {}
    for draft in drafts:
        longest = measured_nodes(draft.cost, k_max)
        largest = measured_nodes(draft.cost, nodes)
        ask = Ask.about(draft, range(1, longest + 1), largest)
        drafted = [transformers_settings(ask), _by_batch(ask, k_max), sglang_settings(ask)]
        for settings in (*drafted, transformers_lookup(ask), vllm_lookup(ask)):
            if settings is None:
                continue
            uses_draft = settings.candidate.prediction.rule.uses_draft
            before = found.setdefault((settings.engine, uses_draft), settings)
            if uses_draft and settings.candidate.speedup.best > before.candidate.speedup.best:
                found[settings.engine, uses_draft] = settings
    return list(found.values())


def _by_batch(ask: Ask, k_max: int) -> EngineSettings | None:
    """The settings of vLLM, which takes a length by batch size."""
    cost = ask.draft.cost
    plain = vllm_settings(ask)
    if plain is None or not isinstance(cost, Roofline | AffineCost):
        return plain
    rule = plain.candidate.prediction.rule
    every = range(1, max(BATCHES) + 1)
    return vllm_settings(ask, batch_ranges(best_lengths(ask.draft.trace, rule, cost, k_max=k_max, batches=every)))
