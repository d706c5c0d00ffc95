"""A made-up pair of a few tokens, all of whose texts and drafts are enumerated: what calls really draft and take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import StoppingRule
from spectheory.trace import TextInfo, Trace

Floats = NDArray[np.float64]
TOKENS, K, VOCABULARY = 4, 3, 3


class Pair:
    """A made-up target and draft whose pmfs depend on the whole prefix; of a head also on where the call starts.

    A `greedy` pair outputs and drafts first choices; its draft's pmfs are the plain ones. With `end` a text, and a
    draft, ends with that token; else texts end at a number of tokens.
    """

    def __init__(
        self, seed: int, *, head: bool = False, cut: bool = False, greedy: bool = False, end: int | None = None
    ) -> None:
        rng = np.random.default_rng(seed)
        self.head, self.greedy, self.end, self._q = head, greedy, end, {}
        self._p = {w: rng.dirichlet(np.full(VOCABULARY, 0.7)) for w in prefixes()}
        if cut:
            self._p = {w: _without_least(p) for w, p in self._p.items()}
        if greedy:
            self._p = {w: np.eye(VOCABULARY)[p.argmax()] for w, p in self._p.items()}
        for w in prefixes():
            for start in range(len(w) + 1):
                self._q[w, start] = rng.dirichlet(np.full(VOCABULARY, 0.7))

    def p(self, w: tuple[int, ...]) -> Floats:
        """The target's pmf after w."""
        return self._p[w]

    def q(self, w: tuple[int, ...], start: int) -> Floats:
        """The draft's pmf after w in a call that starts after `start` tokens."""
        return self._q[w, start if self.head else 0]

    def over(self, w: tuple[int, ...]) -> bool:
        """Whether nothing follows w."""
        return len(w) >= TOKENS or (self.end is not None and self.end in w)

    def texts(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """All texts with their probabilities."""
        for text in prefixes():
            if text and self.over(text) and not self.over(text[:-1]):
                yield text, float(np.prod([self.p(text[:n])[text[n]] for n in range(len(text))]))

    def trace(self, text: Sequence[int]) -> Trace:
        """What a measurement records of one text."""
        text, tokens = tuple(text), len(text)
        at = [self.q(text[:n], n) for n in range(tokens)]
        columns = {"log_target": np.log([self.p(text[:n])[text[n]] for n in range(tokens)])}
        columns |= self._of_draft(at, text)
        if self.head:
            depths = [
                self._of_draft(
                    [self.q(text[: min(n + i, tokens - 1)], n) for n in range(tokens)], text[i:] + text[-1:] * i
                )
                for i in range(K)
            ]
            columns |= {f"start_{name}": np.stack([d[name] for d in depths], axis=1) for name in depths[0]}
        ended = text[-1] == self.end
        return Trace(columns, (TextInfo("a", tokens, ended=ended),), {"settings": {"tokens": TOKENS}})

    def _of_draft(self, pmfs: Sequence[Floats], text: Sequence[int]) -> dict[str, Floats]:
        plain = np.stack(pmfs)
        q = np.eye(VOCABULARY)[plain.argmax(axis=1)] if self.greedy else plain
        with np.errstate(divide="ignore"):
            return {
                "log_draft": np.log(q[np.arange(len(q)), text[: len(q)]]),
                "draft_top": plain.max(axis=1),
                "draft_entropy": -np.sum(q * np.log(np.where(q > 0, q, 1.0)), axis=1),
                "draft_rank": 1 + (np.argmax(q, axis=1) != np.array(text[: len(q)])).astype(np.int64),
            }


def _without_least(p: Floats) -> Floats:
    """What a filter leaves: the least probable token is cut."""
    kept = np.where(np.arange(len(p)) == p.argmin(), 0.0, p)
    return kept / kept.sum()


def prefixes() -> list[tuple[int, ...]]:
    return [w for n in range(TOKENS + 1) for w in product(range(VOCABULARY), repeat=n)]


def drafts(pair: Pair, w: tuple[int, ...], stop: StoppingRule, chosen: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    """All drafts of a call after w with their probabilities; with r tokens to go it drafts r - 1 at most."""

    def grow(made: tuple[int, ...], mass: float) -> Iterator[tuple[tuple[int, ...], float]]:
        if len(made) == min(K, TOKENS - len(w) - 1) or pair.over(made):
            yield made, mass
        else:
            q = pair.q(w + made, len(w))
            if not stop.keeps and stop.stops_at(q, 0):
                yield made, mass
                return
            law = np.eye(VOCABULARY)[q.argmax()] if chosen else q
            for x in np.flatnonzero(law):
                ended = stop.keeps and stop.stops_at(q, int(x))
                more = (*made, int(x))
                yield from [(more, mass * law[x])] if ended else grow(more, mass * law[x])

    return grow((), 1.0)


def decoded(pair: Pair, stop: StoppingRule, *, chosen: bool) -> tuple[Floats, float, float]:
    """Expected calls that draft 1..K tokens or more, calls, and calls after which the last draft was not yet read.

    Of token verification or of argmax drafts. The draft has read a token that stopped it, unless the rule keeps it.
    """
    started = {(): 1.0}
    at_least, calls, unread = np.zeros(K), 0.0, 0.0
    for w in prefixes():
        mass = started.get(w, 0.0)
        if pair.over(w) or not mass:
            continue
        calls += mass
        for made, chance in drafts(pair, w, stop, chosen):
            at_least += mass * chance * (np.arange(1, K + 1) <= len(made))
            for output, of_call in verified(pair, w, made, chosen):
                after = w + output
                started[after] = started.get(after, 0.0) + mass * chance * of_call
                if made and len(output) == len(made) + 1 and not pair.over(after) and (stop.keeps or len(made) == K):
                    unread += mass * chance * of_call
    return at_least, calls, unread


def verified(
    pair: Pair, w: tuple[int, ...], made: tuple[int, ...], chosen: bool
) -> Iterator[tuple[tuple[int, ...], float]]:
    """What a call outputs, cut at the end of the text, with probabilities: the algorithms as written."""
    mass, here = 1.0, w
    for x in made:
        p, q = pair.p(here), pair.q(here, len(w))
        accepted = p[x] if chosen else min(1.0, p[x] / q[x])
        rest = np.where(np.arange(VOCABULARY) == x, 0.0, p) if chosen else np.maximum(p - q, 0.0)
        if accepted < 1 and rest.sum() > 0:
            for y, share in enumerate(rest / rest.sum()):
                yield (*here, y)[len(w) :], mass * (1 - accepted) * share
        mass, here = mass * accepted, (*here, x)
    if pair.over(here):
        yield here[len(w) :], mass
    else:
        for y, share in enumerate(pair.p(here)):
            yield (*here, y)[len(w) :], mass * share
