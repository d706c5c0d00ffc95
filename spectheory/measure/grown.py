"""The trees that a draft's confidences grow at every start of a text, and how deep the text lies in them (§10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.drafting import Grown
from spectheory.errors import LogitsError, SettingError, TextError
from spectheory.measure.decoders.readers import forward, why_uncached
from spectheory.measure.forward import check_prompt
from spectheory.measure.heads.base import (
    PAIR_BEFORE,
    AutoregressiveReading,
    Extending,
    HiddenStates,
    ParallelReading,
)
from spectheory.measure.machine import widest
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading
from spectheory.measure.tokens import check_window
from spectheory.trace.columns import MOST_DEPTH


class _CachedText(Extending):
    """A draft model with its text in a cache, read once; all nodes of a pass are in one row, told apart by a mask."""

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.tokens = 0
        self._cache: Any = None
        self._logits = self._place = self._depth = self._above = torch.empty(0)
        self.forget()

    def read(self, ids: Tensor) -> None:
        """Read the next tokens ``[m]``: the places that :meth:`first` knows."""
        self._logits = self._pass(ids, len(ids), {})
        self.tokens += len(ids)

    def first(self, places: Tensor) -> Tensor:
        """Logits after the tokens at these places, of those read last."""
        return self._logits[places - (self.tokens - len(self._logits))]

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits after new nodes; each sees the text up to its place, the nodes above it and itself."""
        old, new, device = len(self._place), len(tokens), parents.device
        of_node = parents >= 0
        node = parents[of_node]
        place, depth = -1 - parents, torch.ones_like(parents)
        place[of_node], depth[of_node] = self._place[node], self._depth[node] + 1
        above = torch.zeros(new, old, dtype=torch.bool, device=device)
        above[of_node] = self._above[node]
        above = torch.cat([above, torch.eye(new, dtype=torch.bool, device=device)], dim=1)
        text = torch.arange(self.tokens, device=device) <= place[:, None]
        seen, dtype = torch.cat([text, above], dim=1), self.model.network.dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, torch.finfo(dtype).min)
        options = {"attention_mask": mask[None, None], "position_ids": (place + depth)[None]}
        logits = self._pass(tokens, new, options)
        self._place, self._depth = torch.cat([self._place, place]), torch.cat([self._depth, depth])
        self._above = torch.cat([torch.nn.functional.pad(self._above, (0, new)), above])
        return logits

    def forget(self) -> None:
        """Forget all drafted nodes."""
        nothing = torch.zeros(0, dtype=torch.int64, device=self.model.device)
        if len(self._place):
            self._cache.crop(-len(self._place))
        self._place, self._depth = nothing, nothing
        self._above = torch.zeros(0, 0, dtype=torch.bool, device=self.model.device)

    def _pass(self, ids: Tensor, keep: int, options: dict[str, Tensor]) -> Tensor:
        output, _ = forward(self.model, ids[None], keep, past_key_values=self._cache, use_cache=True, **options)
        self._cache = output.past_key_values
        logits: Tensor = output.logits[0, -keep:, : self.vocabulary]
        return logits


class _RereadText(Extending):
    """A draft model without a usable cache: every node costs a pass over its text. All nodes of a pass are equally deep
    below one place.
    """

    def __init__(self, model: Model, vocabulary: int) -> None:
        self.model, self.vocabulary = model, vocabulary
        self._text = torch.zeros(0, dtype=torch.int64, device=model.device)
        self._nodes: list[Tensor] = []

    def read(self, ids: Tensor) -> None:
        """Take the next tokens ``[m]``."""
        self._text = torch.cat([self._text, ids])

    def first(self, places: Tensor) -> Tensor:
        """Logits after the text up to each place."""
        return torch.cat([self._after(self._text[None, : int(place) + 1]) for place in places])

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits after new nodes."""
        before = [self._nodes[at] if at >= 0 else self._text[:-at] for at in parents.tolist()]
        paths = [torch.cat([path, token[None]]) for path, token in zip(before, tokens, strict=True)]
        self._nodes += paths
        return self._after(torch.stack(paths))

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._nodes = []

    def _after(self, ids: Tensor) -> Tensor:
        output, _ = forward(self.model, ids, 1, use_cache=False)
        logits: Tensor = output.logits[:, -1, : self.vocabulary]
        return logits


class _Marginals(Extending):
    """A parallel head as one that extends: its pmf is the same below every node of a depth."""

    def __init__(self, reading: ParallelReading, depth: int) -> None:
        self._reading, self._depth = reading, depth
        self.forget()

    def first(self, places: Tensor) -> Tensor:
        """Logits of the first draft; one pass gives those of all depths."""
        self._row = {int(place): row for row, place in enumerate(places)}
        self._block = self._reading.block(places, self._depth)
        return self._block[:, 0]

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits one depth below the parents: no pass."""
        at = [self._nodes[p] if p >= 0 else (self._row[-1 - p], 0) for p in parents.tolist()]
        below = [(row, depth + 1) for row, depth in at]
        self._nodes += below
        rows, depths = torch.tensor(below, device=parents.device).unbind(dim=1)
        return self._block[rows, depths]

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._nodes: list[tuple[int, int]] = []


Placed = Iterator[tuple[Extending, Tensor, int]]
"""A reading, places ``[s]`` in it, and the number of output tokens before the first of their starts."""


def grown_columns(
    pair: ModelPair, prompt_ids: Tensor, output_ids: Tensor, shape: Grown, *, chunk: int = 256, name: str = ""
) -> dict[str, NDArray[Any]]:
    """``grown_match`` ``[n]``: how deep the output lies in the tree that the draft grows at each of its tokens.

    Exact, up to confidences that rounding decides. A tree depends on the text before it alone, so its depth on the text
    is the number of accepted drafts of a call that starts there, wherever the target's own draw decides (§10). Any
    draft grows trees: a draft model, an autoregressive head (:class:`AutoregressiveReading`), a parallel one by its
    marginals.

    A draft model reads the text once and ``top * (depth - 1)`` nodes more for each token, at most `chunk` (or `top`) of
    them in a pass: memory is about chunk * V logits and a mask of chunk * (text + chunk * depth). A model without a
    usable cache reads its text again for every node.
    """
    if shape.depth > MOST_DEPTH:
        raise SettingError(
            f"trees of depth {shape.depth} are asked for", limit=f"at most {MOST_DEPTH}", remedy="use a smaller depth"
        )
    check_window(name, len(prompt_ids), len(output_ids), pair.window, beyond=shape.depth)
    ids = torch.cat([prompt_ids, output_ids]).to(pair.draft.device)
    parts = []
    with torch.inference_mode():
        for reading, places, start in _placed(pair, ids, len(prompt_ids), shape, chunk, name):
            at = len(prompt_ids) + start + torch.arange(len(places), device=ids.device)
            try:
                following = torch.nn.functional.pad(ids, (0, shape.depth), value=-1)  # -1 past the end
                following = following[at[:, None] + torch.arange(shape.depth, device=ids.device)]
                parts.append(_matches(reading, places, following, shape, pair.vocabulary))
            except LogitsError as error:
                what = f"text {name!r}, trees from token {start + 1} on: {error.what}"
                raise TextError(what, limit=error.limit, remedy=error.remedy) from error
    return {"grown_match": torch.cat(parts).cpu().numpy().astype(np.int16)}


def _matches(reading: Extending, places: Tensor, following: Tensor, shape: Grown, vocabulary: int) -> Tensor:
    """The depth ``[s]`` to which tokens `following` ``[s, depth]`` lie in the trees at `places` ``[s]``; -1 is none.

    Only ids below `vocabulary` are drafted.
    """
    logits, rows = reading.first(places), len(places)
    above = torch.ones(rows, 1, dtype=widest(logits), device=logits.device)
    on_text = torch.ones_like(above, dtype=torch.bool)
    nodes, read = (-1 - places)[:, None], 0
    confidences, hits = [], []
    for level in range(shape.depth):
        masses, tokens = _most_probable(logits[:, :vocabulary], shape.top)
        top = masses.shape[1]
        confidences.append((above[..., None] * masses.view(rows, -1, top)).flatten(1))
        tokens = tokens.view(rows, -1, top)
        hits.append((on_text[..., None] & (tokens == following[:, level, None, None])).flatten(1))
        if level + 1 == shape.depth:
            break
        chosen = _largest(confidences[-1], shape.top).sort(dim=1).values
        parents = nodes.gather(1, chosen // top)
        logits = reading.extend(parents.flatten(), tokens.flatten(1).gather(1, chosen).flatten())
        nodes = read + torch.arange(chosen.numel(), device=chosen.device).view(chosen.shape)
        read += chosen.numel()
        above, on_text = confidences[-1].gather(1, chosen), hits[-1].gather(1, chosen)
    reading.forget()
    return _depth_kept(confidences, hits, shape.nodes)


def _most_probable(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Probabilities and ids ``[s, count]`` of the most probable tokens in descending order; ties: lowest id first."""
    total = torch.logsumexp(logits.to(widest(logits)), dim=-1, keepdim=True)
    finite = torch.isfinite(total[:, 0])
    if not bool(finite.all()):
        row = int((~finite).int().argmax())
        raise LogitsError(
            f"row {row} of the draft's logits has no finite sum",
            limit="logits are finite, or -inf where a token cannot be drafted",
            remedy="use --dtype float32, or check the weights",
            row=row,
        )
    count = min(count, logits.shape[-1])
    values, ids = logits.topk(count)
    tied = (logits >= values[:, -1:]).sum(dim=-1) > count
    if bool(tied.any()):  # topk takes any of equal entries
        ids[tied] = _largest(logits[tied], count)
    ids = ids.sort(dim=-1).values
    ids = ids.gather(1, _largest(logits.gather(1, ids), count))
    return torch.exp(logits.gather(1, ids).to(total.dtype) - total), ids


def _largest(values: Tensor, count: int) -> Tensor:
    """Places ``[s, count]`` of the largest entries of each row in descending order; ties: the first one first."""
    return values.sort(dim=-1, descending=True, stable=True).indices[:, :count]


def _depth_kept(confidences: list[Tensor], hits: list[Tensor], nodes: int) -> Tensor:
    """The depth ``[s]`` to which the text's nodes are among the most confident ones."""
    every = torch.cat(confidences, dim=1)
    kept = torch.zeros_like(every, dtype=torch.bool).scatter_(1, _largest(every, nodes), True) & (every > 0)
    sizes = [level.shape[1] for level in hits]
    inside = [(k & f).any(dim=1) for k, f in zip(kept.split(sizes, dim=1), hits, strict=True)]
    return torch.stack(inside, dim=1).long().cumprod(dim=1).sum(dim=1)


def _placed(pair: ModelPair, ids: Tensor, prompt: int, shape: Grown, chunk: int, name: str) -> Placed:
    """The draft in the middle of the text, for all starts of the output in turn."""
    starts = torch.arange(prompt, len(ids), device=ids.device)
    at_once = max(1, chunk // shape.top)
    if pair.draft.head is not None:
        check_prompt(pair.draft, name, prompt)
        reading = _head_reading(pair, ids, shape, chunk)
        for part in starts.split(at_once):
            yield reading, part - PAIR_BEFORE, int(part[0]) - prompt
        return
    cached = why_uncached(pair.draft) is None
    text: _CachedText | _RereadText = (_CachedText if cached else _RereadText)(pair.draft, pair.vocabulary)
    for piece in ids[: prompt - 1].split(chunk) if prompt > 1 else ():
        text.read(piece)
    for part in starts.split(at_once if cached else 1):
        text.read(ids[part - 1])
        yield text, part - 1, int(part[0]) - prompt


def _head_reading(pair: ModelPair, ids: Tensor, shape: Grown, chunk: int) -> Extending:
    """The head after the whole text, of which it drafts after any pair."""
    head = pair.draft.head
    assert head is not None
    reading, target = head.reading(), Reading(pair.target, pair.vocabulary)
    with HiddenStates(pair.target.network, head.layers) as hidden:
        for piece in torch.arange(len(ids) - PAIR_BEFORE).split(chunk):
            target.read(ids[piece][None])
            states = hidden.take()[0, -len(piece) :]
            reading.read(states.to(pair.draft.device, head.dtype), ids[piece + 1])
    if isinstance(reading, ParallelReading):
        return _Marginals(reading, shape.depth)
    assert isinstance(reading, AutoregressiveReading)
    return reading
