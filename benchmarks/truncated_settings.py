"""Every column at truncated settings, V = 151,936: thread CPU time in ms per position, one thread.

Ours, over the union of both supports, against the same columns over the whole vocabulary (the peer; its cuts are
made as ours) and against one reading of both rows (the limit). Every column but the estimated law is asserted to be
the peer's; it is drawn from the same noise, and single precision moves some draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from _rows import Row, publish
from _timing import nanoseconds
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.columns import statistics
from spectheory.measure.columns.statistics import position_statistics

VOCABULARY, POSITIONS, OF_PEER, REPEATS = 151_936, 64, 3, 3
SINGLE = 2e-5
"""Relative and absolute: the peer sums in single precision, and its logits of 30 are rounded to 1e-6."""
EQUAL = f"every column but the estimated law is the peer's to {SINGLE:g}"
WANTED = {
    "T 0.7, top-k 50": (Sampling(0.7, top_k=50), 1.0),
    "T 0.7, top-k 50, top-p 0.9": (Sampling(0.7, top_k=50, top_p=0.9), 1.0),
    "T 1, top-k 1000": (Sampling(1, top_k=1000), 1.5),
    "temperature 0": (Sampling(0), 0.6),
    "T 0.6, top-p 0.95": (Sampling(0.6, top_p=0.95), 2.0),
    "T 1, top-p 0.95": (Sampling(1, top_p=0.95), 5.0),
}


@contextmanager
def whole_vocabulary() -> Iterator[None]:
    """Every column over all tokens."""
    known = statistics.cuts
    statistics.cuts = lambda *_: False
    try:
        yield
    finally:
        statistics.cuts = known


def check(target: Tensor, draft: Tensor, tokens: Tensor, sampling: Sampling) -> None:
    """Ours is the peer's."""
    ours = position_statistics(target, draft, tokens, sampling, sampled=True)
    with whole_vocabulary():
        for name, values in position_statistics(target, draft, tokens, sampling, sampled=True).items():
            if name != "distinct_rank":
                np.testing.assert_allclose(ours[name], values, rtol=SINGLE, atol=SINGLE, err_msg=name)


def main() -> None:
    """Check equality, then time, by setting."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    target = 3 * torch.randn(POSITIONS, VOCABULARY, generator=generator)
    draft = target + torch.randn(target.shape, generator=generator)
    tokens, rows = torch.multinomial(target.softmax(-1), 1, generator=generator)[:, 0], []
    few = target[:OF_PEER], draft[:OF_PEER], tokens[:OF_PEER]
    half = target.bfloat16(), draft.bfloat16(), tokens

    def time(work: Callable[[], object], positions: int = POSITIONS) -> float:
        return nanoseconds(lambda _: work(), [0], positions, REPEATS) / 1e6

    limit = time(lambda: (target.amax(dim=-1), draft.amax(dim=-1)))
    for setting, (sampling, wanted) in WANTED.items():
        check(*few, sampling)

        def columns(*given: Tensor, sampling: Sampling = sampling) -> object:
            return position_statistics(*given, sampling, sampled=True)

        with whole_vocabulary():
            peer = time(lambda columns=columns: columns(*few), OF_PEER)
        for label, given in ((setting, (target, draft, tokens)), (f"{setting}, bfloat16", half)):
            ours = time(lambda columns=columns, given=given: columns(*given))
            rows.append(
                Row(
                    f"all columns, {label}",
                    "ms per position",
                    ours,
                    EQUAL,
                    peer,
                    "whole vocabulary, float32",
                    limit,
                    "reading both rows",
                    wanted,
                )
            )
    publish(__file__, "All columns at truncated settings, V = 151,936, one thread", rows, "")


if __name__ == "__main__":
    main()
