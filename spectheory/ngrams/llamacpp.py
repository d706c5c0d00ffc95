"""llama.cpp's n-gram drafts (``--spec-type ngram-...``), for one slot of its server.

A server sees the history, which is the text without the last token, and that token. Places count from the text's first
token; place 0 stands for "nowhere" and is never copied from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from spectheory.ngrams.base import Ids, NgramDraft, Request, occurrences

_HASHES = 2**18
_SLOTS = 4
_MOST_COUNTED = 16380


@dataclass(frozen=True)
class NgramSimple(NgramDraft):
    """What followed the latest earlier occurrence of the last `n` tokens: `m` tokens at most, none if fewer than `n`.

    Nothing is drafted before the history has more than n + m + 1 tokens. The last token is not copied.

    Examples
    --------
    >>> import numpy as np
    >>> NgramSimple(n=1, m=2).draft(np.array([9, 1, 7, 8, 5, 1]), None)
    array([7, 8])
    """

    n: int = 12
    m: int = 48

    name: ClassVar[str] = "ngram-simple"
    engine: ClassVar[str] = "llama.cpp"
    source: ClassVar[str] = "common/ngram-map.cpp of build 11434"

    @property
    def k(self) -> int:
        """The size of what is copied."""
        return self.m

    def draft(self, text: Ids, state: object) -> Ids:
        """At most m tokens of the history."""
        history = len(text) - 1
        if history <= self.n + self.m + 1:
            return text[:0]
        places = [*occurrences(text, self.n)]
        after = places[-1] if len(places) == self.n else text[:0]
        inside = after[(after > self.n) & (after < history)]
        copied = text[inside[-1] : history][: self.m] if len(inside) else text[:0]
        return copied if len(copied) >= self.n else text[:0]


@dataclass
class _Value:
    """Tokens that followed a key: where they begin, how often they were counted, how many were last accepted."""

    at: int
    count: int = 0
    accepted: int = 0


@dataclass
class _Key:
    """A key that was looked up and stood earlier: how often, how far its values are counted, and these."""

    hits: int = 0
    counted_to: int = 0
    values: list[_Value] = field(default_factory=list)


@dataclass
class _Map:
    """State of a request: its prompt's length, the table from hashes to places, the keys, what drafted last."""

    prompt: int
    places: dict[int, int] = field(default_factory=dict)
    hashed_to: int = 0
    keys: dict[tuple[int, ...], _Key] = field(default_factory=dict)
    last: _Value | None = None


@dataclass(frozen=True)
class NgramMapK(NgramDraft):
    """The `m` tokens after an occurrence of the last `n`: of the latest when it was first hashed, at later ones the
    earliest of its slot of 2^18.

    A key drafts no more tokens than were accepted when it last drafted: one whose first token was refused never drafts
    again. `hits` is ``--spec-ngram-map-k-min-hits``, which this draft does not read.

    Examples
    --------
    >>> import numpy as np
    >>> text = np.array([9, 1, 7, 8, 5, 1])
    >>> lookup = NgramMapK(n=1, m=2)
    >>> lookup.draft(text, lookup.begin(Request(text[:5])))
    [7, 8]
    """

    n: int = 12
    m: int = 48
    hits: int = 1

    name: ClassVar[str] = "ngram-map-k"
    engine: ClassVar[str] = "llama.cpp"
    source: ClassVar[str] = "common/ngram-map.cpp of build 11434"
    remembers: ClassVar[bool] = True

    @property
    def k(self) -> int:
        """The size of what is copied."""
        return self.m

    def begin(self, request: Request, before: object = None) -> _Map:
        """A slot that has served no other prompt."""
        return _Map(len(request.prompt))

    def draft(self, text: Ids, state: _Map) -> list[int]:
        """At most m tokens after a place of the key."""
        state.last, history = None, len(text) - 1
        if history < 2 * self.n + self.m:
            return []
        tokens = text.tolist()
        wanted = tuple(tokens[len(tokens) - self.n :])
        at = self._place(tokens, wanted, state)
        if not at:
            return []
        old = state.keys.get(wanted, _Key())
        hits = min(old.hits + 1, _MOST_COUNTED)
        state.keys[wanted] = key = _Key(hits, old.counted_to, [replace(value) for value in old.values])
        state.last = self._value(tokens, wanted, at, key)
        if state.last is None:
            return []
        return tokens[at + self.n : at + self.n + min(self.m, state.last.accepted)]

    def accept(self, state: _Map, accepted: int) -> None:
        """The next draft of this key is no longer."""
        if state.last is not None:
            state.last.accepted = accepted

    def _value(self, tokens: list[int], wanted: tuple[int, ...], at: int, key: _Key) -> _Value | None:
        """One value stands for all that followed the key."""
        if not key.values:
            key.values.append(_Value(at + self.n, accepted=self.m))
        return key.values[0]

    def _place(self, tokens: list[int], wanted: tuple[int, ...], state: _Map) -> int:
        """Where the key stands, by the table, else among places that are not in it yet; these enter it."""
        newest = len(tokens) - 1 - self.n - self.m - 1
        at = state.places.get(_hash(wanted), 0)
        fits = at and at < newest and tokens[at : at + self.n] == list(wanted)
        before = range(state.prompt - self.n - self.m - 1, state.hashed_to, -1)
        since = range(newest, max(state.prompt, state.hashed_to), -1)
        place = at if fits else next((j for j in (*before, *since) if tokens[j : j + self.n] == list(wanted)), 0)
        for j in (*before, *since):
            state.places.setdefault(_hash(tokens[j : j + self.n]), j)
        state.hashed_to = max(newest, state.hashed_to)
        return place


class NgramMapK4V(NgramMapK):
    """The same with up to four values for each key, the runs of `m` tokens that followed it.

    A key drafts from its `hits`-th hit on, and only where its most frequent value has at least twice the count of the
    others together; at most as many tokens as were accepted when that value last drafted. What is copied follows the
    place that was found, whatever the value. The place up to which values are counted is counted again at each hit.
    """

    name: ClassVar[str] = "ngram-map-k4v"

    def _value(self, tokens: list[int], wanted: tuple[int, ...], at: int, key: _Key) -> _Value | None:
        """The most frequent value, if it is frequent enough."""
        if key.hits < self.hits:
            return None
        for i in range(key.counted_to, at + 1):
            if tuple(tokens[i : i + self.n]) == wanted:
                self._count(tokens, i + self.n, key.values)
        key.counted_to = at
        best = max(key.values, key=lambda value: value.count)
        others = sum(value.count for value in key.values) - best.count
        return best if best.count >= 2 * others else None

    def _count(self, tokens: list[int], begin: int, values: list[_Value]) -> None:
        """One more occurrence of what begins there; a fifth value is not counted."""
        follows = tokens[begin : begin + self.m]
        same = next((each for each in values if tokens[each.at : each.at + self.m] == follows), None)
        if same is None and len(values) < _SLOTS:
            values.append(same := _Value(begin, accepted=self.m))
        if same is not None:
            same.count = min(same.count + 1, _MOST_COUNTED)


def _hash(tokens: Iterable[int]) -> int:
    """The slot of a key in the table."""
    value = 0
    for token in tokens:
        value = (value * 2654435761 + token) % 2**32
    return value % _HASHES


@dataclass
class _Mod:
    """State of a server: the next token by the hash of those before it, and of its request how far it is in."""

    table: dict[int, int] = field(default_factory=dict)
    added_to: int = 0
    drafted: int = 0
    low: int = 0


@dataclass(frozen=True)
class NgramMod(NgramDraft):
    """Token after token, what last followed a hash of the `n` tokens before, in one table for all requests.

    At most `max` tokens, and none at all where fewer than `min` are known. New tokens enter in chunks: of a text that
    has grown by more than 32 - n tokens. After five drafts in a row of which less than a quarter was accepted the table
    is emptied. Hashes are not compared with tokens: two n-grams of one slot of 2^22 are mistaken for each other, here
    too.

    Examples
    --------
    >>> import numpy as np
    >>> text = np.array([9, 1, 7, 8, 5, 1])
    >>> lookup = NgramMod(n=1, min=1, max=4)
    >>> lookup.draft(text, lookup.begin(Request(text[:5])))
    [7, 8, 5]
    """

    n: int = 24
    min: int = 48
    max: int = 64

    name: ClassVar[str] = "ngram-mod"
    engine: ClassVar[str] = "llama.cpp"
    source: ClassVar[str] = "common/ngram-mod.cpp, common/speculative.cpp of build 11434"
    remembers: ClassVar[bool] = True
    size: ClassVar[int] = 2**22
    chunk: ClassVar[int] = 32
    low: ClassVar[float] = 0.25
    streak: ClassVar[int] = 5

    @property
    def k(self) -> int:
        """The longest draft."""
        return self.max

    def begin(self, request: Request, before: _Mod | None = None) -> _Mod:
        """The table of the server, with the prompt."""
        state = _Mod(*((before.table, 0, 0, before.low) if before else ()))
        if len(request.prompt) >= self.n:
            self._add(request.prompt.tolist(), state, len(request.prompt))
        if len(state.table) > self.low * self.size:
            state.table.clear()
        return state

    def draft(self, text: Ids, state: _Mod) -> list[int]:
        """Follow the table from the last n tokens."""
        state.drafted, history = 0, len(text) - 1
        if history < self.n:
            return []
        tokens = text.tolist()
        if state.added_to + self.chunk < history:
            self._add(tokens, state, history)
        run = tokens[len(tokens) - self.n :]
        while len(run) < self.n + self.max and (follows := state.table.get(self._slot(run[-self.n :]))) is not None:
            run.append(follows)
        copied = run[self.n :]
        state.drafted = len(copied) if len(copied) >= min(self.min, self.max) else 0
        return copied[: state.drafted]

    def accept(self, state: _Mod, accepted: int) -> None:
        """Empty the table after a streak of bad drafts."""
        if not state.drafted:
            return
        state.low = state.low + 1 if accepted < self.low * state.drafted else 0
        if state.low >= self.streak:
            state.table.clear()
            state.low = state.added_to = 0

    def _add(self, tokens: list[int], state: _Mod, end: int) -> None:
        """What follows each n-gram that begins since the last time; the last one of the tokens up to `end` is open."""
        for i in range(state.added_to, end - self.n):
            state.table[self._slot(tokens[i : i + self.n])] = tokens[i + self.n]
        state.added_to = end - self.n

    def _slot(self, tokens: Iterable[int]) -> int:
        value = 0
        for token in tokens:
            value = (value * 6364136223846793005 + token) % 2**64
        return value % self.size


@dataclass
class _Cache:
    """State of a request: counts of what followed n-grams, and how far they go."""

    counts: dict[tuple[int, ...], Counter[int]] = field(default_factory=dict)
    counted_to: int = 0


@dataclass(frozen=True)
class NgramCache(NgramDraft):
    """Token after token, the most frequent one after the last 4, 3, 2 or 1 tokens; 8 at most.

    The longest n-gram decides that was seen often enough (4 and 3 tokens once, shorter ones twice) and of whose
    continuations one has half, after a single token two thirds; of two with half each the one that came later. An
    n-gram and what follows it count only where one call brought both: the prompt counts whole, and of the output what
    stands inside the tokens of one call. There are no caches of files here.

    Examples
    --------
    >>> import numpy as np
    >>> text = np.array([9, 1, 7, 8, 5, 9, 1, 7])
    >>> lookup = NgramCache()
    >>> lookup.draft(text, lookup.begin(Request(text[:7])))
    [8, 5, 9, 1, 7, 8, 5, 9]
    """

    name: ClassVar[str] = "ngram-cache"
    engine: ClassVar[str] = "llama.cpp"
    source: ClassVar[str] = "common/ngram-cache.cpp, common/speculative.cpp of build 11434"
    remembers: ClassVar[bool] = True
    seen: ClassVar[tuple[int, ...]] = (2, 2, 1, 1)
    percent: ClassVar[tuple[int, ...]] = (66, 50, 50, 50)

    @property
    def k(self) -> int:
        """Fixed in the source."""
        return 8

    def begin(self, request: Request, before: object = None) -> _Cache:
        """A slot that has served no other prompt: one that has counts nothing until a text is longer than those."""
        return _Cache()

    def draft(self, text: Ids, state: _Cache) -> list[int]:
        """The most frequent continuations."""
        tokens = text.tolist()
        new = tokens[state.counted_to :]
        for size in range(1, len(self.seen) + 1):
            for i in range(size, len(new)):
                follows = state.counts[tuple(new[i - size : i])] = Counter(state.counts.get(tuple(new[i - size : i])))
                follows[new[i]] += 1
        state.counted_to, known = len(tokens), len(tokens)
        while len(tokens) >= 2 and len(tokens) < known + self.k:
            token = self._next(tokens, state)
            if token is None:
                break
            tokens.append(token)
        return tokens[known:]

    def _next(self, tokens: list[int], state: _Cache) -> int | None:
        """The continuation of the longest n-gram that is sure of one."""
        for size in range(min(len(self.seen), len(tokens)), 0, -1):
            counts = state.counts.get(tuple(tokens[len(tokens) - size :]), Counter())
            most = max(counts.values(), default=0)
            if counts.total() >= self.seen[size - 1] and 100 * most >= self.percent[size - 1] * counts.total() > 0:
                return [token for token, count in counts.items() if count == most][-1]
        return None
