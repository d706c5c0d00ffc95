"""Token verification with models that look at all tokens so far: the twin of the kernel over automata.

A model is a function of the tokens so far, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.decoding import output_and_mark
from simulations.reference.markov import Call

Prefix = tuple[int, ...]
Model = Callable[[Prefix], Floats]


def prefix_call(target: Model, draft: Model, before: Prefix, k: int, stream: Stream) -> Call:
    """One call of token verification after the tokens `before`, by the joint law of each output and its coin."""
    tokens = before
    for depth in range(k + 1):
        token, accepted = output_and_mark(target(tokens), draft(tokens), stream)
        tokens = (*tokens, token)
        if not accepted or depth == k:
            break
    return Call(tokens[len(before) :])


def prefix_text(target: Model, draft: Model, before: Prefix, length: int, k: int, stream: Stream) -> Iterator[Call]:
    """The calls that decode `length` tokens after `before`; the last one drafts no more than fits."""
    tokens, end = before, len(before) + length
    while len(tokens) < end:
        step = prefix_call(target, draft, tokens, min(k, end - len(tokens) - 1), stream)
        yield step
        tokens += step.tokens
