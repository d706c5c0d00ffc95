"""What heads that draft mask tokens in one pass have in common: the mask's id, and a deepest draft."""

from __future__ import annotations

from reprlib import repr as brief

from spectheory.errors import ModelError, SettingError
from spectheory.measure.heads.base import Head
from spectheory.measure.heads.config import HeadConfig


def mask_token_of(config: HeadConfig) -> int:
    """The id whose embedding stands for a token not known yet."""
    mask = config.fields["mask_token_id"]
    if mask is None or not 0 <= mask < config.vocabulary:
        raise ModelError(
            f"the {config.kind} head has mask_token_id = {brief(mask)}",
            limit=f"it needs an id of the target's vocabulary, 0 to {config.vocabulary - 1}",
            remedy="save or download the head again",
        )
    return int(mask)


def check_depth(head: Head, depth: int) -> None:
    """Refuse more drafts than one pass of the head gives."""
    if head.deepest is not None and depth > head.deepest:
        raise SettingError(
            f"{depth} drafts in a call are asked for",
            limit=f"one pass of this {head.kind} head drafts at most {head.deepest}",
            remedy=f"use at most {head.deepest}",
        )
