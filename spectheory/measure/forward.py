"""Paired teacher-forced reading of a text: both models, every column of a trace (§7)."""

from __future__ import annotations

import math
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, TextError
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
    check_window(name, len(prompt_ids), len(output_ids), pair.window)
    ids = torch.cat([prompt_ids, output_ids[:-1]])
    keep = len(output_ids)
    readings = (read_last(Reading(model, pair.vocabulary), ids, keep, chunk) for model in (pair.target, pair.draft))
    parts, done = [], 0
    for target, draft in zip(*readings, strict=True):
        tokens = output_ids[done : done + len(target)].to(target.device)
        keys = position_keys(key, done, len(target))
        try:
            part = position_statistics(
                target, draft.to(target.device), tokens, sampling, race=race, sampled=sampled, keys=keys
            )
        except LogitsError as error:
            raise TextError(
                f"text {name!r}, token {done + error.row + 1}: {error.what}", limit=error.limit, remedy=error.remedy
            ) from error
        parts.append({column: values.cpu() for column, values in part.items()})
        done += len(target)
    columns = {column: torch.cat([part[column] for part in parts]).numpy() for column in parts[0]}
    _check_possible(columns, name)
    ends = pair.end_of_text if stop_at_end else ()
    return {**columns, **lookup_columns(prompt_ids.cpu(), output_ids.cpu(), ends)}


def _check_possible(columns: dict[str, NDArray[Any]], name: str) -> None:
    impossible = columns["log_target"] == -math.inf
    if not impossible.any():
        return
    at = int(impossible.argmax())
    raise TextError(
        f"text {name!r}, token {at + 1} (id {int(columns['token'][at])}) has target probability 0",
        limit="the settings must be able to output the text",
        remedy="use the temperature and filters that made it",
    )
