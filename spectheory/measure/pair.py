"""A target and a draft over one tokenizer, ready to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Model:
    """A causal language model and what is known about where it comes from.

    Attributes
    ----------
    name : str
        The hub id, or the folder's name without its path.
    revision : str, optional
        The commit of a hub model.
    network : torch module
        In evaluation mode; it runs in inference mode, without gradients.
    outputs : int
        Entries of a row of its logits; padding included.
    window : int, optional
        Longest text it takes, in tokens; None if it states none.
    fingerprint : str
        Changes when configuration or weights do.
    source : str
        The hub id, or the folder with its path.
    """

    name: str
    revision: str | None
    network: Any
    outputs: int
    window: int | None
    fingerprint: str
    source: str = ""

    @property
    def device(self) -> torch.device:
        """Where its inputs go."""
        return self.network.get_input_embeddings().weight.device

    @property
    def dtype(self) -> str:
        """Precision of the weights, e.g. ``float32``."""
        return str(self.network.dtype).removeprefix("torch.")

    def describe(self) -> dict[str, Any]:
        """Facts for the provenance of a trace; never a path of this machine."""
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
        }


@dataclass(frozen=True)
class ModelPair:
    """A target and a draft over one tokenizer.

    Attributes
    ----------
    target, draft : Model
        The two models.
    tokenizer : transformers tokenizer
        The target's; the draft's gives the same ids.
    vocabulary : int
        Token ids 0..vocabulary - 1 are those of the tokenizer; logits are cut to these, since models pad their outputs.
    remarks : tuple of str
        What its user should know of how it was loaded, a sentence each.
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
        """Token ids that end a text: the tokenizer's, and those the target's generation settings name."""
        named = getattr(getattr(self.target.network, "generation_config", None), "eos_token_id", None)
        ids = {self.tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])}
        return frozenset(i for i in ids if i is not None)

    def describe(self) -> dict[str, Any]:
        """Facts for the provenance of a trace."""
        return {
            "target": self.target.describe(),
            "draft": self.draft.describe(),
            "vocabulary": self.vocabulary,
            "tokenizer_size": len(self.tokenizer),
        }
