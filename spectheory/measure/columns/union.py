"""Both models' kept tokens and the text's token in one list per position: all that truncated settings leave."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from spectheory.measure.columns.block import Settings, entries_at_once, logit_columns, pmf_columns
from spectheory.measure.columns.compiled import listed_from
from spectheory.measure.columns.noise import Keys
from spectheory.measure.columns.pmf import Listed, Pmf
from spectheory.measure.columns.supports import Kept, compiles, kept, places

_LEAST_WIDTH = 8
"""Rows of at most this many tokens are computed together; above, rows within a factor of two."""


@dataclass(frozen=True)
class Union:
    """Ids ``[rows, W]`` (ascending, padded with V), both models' log-probabilities at them (-inf where cut), and the
    place ``[rows, 1]`` of the text's token among them.
    """

    ids: Tensor
    log_target: Tensor
    log_draft: Tensor
    place: Tensor

    def pmfs(self, size: int) -> tuple[Pmf, Pmf]:
        """Target and draft over the listed tokens of a vocabulary of this size."""
        listed = Listed(self.ids, size)
        return _pmf(self.log_target, listed), _pmf(self.log_draft, listed)

    def vocabulary_rank(self, log: Tensor, rank: Tensor, size: int) -> Tensor:
        """Ranks ``[rows]`` in the vocabulary from those in the list: all cut tokens are tied behind the kept ones."""
        token, stays = self.ids.gather(1, self.place), log > -math.inf
        behind = 1 + token[:, 0] + (stays & (self.ids > token)).sum(dim=-1)
        return torch.where(stays.gather(1, self.place)[:, 0], rank, behind)

    def by_width(self, size: int, entries: int) -> Iterator[tuple[Tensor, Union]]:
        """Rows of similar width with their indices; each part has at most about this many entries.

        The width of a part is a power of two, so that the numbers of a row do not depend on its neighbours.
        """
        longest = (self.ids < size).sum(dim=-1).cpu().tolist()
        widths = torch.tensor([max(_LEAST_WIDTH, 1 << (n - 1).bit_length()) for n in longest])
        for width in widths.unique().tolist():
            for rows in torch.nonzero(widths == width)[:, 0].split(max(1, entries // width)):
                yield rows, self._part(rows.to(self.ids.device), width, size)

    def _part(self, rows: Tensor, width: int, size: int) -> Union:
        fills = ((self.ids, size), (self.log_target, -math.inf), (self.log_draft, -math.inf))
        ids, log_target, log_draft = (
            pad(x[rows, :width], (0, max(0, width - x.shape[1])), value=fill) for x, fill in fills
        )
        return Union(ids, log_target, log_draft, self.place[rows])


def union_statistics(
    target: Tensor, draft: Tensor, tokens: Tensor, settings: Settings, keys: Keys
) -> dict[str, Tensor]:
    """All columns of positions where both models' settings truncate."""
    at, size = tokens[:, None], target.shape[1]
    both = union(kept(target, settings.target, at if settings.sampled else None), kept(draft, settings.draft), at, size)
    order, parts = [], []
    for rows, part in both.by_width(size, entries_at_once(target.device)):
        order.append(rows)
        parts.append(_columns(part, settings, keys[rows.numpy()], size))
    place = torch.cat(order).argsort().to(target.device)
    columns = {name: torch.cat([part[name] for part in parts])[place] for name in parts[0]}
    return columns | logit_columns(target, draft, at, settings)


def _columns(both: Union, settings: Settings, keys: Keys, size: int) -> dict[str, Tensor]:
    """The columns of both pmfs, with ranks in the vocabulary."""
    p, q = both.pmfs(size)
    with listed_from(size):
        columns = pmf_columns(p, q, both.place, settings, keys, p.pmf.new_empty((2, *p.pmf.shape)))
    for name, log in (("target_rank", both.log_target), ("draft_rank", both.log_draft)):
        if name in columns:
            columns[name] = both.vocabulary_rank(log, columns[name], size)
    return columns


def union(p: Kept, q: Kept, tokens: Tensor, size: int) -> Union:
    """The union of two supports and a token ``[rows, 1]`` of each row, from a vocabulary of this size."""
    return _compiled(p, q, tokens, size) if compiles(tokens.device, size) else in_torch(p, q, tokens, size)


def in_torch(p: Kept, q: Kept, tokens: Tensor, size: int) -> Union:
    """The same on any device."""
    every = torch.cat([p.ids, q.ids, tokens], dim=1).sort(dim=1).values
    own = (every < size) & pad(every[:, 1:] != every[:, :-1], (1, 0), value=True)
    ids = pad(every, (0, 1), value=size).gather(1, places(own))
    return Union(ids, _at(p, ids, size), _at(q, ids, size), torch.searchsorted(ids, tokens.contiguous()))


def _at(kept: Kept, ids: Tensor, size: int) -> Tensor:
    """Log-probabilities of tokens, -inf where they are cut."""
    at = torch.searchsorted(kept.ids.contiguous(), ids)
    own = pad(kept.ids, (0, 1), value=size).gather(1, at) == ids
    return pad(kept.log, (0, 1), value=-math.inf).gather(1, at).masked_fill_(~own, -math.inf)


def _compiled(p: Kept, q: Kept, tokens: Tensor, size: int) -> Union:
    """The same by merging, compiled."""
    merged = importlib.import_module("spectheory.kernels.supports").merged
    parts = merged(*(x.numpy() for x in (*p, *q, tokens[:, 0])), size)
    return Union(*(torch.from_numpy(x) for x in parts))


def _pmf(log: Tensor, listed: Listed) -> Pmf:
    cut = log == -math.inf
    return Pmf(log.exp(), log.masked_fill(cut, 0.0), cut, listed)
