"""Readers of the texts of a batch and of trees drafted after them: a model with its cache or without, or a head."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError
from spectheory.measure.columns.pmf import log_pmf
from spectheory.measure.decoders.tree import ROOT, DraftTree, Floats
from spectheory.measure.heads.base import PAIR_BEFORE, AutoregressiveReading, HeadReading, HiddenStates, ParallelReading
from spectheory.measure.machine import wait_for, widest
from spectheory.measure.pair import Model
from spectheory.measure.reading import cache_of_causal, enough_memory, takes

_AT_ONCE = 1 << 16
"""Up to this many entries it is faster to compute all rows together than one by one."""


class PmfRows:
    """The pmfs ``[V]`` of logits ``[rows, V]``, on the CPU; a LogitsError names the model as `who`."""

    def __init__(self, logits: Tensor, sampling: Sampling, who: str = "a model") -> None:
        self._logits, self._sampling, self._who = logits, sampling, who
        self._rows: dict[int, Floats] = {}
        if logits.numel() <= _AT_ONCE:
            self._rows = dict(enumerate(self._pmfs(logits)))

    def __len__(self) -> int:
        return len(self._logits)

    def __getitem__(self, row: int) -> Floats:
        """The pmf of a row."""
        if row not in self._rows:
            self._rows[row] = self._pmfs(self._logits[row : row + 1])[0]
        return self._rows[row]

    def _pmfs(self, logits: Tensor) -> Floats:
        try:
            return _pmfs_of(logits, self._sampling)
        except LogitsError as error:
            what = f"{self._who}: {error.what}"
            raise LogitsError(what, limit=error.limit, remedy=error.remedy, row=error.row) from error


def _pmfs_of(logits: Tensor, sampling: Sampling) -> Floats:
    """Pmfs ``[rows, V]`` of logits, in float64 where the device has it."""
    logits = logits.to(widest(logits))
    if sampling.truncates:
        return log_pmf(logits, sampling).cpu().double().exp_().numpy()
    pmf = torch.softmax(logits if sampling.temperature == 1 else logits / sampling.temperature, dim=-1)
    rows = pmf.cpu().double().numpy()
    if not bool((rows[:, 0] == rows[:, 0]).all()):  # one NaN or +inf makes the whole row NaN
        return sampling.log_pmf(logits).exp().cpu().double().numpy()
    return rows


Requests: TypeAlias = Mapping[int, tuple[DraftTree, list[int]]]
"""By text: the tree drafted after it, and the nodes after which a pmf is needed, parents first, each node once."""

_MASKED = (None, "eager", "sdpa", "flex_attention")
"""Attention that takes a custom mask; flash attention takes only the causal one."""


@dataclass(eq=False)
class Reader(ABC):
    """A model in the middle of the texts of a batch, lists that grow outside.

    `sampling` says how logits become pmfs, `listener` takes the hidden states of its passes, `seconds` is the time in
    passes since set to 0.
    """

    model: Model
    vocabulary: int
    sampling: Sampling
    texts: Sequence[list[int]]
    listener: HeadReader | None = None
    seconds: float = field(default=0.0, init=False)

    @abstractmethod
    def prefill(self, chunk: int) -> None:
        """Read all texts except their last tokens, `chunk` tokens at a time."""

    @abstractmethod
    def read(self, requests: Requests) -> Mapping[int, PmfRows]:
        """The pmfs after the requested nodes, by text and in the order of the nodes: one forward pass."""

    @abstractmethod
    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: keep the accepted nodes of each text, from the root down, and discard the trees."""

    @abstractmethod
    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""

    def pmfs(self, logits: Tensor) -> PmfRows:
        """Pmfs of logits ``[rows, V]``; of a draft with another tokenizer, over the ids of its target."""
        logits = self.model.common.over_target(logits) if self.model.common else logits
        return PmfRows(logits, self.sampling, self.model.name)


def _deliver(listener: HeadReader | None, pieces: Iterable[tuple[int, int, slice, list[int]]]) -> float:
    """Give a listener the hidden states of a pass; return the seconds that this took.

    For each row of the batch: the text, the place of its first token read, which of the states are its own, and nodes.
    """
    if listener is None:
        return 0.0
    started = time.perf_counter()
    states = listener.taken()
    for i, (row, first, span, nodes) in enumerate(pieces):
        listener.receive(row, first, states[i, span], nodes)
    return time.perf_counter() - started


def forward(model: Model, ids: Tensor, keep: int, **options: Any) -> tuple[Any, float]:
    """One pass on ``[batch, m]`` tokens, with at least the last `keep` rows of logits; and its seconds.

    Earlier work of the device is waited for first, and not counted.
    """
    kept = {"logits_to_keep": keep} if takes(model, "logits_to_keep") else {}
    batch, tokens = ids.shape
    smaller = _fewer(batch, f"chunk={max(tokens // 2, 1)} or fewer drafts")
    with enough_memory(repr(model.name), f"{batch} texts, {tokens} tokens each at once", smaller):
        wait_for(model.device)
        started = time.perf_counter()
        with torch.inference_mode():
            output = model.network(input_ids=ids.to(model.device), **kept, **options)
        wait_for(model.device)
    return output, time.perf_counter() - started


def _fewer(batch: int, smaller: str) -> str:
    """What takes less memory: half the batch, or `smaller` for a single text."""
    return f"batch={batch // 2}" if batch > 1 else smaller


def why_uncached(model: Model) -> str | None:
    """Why this package cannot use a model's cache, or None if it can; one pass on two short texts."""
    layers = getattr(cache_of_causal(model), "layers", None)
    if not layers:
        return "has no cache"
    if not all(hasattr(layer, "keys") and not getattr(layer, "is_sliding", False) for layer in layers):
        return "has a cache that cannot be cut back to any place"
    if not (takes(model, "position_ids") and takes(model, "attention_mask")):
        return "takes no positions and masks"
    attention = getattr(getattr(model.network, "config", None), "_attn_implementation", None)
    if attention not in _MASKED:
        return f"has attention without masks for trees ({attention})"
    return None


class RereadingReader(Reader):
    """A reader without cache and masks, for any causal model."""

    def prefill(self, chunk: int) -> None:
        """There is no cache: one pass for a listener, else nothing."""
        before = [text[:-1] for text in self.texts]
        if self.listener is not None:
            self._logits(before, max(map(len, before)) - 1)
            pieces = ((row, 0, slice(len(text)), list[int]()) for row, text in enumerate(before))
            self.seconds += _deliver(self.listener, pieces)

    def read(self, requests: Requests) -> Mapping[int, PmfRows]:
        """The pmfs asked for; see :class:`Reader`."""
        paths: list[list[int]] = []
        pieces: list[tuple[int, int, slice, list[int]]] = []
        places: dict[int, list[tuple[int, int]]] = {}
        for row, (tree, nodes) in requests.items():
            text, at = self.texts[row], {}
            inner = {tree.parents[node] for node in nodes if node != ROOT}
            for leaf in (node for node in nodes if node not in inner):
                path = tree.path(leaf)
                for depth, node in enumerate([ROOT, *path]):
                    at[node] = len(paths), len(text) - 1 + depth
                pieces.append((row, 0, slice(len(text) + len(path)), path))
                paths.append(text + [tree.tokens[node] for node in path])
            places[row] = [at[node] for node in nodes]
        logits = self._logits(paths, min(position for some in places.values() for _, position in some))
        self.seconds += _deliver(self.listener, pieces)
        return {row: self.pmfs(torch.stack([logits[path][at] for path, at in some])) for row, some in places.items()}

    def _logits(self, paths: Sequence[Sequence[int]], first: int) -> list[dict[int, torch.Tensor]]:
        """Logits of each path by position, from `first` on; padding comes last, so a causal model ignores it."""
        longest = max(map(len, paths))
        ids = torch.tensor([[*path, *[0] * (longest - len(path))] for path in paths])
        output, seconds = forward(self.model, ids, longest - first, use_cache=False)
        self.seconds += seconds
        logits = output.logits[:, first - longest :, : self.vocabulary]
        return [dict(enumerate(of_path, start=first)) for of_path in logits]

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """Nothing is kept."""

    def drop(self, ended: Sequence[int]) -> None:
        """Nothing is kept."""


Masks = NDArray[np.bool_]
_WASTE = 1.25
_FEW = 32
"""A cache may have this factor of the longest text's slots, plus this many, before its gaps are closed."""


def _move_to(cache: Any, tails: Sequence[Sequence[int]], settled: int, slots: int) -> None:
    """Move the slots ``tails[b]`` of text b to the places from `settled` on, and crop the cache behind them."""
    longest = max(map(len, tails))
    with torch.inference_mode():
        if any(list(tail) != list(range(settled, settled + len(tail))) for tail in tails):
            slots_of = torch.tensor([[*tail, *[settled] * (longest - len(tail))] for tail in tails])
            for layer in cache.layers:
                chosen = slots_of.to(layer.keys.device)
                for kept in (layer.keys, layer.values):
                    kept[:, :, settled : settled + longest] = _gathered(kept, chosen)
        if slots > settled + longest:
            cache.crop(settled + longest - slots)


def _gathered(kept: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The chosen slots of each text."""
    if len(chosen) == 1:  # twice as fast
        return kept.index_select(2, chosen[0])
    return torch.take_along_dim(kept, chosen[:, None, :, None], dim=2)


def _compact(cache: Any, used: Masks) -> Masks:
    """Close the gaps of a cache if too few slots are marked as used ``[batch, slots]``; return the new marks."""
    counts = used.sum(axis=1)
    longest = int(counts.max())
    # A single text without gaps needs no mask.
    if used.shape[1] <= (longest if len(used) == 1 else _WASTE * longest + _FEW):
        return used
    # A stable sort puts used slots first, in their order.
    order = torch.from_numpy(np.argsort(~used, axis=1, kind="stable")[:, :longest])
    with torch.inference_mode():
        for layer in cache.layers:
            at = order.to(layer.keys.device)
            layer.keys, layer.values = _gathered(layer.keys, at), _gathered(layer.values, at)
    return np.arange(longest) < counts[:, None]


@dataclass
class _CacheText:
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
class KeptReader(Reader):
    """A reader with a cache (:func:`why_uncached`): one pass for texts of any progress.

    Texts with fewer new tokens are padded in front. A mask over slots says what a token sees (its text, and its
    ancestors in the tree), and positions are explicit, so the order of the slots does not matter. A chain needs no
    mask.
    """

    def __post_init__(self) -> None:
        self.cache: Any = None
        self._text_states = [_CacheText(row) for row in range(len(self.texts))]
        self._of_text: Masks = np.zeros((len(self.texts), 0), dtype=bool)  # slots with a token of the text
        self._settled = 0  # slots before this call

    def prefill(self, chunk: int) -> None:
        """Read all texts except their last tokens, `chunk` tokens at a time."""
        while True:
            pieces = [
                self.texts[state.row][state.tokens : len(self.texts[state.row]) - 1] for state in self._text_states
            ]
            if not any(pieces):
                break
            self._pass([_New(piece[:chunk], DraftTree(), []) for piece in pieces], keep=1)
            self.settle({})

    def read(self, requests: Requests) -> Mapping[int, PmfRows]:
        """The pmfs asked for; see :class:`Reader`."""
        new = []
        for state in self._text_states:
            tree, nodes = requests.get(state.row, (DraftTree(), []))
            pending = self.texts[state.row][state.tokens :] if nodes else []
            new.append(_New(pending, tree, [node for node in nodes if node != ROOT]))
        wanted = [len(requests[state.row][1]) if state.row in requests else 0 for state in self._text_states]
        logits = self._pass(new, keep=max(wanted))
        return {
            state.row: self.pmfs(logits[i, -count:])
            for i, (state, count) in enumerate(zip(self._text_states, wanted, strict=True))
            if count
        }

    def _pass(self, new: Sequence[_New], keep: int) -> torch.Tensor:
        """One forward pass; return the logits ``[batch, keep, V]``, where ``-n`` is the n-th last new token."""
        slots, width = self._of_text.shape[1], max(map(len, new))
        ids = torch.tensor([[0] * (width - len(piece)) + piece.ids for piece in new])
        first = len(self._text_states[0].nodes)
        # A single text without gaps, then a chain: every token sees all slots before it.
        plain = len(new) == 1 and slots <= self._text_states[0].tokens + first and new[0].tree.is_chain
        plain = plain and new[0].nodes == list(range(first, first + len(new[0].nodes)))
        options = {} if plain else self._seen(new, width)
        output, seconds = forward(self.model, ids, keep, past_key_values=self.cache, use_cache=True, **options)
        self.seconds += seconds
        self.cache = output.past_key_values
        self.seconds += _deliver(
            self.listener,
            (
                (state.row, state.tokens, slice(width - len(piece), width), piece.nodes)
                for state, piece in zip(self._text_states, new, strict=True)
            ),
        )
        added = np.zeros((len(new), width), dtype=bool)
        for state, piece, marks in zip(self._text_states, new, added, strict=True):
            start = width - len(piece)
            marks[start : start + len(piece.pending)] = True
            state.tokens += len(piece.pending)
            state.nodes |= zip(piece.nodes, range(slots + width - len(piece.nodes), slots + width), strict=True)
        self._of_text = np.concatenate([self._of_text, added], axis=1)
        return output.logits[:, -keep:, : self.vocabulary]

    def _seen(self, new: Sequence[_New], width: int) -> dict[str, torch.Tensor]:
        """Positions and mask of a pass; padding sees itself, since a fully masked row becomes NaN in float16 and
        spreads.
        """
        slots = self._of_text.shape[1]
        seen = np.zeros((len(new), width, slots + width), dtype=bool)
        positions = np.zeros((len(new), width), dtype=np.int64)
        for b, (state, piece) in enumerate(zip(self._text_states, new, strict=True)):
            start = width - len(piece)
            padding = np.arange(start)
            seen[b, padding, slots + padding] = True
            self._see(seen[b, start:], piece, state, self._of_text[b], slots + start)
            read = state.tokens + len(piece.pending)
            depths = [piece.tree.depths[node] for node in piece.nodes]
            positions[b, start:] = [*range(state.tokens, read), *(read - 1 + depth for depth in depths)]
        device, dtype = self.model.device, self.model.network.dtype
        mask = np.where(seen, np.float32(0), np.float32(torch.finfo(dtype).min))
        mask_there = torch.from_numpy(mask[:, None]).to(device, dtype)
        return {"attention_mask": mask_there, "position_ids": torch.from_numpy(positions).to(device)}

    @staticmethod
    def _see(seen: Masks, piece: _New, state: _CacheText, of_text: Masks, first: int) -> None:
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
                seen[i, [state.nodes[above] for above in piece.tree.path(parent)]] = True
            seen[i, first + i] = True

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: keep the slots of the text and of the accepted nodes that were read."""
        if self.cache is None:
            return
        tails = []
        for state, marks in zip(self._text_states, self._of_text, strict=True):
            nodes = [state.nodes[node] for node in accepted.get(state.row, []) if node in state.nodes]
            state.tokens += len(nodes)
            state.nodes = {}
            tails.append([*(marks[self._settled :].nonzero()[0] + self._settled).tolist(), *nodes])
        _move_to(self.cache, tails, self._settled, self._of_text.shape[1])
        kept = np.arange(max(map(len, tails))) < np.array([[len(tail)] for tail in tails])
        self._of_text = _compact(self.cache, np.concatenate([self._of_text[:, : self._settled], kept], axis=1))
        self._settled = self._of_text.shape[1]

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""
        going_on = [i for i, state in enumerate(self._text_states) if state.row not in ended]
        if self.cache is not None and going_on and len(going_on) < len(self._text_states):
            with torch.inference_mode():
                self.cache.batch_select_indices(torch.tensor(going_on))
        self._text_states = [self._text_states[i] for i in going_on]
        self._of_text = self._of_text[going_on]


# Draft heads, which read the hidden states of the target's own passes (§10)


@dataclass
class _HeadText:
    """A text: its reading, the target's hidden states that were not read yet, and what is known of its tree.

    `received` counts the tokens of the text with known hidden states. `nodes` are the target's hidden states after
    nodes of the tree, `drafted` the numbers of nodes in the reading, `block` the logits ``[depth, V]`` of a parallel
    head.
    """

    reading: HeadReading
    device: torch.device
    received: int = 0
    waiting: list[Tensor] = field(default_factory=list)
    nodes: dict[int, Tensor] = field(default_factory=dict)
    drafted: dict[int, int] = field(default_factory=dict)
    block: Tensor | None = None

    def tensor(self, values: list[int]) -> Tensor:
        """Numbers on the head's device."""
        return torch.tensor(values, device=self.device)


@dataclass(eq=False)
class HeadReader(Reader):
    """A reader of a head, and a listener to the target's reader.

    The first draft pass of a call reads the pairs that are new since the last call, up to pair n - 2 of a text of n
    tokens. A head that reads its drafts then has a pass per level of the tree. A parallel head answers for all
    depths from one pass of `depth` drafts: nodes of one depth have the same pmf. Texts of a batch are read one after
    the other.
    """

    depth: int = field(kw_only=True)
    states: HiddenStates = field(kw_only=True)

    def __post_init__(self) -> None:
        assert self.model.head is not None
        self._text_states = {
            row: _HeadText(self.model.head.reading(), self.model.device) for row in range(len(self.texts))
        }

    def taken(self) -> Tensor:
        """Hidden states ``[batch, m, width]`` of the target's last pass."""
        return self.states.take()

    def receive(self, row: int, first: int, states: Tensor, nodes: Sequence[int]) -> None:
        """Take the target's hidden states ``[m, width]``: after a text's tokens from place `first` on, then after nodes
        of its tree.
        """
        state = self._text_states[row]
        of_text = states[: len(states) - len(nodes)]
        state.waiting.append(of_text[state.received - first :])
        state.received = max(state.received, first + len(of_text))
        state.nodes |= zip(nodes, states[len(of_text) :], strict=True)

    def prefill(self, chunk: int) -> None:
        """Read the pairs before those after which the first call drafts, `chunk` at a time."""
        with self._timed():
            for row, state in self._text_states.items():
                while state.reading.pairs < len(self.texts[row]) - PAIR_BEFORE:
                    self._read(row, min(chunk, len(self.texts[row]) - PAIR_BEFORE - state.reading.pairs))

    def read(self, requests: Requests) -> Mapping[int, PmfRows]:
        """The pmfs asked for; see :class:`Reader`."""
        with self._timed():
            logits = {row: self._after(row, tree, nodes) for row, (tree, nodes) in requests.items()}
        return {row: self.pmfs(of_row) for row, of_row in logits.items()}

    def _after(self, row: int, tree: DraftTree, nodes: Sequence[int]) -> Tensor:
        """Logits ``[nodes, V]`` after the nodes; the first request of a call is for the root alone."""
        state, last = self._text_states[row], len(self.texts[row]) - PAIR_BEFORE
        reading = state.reading
        if reading.pairs <= last:
            self._read(row, last + 1 - reading.pairs)
        if isinstance(reading, AutoregressiveReading):
            logits = self._below(state, last, tree, nodes, reading)
            if reading.confidence is not None:
                tree.confidence |= zip(nodes, reading.confidence.tolist(), strict=True)
            return logits[:, : self.vocabulary]
        assert isinstance(reading, ParallelReading)
        if state.block is None:
            state.block = reading.block(state.tensor([last]), self.depth)[0, :, : self.vocabulary]
        return state.block[[0 if node == ROOT else tree.depths[node] for node in nodes]]

    @staticmethod
    def _below(
        state: _HeadText, last: int, tree: DraftTree, nodes: Sequence[int], reading: AutoregressiveReading
    ) -> Tensor:
        """Logits after nodes that are read, or after the last pair."""
        if ROOT in nodes:  # it is requested without others
            return reading.first(state.tensor([last]))
        parents = [-1 - last if tree.parents[node] == ROOT else state.drafted[tree.parents[node]] for node in nodes]
        state.drafted |= zip(nodes, range(len(state.drafted), len(state.drafted) + len(nodes)), strict=True)
        return reading.extend(state.tensor(parents), state.tensor([tree.tokens[node] for node in nodes]))

    def _read(self, row: int, count: int) -> None:
        """Read the next pairs of a text."""
        state, text = self._text_states[row], self.texts[row]
        states = torch.cat(state.waiting)
        state.waiting = [states[count:]]
        first = state.reading.pairs + 1
        following = state.tensor(text[first : first + count])
        state.reading.read(states[:count].to(state.device, self.model.network.dtype), following)

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: hidden states after accepted nodes are those of the text."""
        for row, state in self._text_states.items():
            states = [state.nodes[node][None] for node in accepted.get(row, [])]
            state.waiting += states
            state.received += len(states)
            state.nodes, state.drafted, state.block = {}, {}, None
            if isinstance(state.reading, AutoregressiveReading):
                state.reading.forget()

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""
        for row in ended:
            del self._text_states[row]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the seconds within; running out of memory is an error with a remedy."""
        texts = len(self._text_states)
        with enough_memory(repr(self.model.name), f"{texts} texts", _fewer(texts, "a smaller chunk or fewer drafts")):
            wait_for(self.model.device)
            started = time.perf_counter()
            with torch.inference_mode():
                yield
            wait_for(self.model.device)
            self.seconds += time.perf_counter() - started
