"""What a decoder reports: one record per target call, one per text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Last = Literal["recovered", "bonus", "plain", "end"]
"""What followed the accepted drafts: a token after a rejection, a token after the last draft of a path, the token of a
call without drafts; or nothing, because the last accepted draft ended the text."""


@dataclass(frozen=True)
class Call:
    """One target call of one text.

    `drafted` is the number of nodes of the draft tree (the target processes one token more), `depth` the most drafts
    that could be accepted, `accepted` how many were, `last` what followed them. `draft_seconds` and `target_seconds`
    are forward passes, `seconds` is the whole call; in a batch all three are for its texts together.
    """

    drafted: int
    depth: int
    accepted: int
    last: Last
    draft_seconds: float
    target_seconds: float
    seconds: float

    @property
    def tokens(self) -> int:
        """Output tokens: accepted drafts, and the recovered or bonus token unless the text ended before it."""
        return self.accepted + (self.last != "end")


@dataclass(frozen=True)
class Decoded:
    """One decoded text: `output_ids` ``[n]`` after the prompt, its end-of-text token included, on the CPU.

    `calls` are in order; the first one carries the prompt's last token, so their number is C(0) of §7.
    `prefill_seconds` is the time of both models on the rest of the prompt; in a batch, on all its prompts together.
    `remarks` say what made decoding slower than necessary.
    """

    output_ids: Tensor
    calls: tuple[Call, ...]
    prefill_seconds: float
    remarks: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Wall-clock time, prompt included."""
        return self.prefill_seconds + sum(call.seconds for call in self.calls)

    @property
    def overhead(self) -> float:
        """Time of the calls outside the models' forward passes, relative to the time within."""
        within = sum(call.draft_seconds + call.target_seconds for call in self.calls)
        return sum(call.seconds for call in self.calls) / within - 1
