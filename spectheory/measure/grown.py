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
from spectheory.measure.by_start import check_prompt
from spectheory.measure.decoders.readers import why_uncached
from spectheory.measure.devices import widest
from spectheory.measure.extending import CachedText, Extending, Marginals, RereadText
from spectheory.measure.heads.base import PAIR_BEFORE, AutoregressiveReading, ParallelReading
from spectheory.measure.heads.hidden import HiddenStates
from spectheory.measure.pair import ModelPair
from spectheory.measure.reading import Reading
from spectheory.measure.tokens import check_window
from spectheory.trace.columns import MOST_DEPTH

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
                parts.append(matches(reading, places, _following(ids, at, shape.depth), shape))
            except LogitsError as error:
                what = f"text {name!r}, trees from token {start + 1} on: {error.what}"
                raise TextError(what, limit=error.limit, remedy=error.remedy) from error
    return {"grown_match": torch.cat(parts).cpu().numpy().astype(np.int16)}


def matches(reading: Extending, places: Tensor, following: Tensor, shape: Grown) -> Tensor:
    """The depth ``[s]`` to which tokens `following` ``[s, depth]`` lie in the trees at `places` ``[s]``; -1 is none."""
    logits, rows = reading.first(places), len(places)
    above = torch.ones(rows, 1, dtype=widest(logits), device=logits.device)
    on_text = torch.ones_like(above, dtype=torch.bool)
    nodes, read = (-1 - places)[:, None], 0
    confidences, found = [], []
    for level in range(shape.depth):
        masses, tokens = most_probable(logits, shape.top)
        top = masses.shape[1]
        confidences.append((above[..., None] * masses.view(rows, -1, top)).flatten(1))
        tokens = tokens.view(rows, -1, top)
        found.append((on_text[..., None] & (tokens == following[:, level, None, None])).flatten(1))
        if level + 1 == shape.depth:
            break
        chosen = _largest(confidences[-1], shape.top).sort(dim=1).values
        parents = nodes.gather(1, chosen // top)
        logits = reading.extend(parents.flatten(), tokens.flatten(1).gather(1, chosen).flatten())
        nodes = read + torch.arange(chosen.numel(), device=chosen.device).view(chosen.shape)
        read += chosen.numel()
        above, on_text = confidences[-1].gather(1, chosen), found[-1].gather(1, chosen)
    reading.forget()
    return _depth_kept(confidences, found, shape.nodes)


def most_probable(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
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


def _depth_kept(confidences: list[Tensor], found: list[Tensor], nodes: int) -> Tensor:
    """The depth ``[s]`` to which the text's nodes are among the most confident ones."""
    every = torch.cat(confidences, dim=1)
    kept = torch.zeros_like(every, dtype=torch.bool).scatter_(1, _largest(every, nodes), True) & (every > 0)
    sizes = [level.shape[1] for level in found]
    inside = [(k & f).any(dim=1) for k, f in zip(kept.split(sizes, dim=1), found, strict=True)]
    return torch.stack(inside, dim=1).long().cumprod(dim=1).sum(dim=1)


def _following(ids: Tensor, at: Tensor, depth: int) -> Tensor:
    """The tokens ``[s, depth]`` from each start on, -1 past the end."""
    padded = torch.nn.functional.pad(ids, (0, depth), value=-1)
    return padded[at[:, None] + torch.arange(depth, device=ids.device)]


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
    text: CachedText | RereadText = (CachedText if cached else RereadText)(pair.draft, pair.vocabulary)
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
        return Marginals(reading, shape.depth)
    assert isinstance(reading, AutoregressiveReading)
    return reading
