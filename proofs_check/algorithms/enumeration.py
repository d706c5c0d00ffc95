"""Whole algorithms enumerated in fractions: the exact law of text and accepted drafts over several calls in a row.

Each rule is written as its paper writes it, over a target and a draft that are functions of the whole prefix, so
chains of any order and any kind of non-stationarity are covered. Nothing here uses a closed form of the library or
the path theorem: :mod:`proofs_check.twins.path_theorem` and :mod:`spectheory` are compared with what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, Protocol

from proofs_check.statement.fractions import Fraction, end_of, law, law_of, total

Prefix = tuple[int, ...]
Pmf = tuple[Fraction, ...]
Model = Callable[[Prefix], Pmf]
"""The pmf of the next token after a prefix."""

Table = Mapping[Prefix, Pmf]
"""A model as a table: a pmf after every prefix."""

CallLaw = dict[tuple[Prefix, int], Fraction]
"""Law of one call: (output tokens, accepted drafts) to probability; output is the accepted drafts and one more."""

Calls = Iterator[tuple[tuple[Prefix, int], Fraction]]
"""Outcomes of one call, each with its probability."""

Rule = Callable[[Model, Model, Prefix, int], CallLaw]
"""A whole call of a rule: target, draft, the text so far, the number k >= 0 of drafts."""

GoesOn = Callable[[Model, Prefix, Prefix], bool]
"""Whether a call drafts another token: from the draft, the text so far, and what the call has drafted (§11)."""

TextLaw = dict[tuple[Prefix, tuple[int, ...]], Fraction]
"""Law of a text: (text, accepted drafts of each call) to probability; the last call may reach past the text."""


class StoppableRule(Protocol):
    """A whole call of a rule that judges a chain, of k drafts or fewer."""

    def __call__(self, target: Model, draft: Model, prefix: Prefix, k: int, goes_on: GoesOn = ...) -> CallLaw:
        """The law of the call."""


Coupling = Callable[[Pmf, Pmf], dict[tuple[int, int], Fraction]]
"""Joint law of (drafted token, output token) at one position, from target and draft pmf."""


def positive_part(minuend: Pmf, subtrahend: Pmf, scale: Fraction = Fraction(1)) -> Pmf:
    """Entrywise (scale * minuend - subtrahend)+."""
    return tuple(max(scale * a - b, Fraction(0)) for a, b in zip(minuend, subtrahend, strict=True))


def normalised(weights: Pmf) -> Pmf:
    """The pmf proportional to `weights`, which must not all be zero."""
    whole = sum(weights)
    return tuple(weight / whole for weight in weights)


def always(draft: Model, prefix: Prefix, path: Prefix) -> bool:
    """Every call drafts k tokens."""
    return True


def draft_paths(draft: Model, prefix: Prefix, k: int, goes_on: GoesOn = always) -> Iterator[tuple[Prefix, Fraction]]:
    """Every run of k drafted tokens of positive probability, or fewer where drafting stops, with its probability."""
    running: list[tuple[Prefix, Fraction]] = [((), Fraction(1))]
    for _ in range(k):
        longer: list[tuple[Prefix, Fraction]] = []
        for path, weight in running:
            if not goes_on(draft, prefix, path):
                yield path, weight
                continue
            longer += [
                ((*path, token), weight * share) for token, share in enumerate(draft(prefix + path)) if share > 0
            ]
        running = longer
    yield from running


def probability(model: Model, prefix: Prefix, run: Prefix) -> Fraction:
    """The probability of a run of tokens after a prefix."""
    return prod((model(prefix + run[:i])[token] for i, token in enumerate(run)), start=Fraction(1))


def outputs(accepted: Prefix, last: Pmf, weight: Fraction) -> Calls:
    """The outputs of a call that accepts the drafts `accepted` and draws its last token from `last`."""
    return ((((*accepted, token), len(accepted)), weight * share) for token, share in enumerate(last))


@law_of
def token_verification(target: Model, draft: Model, prefix: Prefix, k: int, goes_on: GoesOn = always) -> Calls:
    """Token verification as in leviathan2023 and chen2023, every draft run and every coin."""
    for path, alive in draft_paths(draft, prefix, k, goes_on):
        for i, token in enumerate(path):
            p, q = target(prefix + path[:i]), draft(prefix + path[:i])
            accept = min(Fraction(1), p[token] / q[token])
            if accept < 1:
                yield from outputs(path[:i], normalised(positive_part(p, q)), alive * (1 - accept))
            alive *= accept
        yield from outputs(path, target(prefix + path), alive)


@law_of
def block_verification(target: Model, draft: Model, prefix: Prefix, k: int, goes_on: GoesOn = always) -> Calls:
    """Block verification as in sun2024block (Algorithm 2), every draft run and every coin.

    With p_0 = 1 and p_i = min(1, p_{i-1} P(X_i)/Q(X_i)), depth i < k is marked with probability
    h_i = S_i / (S_i + 1 - p_i), S_i = sum_x (p_i P(x|X^i) - Q(x|X^i))+, and h_k = p_k. The largest marked depth is
    accepted; below k the next token is recovered from norm (p_i P - Q)+, at k it is the bonus token.
    """
    for path, weight in draft_paths(draft, prefix, k, goes_on):
        for depth, last, share in block_judged(target, draft, prefix, path):
            yield from outputs(path[:depth], last, weight * share)


def block_judged(target: Model, draft: Model, prefix: Prefix, path: Prefix) -> Iterator[tuple[int, Pmf, Fraction]]:
    """What block verification does with one run of drafts: accepted, law of the token after them, probability."""
    k, running = len(path), [Fraction(1)]
    for i, token in enumerate(path):
        before = prefix + path[:i]
        running.append(min(Fraction(1), running[i] * target(before)[token] / draft(before)[token]))
    unmarked_above = Fraction(1)
    for depth in range(k, -1, -1):
        after = prefix + path[:depth]
        last = target(after) if depth == k else positive_part(target(after), draft(after), running[depth])
        marked = running[k] if depth == k else _block_mark(running[depth], total(last))
        if depth == 0:
            marked = Fraction(1)  # no depth marked: nothing accepted
        if unmarked_above * marked > 0:
            yield depth, normalised(last), unmarked_above * marked
        unmarked_above *= 1 - marked


def _block_mark(running: Fraction, excess: Fraction) -> Fraction:
    """S/(S + 1 - p); where both vanish a deeper mark is certain, so any value serves: 0."""
    return excess / (excess + 1 - running) if excess + 1 - running > 0 else Fraction(0)


def coupled_verification(coupling: Coupling) -> StoppableRule:
    """The rule whose every position draws (draft, output) from `coupling` and goes on while they agree."""

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int, goes_on: GoesOn = always) -> Calls:
        alive: list[tuple[Prefix, Fraction]] = [((), Fraction(1))]
        for _ in range(k):
            going: list[tuple[Prefix, Fraction]] = []
            for path, weight in alive:
                if not goes_on(draft, prefix, path):
                    yield from outputs(path, target(prefix + path), weight)
                    continue
                joint = coupling(target(prefix + path), draft(prefix + path))
                for (drafted, output), share in joint.items():
                    if drafted == output and share:
                        going.append(((*path, drafted), weight * share))
                    elif share:
                        yield ((*path, output), len(path)), weight * share
            alive = going
        for path, weight in alive:
            yield from outputs(path, target(prefix + path), weight)

    return call


def race_coupling(p: Pmf, q: Pmf) -> dict[tuple[int, int], Fraction]:
    r"""Joint law of the two winners of the exponential race, (argmin E_y/q_y, argmin E_y/p_y), exactly.

    Equal winners: :math:`P(x, x) = 1/\sum_y \max(p_y/p_x, q_y/q_x)`, the minimum of independent exponentials. Different
    ones, draft i and output j: j wins the target race at a time u ~ Exp(1); every other clock is then u p_y plus a
    fresh exponential, and i wins the draft race at s u, r_i < s < r_j with r = p/q, if no y has rung:

    .. math:: P(i, j) = \int_0^\infty\! u e^{-u} p_j q_i \int_{r_i}^{r_j}\! e^{-u G(s)}\,ds\,du
        = p_j q_i \int_{r_i}^{r_j} \frac{ds}{(1 + G(s))^2}, \qquad G(s) = \sum_y (s q_y - p_y)_+ .

    G is linear between neighbouring ratios a < b, where the integral is (b - a)/((1 + G(a))(1 + G(b))); for q_j = 0
    the last piece runs to infinity and is 1/(1 + G(a)), as G has slope 1 there.
    """
    support = [y for y in range(len(p)) if p[y] > 0 or q[y] > 0]
    return law(((i, j), _both(p, q, i) if i == j else _different(p, q, i, j)) for i in support for j in support)


def _both(p: Pmf, q: Pmf, x: int) -> Fraction:
    if p[x] == 0 or q[x] == 0:
        return Fraction(0)
    return 1 / total(max(p[y] / p[x], q[y] / q[x]) for y in range(len(p)))


def _different(p: Pmf, q: Pmf, i: int, j: int) -> Fraction:
    if q[i] == 0 or p[j] == 0:
        return Fraction(0)
    support = [y for y in range(len(q)) if q[y] > 0]
    bends = sorted({p[y] / q[y] for y in support})
    if q[j] > 0:
        bends = [bend for bend in bends if bend <= p[j] / q[j]]
    bends = [bend for bend in bends if bend >= p[i] / q[i]]
    rung = [1 + total(max(s * q[y] - p[y], Fraction(0)) for y in support) for s in bends]
    pieces = total((bends[m + 1] - bends[m]) / (rung[m] * rung[m + 1]) for m in range(len(bends) - 1))
    return p[j] * q[i] * (pieces + (1 / rung[-1] if q[j] == 0 else 0))


def independent_coupling(p: Pmf, q: Pmf) -> dict[tuple[int, int], Fraction]:
    """Draft and output drawn independently (A4)."""
    return {(i, j): q[i] * p[j] for i in range(len(q)) for j in range(len(p))}


def argmax_coupling(p: Pmf, q: Pmf) -> dict[tuple[int, int], Fraction]:
    """The draft's most probable token, lowest index first, against a sampled output (A4)."""
    first = max(range(len(q)), key=lambda y: (q[y], -y))
    return {(first, j): p[j] for j in range(len(p))}


race_verification = coupled_verification(race_coupling)
independent_match = coupled_verification(independent_coupling)
argmax_draft = coupled_verification(argmax_coupling)


@dataclass(frozen=True)
class Decoding:
    """How whole texts are decoded: `rule` is one call of k drafts, surplus tokens of the last call are cut.

    With `spare` a call with m tokens to go drafts at most m - spare of them. With `prefill` the prompt's own pass emits
    one token without drafts, as a call of its own.
    """

    rule: Rule
    k: int
    length: int
    spare: int | None = None
    prefill: bool = False

    def law(self, target: Model, draft: Model) -> TextLaw:
        """The exact joint law of the text and the accepted drafts of every call."""
        call = cache(lambda text: self.rule(target, draft, text, self._drafts(text)).items())

        def next_call(state: tuple[Prefix, tuple[int, ...]]) -> Iterable[tuple[Any, Fraction]] | None:
            text, accepted = state
            if len(text) == self.length:
                return None
            return [(((text + tokens)[: self.length], (*accepted, n)), share) for (tokens, n), share in call(text)]

        return end_of(((), ()), next_call)

    def _drafts(self, text: Prefix) -> int:
        if self.prefill and not text:
            return 0
        if self.spare is None:
            return self.k
        return min(self.k, max(self.length - len(text) - self.spare, 0))


def text_law(model: Model, length: int) -> dict[Prefix, Fraction]:
    """Law of the next `length` tokens when each is drawn from `model`."""
    return dict(draft_paths(model, (), length))


def output_law(whole: TextLaw) -> dict[Prefix, Fraction]:
    """Law of the output text alone."""
    return law((text, weight) for (text, _), weight in whole.items())


def starts_of(whole: TextLaw) -> dict[Prefix, Fraction]:
    """Expected calls after each prefix."""
    return law(
        (text[: sum(accepted[:call]) + call], weight)
        for (text, accepted), weight in whole.items()
        for call in range(len(accepted))
    )


def given_text(whole: TextLaw, text: Prefix) -> dict[tuple[int, ...], Fraction]:
    """Law of the accepted drafts of every call, given the whole text; drafts past its end are not counted."""
    weights = {accepted: weight for (output, accepted), weight in whole.items() if output == text}

    def cut(accepted: tuple[int, ...]) -> tuple[int, ...]:
        start = sum(accepted[:-1]) + len(accepted) - 1
        return (*accepted[:-1], min(accepted[-1], len(text) - start))

    return law((cut(accepted), weight / total(weights.values())) for accepted, weight in weights.items())
