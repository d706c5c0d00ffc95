"""Record which experts of a mixture the tokens of texts are routed to (C7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.checks import several
from spectheory.cost import Routing
from spectheory.errors import ModelError, SettingError
from spectheory.measure.pair import Model
from spectheory.trace import Trace


def _record_routing(
    model: Model, texts: Sequence[Tensor], skipped: Sequence[int] | None = None, on_progress: Callable[[], object] = int
) -> Routing:
    """The routing log of a model on texts of token ids ``[n]``, without the first `skipped` tokens of each.

    Every text is read in one pass, and the experts of a token are those that its layers call: the log is exact for the
    texts, whatever router a model has. `on_progress` is called after each text.

    Raises
    ------
    SettingError
        No text, or one with no token behind what is skipped.
    ModelError
        A model without experts, or with layers that have different numbers of them.
    """
    texts = several("texts", texts, remedy="pass token ids")
    starts = [0] * len(texts) if skipped is None else several("skipped", skipped, remedy="a number for each text")
    if not texts or len(starts) != len(texts) or any(len(ids) <= at for ids, at in zip(texts, starts, strict=True)):
        raise SettingError("a text has no token to record", limit="needs at least one", remedy="pass longer texts")
    layers = _layers_with_experts(model.network)
    log: list[NDArray[np.int64]] = []
    with torch.no_grad(), _recorded(layers) as calls:
        for ids, start in zip(texts, starts, strict=True):
            calls.clear()
            model.network(ids.to(model.device)[None], use_cache=False)
            log.append(torch.stack([calls[layer] for layer in layers], dim=1)[start:].numpy())
            on_progress()
    return Routing(log, int(layers[0].num_experts))


def routing_of_trace(
    model: Model, trace: Trace, prompts: dict[str, Tensor], on_progress: Callable[[], object] = int
) -> Routing:
    """The routing log of a trace's texts, read behind their prompts, which are named as in the trace."""
    token, ends = trace.columns["token"], np.cumsum(trace.lengths)
    texts, starts = [], []
    for text, end in zip(trace.texts, ends, strict=True):
        own, prompt = torch.from_numpy(token[end - text.tokens : end].astype(np.int64)), prompts[text.prompt]
        texts.append(torch.cat([prompt.cpu(), own]))
        starts.append(len(prompt))
    return _record_routing(model, texts, starts, on_progress)


def _layers_with_experts(network: Any) -> list[Any]:
    """The modules of experts, in order; they are called with the experts of each token."""
    layers = [
        each for each in network.modules() if type(each).__name__.endswith("Experts") and hasattr(each, "num_experts")
    ]
    counts = sorted({int(each.num_experts) for each in layers})
    if len(counts) != 1:
        raise ModelError(
            f"{type(network).__name__} has layers with {', '.join(map(str, counts)) or 'no'} experts",
            limit="needs a mixture of experts of transformers 5, with as many in each layer",
            remedy="leave the routing out",
        )
    return layers


@contextmanager
def _recorded(layers: Sequence[Any]) -> Iterator[dict[Any, Tensor]]:
    """The experts ``[tokens, r]`` that each layer was called with last."""
    calls: dict[Any, Tensor] = {}

    def note(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        routes = [
            each for each in (*given, *named.values()) if isinstance(each, Tensor) and not each.is_floating_point()
        ]
        calls[module] = routes[0].reshape(-1, routes[0].shape[-1]).to("cpu", torch.int64)

    hooks = [layer.register_forward_pre_hook(note, with_kwargs=True) for layer in layers]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
