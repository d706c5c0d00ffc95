"""Suffix decoding: Arctic Inference's drafts, which vLLM runs as method ``suffix``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectheory.ngrams.base import NOTHING, Ids, NgramDraft, Request

_FEW = 64
"""Up to so many continuations are counted one by one."""


class _Draft(NamedTuple):
    """Drafted tokens, and the sum of the products of their relative frequencies."""

    tokens: list[int]
    score: float


class _Suffix(NamedTuple):
    """Lengths `first` to `last` of the text's suffix that end at the same places `at` ``[m]`` of the tokens."""

    first: int
    last: int
    at: NDArray[np.int64]


@dataclass(frozen=True)
class Suffix(NgramDraft):
    """What followed the text's suffixes most often, in this request and in the outputs that were served before.

    Two collections of token sequences are searched: this request's prompt and output so far, and the outputs of the
    requests before it together with its own output so far. For every suffix of the text that stands there, of m <
    `depth` tokens and shorter than the text, the most frequent continuation is followed, at most `max` and ``factor *
    m`` tokens and no further than `depth` tokens from where the suffix begins, while the product of the relative
    frequencies is at least `probability`. The suffix whose draft has the largest sum of these products drafts; of equal
    ones the longest, and this request before earlier ones.

    Settings are vLLM's: `max` is ``num_speculative_tokens``, `depth` ``suffix_decoding_max_tree_depth``, `factor`
    ``..._max_spec_factor``, `probability` ``..._min_token_prob`` and `requests` ``..._max_cached_requests``, the number
    of outputs that are searched, this one included. Where an output has left the cache, equally frequent continuations
    may come in another order there.

    Examples
    --------
    >>> text = np.array([1, 2, 3, 4, 5, 1, 2, 3])
    >>> request = Request(text[:6])
    >>> Suffix(max=8).draft(text, request), Suffix(max=8, factor=0.5).draft(text, request)
    ([4, 5, 1], [4])
    >>> str(Suffix(max=8))
    'suffix:max=8'
    """

    max: int = 24
    depth: int = field(default=24, metadata={"least": 2})
    factor: float = 1.0
    probability: float = field(default=0.1, metadata={"most": 1})
    requests: int = field(default=10_000, metadata={"least": 0})

    name: ClassVar[str] = "suffix"
    engine: ClassVar[str] = "vllm"
    source: ClassVar[str] = "csrc/suffix_decoding/suffix_tree.cc of Arctic Inference 0.3.0, run by vLLM 0.33.0"

    def __str__(self) -> str:
        plain = type(self)(self.max).settings
        changed = [f",{name}={value:g}" for name, value in self.settings.items() if value != plain[name]]
        return f"{self.name}:max={self.max}{''.join(changed)}"

    @property
    def k(self) -> int:
        """Suffixes are compared by the tokens that may be drafted, so another limit finds other tokens."""
        return self.max

    def most_after(self, matched: int) -> int:
        """Most tokens that are drafted after a suffix of `matched` tokens."""
        return min(self.max, int(self.factor * matched + 1e-6), self.depth - matched)

    def begin(self, request: Request, before: object = None) -> Request:
        """The request with the outputs that are still in the cache."""
        ends = (request.served == NOTHING).nonzero()[0]
        gone = min(len(ends) + 1 - self.requests, len(ends))
        return request._replace(served=request.served[ends[gone - 1] + 1 :]) if gone > 0 else request

    def draft(self, text: Ids, state: Request) -> list[int]:
        """The better of both collections' drafts."""
        here = self._best(text, text, len(text))
        if not self.requests:
            return here.tokens
        output = text[len(state.prompt) :]
        before = self._best(np.concatenate([state.served, output]), text, len(output))
        return (before if before.score > here.score else here).tokens

    def _best(self, tokens: Ids, text: Ids, recent: int) -> _Draft:
        """The best continuation that `tokens` have for a suffix of a text whose last `recent` tokens they end with."""
        best = _Draft([], 0.0)
        most = [self.most_after(length) for length in range(min(len(text), self.depth))]
        for suffix in reversed(list(_suffixes(tokens, text, len(most) - 1, recent))):
            if max(most[1 : suffix.last + 1]) <= best.score:
                break  # no shorter suffix drafts that many tokens
            reach = max(most[suffix.first : suffix.last + 1])
            candidate = _continued(tokens, suffix.at, int(recent >= suffix.last), reach, self.probability)
            best = candidate if candidate.score > best.score else best
        return best


def _suffixes(tokens: Ids, text: Ids, longest: int, recent: int) -> Iterator[_Suffix]:
    """The suffixes of a text of 1 to `longest` tokens that stand before the end of `tokens`, from the shortest."""
    if longest < 1:
        return
    first, at = 1, (tokens[:-1] == text[-1]).nonzero()[0] + 1
    for length in range(1, longest):
        longer = at[at > length]
        longer = longer[tokens[longer - 1 - length] == text[-1 - length]]
        if len(longer) < len(at) or length == recent:
            yield _Suffix(first, length, at)
            first, at = length + 1, longer
        if not len(longer):
            return
    if len(at):
        yield _Suffix(first, longest, at)


def _continued(tokens: Ids, at: NDArray[np.int64], ending: int, most: int, least: float) -> _Draft:
    """The most frequent continuation of these places, token by token; so many places of the suffix are an end.

    In single precision, as in the engine: equal scores and frequencies at the threshold must round alike.
    """
    continuation: list[int] = []
    score, probability, here = np.float32(0), np.float32(1), len(at) + ending
    while len(continuation) < most and len(at):
        then, last = at + len(continuation), len(tokens) - 1
        following = (
            tokens[then] if then[-1] <= last else np.where(then <= last, tokens[np.minimum(then, last)], NOTHING)
        )
        token, count = _most_frequent(following)
        probability *= np.float32(count) / np.float32(here)
        if token == NOTHING or probability < np.float32(least):
            break
        continuation.append(token)
        score += probability
        at, here = at[following == token], count
    return _Draft(continuation, float(score))


def _most_frequent(following: Ids) -> tuple[int, int]:
    """The most frequent token and its count, of equal ones that of :func:`_first_listed`; nothing if none followed."""
    if len(following) <= _FEW:
        counts = dict(Counter(following.tolist()))
    else:
        ids, many = np.unique(following, return_counts=True)
        counts = dict(zip(ids.tolist(), many.tolist(), strict=True))
    counts.pop(NOTHING, None)
    if not counts:
        return NOTHING, 0
    most = max(counts.values())
    tied = [token for token, count in counts.items() if count == most]
    return (tied[0] if len(tied) == 1 else _first_listed(following.tolist())), most


def _first_listed(following: Sequence[int]) -> int:
    """The first entry of a list of continuations that is kept sorted by falling count as they come.

    A new one comes last. One whose count grows, and reaches or passes that of the one above, moves before all with
    that one's count.

    Examples
    --------
    >>> _first_listed([7, 8, 8, 7]), _first_listed([7, 8, 7, 8]), _first_listed([7, 8, 9, 9, 8])
    (7, 8, 9)
    """
    order: list[int] = []
    counts: Counter[int] = Counter()
    for token in following:
        if token == NOTHING:
            continue
        counts[token] += 1
        if counts[token] == 1:
            order.append(token)
            continue
        place = order.index(token)
        above = counts[order[place - 1]] if place else counts[token] + 1
        if above <= counts[token]:
            ahead = next(i for i, each in enumerate(order) if counts[each] == above)
            order.insert(ahead, order.pop(place))
    return order[0]
