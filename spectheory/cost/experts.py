"""C7: how many experts several tokens touch together: bounds for any routes, and counts of a routing log."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import MOST_EXACT, amount, located, whole
from spectheory.errors import FOREIGN, SettingError, TraceError, reason_of
from spectheory.files import MOST_BYTES, read_text, write_whole
from spectheory.intervals import Interval, Kind

_MOST_EXPERTS = 1 << 16
_REMEDY = "record it again, or see docs/formats.md"


def distinct_experts(experts: int, chosen: int, tokens: int, batch: int = 1) -> Interval:
    r"""Mean number of distinct experts that a pass touches in a layer (C7; bounds for one sequence, else an estimate).

    With r of E experts for each token and m tokens,

    .. math:: r \le \mathbb E[\text{distinct}] \le E\,(1 - (1 - r/E)^m)

    The upper bound holds for i.i.d. routes, however skewed, and where tokens route alike, as neighbours do; it fails
    only where tokens avoid the experts of others. `best` is midway. For `batch` sequences of `tokens` tokens each the
    ends are of independent texts that use all experts equally: the tokens of a text all alike, or independent too.

    Examples
    --------
    >>> distinct_experts(128, 8, 1)
    Interval(low=8.0, best=8.0, high=8.0, kind='exact')
    >>> print(distinct_experts(128, 8, 4))
    18.562 [8.000, 29.123]
    """
    experts = whole("experts", experts, most=_MOST_EXPERTS, remedy="count those of a layer")
    chosen = whole("chosen", chosen, most=experts, remedy="count those of a token")
    tokens = whole("tokens", tokens, most=MOST_EXACT, remedy="count tokens")
    batch = whole("batch", batch, most=MOST_EXACT, remedy="count sequences")
    low, high = (independent(experts, chosen, count) for count in (batch, tokens * batch))
    kind: Kind = "estimate" if batch > 1 else "exact" if low == high else "bound"
    return Interval(low, (low + high) / 2, high, kind)


def independent(experts: int, chosen: int, tokens: float) -> float:
    """Distinct experts of tokens with independent routes that use all experts equally."""
    if tokens == 1 or chosen == experts:
        return float(chosen)
    return float(-experts * np.expm1(tokens * np.log1p(-chosen / experts)))


Touched = NDArray[np.float64]
"""By layer and expert, the share of windows that touch it."""


@dataclass(frozen=True, eq=False)
class Routing:
    """A routing log: the experts of every token of some texts, in every layer with experts (C7).

    `texts` are arrays of expert numbers, ``[tokens, layers, r]`` each, with r different experts of a token in a layer.

    Examples
    --------
    >>> log = Routing([[[[0, 1]], [[0, 2]], [[3, 1]]]], experts=4)
    >>> [round(log.distinct(m), 12) for m in (1, 2, 3)]
    [2.0, 3.5, 4.0]
    """

    texts: Sequence[NDArray[np.integer[Any]]]
    experts: int
    _known: dict[int, Touched] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        experts = whole("experts", self.experts, most=_MOST_EXPERTS, remedy="count those of a layer")
        try:
            texts = [np.asarray(text) for text in self.texts]
        except (TypeError, ValueError, RuntimeError) as error:
            raise TraceError(
                "a text of the routing log is no array", limit="[tokens, layers, r]", remedy=_REMEDY
            ) from error
        if not texts or len({text.shape[1:] for text in texts}) != 1:
            shapes = ", ".join(str(text.shape) for text in texts[:3])
            raise TraceError(
                f"texts of the routing log have the shapes {shapes}" if texts else "the routing log has no texts",
                limit="needs [tokens, layers, r], with the same layers and r in each",
                remedy=_REMEDY,
            )
        object.__setattr__(self, "texts", tuple(_checked(text, experts) for text in texts))

    @property
    def layers(self) -> int:
        """Layers with experts."""
        return int(self.texts[0].shape[1])

    @property
    def chosen(self) -> int:
        """Experts of a token in a layer."""
        return int(self.texts[0].shape[2])

    @property
    def longest(self) -> int:
        """Tokens of the longest text."""
        return max(len(text) for text in self.texts)

    def touched(self, tokens: int) -> Touched:
        """By layer and expert the share of windows of so many consecutive tokens that touch it."""
        tokens = whole("tokens", tokens, most=_MOST_EXPERTS, remedy="count tokens of a sequence")
        if tokens > self.longest:
            raise SettingError(
                f"{tokens} tokens are verified together",
                limit=f"the longest text of the routing log has {self.longest}",
                remedy="record longer texts, or fewer drafts",
            )
        if tokens not in self._known:
            self._known[tokens] = self._shares(tokens)
        return self._known[tokens]

    def _shares(self, tokens: int) -> Touched:
        counts, windows = np.zeros((self.layers, self.experts)), 0
        for text in self.texts:
            if len(text) < tokens:
                continue
            windows += len(text) - tokens + 1
            for layer in range(self.layers):
                hit = np.zeros((len(text) + 1, self.experts), dtype=np.int32)
                hit[np.arange(1, len(text) + 1)[:, None], text[:, layer]] = 1
                reached = np.cumsum(hit, axis=0)
                counts[layer] += (reached[tokens:] > reached[:-tokens]).sum(axis=0)
        return counts / windows

    def distinct(self, tokens: int, batch: float = 1) -> float:
        """Mean number of distinct experts of windows of `tokens` consecutive tokens, over windows and layers.

        Exact for the texts at a batch of one. For `batch` windows together it is an estimate: as if they came from
        independent texts.
        """
        shares = self.touched(tokens)
        batch = amount("batch", batch, below=MOST_EXACT, remedy="count sequences")
        if batch == 1:
            return float(shares.sum(axis=1).mean())
        with np.errstate(divide="ignore"):
            missed = np.exp(batch * np.log1p(-shares)) if batch else np.ones_like(shares)
        return float((1 - missed).sum(axis=1).mean())

    def skew(self) -> float:
        """The effective number of experts: 1 over the sum of squared shares of one layer, mean over layers."""
        shares = self.touched(1) / self.chosen
        return float((1 / (shares**2).sum(axis=1)).mean())

    def write(self, path: Path) -> None:
        """Write the log as .npz: ``experts`` ``[tokens of all texts, layers, r]``, ``lengths`` and ``count``."""
        numbers = np.concatenate(list(self.texts)).astype(np.int32)
        lengths = np.array([len(text) for text in self.texts])

        def save(partial: Path) -> None:
            with partial.open("wb") as file:
                np.savez_compressed(file, experts=numbers, lengths=lengths, count=np.array(self.experts))

        write_whole(path, save)

    @classmethod
    def read(cls, path: Path, experts: int | None = None) -> Routing:
        """A log from .npz or JSON lines, as in docs/formats.md; `experts` where the file has no number of them."""
        path = located(path)
        try:
            texts, count = _from_npz(path) if path.suffix == ".npz" else _from_lines(path)
        except (OSError, KeyError, IndexError, *FOREIGN) as error:
            raise TraceError(
                f"{path} is no routing log ({reason_of(error)})",
                limit='needs .npz with experts [tokens, layers, r], or JSON lines {"experts": [[[0, 5]]]}',
                remedy=_REMEDY,
            ) from error
        return cls(texts, experts if count is None else count)  # type: ignore[arg-type]


def _from_npz(path: Path) -> tuple[list[NDArray[Any]], int | None]:
    """Texts, and how many experts a layer has if that is there."""
    if path.stat().st_size > MOST_BYTES:
        raise OSError("larger than 256 MiB")
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            numbers = file["experts"]
            lengths = file["lengths"] if "lengths" in file else np.array([len(numbers)])
            count = int(file["count"]) if "count" in file else None
    except (EOFError, BadZipFile, zlib.error, *FOREIGN) as error:
        if isinstance(error, KeyError):
            raise
        raise ValueError("it is no whole .npz file of numbers") from error
    if lengths.sum() != len(numbers) or lengths.ndim != 1 or lengths.min(initial=0) < 0:
        raise ValueError("lengths do not add up to the tokens")
    return np.split(numbers, np.cumsum(lengths)[:-1]), count


def _from_lines(path: Path) -> tuple[list[NDArray[Any]], int | None]:
    rows = [json.loads(line) for line in read_text(path).splitlines() if line.strip()]
    counts = {row["count"] for row in rows if "count" in row}
    if len(counts) > 1:
        raise ValueError("lines have different counts of experts")
    return [np.array(row["experts"]) for row in rows], counts.pop() if counts else None


def _checked(text: NDArray[Any], experts: int) -> NDArray[np.integer[Any]]:
    """A text whose tokens have different experts in range."""
    if text.ndim != 3 or not np.issubdtype(text.dtype, np.integer) or 0 in text.shape:
        what = f"a text of the routing log is {text.dtype} {text.shape}"
        raise TraceError(what, limit="needs whole numbers [tokens, layers, r]", remedy=_REMEDY)
    if text.min() < 0 or text.max() >= experts:
        worst = int(text.min() if text.min() < 0 else text.max())
        raise TraceError(f"the routing log has expert {worst}", limit=f"must be in 0..{experts - 1}", remedy=_REMEDY)
    ordered = np.sort(text, axis=-1)
    if (ordered[..., 1:] == ordered[..., :-1]).any():
        raise TraceError(
            "a token of the routing log has an expert twice", limit="needs r different ones", remedy=_REMEDY
        )
    return text
