"""A reader of a draft with another tokenizer: it reads texts and trees in its own ids, and answers in the target's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import takewhile

from spectheory.measure.decoders.readers import PmfRows, Reader, Requests
from spectheory.measure.decoders.tree import DraftTree


@dataclass(eq=False)
class TranslatedReader(Reader):
    """A reader of the given `kind` behind the texts that the draft reads; common tokens of a tree are one id each.

    A rule whose draft is exhausted drafts other tokens too: in the tree they are read as unknown, in the text as the
    text is read.
    """

    kind: type[Reader] = field(kw_only=True)

    def __post_init__(self) -> None:
        assert self.model.common is not None
        self._common, self._known = self.model.common, [len(text) for text in self.texts]
        self._texts = [self._common.fitting(self._common.of_prompt(text)) for text in self.texts]
        self._others: dict[int, set[int]] = {}
        self._inner = self.kind(self.model, self.model.outputs, self.sampling, self._texts)

    def prefill(self, chunk: int) -> None:
        """Read all texts except their last tokens, `chunk` tokens at a time."""
        self._inner.prefill(chunk)
        self._take_time()

    def read(self, requests: Requests) -> Mapping[int, PmfRows]:
        """The pmfs asked for; see :class:`Reader`."""
        for row in requests:
            text, read = self.texts[row], self._texts[row]
            read += [i for token in text[self._known[row] :] for i in self._common.of_token(token)]
            self._known[row] = len(text)
            self._common.fitting(read)
        rows = self._inner.read({row: (self._own(row, tree), nodes) for row, (tree, nodes) in requests.items()})
        self._take_time()
        return rows

    def settle(self, accepted: Mapping[int, list[int]]) -> None:
        """End a call: keep the accepted nodes of each text, down to one that is read again as text."""
        kept = {}
        for row, path in accepted.items():
            others = self._others.pop(row, set())
            kept[row] = list(takewhile(lambda node, others=others: node not in others, path))  # type: ignore[misc]
        self._inner.settle(kept)

    def drop(self, ended: Sequence[int]) -> None:
        """Forget texts that ended."""
        self._inner.drop(ended)

    def _own(self, row: int, tree: DraftTree) -> DraftTree:
        own, ids = copy(tree), [int(self._common.to_draft[token]) for token in tree.tokens]
        self._others[row] = {node for node, number in enumerate(ids) if number < 0}
        own.tokens = [self._common.unknown if number < 0 else number for number in ids]
        return own

    def _take_time(self) -> None:
        """Count the seconds of the passes behind as its own."""
        self.seconds += self._inner.seconds
        self._inner.seconds = 0.0
