"""Drafts with another tokenizer: the tokens that both vocabularies have, and how the draft reads the target's text.

Token-level intersection (TLI, arXiv 2502.05202): the draft's logits are cut to the common tokens and renormalised, so
that they are a draft over the target's vocabulary, for every verification rule. The draft reads the text in its own
ids, which engines make in two ways (:data:`OUTSIDE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from spectheory.errors import ModelError, SettingError, TextError
from spectheory.measure.model_files import quiet

TEXT, UNKNOWN = OUTSIDE = ("text", "unknown")
"""How a draft reads the target's tokens that it lacks: written and read again, and with them the whole prompt, as
transformers does; or as the draft's unknown token, each, as vLLM does."""


@dataclass(frozen=True, eq=False)
class CommonTokens:
    """The tokens of a target and of a draft with another tokenizer; `to_draft` ``[V]`` are the draft's ids, or -1.

    `unknown` is the draft's id for what it cannot read, `window` its longest text in its own tokens.
    """

    target: Any
    draft: Any
    to_draft: Tensor
    outside: str
    unknown: int
    window: int | None = None
    _read: dict[int, list[int]] = field(default_factory=dict)

    @cached_property
    def count(self) -> int:
        """How many tokens are common."""
        return int((self.to_draft >= 0).sum())

    def share(self, texts: Sequence[Sequence[int]]) -> float:
        """The share of the tokens of some texts, in the target's ids, that are common."""
        return float((self.to_draft[torch.tensor([token for text in texts for token in text])] >= 0).double().mean())

    def of_prompt(self, ids: Sequence[int]) -> list[int]:
        """A prompt in the draft's ids, one at least."""
        if self.outside == UNKNOWN:
            return [i for token in ids for i in self.of_token(token)]
        return self._again(ids)

    def of_token(self, token: int) -> list[int]:
        """A token of the text after the prompt in the draft's ids, one at least."""
        if token not in self._read:
            common = int(self.to_draft[token])
            alone = [common] if common >= 0 else [self.unknown]
            self._read[token] = self._again([token]) if common < 0 and self.outside == TEXT else alone
        return self._read[token]

    def of_text(self, ids: Sequence[int], keep: int) -> tuple[Tensor, Tensor]:
        """A text in the draft's ids, and the places ``[keep]`` where its last `keep` tokens end; before is the prompt.

        The prompt ends with the first of these tokens.
        """
        read = self.of_prompt(ids[: len(ids) - keep + 1])
        ends = [len(read) - 1]
        for token in ids[len(ids) - keep + 1 :]:
            read += self.of_token(token)
            ends.append(len(read) - 1)
        return torch.tensor(self.fitting(read)), torch.tensor(ends)

    def fitting(self, read: list[int]) -> list[int]:
        """The ids that a draft reads, if they are no more than its window."""
        if self.window is not None and len(read) > self.window:
            raise TextError(
                f"a text has {len(read)} tokens of the draft's tokenizer",
                limit=f"the draft takes {self.window}",
                remedy="use shorter prompts, or fewer --tokens",
            )
        return read

    def over_target(self, logits: Tensor) -> Tensor:
        """The draft's logits ``[..., outputs]`` as ``[..., V]`` over the target's ids, -inf where it has no token."""
        chosen = self.to_draft.to(logits.device)
        return logits[..., chosen.clamp(min=0)].masked_fill_(chosen < 0, -torch.inf)

    def _again(self, ids: Sequence[int]) -> list[int]:
        """Tokens of the target written as text, without special ones, and read by the draft's tokenizer.

        Where the target's is no BPE, transformers writes no space before a comma or a full stop, nor in don't.
        """
        with quiet():  # of a BPE it warns that it keeps them
            text = self.target.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=True)
        return list(self.draft(text, add_special_tokens=False, verbose=False)["input_ids"]) or [self.unknown]


def common_tokens(target: Any, draft: Any, outside: str | None = None) -> CommonTokens:
    """The common tokens of two tokenizers: equal strings, where the sign of a space before a word counts as a space.

    Tokenizers with none in common are refused, and a draft that has no id for what it cannot read. `outside` is one of
    :data:`OUTSIDE`, by default the first.
    """
    if outside not in (None, *OUTSIDE):
        raise SettingError(
            f"--outside is {outside!r}", limit=f"there are {', '.join(OUTSIDE)}", remedy="use one of them"
        )
    mine, theirs = (_by_string(each) for each in (target, draft))
    size = 1 + max(target.get_vocab().values())
    to_draft = torch.full((size,), -1)
    for token in mine.keys() & theirs.keys():
        to_draft[mine[token]] = theirs[token]
    unknown = next((i for i in (draft.unk_token_id, draft.eos_token_id) if i is not None), None)
    if unknown is None or not bool((to_draft >= 0).any()):
        raise ModelError(
            "the tokenizers have no token in common" if unknown is not None else "the draft has no unknown token",
            limit="a draft with another tokenizer drafts the common tokens, and reads the others somehow",
            remedy="choose a draft of the target's family",
        )
    return CommonTokens(target, draft, to_draft, outside or TEXT, unknown)


def _by_string(tokenizer: Any) -> dict[str, int]:
    """The ids of a tokenizer by string, with a space where its tokens have a sign of one; of equal strings the lowest
    id.
    """
    first = tokenizer.convert_ids_to_tokens(tokenizer(" ", add_special_tokens=False)["input_ids"][:1])
    sign = first[0][0] if first else " "
    ids: dict[str, int] = {}
    for token, number in sorted(tokenizer.get_vocab().items(), key=lambda each: each[1]):
        ids.setdefault(" " + token[1:] if token.startswith(sign) else token, number)
    return ids
