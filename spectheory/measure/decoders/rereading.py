"""A reader for models without a usable cache: it reads every text again, once for each path of its tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from spectheory.measure.decoders.drafted import ROOT
from spectheory.measure.decoders.readers import ModelReader, Requests, Rows, deliver, forward


class RereadingReader(ModelReader):
    """A :class:`~spectheory.measure.decoders.readers.Reader` without cache and masks, for any causal model."""

    def prefill(self, chunk: int) -> None:
        """There is no cache: one pass for a listener, else nothing."""
        before = [text[:-1] for text in self.texts]
        if self.listener is not None:
            self._logits(before, max(map(len, before)) - 1)
            told = ((row, 0, slice(len(text)), list[int]()) for row, text in enumerate(before))
            self.seconds += deliver(self.listener, told)

    def read(self, requests: Requests) -> Mapping[int, Rows]:
        """The pmfs asked for; see :class:`~spectheory.measure.decoders.readers.Reader`."""
        paths: list[list[int]] = []
        told: list[tuple[int, int, slice, list[int]]] = []
        places: dict[int, list[tuple[int, int]]] = {}
        for row, (tree, nodes) in requests.items():
            text, at = self.texts[row], {}
            inner = {tree.parents[node] for node in nodes if node != ROOT}
            for leaf in (node for node in nodes if node not in inner):
                path = tree.path(leaf)
                for depth, node in enumerate([ROOT, *path]):
                    at[node] = len(paths), len(text) - 1 + depth
                told.append((row, 0, slice(len(text) + len(path)), path))
                paths.append(text + [tree.tokens[node] for node in path])
            places[row] = [at[node] for node in nodes]
        logits = self._logits(paths, min(position for some in places.values() for _, position in some))
        self.seconds += deliver(self.listener, told)
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
