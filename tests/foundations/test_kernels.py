"""Which arrays the kernels take, and how they are compiled."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from spectheory import kernels
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.kernels import compiling, race
from spectheory.verification.race_bounds import race_enclosure
from tests.foundations.kernel_cases import HARD, TOKENS, assert_same_g, language_like, without_numba

# Which arrays are taken


def test_kernels_take_large_float64_numpy_arrays_alone() -> None:
    large = np.full(TOKENS, 1 / TOKENS)
    assert kernels.usable(large, large)
    for other in (large[: kernels.SMALLEST - 1], large.astype(np.float32), torch.from_numpy(large), large.tolist()):
        assert not kernels.usable(large, other)
    assert not kernels.usable(large.astype(">f8"))
    with without_numba():
        assert not kernels.usable(large)


def test_rules_use_the_kernels_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = HARD["language"]
    with without_numba():
        twin = hockey_stick_at_ratios(p, q, np)
    assert_same_g(hockey_stick_at_ratios(p, q, np), twin)
    monkeypatch.setattr(race, "hockey_stick_at_ratios", lambda p, q: "compiled")
    assert hockey_stick_at_ratios(p, q, np) == "compiled"
    with without_numba():
        np.testing.assert_array_equal(hockey_stick_at_ratios(p, q, np), twin)


def test_rows_broadcast_and_may_be_read_only_or_strided() -> None:
    p, q = language_like(TOKENS)
    grid = np.stack([p, q])
    frozen = grid.copy()
    frozen.flags.writeable = False
    expected = [[race.race_acceptance(a, b) for b in (p, q)] for a in (p, q)]
    for target in (grid, frozen, np.asfortranarray(grid), np.broadcast_to(grid, (2, TOKENS))):
        np.testing.assert_array_equal(race.race_acceptance(target[:, None], target), expected)
    g = race.hockey_stick_at_ratios(grid[:, None], grid)
    assert g.shape == (2, 2, TOKENS)
    np.testing.assert_array_equal(g[0, 1], race.hockey_stick_at_ratios(p, q))


def test_threads_do_not_share_their_scratch_memory() -> None:
    jobs = [language_like(TOKENS + 100 * seed, seed) for seed in range(4)]
    alone = [(race.race_acceptance(p, q), race_enclosure(p, q)) for p, q in jobs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(lambda job: (race.race_acceptance(*job), race_enclosure(*job)), jobs)) == alone


def test_importing_loads_no_numba() -> None:
    line = (
        "import sys, spectheory.kernels, spectheory.logit_statistics, spectheory.verification; "
        "spectheory.verification.race_enclosure([1.0], [1.0]); print('numba' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_a_numba_that_does_not_import_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError(f"{name} needs another numpy")

    assert kernels.installed()
    monkeypatch.setattr(kernels.importlib, "import_module", broken)
    assert not kernels.installed.__wrapped__()


def test_without_a_folder_kernels_are_compiled_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def njit(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, options)

    monkeypatch.setattr(compiling, "numba", SimpleNamespace(njit=njit))
    function, options = compiling.compiled(math.sqrt)  # type: ignore[misc]
    assert function is math.sqrt
    assert options == {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}
