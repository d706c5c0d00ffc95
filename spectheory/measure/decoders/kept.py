"""A reader whose key-value cache survives rejections: after a call it keeps the slots of the accepted path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from spectheory.measure.decoders.drafted import ROOT, DraftTree
from spectheory.measure.decoders.readers import ModelReader, Requests, Rows, deliver, forward
from spectheory.measure.decoders.slots import Masks, compacted, move_to


@dataclass
class _Held:
    """What the cache holds of one text: how many of its tokens, and the slots of its tree's nodes."""

    row: int
    tokens: int = 0
    nodes: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _New:
    """What one text adds to a pass: tokens of the text not read yet, then nodes of its tree."""

    pending: list[int]
    tree: DraftTree
    nodes: list[int]

    def __len__(self) -> int:
        return len(self.pending) + len(self.nodes)

    @property
    def ids(self) -> list[int]:
        return self.pending + [self.tree.tokens[node] for node in self.nodes]


@dataclass(eq=False)
class KeptReader(ModelReader):
    """A reader with a cache (:func:`~spectheory.measure.decoders.readers.why_uncached`): one pass for texts of any
    progress.

    Texts with fewer new tokens are padded in front. A mask over slots says what a token sees (its text, and its
    ancestors in the tree), and positions are explicit, so the order of the slots does not matter. A chain needs no
    mask.
    """

    def __post_init__(self) -> None:
        self.cache: Any = None
        self._held = [_Held(row) for row in range(len(self.texts))]
        self._of_text: Masks = np.zeros((len(self.texts), 0), dtype=bool)  # slots with a token of the text
        self._settled = 0  # slots before this call

    def prefill(self, chunk: int) -> None:
        """Read all texts except their last tokens, `chunk` tokens at a time."""
        while True:
            pieces = [self.texts[held.row][held.tokens : len(self.texts[held.row]) - 1] for held in self._held]
            if not any(pieces):
                break
            self._pass([_New(piece[:chunk], DraftTree(), []) for piece in pieces], keep=1)
            self.settle({})

    def read(self, requests: Requests) -> Mapping[int, Rows]:
        """The pmfs asked for; see :class:`~spectheory.measure.decoders.readers.Reader`."""
        new = []
        for held in self._held:
            tree, nodes = requests.get(held.row, (DraftTree(), []))
            pending = self.texts[held.row][held.tokens :] if nodes else []
            new.append(_New(pending, tree, [node for node in nodes if node != ROOT]))
        wanted = [len(requests[held.row][1]) if held.row in requests else 0 for held in self._held]
        logits = self._pass(new, keep=max(wanted))
        return {
            held.row: self.pmfs(logits[i, -count:])
            for i, (held, count) in enumerate(zip(self._held, wanted, strict=True))
            if count
        }

    def _pass(self, new: Sequence[_New], keep: int) -> torch.Tensor:
        """One forward pass; return the logits ``[batch, keep, V]``, where ``-n`` is the n-th last new token."""
        slots, width = self._of_text.shape[1], max(map(len, new))
        ids = torch.tensor([[0] * (width - len(piece)) + piece.ids for piece in new])
        options = {} if self._is_plain(new) else self._seen(new, width)
        output, seconds = forward(self.model, ids, keep, past_key_values=self.cache, use_cache=True, **options)
        self.seconds += seconds
        self.cache = output.past_key_values
        self.seconds += deliver(
            self.listener,
            (
                (held.row, held.tokens, slice(width - len(piece), width), piece.nodes)
                for held, piece in zip(self._held, new, strict=True)
            ),
        )
        added = np.zeros((len(new), width), dtype=bool)
        for held, piece, marks in zip(self._held, new, added, strict=True):
            start = width - len(piece)
            marks[start : start + len(piece.pending)] = True
            held.tokens += len(piece.pending)
            held.nodes |= zip(piece.nodes, range(slots + width - len(piece.nodes), slots + width), strict=True)
        self._of_text = np.concatenate([self._of_text, added], axis=1)
        return output.logits[:, -keep:, : self.vocabulary]

    def _is_plain(self, new: Sequence[_New]) -> bool:
        """Whether every token sees all slots before it."""
        first = len(self._held[0].nodes)
        if len(new) > 1 or self._of_text.shape[1] > self._held[0].tokens + first:
            return False
        return new[0].tree.is_chain and new[0].nodes == list(range(first, first + len(new[0].nodes)))

    def _seen(self, new: Sequence[_New], width: int) -> dict[str, torch.Tensor]:
        """Positions and mask of a pass; padding sees itself, since a fully masked row becomes NaN in float16 and
        spreads.
        """
        slots = self._of_text.shape[1]
        seen = np.zeros((len(new), width, slots + width), dtype=bool)
        positions = np.zeros((len(new), width), dtype=np.int64)
        for b, (held, piece) in enumerate(zip(self._held, new, strict=True)):
            start = width - len(piece)
            padding = np.arange(start)
            seen[b, padding, slots + padding] = True
            self._see(seen[b, start:], piece, held, self._of_text[b], slots + start)
            read = held.tokens + len(piece.pending)
            depths = [piece.tree.depths[node] for node in piece.nodes]
            positions[b, start:] = [*range(held.tokens, read), *(read - 1 + depth for depth in depths)]
        device, dtype = self.model.device, self.model.network.dtype
        mask = np.where(seen, np.float32(0), np.float32(torch.finfo(dtype).min))
        mask_there = torch.from_numpy(mask[:, None]).to(device, dtype)
        return {"attention_mask": mask_there, "position_ids": torch.from_numpy(positions).to(device)}

    @staticmethod
    def _see(seen: Masks, piece: _New, held: _Held, of_text: Masks, first: int) -> None:
        """Mark what the new tokens ``[n, slots]`` of one text see; the first of them is in slot `first`."""
        count, text = len(piece.pending), len(of_text)
        seen[:, :text] = of_text
        seen[:count, first : first + count] = np.tri(count, dtype=bool)
        seen[count:, first : first + count] = True
        place = {node: i for i, node in enumerate(piece.nodes, start=count)}
        for node, i in place.items():
            parent = piece.tree.parents[node]
            if parent in place:
                seen[i] = seen[place[parent]]
            elif parent != ROOT:
                seen[i, [held.nodes[above] for above in piece.tree.path(parent)]] = True
            seen[i, first + i] = True

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: keep the slots of the text and of the accepted nodes that were read."""
        if self.cache is None:
            return
        tails = []
        for held, marks in zip(self._held, self._of_text, strict=True):
            nodes = [held.nodes[node] for node in accepted.get(held.row, []) if node in held.nodes]
            held.tokens += len(nodes)
            held.nodes = {}
            tails.append([*(marks[self._settled :].nonzero()[0] + self._settled).tolist(), *nodes])
        move_to(self.cache, tails, self._settled, self._of_text.shape[1])
        kept = np.arange(max(map(len, tails))) < np.array([[len(tail)] for tail in tails])
        self._of_text = compacted(self.cache, np.concatenate([self._of_text[:, : self._settled], kept], axis=1))
        self._settled = self._of_text.shape[1]

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""
        going_on = [i for i, held in enumerate(self._held) if held.row not in ended]
        if self.cache is not None and going_on and len(going_on) < len(self._held):
            with torch.inference_mode():
                self.cache.batch_select_indices(torch.tensor(going_on))
        self._held = [self._held[i] for i in going_on]
        self._of_text = self._of_text[going_on]
