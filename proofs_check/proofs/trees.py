"""Steps about draft trees that several statements share."""

from __future__ import annotations

from proofs_check.prelude import *

ADD_A_NODE: Step = same(
    "the root alone gives one token, its weight; a node of weight w and depth d, whose children have probability c "
    "together, ends a call with probability w(1-c), at d+1 tokens; a new child of rank probability x takes wx of it, "
    "ends calls with wx, at d+2 tokens, and nothing else changes: E[tokens] grows by the new node's weight wx",
    lambda w, c, x, d: (w * (1 - c - x) * (d + 1) + w * x * (d + 2) - w * (1 - c) * (d + 1), w * x),
)

EXCHANGE: tuple[Step, ...] = (
    valid(
        "w <= (w - t)+ + t for every t, so k nodes weigh at most the sum of (w - t)+ over them, hence over all nodes, "
        "plus k t",
        lambda w, t: (at_most(w, positive_part(w - t) + t), at_least(positive_part(w - t), 0)),
    ),
    valid(
        "let t be the weight of the k-th node of the order: each of the first k has (w - t)+ + t = w ...",
        lambda w, t: equal(positive_part(w - t) + t, w),
        lambda w, t: [w >= t],
    ),
    valid(
        "... and every other one (w - t)+ = 0: the bound is the sum of the first k, and no k nodes weigh more",
        lambda w, t: equal(positive_part(w - t), 0),
        lambda w, t: [w <= t],
    ),
)
"""The first k of an order by weight weigh the most, whatever the weights."""
