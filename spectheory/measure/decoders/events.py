"""What a decoder reports: one record per target call, one per text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

Last = Literal["recovered", "bonus", "plain", "end"]
"""What followed the accepted drafts: a token after a rejection, one after the last draft of a path, one of a call
without drafts; or nothing, as the last accepted draft ended the text."""


@dataclass(frozen=True)
class Call:
    """One target call of one text.

    Attributes
    ----------
    drafted : int
        Nodes of the draft tree; the target processes one token more.
    depth : int
        The most drafts that could be accepted.
    accepted : int
        Drafts that were.
    last : {"recovered", "bonus", "plain", "end"}
        What followed them.
    draft_seconds, target_seconds : float
        Forward passes of the draft, and of the target; in a batch those of all its texts together.
    seconds : float
        The whole call, drafting and verification included, likewise.
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
        """Output tokens: the accepted drafts, and the recovered or bonus token unless the text ended before it."""
        return self.accepted + (self.last != "end")


@dataclass(frozen=True)
class Decoded:
    """One decoded text.

    Attributes
    ----------
    output_ids : tensor ``[n]`` of int64
        The text after the prompt, its end-of-text token included, on the CPU.
    calls : tuple of Call
        One per target call, in order; the first one carries the prompt's last token, so they are C(0) of §7.
    prefill_seconds : float
        Reading the prompt but for its last token, both models; in a batch all its prompts together.
    remarks : tuple of str
        What made it slower than need be.
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
