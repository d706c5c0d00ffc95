"""Slow, readable simulators of the algorithms as written: the twin of every fast kernel, a file for each group.

Nothing here uses a closed form of :mod:`spectheory`; agreement with it is evidence.
"""

from simulations.reference.markov import (
    RULES,
    Call,
    CallRule,
    Decoded,
    KeptRace,
    Pair,
    block_verification,
    decode,
    draft_tokens,
    draw,
    draw_excess,
    independent_match,
    markov_text,
    race_verification,
    race_with_clocks,
    token_verification,
    winner,
)

__all__ = [
    "RULES",
    "Call",
    "CallRule",
    "Decoded",
    "KeptRace",
    "Pair",
    "block_verification",
    "decode",
    "draft_tokens",
    "draw",
    "draw_excess",
    "independent_match",
    "markov_text",
    "race_verification",
    "race_with_clocks",
    "token_verification",
    "winner",
]
