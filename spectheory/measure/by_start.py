"""A head's drafts at every start of a text, read teacher-forced beside the target (§10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.errors import SettingError, TextError
from spectheory.measure.heads.base import PAIR_BEFORE, Head
from spectheory.measure.heads.hidden import HiddenStates
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading, enough_memory
from spectheory.trace import MOST_DEPTH


@dataclass(frozen=True)
class Starts:
    """Calls that start at consecutive output tokens, `done` tokens after the first.

    `target` ``[rows, V]`` are the target's logits at these tokens and at those after them, as far as the text goes and
    the drafts reach; `tokens` ``[rows]`` is the text there. `drafts` gives the head's logits ``[starts, V]`` of one
    depth after the other, and has to be read to its end. Draft i of call s is about row s + i - 1.
    """

    done: int
    target: Tensor
    tokens: Tensor
    drafts: Iterator[Tensor]


def depth_of(draft: Model, depth: int | None) -> int | None:
    """Depth to which a draft is measured by start: what was asked for or what its head was trained for.

    None for drafts whose pmfs depend only on the position; giving a depth is then an error.
    """
    head = draft.head
    if head is None:
        if depth is None:
            return None
        raise SettingError(
            f"--depth is {depth} for the draft {draft.name!r}",
            limit="its pmfs depend on the position alone, so that one row serves every depth",
            remedy="leave out --depth",
        )
    most = min(head.deepest or MOST_DEPTH, MOST_DEPTH)
    if depth is None:
        return min(head.trained, most)
    if not isinstance(depth, int) or not 1 <= depth <= most:
        raise SettingError(
            f"--depth is {depth}",
            limit=f"the head {draft.name!r} is measured to 1..{most} drafts in a call{_reason(head)}",
            remedy=f"use {most} at most",
        )
    return depth


def _reason(head: Head) -> str:
    """Why a head drafts no deeper."""
    if head.deepest is None:
        return ""
    return ": its pass drafts no more" if head.parallel else ": beyond, training and engines give it different states"


def too_deep(what: str, head: str, deepest: int) -> SettingError:
    """The refusal of a shape that is deeper than a head drafts."""
    return SettingError(
        what, limit=f"the head {head!r} drafts at most {deepest} tokens deep", remedy="use a shape no deeper than that"
    )


def check_prompt(draft: Model, name: str, tokens: int) -> None:
    """Refuse a prompt without a pair of a hidden state and a token, which a head drafts after."""
    if draft.head is not None and tokens < PAIR_BEFORE:
        raise TextError(
            f"prompt {name!r} has {tokens} token",
            limit=f"a draft head needs {PAIR_BEFORE}: a hidden state of the target and the token after it",
            remedy="write a longer prompt, or let the tokenizer begin it with a token",
        )


def starts(pair: ModelPair, prompt_ids: Tensor, output_ids: Tensor, *, depth: int, chunk: int) -> Iterator[Starts]:
    """The calls from every output token, in order; at most about chunk + 2 depth rows of either model at a time."""
    head = pair.draft.head
    assert head is not None
    ids = torch.cat([prompt_ids, output_ids])
    reading, device = head.reading(), pair.draft.device
    kept, begun, known = None, 0, 0
    for logits, hidden, read in _target_passes(pair, head, ids, len(output_ids), chunk):
        with enough_memory(repr(pair.draft.name), f"{len(hidden)} pairs at once", "a smaller --chunk"):
            reading.read(hidden.to(device, head.dtype), ids[read - len(hidden) + 1 : read + 1].to(device))
        if logits is None:
            continue
        kept = logits if kept is None else torch.cat([kept, logits])
        known += len(logits)
        ended = known == len(output_ids)
        whole_calls = known if ended else max(known - depth + 1, begun)
        for begin, end in _groups(begun, whole_calls, chunk // depth if head.parallel else chunk + depth - 1):
            rows = slice(begin, min(end + depth - 1, known))
            pairs = torch.arange(begin, end, device=device) + len(prompt_ids) - PAIR_BEFORE
            drafts = reading.depths(pairs, _earlier(output_ids, begin, end, depth).to(device), depth)
            tokens = output_ids[rows].to(logits.device)
            yield Starts(
                begin, kept[rows.start - begun : rows.stop - begun], tokens, _logits(pair, drafts, end - begin)
            )
        kept, begun = kept[whole_calls - begun :], whole_calls


def _target_passes(
    pair: ModelPair, head: Head, ids: Tensor, keep: int, chunk: int
) -> Iterator[tuple[Tensor | None, Tensor, int]]:
    """The target's logits ``[m, V]`` where output follows, its hidden states ``[m, ...]``, and the tokens read so far.

    The last token is not read: nothing is drafted after it.
    """
    reading, read = Reading(pair.target, pair.vocabulary), 0
    before, after = ids[: len(ids) - keep - 1], ids[len(ids) - keep - 1 : -1]
    with HiddenStates(pair.target.network, head.layers) as states:
        for followed, part in ((False, before), (True, after)):
            for piece in part.split(chunk) if len(part) else ():
                logits = reading.read(piece[None], keep=len(piece) if followed else 1)[0]
                read += len(piece)
                yield logits if followed else None, states.take()[0, -len(piece) :], read


def _groups(begun: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `size` starts."""
    for begin in range(begun, end, max(size, 1)):
        yield begin, min(begin + max(size, 1), end)


def _earlier(output_ids: Tensor, begin: int, end: int, depth: int) -> Tensor:
    """The text ``[starts, depth - 1]`` from each start on: the drafts before; past the end of the text any token."""
    at = torch.arange(begin, end)[:, None] + torch.arange(depth - 1)
    return output_ids[at.clamp(max=len(output_ids) - 1)]


def _logits(pair: ModelPair, drafts: Iterator[Tensor], calls: int) -> Iterator[Tensor]:
    """The head's logits, cut to the tokenizer's ids and beside the target's."""
    while True:
        with enough_memory(repr(pair.draft.name), f"{calls} starts at once", "a smaller --chunk"):
            logits = next(drafts, None)
        if logits is None:
            return
        yield logits[:, : pair.vocabulary].to(pair.target.device)
