"""Paired teacher-forced reading of a text: both models, every column of a trace (§7)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import ImpossibleTextError, LogitsError, TextError
from spectheory.measure.lookup import lookup_columns
from spectheory.measure.noise import DEFAULT_KEY, position_keys
from spectheory.measure.pair import ModelPair
from spectheory.measure.reading import Reading, read_last
from spectheory.measure.statistics import position_statistics
from spectheory.measure.tokens import check_window


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
) -> dict[str, NDArray[Any]]:
    """Statistics ``[n]`` at every output token of one text, by the names of :data:`spectheory.trace.COLUMNS`.

    Both models read prompt ``[m]`` and output ``[n]`` (m, n >= 1) with their caches, `chunk` tokens at a time; a
    chunk's logits are reduced before the next are computed: about chunk · V entries per model above weights and caches.

    `race` and `sampled` are those of :func:`~spectheory.measure.statistics.position_statistics`. With `stop_at_end`,
    prompt lookup drafts nothing after an end-of-text token. `key` is the randomness of the estimated column
    (:func:`~spectheory.measure.noise.text_key`), one for each text. Errors call the text `name`, and give the position.
    """
    parts = []
    for target, draft, tokens, done in paired_logits(pair, prompt_ids, output_ids, chunk=chunk, name=name):
        keys = position_keys(key, done, len(tokens))
        with located(name, done):
            part = position_statistics(target, draft, tokens, sampling, race=race, sampled=sampled, keys=keys)
        parts.append({column: values.cpu() for column, values in part.items()})
    columns = {column: torch.cat([part[column] for part in parts]).numpy() for column in parts[0]}
    check_possible(columns, name)
    ends = pair.end_of_text if stop_at_end else ()
    return {**columns, **lookup_columns(prompt_ids.cpu(), output_ids.cpu(), ends)}


def paired_logits(
    pair: ModelPair, prompt_ids: Tensor, output_ids: Tensor, *, chunk: int, name: str
) -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
    """Both models' logits ``[m, V]``, the tokens ``[m]`` they are about, and the number of output tokens before."""
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
