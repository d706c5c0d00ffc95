"""A stationary ergodic target with long certain stretches (B9): a renewal process on three tokens, in fractions.

A block is u^(j-1) z s^(2^j): after each u, and at the start, u has the probability r and z has 1 - r; z fixes the
number 2^j of s, which are certain. The entropy rate is positive; the stretch that a random start lies in has
P(left = m) ~ m^(log2 r), of infinite mean for r >= 1/4.
"""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.twins.random_pmf_trees import grown

U, Z, S = 0, 1, 2


def mean_block(r: Fraction) -> Fraction:
    """Mean tokens of a block: of its code, and of its stretch."""
    return 1 / (1 - r) + 2 * (1 - r) / (1 - 2 * r)


def entropy_rate(r: Fraction) -> Real:
    """Nats per token: the coin is thrown once for each token of a code."""
    coin = -(r * log(r) + (1 - r) * log(1 - r))
    return coin / (1 - r) / mean_block(r)


def left_with(r: Fraction, m: int) -> Fraction:
    """Probability that a random start has m certain tokens before it, m >= 1: any level j with 2^j >= m."""
    level = max((m - 1).bit_length(), 1)
    return r ** (level - 1) / mean_block(r)


def in_code(r: Fraction) -> Fraction:
    """Probability that a random start lies in a code."""
    return 1 / (1 - r) / mean_block(r)


def in_block(r: Fraction, level: int) -> Model:
    """The pmf after a prefix that begins in a code, level - 1 u after the block's start: a new block has level 1."""
    coin: Pmf = (r, 1 - r, Fraction(0))
    certain: Pmf = (Fraction(0), Fraction(0), Fraction(1))

    def model(prefix: Prefix) -> Pmf:
        at, left = level, 0
        for token in prefix:
            if left:
                left -= 1
                at = at if left else 1
            elif token == U:
                at += 1
            else:
                left = 1 << at
        return certain if left else coin

    return model


def values(r: Fraction, capacity: int, level: int = 1) -> list[Fraction]:
    """E[X] of the best tree of 0, 1, ..., P prefixes that starts in a code at a level."""
    found = [Fraction(0)]
    for weight, _ in grown(in_block(r, level), capacity):
        found.append(found[-1] + weight)
    return found


def stationary_value(r: Fraction, capacity: int) -> Fraction:
    """E[X] of the best trees of P prefixes at a random start: in a stretch, its tokens, then the tree after them.

    In a code the drafter knows the u before the start. From the level with 2^level >= P on no stretch ends in the tree,
    and the levels are alike.
    """
    after = values(r, capacity)
    shares = [left_with(r, m) for m in range(1, capacity)]
    deepest = max((capacity - 1).bit_length(), 1)
    total = r ** (deepest - 1) * in_code(r) * values(r, capacity, deepest)[capacity]
    for level in range(1, deepest):
        total += r ** (level - 1) / mean_block(r) * values(r, capacity, level)[capacity]
    total += sum((share * (m + after[capacity - m]) for m, share in enumerate(shares, start=1)), Fraction(0))
    return total + (1 - in_code(r) - sum(shares, Fraction(0))) * capacity


def certain_part(r: Fraction, capacity: int) -> Fraction:
    """E min(left, P), the certain tokens of a random start that P prefixes hold."""
    shares = [left_with(r, m) for m in range(1, capacity)]
    found = sum((share * m for m, share in enumerate(shares, start=1)), Fraction(0))
    return found + (1 - in_code(r) - sum(shares, Fraction(0))) * capacity
