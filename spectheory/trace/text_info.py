"""What a trace says of its texts: each one's name, prompt and tokens, and the names of its provenance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectheory.checks import shown
from spectheory.errors import TraceError

GIVEN_TEXT, SAMPLED_TEXT = "given", "sampled from the target"
"""Origins of the text of a trace; limits over target samples hold for the second alone."""
PROVISIONAL = "provisional"
"""Where the provenance of a trace of the first stages says of how many ``prompts`` it is, ``of`` how many."""
SOURCES = "sources"
"""Where the provenance keeps the folders or hub ids of the models, for settings to paste; answers leave them out."""
RECORDED, LEFT_OUT = "recorded", "requests_left_out"
"""Where the provenance of recorded lengths names their drafts, and counts requests of the log that were left out."""
READ, LAYERS, IMPOSSIBLE = "read", "target_layers", "impossible"
"""Where the provenance of an engine's output says that texts of temperature 0 were read at another temperature, how
many layers the target has, and which tokens the target cannot output under the settings."""

REPEATED, AHEAD, ALIKE = "repeated_texts", "draft_ahead", "draft_alike"
"""Where the provenance counts texts that equal an earlier one, says by how many nats per token the draft explains texts
better than the target, if that is more than chance in texts that the target sampled, and that both have the very same
log-probabilities, two below 0 that differ among them."""


@dataclass(frozen=True)
class TextInfo:
    """One text of a trace: its name, and its number of output tokens, the end-of-text token included.

    Texts that continue one `prompt` are dependent; empty: the text's own name. `ended` says that the text ended by
    itself (an end-of-text token), so that nothing follows it. `prompt_tokens` is the length of the prompt, if known.
    """

    id: str
    tokens: int
    prompt: str = ""
    category: str = ""
    ended: bool = False
    prompt_tokens: int | None = None

    def __post_init__(self) -> None:
        fine = {name: isinstance(getattr(self, name), str) for name in ("id", "prompt", "category")}
        fine["ended"] = isinstance(self.ended, bool | np.bool_)
        fine["tokens"] = type(self.tokens) is int and self.tokens >= 1
        known = self.prompt_tokens
        fine["prompt_tokens"] = known is None or (type(known) is int and known >= 0)
        if not all(fine.values()):
            name = min(fine, key=fine.__getitem__)
            raise TraceError(
                f"{name} of text {shown(self.id)} is {shown(getattr(self, name))}",
                limit="names are strings, tokens is an integer >= 1 (no empty text), ended is a truth value, "
                "prompt_tokens an integer >= 0 or unknown",
                remedy="measure the pair again",
            )
