"""A reader for draft heads, which read the hidden states of the target's own passes (§10)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from spectheory.measure.decoders.readers import ModelReader, Requests, Rows, fewer
from spectheory.measure.decoders.tree import ROOT, DraftTree
from spectheory.measure.heads.base import PAIR_BEFORE, AutoregressiveReading, HeadReading, HiddenStates, ParallelReading
from spectheory.measure.machine import wait_for
from spectheory.measure.reading import enough_memory


@dataclass
class _TextState:
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
class HeadReader(ModelReader):
    """A :class:`~spectheory.measure.decoders.readers.Reader` of a head, and a listener to the target's reader.

    The first draft pass of a call reads the pairs that are new since the last call, up to pair n - 2 of a text of n
    tokens. A head that reads its drafts then has a pass per level of the tree. A parallel head answers for all
    depths from one pass of `depth` drafts: nodes of one depth have the same pmf. Texts of a batch are read one after
    the other.
    """

    depth: int = field(kw_only=True)
    states: HiddenStates = field(kw_only=True)

    def __post_init__(self) -> None:
        assert self.model.head is not None
        self._held = {row: _TextState(self.model.head.reading(), self.model.device) for row in range(len(self.texts))}

    def taken(self) -> Tensor:
        """Hidden states ``[batch, m, width]`` of the target's last pass."""
        return self.states.take()

    def receive(self, row: int, first: int, states: Tensor, nodes: Sequence[int]) -> None:
        """Take the target's hidden states ``[m, width]``: after a text's tokens from place `first` on, then after nodes
        of its tree.
        """
        held = self._held[row]
        of_text = states[: len(states) - len(nodes)]
        held.waiting.append(of_text[held.received - first :])
        held.received = max(held.received, first + len(of_text))
        held.nodes |= zip(nodes, states[len(of_text) :], strict=True)

    def prefill(self, chunk: int) -> None:
        """Read the pairs before those after which the first call drafts, `chunk` at a time."""
        with self._timed():
            for row, held in self._held.items():
                while held.reading.pairs < len(self.texts[row]) - PAIR_BEFORE:
                    self._read(row, min(chunk, len(self.texts[row]) - PAIR_BEFORE - held.reading.pairs))

    def read(self, requests: Requests) -> Mapping[int, Rows]:
        """The pmfs asked for; see :class:`~spectheory.measure.decoders.readers.Reader`."""
        with self._timed():
            logits = {row: self._after(row, tree, nodes) for row, (tree, nodes) in requests.items()}
        return {row: self.pmfs(of_row) for row, of_row in logits.items()}

    def _after(self, row: int, tree: DraftTree, nodes: Sequence[int]) -> Tensor:
        """Logits ``[nodes, V]`` after the nodes; the first request of a call is for the root alone."""
        held, last = self._held[row], len(self.texts[row]) - PAIR_BEFORE
        reading = held.reading
        if reading.pairs <= last:
            self._read(row, last + 1 - reading.pairs)
        if isinstance(reading, AutoregressiveReading):
            return _level_by_level(reading, held, last, tree, nodes)[:, : self.vocabulary]
        assert isinstance(reading, ParallelReading)
        if held.block is None:
            held.block = reading.block(held.tensor([last]), self.depth)[0, :, : self.vocabulary]
        return held.block[[0 if node == ROOT else tree.depths[node] for node in nodes]]

    def _read(self, row: int, count: int) -> None:
        """Read the next pairs of a text."""
        held, text = self._held[row], self.texts[row]
        states = torch.cat(held.waiting)
        held.waiting = [states[count:]]
        first = held.reading.pairs + 1
        following = held.tensor(text[first : first + count])
        held.reading.read(states[:count].to(held.device, self.model.network.dtype), following)

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: hidden states after accepted nodes are those of the text."""
        for row, held in self._held.items():
            states = [held.nodes[node][None] for node in accepted.get(row, [])]
            held.waiting += states
            held.received += len(states)
            held.nodes, held.drafted, held.block = {}, {}, None
            if isinstance(held.reading, AutoregressiveReading):
                held.reading.forget()

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""
        for row in ended:
            del self._held[row]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Count the seconds within; running out of memory is an error with a remedy."""
        texts = len(self._held)
        with enough_memory(repr(self.model.name), f"{texts} texts", fewer(texts, "a smaller chunk or fewer drafts")):
            wait_for(self.model.device)
            started = time.perf_counter()
            with torch.inference_mode():
                yield
            wait_for(self.model.device)
            self.seconds += time.perf_counter() - started


def _level_by_level(
    reading: AutoregressiveReading, held: _TextState, last: int, tree: DraftTree, nodes: Sequence[int]
) -> Tensor:
    """Logits after nodes whose parents were read before; the root is pair `last`, and is requested without others."""
    if ROOT in nodes:
        return reading.first(held.tensor([last]))
    parents = [-1 - last if tree.parents[node] == ROOT else held.drafted[tree.parents[node]] for node in nodes]
    held.drafted |= zip(nodes, range(len(held.drafted), len(held.drafted) + len(nodes)), strict=True)
    return reading.extend(held.tensor(parents), held.tensor([tree.tokens[node] for node in nodes]))
