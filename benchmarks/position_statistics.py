"""Statistics of positions from logits: nanoseconds per position and entry, one thread, float32, V = 32,000.

Ours against plain numpy in float32 (the peer) and against the exponentials alone (a floor: two are needed per entry).
Equality with numpy in float64 is asserted first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from _machine import print_machine
from _timing import nanoseconds
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.measure.statistics import position_statistics
from spectheory.trace import RECORDED_RANKS

POSITIONS, VOCABULARY, REPEATS = 64, 32_000, 7
TOLERANCE = 2e-5
"""Relative and absolute: logs up to 30 in float32."""


def numpy_statistics(
    target: NDArray[np.floating], draft: NDArray[np.floating], tokens: NDArray[np.int64], race: bool
) -> dict[str, NDArray[np.floating]]:
    """The same columns in plain numpy, whole arrays at a time."""
    at = np.arange(len(tokens)), tokens
    log_p, log_q = (x - x.max(-1, keepdims=True) for x in (target, draft))
    log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
    log_q -= np.log(np.exp(log_q).sum(-1, keepdims=True))
    p, q = np.exp(log_p), np.exp(log_q)
    c = np.exp(log_p[at] - log_q[at])
    rho, left, taken, ranks = 1 / c, np.ones_like(c), np.zeros_like(c), []
    for _ in range(RECORDED_RANKS):
        ranks.append(np.minimum(np.maximum(1 - taken * rho, 0), left * rho))
        taken = taken + left
        left = np.maximum(p - taken[:, None] * q, 0).sum(-1)
    columns = {
        "log_target": log_p[at],
        "log_draft": log_q[at],
        "total_variation": np.abs(p - q).sum(-1) / 2,
        "kl": (p * (log_p - log_q)).sum(-1),
        "target_entropy": -(p * log_p).sum(-1),
        "target_second_moment": (p * log_p**2).sum(-1),
        "draft_entropy": -(q * log_q).sum(-1),
        "harmonic_similarity": (2 * p * q / (p + q)).sum(-1),
        "race_g": np.maximum(c[:, None] * q - p, 0).sum(-1),
        "draft_rank": 1 + (log_q > log_q[at][:, None]).sum(-1),
        "target_rank": 1 + (log_p > log_p[at][:, None]).sum(-1),
        "greedy_agreement": log_p.argmax(-1) == log_q.argmax(-1),
        "rejection_rank": np.stack(ranks, axis=1),
    }
    if race:
        order = np.argsort(p / q, axis=-1)
        p, q = np.take_along_axis(p, order, -1), np.take_along_axis(q, order, -1)
        g = p / q * np.cumsum(q, -1) - np.cumsum(p, -1)
        columns["race_acceptance"] = (p / (1 + np.maximum(g, 0))).sum(-1)
    return columns


def time_of(work: Callable[[int], object]) -> float:
    """Nanoseconds per position and entry."""
    return nanoseconds(work, [0], POSITIONS * VOCABULARY, REPEATS)


def main() -> None:
    """Check equality, then time."""
    torch.set_num_threads(1)
    print_machine()
    print(
        f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {POSITIONS} positions, V = {VOCABULARY}"
    )
    torch.manual_seed(0)
    target = 3 * torch.randn(POSITIONS, VOCABULARY)
    draft = target + torch.randn(POSITIONS, VOCABULARY)
    tokens = torch.distributions.Categorical(logits=target).sample()
    expected = numpy_statistics(target.double().numpy(), draft.double().numpy(), tokens.numpy(), race=True)
    ours = position_statistics(target, draft, tokens, Sampling())
    for name, values in expected.items():
        np.testing.assert_allclose(ours[name].numpy(), values, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)
    floor = time_of(lambda _: (torch.exp(target), torch.exp(draft)))
    print(f"{'columns':<28}{'ours':>8}{'numpy':>8}{'exp':>8}{'numpy/ours':>12}{'ours/exp':>10}   (ns per entry)")
    for race, label in ((False, "without race acceptance"), (True, "all")):
        own = time_of(lambda _, race=race: position_statistics(target, draft, tokens, Sampling(), race=race))
        peer = time_of(lambda _, race=race: numpy_statistics(target.numpy(), draft.numpy(), tokens.numpy(), race))
        print(f"{label:<28}{own:>8.1f}{peer:>8.1f}{floor:>8.1f}{peer / own:>12.1f}{own / floor:>10.1f}")
    for sampling in (Sampling(temperature=0.7), Sampling(top_k=50), Sampling(top_p=0.9), Sampling(temperature=0)):
        own = time_of(lambda _, s=sampling: position_statistics(target, draft, tokens, s, race=False))
        print(f"{sampling!s:<60}{own:>8.1f}")


if __name__ == "__main__":
    main()
