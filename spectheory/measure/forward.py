"""Paired teacher-forced reading of a text: both models, every column of a trace (§7); a head at every start (§10)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import ImpossibleTextError, LogitsError, SettingError, TextError
from spectheory.measure.columns.noise import DEFAULT_KEY, position_keys
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.copied import lookup_columns
from spectheory.measure.heads.base import PAIR_BEFORE, Head, HeadReading, HiddenStates
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import Reading, enough_memory, read_last
from spectheory.measure.tokens import check_window
from spectheory.trace import COLUMNS, MOST_DEPTH, START_RANKS
from spectheory.verification.by_start import PREFIX


@dataclass(frozen=True)
class _Starts:
    """Calls that start at consecutive output tokens, `done` tokens after the first.

    `target` ``[rows, V]`` are the target's logits at these tokens and at those after them, as far as the text goes and
    the drafts reach; `tokens` ``[rows]`` is the text there. `drafts` gives the head's logits ``[starts, V]`` of one
    depth after the other, with its confidence in these drafts, and has to be read to its end. Draft i of call s is
    about row s + i - 1.
    """

    done: int
    target: Tensor
    tokens: Tensor
    drafts: Iterator[tuple[Tensor, Tensor | None]]


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
        why = "its pass drafts no more" if head.parallel else "it has a module for each"
        why = f": {why}" if head.deepest else ""
        raise SettingError(
            f"--depth is {depth}",
            limit=f"the head {draft.name!r} is measured to 1..{most} drafts in a call{why}",
            remedy=f"use {most} at most",
        )
    return depth


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


def _starts(pair: ModelPair, prompt_ids: Tensor, output_ids: Tensor, *, depth: int, chunk: int) -> Iterator[_Starts]:
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
        size = max(1, chunk // depth if head.parallel else chunk + depth - 1)
        for begin in range(begun, whole_calls, size):
            end = min(begin + size, whole_calls)
            # The drafts before are those of the text from each start on; past its end any token.
            at = torch.arange(begin, end)[:, None] + torch.arange(depth - 1)
            earlier = output_ids[at.clamp(max=len(output_ids) - 1)].to(device)
            rows = slice(begin, min(end + depth - 1, known))
            pairs = torch.arange(begin, end, device=device) + len(prompt_ids) - PAIR_BEFORE
            drafts = _logits(pair, reading, reading.depths(pairs, earlier, depth), end - begin)
            tokens = output_ids[rows].to(logits.device)
            yield _Starts(begin, kept[rows.start - begun : rows.stop - begun], tokens, drafts)
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


def _logits(
    pair: ModelPair, reading: HeadReading, drafts: Iterator[Tensor], calls: int
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """The head's logits, cut to the tokenizer's ids and beside the target's, and its confidence."""
    while True:
        with enough_memory(repr(pair.draft.name), f"{calls} starts at once", "a smaller --chunk"):
            logits = next(drafts, None)
        if logits is None:
            return
        yield logits[:, : pair.vocabulary].to(pair.target.device), reading.confidence


def teacher_forced(
    pair: ModelPair,
    prompt_ids: Tensor,
    output_ids: Tensor,
    sampling: Sampling,
    *,
    chunk: int = 256,
    race: bool = True,
    sampled: bool = False,
    stop_at_end: bool = True,
    key: int = DEFAULT_KEY,
    name: str = "",
    depth: int | None = None,
    better_drafts: bool = False,
) -> dict[str, NDArray[Any]]:
    """Statistics ``[n]`` at every output token of one text, by the names of :data:`spectheory.trace.COLUMNS`.

    Both models read prompt ``[m]`` and output ``[n]`` (m, n >= 1) with their caches, `chunk` tokens at a time; a
    chunk's logits are reduced before the next are computed: about chunk · V entries per model above weights and caches.

    `race`, `sampled`, `better_drafts`: see :func:`~spectheory.measure.columns.statistics.position_statistics`. With
    `stop_at_end`, prompt lookup drafts nothing after an end-of-text token. `key` is the randomness of the estimated
    column (:func:`~spectheory.measure.columns.noise.text_key`), one for each text. Errors call the text `name`,
    and give the position.

    A draft head (§10) is read at every start and to `depth` drafts, by default as many as it was trained for. The
    columns of :data:`spectheory.trace.BY_START` are then ``[n, depth]`` in single precision, those by position are of
    the first draft, and the prompt has two tokens or more. Past the end of the text no draft is accepted: q is 0 there,
    the rank V, TV 1.
    """
    statistics = Statistics(sampling, race, sampled, key, name, better_drafts)
    (columns,) = read_text(
        pair, prompt_ids, output_ids, [statistics], chunk=chunk, stop_at_end=stop_at_end, depth=depth
    )
    return columns


def read_text(
    pair: ModelPair,
    prompt_ids: Tensor,
    output_ids: Tensor,
    statistics: Sequence[Statistics],
    *,
    chunk: int,
    stop_at_end: bool,
    depth: int | None,
) -> list[dict[str, NDArray[Any]]]:
    """:func:`teacher_forced` for each of some statistics of one text: both models read it once."""
    chosen, name = depth_of(pair.draft, depth), statistics[0].name
    if chosen is None:
        logits = paired_logits(pair, prompt_ids, output_ids, chunk=chunk, name=name)
        parts = [[each.positions(*rows) for each in statistics] for rows in logits]
    else:
        check_prompt(pair.draft, name, len(prompt_ids))
        check_window(name, len(prompt_ids), len(output_ids), pair.window)
        calls = _starts(pair, prompt_ids, output_ids, depth=chosen, chunk=chunk)
        parts = [_of_starts(statistics, each, chosen) for each in calls]
    copied = lookup_columns(prompt_ids.cpu(), output_ids.cpu(), pair.end_of_text if stop_at_end else ())
    return [each.whole(of_one) | copied for each, of_one in zip(statistics, zip(*parts, strict=True), strict=True)]


def _of_starts(statistics: Sequence[Statistics], calls: _Starts, depth: int) -> list[dict[str, Tensor]]:
    """The columns by position, which are those of the first draft, and those by start and depth."""
    first, sure = next(calls.drafts)
    count, outputs = first.shape
    columns = [each.positions(calls.target[:count], first, calls.tokens[:count], calls.done) for each in statistics]
    deep = [[each | _confidence(sure, count)] for each in columns]
    for i, (draft, sure) in enumerate(calls.drafts, start=1):
        target, tokens = (each[i : i + count] for each in (calls.target, calls.tokens))
        if len(target):
            for each, parts in zip(statistics, deep, strict=True):
                of_depth = each.columns(target, draft[: len(target)], tokens, calls.done + i, by_start=True)
                parts.append(of_depth | _confidence(sure, len(target)))
    names = [name for name, each in COLUMNS.items() if each.by_start and name.removeprefix(PREFIX) in deep[0][0]]
    return [
        alone | {name: _stacked(name.removeprefix(PREFIX), parts, depth, outputs) for name in names}
        for alone, parts in zip(columns, deep, strict=True)
    ]


@dataclass(frozen=True)
class Statistics:
    """The columns of rows of logits, on the CPU; fields as :func:`teacher_forced` has them.

    `judged` adds the columns by which an engine's output is judged.
    """

    sampling: Sampling
    race: bool
    sampled: bool
    key: int
    name: str
    better_drafts: bool = False
    judged: bool = False

    def positions(self, target: Tensor, draft: Tensor, tokens: Tensor, done: int) -> dict[str, Tensor]:
        """The columns by position."""
        return self.columns(target, draft, tokens, done, better_drafts=self.better_drafts)

    def columns(self, target: Tensor, draft: Tensor, tokens: Tensor, done: int, **options: Any) -> dict[str, Tensor]:
        """The columns of rows of both models' logits, `done` tokens after the first."""
        # A path of calls passes a position once (§7), at one start and depth: a key for each position is enough.
        keys, fewer = position_keys(self.key, done, len(tokens)), f"--chunk {max(1, len(tokens) // 2)}"
        with _naming_the_text(self.name, done), enough_memory("the columns", f"{len(tokens)} positions at once", fewer):
            statistics = position_statistics(
                *(target, draft, tokens, self.sampling),
                race=self.race,
                sampled=self.sampled,
                judged=self.judged,
                keys=keys,
                **options,
            )
        return {column: values.cpu() for column, values in statistics.items()}

    def whole(self, parts: Sequence[dict[str, Tensor]]) -> dict[str, NDArray[Any]]:
        """The columns of a text from those of its parts; settings must be able to output it unless it is `judged`."""
        columns = {column: torch.cat([part[column] for part in parts]).numpy() for column in parts[0]}
        impossible = columns["log_target"] == -math.inf
        if impossible.any() and not self.judged:
            at = int(impossible.argmax())
            raise ImpossibleTextError(
                f"text {self.name!r}, token {at + 1} (id {int(columns['token'][at])}) has target probability 0 at "
                f"temperature {self.sampling.temperature:g}",
                limit="the settings must be able to output the text",
                remedy="use the temperature and filters that made it",
            )
        return columns


def _confidence(sure: Tensor | None, rows: int) -> dict[str, Tensor]:
    """The column of a head that has a confidence, cut to the rows within the text."""
    return {} if sure is None else {"confidence": sure[:rows].cpu()}


def _stacked(name: str, deep: list[dict[str, Tensor]], depth: int, outputs: int) -> Tensor:
    """A column of every depth side by side, ``[starts, depth, ...]``; past the end of the text nothing is accepted."""
    calls = len(deep[0][name])
    sure = {"log_draft": -math.inf, "draft_rank": outputs, "total_variation": 1.0}
    past: float = (sure | dict.fromkeys(("race_g", "draft_gap"), math.inf)).get(name, 0)
    columns = [_narrow(each[name]) for each in deep]
    filled = columns[0].new_full((calls, depth, *columns[0].shape[1:]), past)
    for i, values in enumerate(columns):
        filled[: len(values), i] = values
    return filled


def _narrow(values: Tensor) -> Tensor:
    """Single precision, and of a rank law the ranks that are recorded by start."""
    values = values[:, :START_RANKS] if values.ndim == 2 else values
    return values.float() if values.dtype.is_floating_point else values


def paired_logits(
    pair: ModelPair, prompt_ids: Tensor, output_ids: Tensor, *, chunk: int, name: str
) -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
    """Both models' logits ``[m, V]``, the tokens ``[m]`` they are about, and the number of output tokens before."""
    if pair.draft.head is not None:
        raise SettingError(
            f"the draft {pair.draft.name!r} is a draft head",
            limit="this reading is by position, and a head drafts by start",
            remedy="measure or validate it, or name a draft model",
        )
    check_window(name, len(prompt_ids), len(output_ids), pair.window)
    ids, keep = torch.cat([prompt_ids, output_ids[:-1]]), len(output_ids)
    readings = (read_last(Reading(model, pair.vocabulary), ids, keep, chunk) for model in (pair.target, pair.draft))
    done = 0
    for target, draft in zip(*readings, strict=True):
        yield target, draft.to(target.device), output_ids[done : done + len(target)].to(target.device), done
        done += len(target)


@contextmanager
def _naming_the_text(name: str, done: int) -> Iterator[None]:
    """Errors about rows of logits name the text and the token, `done` tokens after its first."""
    try:
        yield
    except LogitsError as error:
        raise TextError(
            f"text {name!r}, token {done + error.row + 1}: {error.what}", limit=error.limit, remedy=error.remedy
        ) from error
