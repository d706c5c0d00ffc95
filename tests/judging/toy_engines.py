"""Engines with known rules and known faults, on small Markov chains: what they log, and both models' view of it.

The algorithms are those of :mod:`simulations.reference`, which know none of the formulas under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Stream, words
from simulations.reference.decoding import ALGORITHMS, Call, DraftTree, Pair
from spectheory.divergences import entropy, hockey_stick, second_log_moment, total_variation
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog, Request

Floats = NDArray[np.float64]
Bend = Callable[[Floats, int, int], Floats]
"""What an engine really drafts from: the draft's pmf, how deep in the call (1 first), position in the text."""


def toy_pair(seed: int = 0, tokens: int = 8, likeness: float = 0.5) -> Pair:
    """Random transition pmfs; the draft is a mixture of the target's and others."""
    rng = np.random.default_rng(seed)
    target, other = rng.dirichlet(np.full(tokens, 0.4), size=(2, tokens))
    return Pair(target, likeness * target + (1 - likeness) * other)


@dataclass(frozen=True)
class ToyEngine:
    """An engine: its pair, rule and chain length; how it counts, and what is wrong with it.

    - `prefill`: the prompt's own pass emits the first token and is no call.
    - `past_end`: calls draft k tokens even at the end of a text, and what is accepted there is counted; else a call
      with m tokens to go drafts m - 1 at most.
    - `prompt_counted`: the prompt's pass is counted as a call; `skips_undrafted`: calls without drafts are not.
    - `stops_below`: drafting ends after a token of less probability (token verification only).
    - `bend`: what it drafts from instead of the draft.
    - `lists_calls`: accepted and drafted tokens are logged call by call; else totals alone.
    """

    pair: Pair
    rule: str = "token"
    k: int = 3
    prefill: bool = True
    past_end: bool = False
    prompt_counted: bool = False
    skips_undrafted: bool = False
    stops_below: float = 0.0
    bend: Bend | None = None
    lists_calls: bool = True

    def log(self, requests: int = 20, length: int = 30, seed: int = 0) -> CallLog:
        """Decode and log; prompts are single tokens."""
        done = tuple(self._request(number, length, seed) for number in range(requests))
        temperature = 0.0 if self.rule == "greedy" else 1.0
        return CallLog(done, "toy", "1", self.k, temperature, None, None, None, self.prefill, self.past_end)

    def _request(self, number: int, length: int, seed: int) -> Request:
        stream = Stream(words(seed, number))
        start = number % self.pair.target.shape[-1]
        text, calls = [], []
        for n, drafted, call in self._calls(start, length, stream):
            text[n:] = call.tokens
            if drafted >= 0:
                calls.append((len(call.tokens) - 1, drafted))
        kept = [call for call in calls if call[1] > 0 or not self.skips_undrafted]
        made = Request(str(number), (start,), tuple(text[:length]), calls=len(kept) + self.prompt_counted)
        if not self.lists_calls or self.prompt_counted:
            accepted = sum(a for a, _ in kept)
            return replace(made, total_accepted=accepted, total_drafted=sum(d for _, d in kept))
        accepted_each, drafted_each = zip(*kept, strict=True) if kept else ((), ())
        return replace(made, accepted=tuple(accepted_each), drafted=tuple(drafted_each))

    def _calls(self, start: int, length: int, stream: Stream) -> Iterator[tuple[int, int, Call]]:
        """Start, drafted tokens and output of each call; the prompt's own pass drafts -1."""
        n, last = 0, start
        if self.prefill:
            last = stream.token(self.pair.p(0, start))
            if self.rule == "greedy":
                last = int(np.argmax(self.pair.p(0, start)))
            yield 0, -1, Call((last,))
            n = 1
        while n < length:
            room = self.k if self.past_end else min(self.k, length - n - 1)
            pair = _Bent(self.pair, n, self.bend) if self.bend else self.pair
            if self.stops_below:
                call, drafted = _stopping(pair, n, last, room, self.stops_below, stream)
            else:
                chain = DraftTree((1,) * depth for depth in range(1, room + 1))
                call, drafted = ALGORITHMS[self.rule].call(chain, pair, n, last, stream), room
            yield n, drafted, call
            n, last = n + len(call.tokens), call.tokens[-1]


class _Bent:
    """A pair whose draft is bent, seen from the start of a call."""

    def __init__(self, pair: Pair, start: int, bend: Bend) -> None:
        self.p, self.pair, self.start, self.bend = pair.p, pair, start, bend

    def q(self, n: int, last: int) -> Floats:
        return self.bend(self.pair.q(n, last), n - self.start + 1, n)


def _stopping(pair: Pair | _Bent, n: int, last: int, room: int, least: float, stream: Stream) -> tuple[Call, int]:
    """Token verification of a chain that ends after a token of probability below `least`."""
    drafts: list[int] = []
    while len(drafts) < room:
        q = pair.q(n + len(drafts), drafts[-1] if drafts else last)
        drafts.append(stream.token(q))
        if q[drafts[-1]] < least:
            break
    out: list[int] = []
    for draft in drafts:
        before = out[-1] if out else last
        p, q = pair.p(n + len(out), before), pair.q(n + len(out), before)
        if stream.uniform() * q[draft] >= p[draft]:
            return Call((*out, stream.token(np.maximum(p - q, 0.0)))), len(drafts)
        out.append(draft)
    return Call((*out, stream.token(pair.p(n + len(out), out[-1] if out else last)))), len(drafts)


def dead_beyond(depth: int) -> Bend:
    """Deeper than this, the draft is certain of a token that it holds least probable."""

    def bend(q: Floats, at: int, n: int) -> Floats:
        return q if at <= depth else np.eye(len(q))[int(np.argmin(q))]

    return bend


def decaying(length: int) -> Bend:
    """The further into the text, the more of the draft's probability goes to its least probable token."""

    def bend(q: Floats, at: int, n: int) -> Floats:
        return q + (np.eye(len(q))[int(np.argmin(q))] - q) * min(1.0, n / length)

    return bend


def read(pair: Pair, log: CallLog) -> Trace:
    """Both models teacher-forced on a log's texts, at temperature 1."""
    before = np.array([t for r in log.requests for t in (*r.prompt, *r.output)[len(r.prompt) - 1 : -1]])
    token = np.array([t for r in log.requests for t in r.output])
    p, q, at = pair.target[before], pair.draft[before], np.arange(len(token))
    with np.errstate(divide="ignore"):
        log_target, log_draft = np.log(p[at, token]), np.log(q[at, token])
    ratio = p[at, token] / q[at, token]
    columns = {
        "token": token,
        "log_target": log_target,
        "log_draft": log_draft,
        "draft_rank": _rank(q, token),
        "target_rank": _rank(p, token),
        "greedy_agreement": p.argmax(axis=1) == q.argmax(axis=1),
        "race_g": hockey_stick(p, q, ratio),
        "total_variation": total_variation(p, q),
        "target_entropy": entropy(p),
        "target_second_moment": second_log_moment(p),
        "draft_entropy": entropy(q),
    }
    texts = tuple(TextInfo(request.id, len(request.output)) for request in log.requests)
    sampling = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}
    return Trace(columns, texts, {"settings": {"sampling": sampling}})


def _rank(pmf: Floats, token: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each token by falling probability, the lowest index first where equal."""
    order = np.argsort(-pmf, axis=1, kind="stable")
    return np.asarray(1 + (order == token[:, None]).argmax(axis=1))
