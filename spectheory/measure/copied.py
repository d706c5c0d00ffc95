"""What prompt lookup and suffix decoding draft after a text, and how much of it the text repeats; no model is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.ngrams.base import Ids, leading, occurrences, up_to_end
from spectheory.trace import Trace
from spectheory.verification.copied import LONGEST_COPY
from spectheory.verification.lookup import LOOKUP_NGRAM
from spectheory.verification.suffix import SuffixDrafts


def continuation(text: Ids, k: int, ngram: int, ends: Collection[int] = ()) -> Ids:
    """At most k tokens that followed the latest earlier occurrence of the longest suffix of the text ``[n]``, n >= 1.

    The suffix has at most `ngram` tokens; the draft is empty if the last token is new, and stops after a token of
    `ends`. O(ngram) passes over the text, of which the first does most of the work.
    """
    latest = [places[-1] for places in occurrences(text, ngram)]
    return up_to_end(text[latest[-1] : latest[-1] + k] if latest else text[:0], ends)


def lookup_columns(
    prompt_ids: Any, output_ids: Any, ends: Collection[int] = (), ngram: int = LOOKUP_NGRAM
) -> dict[str, NDArray[np.int16]]:
    """``lookup_drafted`` and ``lookup_match`` ``[n]``: tokens copied at each output token, and how many of them repeat
    (§7).

    A token of `ends` that the output continues after did not end it.
    """
    prompt, output = (np.asarray(ids, dtype=np.int64) for ids in (prompt_ids, output_ids))
    text = np.concatenate([prompt, output])
    ending = set(ends) - set(output[:-1].tolist())
    rows = []
    for start in range(len(prompt), len(text)):
        draft = continuation(text[:start], LONGEST_COPY, ngram, ending)
        rows.append((leading(draft, text[start:]), len(draft)))
    match, drafted = np.array(rows, dtype=np.int16).reshape(-1, 2).T
    return {"lookup_match": match.copy(), "lookup_drafted": drafted.copy()}


NOTHING = -1
"""Stands between sequences, where nothing followed."""
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


def suffix_columns(
    texts: Sequence[tuple[Any, Any]], drafts: SuffixDrafts, ends: Collection[int] = ()
) -> dict[str, NDArray[np.int16]]:
    """``suffix_drafted`` and ``suffix_match`` ``[N]`` of texts, each the ids of a prompt and of its output (§10).

    The texts are served one after the other, in this order; several outputs of one prompt are requests of their own. A
    token of `ends` that an output continues after did not end it.
    """
    read = [tuple(np.asarray(ids, dtype=np.int64) for ids in text) for text in texts]
    served = np.concatenate([np.append(output, NOTHING) for _, output in read])
    begins = np.cumsum([0, *(len(output) + 1 for _, output in read)])
    rows = []
    for (prompt, output), begin in zip(read, begins, strict=False):
        text = np.concatenate([prompt, output])
        ending = set(ends) - set(output[:-1].tolist())
        for start in range(len(output)):
            known = text[: len(prompt) + start]
            draft = up_to_end(suffix_draft(known, drafts, served[: begin + start], start), ending)
            rows.append((leading(draft, output[start:]), len(draft)))
    match, drafted = np.array(rows, dtype=np.int16).reshape(-1, 2).T
    return {"suffix_match": match.copy(), "suffix_drafted": drafted.copy()}


def with_suffix(
    trace: Trace, *, prompts: Sequence[Any], drafts: SuffixDrafts | None, ends: Collection[int] = ()
) -> Trace:
    """The trace with the columns of suffix decoding; each of the `prompts` (ids) has equally many of its texts."""
    if drafts is None:
        return trace
    outputs = np.split(trace.columns["token"], np.cumsum(trace.lengths)[:-1])
    each = len(outputs) // len(prompts)
    texts = [(prompts[number // each], output) for number, output in enumerate(outputs)]
    return replace(trace, columns={**trace.columns, **suffix_columns(texts, drafts, ends)})


def suffix_draft(text: Ids, drafts: SuffixDrafts, served: Ids | None = None, recent: int = 0) -> Ids:
    """What is drafted after a text ``[n]``, n >= 1; `served` ends with the text's last `recent` tokens, its output."""
    here = _best_draft(text, text, len(text), drafts)
    if drafts.across and served is not None:
        before = _best_draft(served, text, recent, drafts)
        here = before if before.score > here.score else here
    return np.array(here.tokens, dtype=np.int64)


def _best_draft(tokens: Ids, text: Ids, recent: int, drafts: SuffixDrafts) -> _Draft:
    """The best continuation that `tokens` have for a suffix of a text whose last `recent` tokens they end with."""
    best = _Draft([], 0.0)
    most = [drafts.most_after(length) for length in range(min(len(text), drafts.max_depth))]
    for suffix in reversed(list(_suffixes(tokens, text, len(most) - 1, recent))):
        if max(most[1 : suffix.last + 1]) <= best.score:
            break  # no shorter suffix drafts that many tokens
        reach = max(most[suffix.first : suffix.last + 1])
        candidate = _continued(tokens, suffix.at, int(recent >= suffix.last), reach, drafts.min_probability)
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


def removed_from_equal(network: Any, sampling: Sampling) -> list[int]:
    """Token ids that top-p removes from logits that are all equal, as transformers cuts lookup drafts on a CPU.

    Those whose shares, in the order in which torch sorts equal numbers, sum to at most 1 - top_p.
    """
    if sampling.top_p is None or sampling.top_p >= 1:
        return []
    logits, order = torch.ones(network.config.get_text_config().vocab_size).sort()
    return [int(token) for token in order[:-1][logits.softmax(0).cumsum(0)[:-1] <= 1 - sampling.top_p]]
