"""A target and a draft, over one tokenizer or two, ready to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any

import torch

from spectheory.errors import ModelError
from spectheory.measure.common_tokens import CommonTokens
from spectheory.measure.heads.base import Head


@dataclass(frozen=True)
class Model:
    """A causal language model and where it comes from.

    `name` is the hub id or the folder's name without its path, `source` the same with the path, `revision` the commit
    of a hub model. `outputs` is the length of a row of logits, padding included; `window` the longest text in tokens,
    None if the model states none; `fingerprint` changes with configuration or weights. `network` is in evaluation mode.
    `common` are the tokens that a draft with another tokenizer has in common with its target.
    """

    name: str
    revision: str | None
    network: Any
    outputs: int
    window: int | None
    fingerprint: str
    source: str = ""
    common: CommonTokens | None = None

    @property
    def head(self) -> Head | None:
        """The network, if it is a draft head that reads the target's hidden states."""
        return self.network if isinstance(self.network, Head) else None

    @property
    def device(self) -> torch.device:
        """The device of its inputs."""
        return self.network.get_input_embeddings().weight.device

    @property
    def dtype(self) -> str:
        """Precision of the weights, e.g. ``float32``."""
        return str(self.network.dtype).removeprefix("torch.")

    def describe(self) -> dict[str, Any]:
        """Facts for the provenance of a trace, without paths of this machine."""
        facts: dict[str, Any] = {}
        if head := self.head:
            facts = {"kind": head.kind, "parallel": head.parallel, "layers": list(head.layers), "trained": head.trained}
            facts |= {"block": head.block_size} if head.block_size else {}
            facts |= {"deepest": head.deepest} if head.deepest else {}
        if self.common:
            facts = {"common": self.common.count, "outside": self.common.outside}
        return {
            "name": self.name,
            "revision": self.revision,
            "fingerprint": self.fingerprint,
            "architecture": type(self.network).__name__,
            "parameters": int(self.network.num_parameters()),
            "dtype": self.dtype,
            "device": str(self.device),
            "outputs": self.outputs,
            "window": self.window,
            **facts,
        }


@dataclass(frozen=True)
class ModelPair:
    """A target and a draft over the target's tokenizer.

    Token ids 0..vocabulary - 1 are those of the tokenizer; logits are cut to these, since models pad their outputs. A
    draft with another tokenizer drafts the tokens in common, under the target's ids (:class:`CommonTokens`).
    `remarks` are sentences for the user about how the pair was loaded.
    """

    target: Model
    draft: Model
    tokenizer: Any
    vocabulary: int
    remarks: tuple[str, ...] = ()

    @property
    def window(self) -> int | None:
        """Longest text both models take, in tokens."""
        windows = [m.window for m in (self.target, self.draft) if m.window is not None]
        return min(windows, default=None)

    @property
    def end_of_text(self) -> frozenset[int]:
        """Token ids that end a text: the tokenizer's, and those of the target's generation settings."""
        named = getattr(getattr(self.target.network, "generation_config", None), "eos_token_id", None)
        ids = [self.tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])]
        wrong = next((i for i in ids if i is not None and type(i) is not int), None)
        if wrong is not None:
            raise ModelError(
                f"{self.target.name!r}: eos_token_id of generation_config.json is {brief(wrong)}",
                limit="needs a token id, or a list of them",
                remedy="correct the file, or download the model again",
            )
        return frozenset(i for i in ids if i is not None and 0 <= i < self.vocabulary)

    def describe(self) -> dict[str, Any]:
        """Facts for the provenance of a trace."""
        return {
            "target": self.target.describe(),
            "draft": self.draft.describe(),
            "vocabulary": self.vocabulary,
            "tokenizer_size": len(self.tokenizer),
        }
