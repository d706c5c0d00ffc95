"""Statistics of positions from logits: nanoseconds per position and entry, one thread, float32, V = 32,000.

Ours against plain numpy in float32 (the peer) and against the exponentials alone (a floor: two are needed per entry).
Equality with numpy in float64 is asserted first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from _columns_in_numpy import numpy_statistics
from _machine import print_machine
from _timing import nanoseconds

from spectheory.distributions import Sampling
from spectheory.measure.columns.statistics import position_statistics

POSITIONS, VOCABULARY, REPEATS = 64, 32_000, 7
TOLERANCE = 2e-5
"""Relative and absolute: logs up to 30 in float32."""


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
