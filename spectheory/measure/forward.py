"""Paired teacher-forced reading of a text: both models, every column of a trace (§7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import ImpossibleTextError, LogitsError, SettingError, TextError
from spectheory.measure.by_start import Starts, check_prompt, depth_of, starts
from spectheory.measure.columns.noise import DEFAULT_KEY, position_keys
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.lookup import lookup_columns
from spectheory.measure.pair import ModelPair
from spectheory.measure.reading import Reading, enough_memory, read_last
from spectheory.measure.tokens import check_window
from spectheory.trace import BY_START, START_RANKS
from spectheory.verification.by_start import PREFIX


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
) -> dict[str, NDArray[Any]]:
    """Statistics ``[n]`` at every output token of one text, by the names of :data:`spectheory.trace.COLUMNS`.

    Both models read prompt ``[m]`` and output ``[n]`` (m, n >= 1) with their caches, `chunk` tokens at a time; a
    chunk's logits are reduced before the next are computed: about chunk · V entries per model above weights and caches.

    `race` and `sampled` are those of :func:`~spectheory.measure.columns.statistics.position_statistics`. With
    `stop_at_end`, prompt lookup drafts nothing after an end-of-text token. `key` is the randomness of the estimated
    column (:func:`~spectheory.measure.columns.noise.text_key`), one for each text. Errors call the text `name`,
    and give the position.

    A draft head (§10) is read at every start and to `depth` drafts, by default as many as it was trained for. The
    columns of :data:`spectheory.trace.BY_START` are then ``[n, depth]`` in single precision, those by position are of
    the first draft, and the prompt has two tokens or more. Past the end of the text no draft is accepted: q is 0 there,
    the rank V, TV 1.
    """
    chosen = depth_of(pair.draft, depth)
    columns_of = _Statistics(sampling, race, sampled, key, name)
    if chosen is None:
        logits = paired_logits(pair, prompt_ids, output_ids, chunk=chunk, name=name)
        parts = [columns_of.positions(target, draft, tokens, done) for target, draft, tokens, done in logits]
    else:
        check_prompt(pair.draft, name, len(prompt_ids))
        check_window(name, len(prompt_ids), len(output_ids), pair.window)
        parts = [
            columns_of.starts(calls, chosen)
            for calls in starts(pair, prompt_ids, output_ids, depth=chosen, chunk=chunk)
        ]
    columns = {column: torch.cat([part[column] for part in parts]).numpy() for column in parts[0]}
    check_possible(columns, name)
    ends = pair.end_of_text if stop_at_end else ()
    return {**columns, **lookup_columns(prompt_ids.cpu(), output_ids.cpu(), ends)}


@dataclass(frozen=True)
class _Statistics:
    """The columns of rows of logits, on the CPU."""

    sampling: Sampling
    race: bool
    sampled: bool
    key: int
    name: str

    def positions(self, target: Tensor, draft: Tensor, tokens: Tensor, done: int) -> dict[str, Tensor]:
        """The columns by position."""
        keys = position_keys(self.key, done, len(tokens))
        return self._columns(target, draft, tokens, done, keys=keys)

    def starts(self, calls: Starts, depth: int) -> dict[str, Tensor]:
        """The columns by position, which are those of the first draft, and those by start and depth."""
        first = next(calls.drafts)
        count, outputs = first.shape
        columns = self.positions(calls.target[:count], first, calls.tokens[:count], calls.done)
        deep = [columns]
        for i, draft in enumerate(calls.drafts, start=1):
            rows = slice(i, i + count)
            target, tokens = calls.target[rows], calls.tokens[rows]
            if len(target):
                deep.append(self._columns(target, draft[: len(target)], tokens, calls.done + i, by_start=True))
        names = [name for name in BY_START if name.removeprefix(PREFIX) in columns]
        return columns | {name: _stacked(name.removeprefix(PREFIX), deep, depth, outputs) for name in names}

    def _columns(self, target: Tensor, draft: Tensor, tokens: Tensor, done: int, **options: Any) -> dict[str, Tensor]:
        fewer = f"--chunk {max(1, len(tokens) // 2)}"
        with located(self.name, done), enough_memory("the columns", f"{len(tokens)} positions at once", fewer):
            found = position_statistics(
                target, draft, tokens, self.sampling, race=self.race, sampled=self.sampled, **options
            )
        return {column: values.cpu() for column, values in found.items()}


def _stacked(name: str, deep: list[dict[str, Tensor]], depth: int, outputs: int) -> Tensor:
    """A column of every depth side by side, ``[starts, depth, ...]``; past the end of the text nothing is accepted."""
    calls = len(deep[0][name])
    past: float = {"log_draft": -math.inf, "draft_rank": outputs, "total_variation": 1.0, "race_g": math.inf}.get(
        name, 0
    )
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
def located(name: str, done: int) -> Iterator[None]:
    """Errors about rows of logits name the text and the token, `done` tokens after its first."""
    try:
        yield
    except LogitsError as error:
        raise TextError(
            f"text {name!r}, token {done + error.row + 1}: {error.what}", limit=error.limit, remedy=error.remedy
        ) from error


def check_possible(columns: Mapping[str, NDArray[Any]], name: str) -> None:
    """Refuse a text with a token that the target cannot output."""
    impossible = columns["log_target"] == -math.inf
    if not impossible.any():
        return
    at = int(impossible.argmax())
    raise ImpossibleTextError(
        f"text {name!r}, token {at + 1} (id {int(columns['token'][at])}) has target probability 0",
        limit="the settings must be able to output the text",
        remedy="use the temperature and filters that made it",
    )
