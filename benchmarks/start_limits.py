"""Limits of draft heads over whole decodings: L, and L with charges of mean 0 (§12/L-charged), on measured traces.

``python benchmarks/start_limits.py TRACE...`` after ``spectheory measure --draft builtin:mtp --out FOLDER`` (or
another head). Factors of the charges are fitted on one half of the prompts and used on the other. Two charges of the
i-th draft of a start are compared: min(1, rho) - (1 - TV), which needs both models' pmfs, and rho - 1, for which two
numbers per token are enough.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from spectheory.prediction.paths import calls_of_chains, tokens_left
from spectheory.prediction.trace_limits import least_calls
from spectheory.trace import Trace, read_any
from spectheory.verification import BlockVerification
from spectheory.verification.by_start import along_calls, log_ratio

KS = (2, 4)
Floats = NDArray[np.float64]


class Charged:
    """L of every text of a trace with charges ``[N, k]`` that factors multiply."""

    def __init__(self, trace: Trace, k: int, charges: Floats) -> None:
        self.lengths, self.ends, self.k = trace.lengths, np.cumsum(trace.lengths), k
        left = tokens_left(trace.lengths)[:, None]
        depth = np.arange(1, k + 1)
        survival = np.where(depth < left, BlockVerification().path_survival(trace.columns, k), 0.0)
        self.masses = -np.diff(survival, axis=1, prepend=1.0, append=0.0)
        self.charges = np.where(depth <= left, charges, 0.0)

    def calls(self, factors: Floats, texts: NDArray[np.int64]) -> Floats:
        """The limit of some of the texts."""
        ahead = np.zeros((len(texts), self.lengths[texts].max() + 1))
        for left in range(1, ahead.shape[1]):
            here = self.lengths[texts] >= left
            rows = self.ends[texts][here] - left
            paid = np.cumsum(factors * self.charges[rows], axis=1)
            later = ahead[here][:, [max(left - j - 1, 0) for j in range(self.k + 1)]]
            low = np.minimum.accumulate(later + np.concatenate([paid, paid[:, -1:]], axis=1), axis=1)
            ahead[here, left] = 1 + (self.masses[rows] * low).sum(axis=1)
        return ahead[np.arange(len(texts)), self.lengths[texts]]

    def crossed(self, half: NDArray[np.bool_]) -> Floats:
        """The limit of every text with the factors that are best for the other half."""
        limit = np.zeros(len(half))
        for side in (half, ~half):
            fit, use = np.flatnonzero(side), np.flatnonzero(~side)
            options = {"maxiter": 4, "xtol": 1e-2, "ftol": 1e-5}
            best = minimize(
                lambda c, fit=fit: -self.calls(c, fit).sum(), np.zeros(self.k), method="Powell", options=options
            )
            limit[use] = self.calls(best.x, use)
        return limit


def gained(difference: Floats, prompts: NDArray[Any]) -> dict[str, float]:
    """The sum over texts and the half width of its 95% interval over prompts."""
    by_prompt = np.array([difference[prompts == each].sum() for each in np.unique(prompts)])
    return {"calls": float(by_prompt.sum()), "half_width": float(1.96 * by_prompt.std(ddof=1) * len(by_prompt) ** 0.5)}


def rows(trace: Trace, name: str) -> list[dict[str, Any]]:
    """Block verification's calls, L, and what charges add to it."""
    prompts = np.array([text.prompt for text in trace.texts])
    half = np.isin(prompts, np.unique(prompts)[::2])
    found = []
    for k in KS:
        ratio = along_calls(trace.columns, k, log_ratio, fill=0.0)
        mean = 1 - trace.columns["start_total_variation"][:, :k].astype(np.float64)
        plain = least_calls(BlockVerification().path_survival(trace.columns, k), trace.lengths, [k])[k]
        block = calls_of_chains(BlockVerification().path_survival(trace.columns, k), trace.lengths, [k])[k].expected
        kinds = {"accepted": np.minimum(1.0, np.exp(ratio)) - mean, "ratio": np.expm1(ratio)}
        charged = {kind: Charged(trace, k, charges) for kind, charges in kinds.items()}
        if not np.allclose(charged["ratio"].calls(np.zeros(k), np.arange(len(half))), plain, rtol=1e-10):
            raise SystemExit("without charges the limit is not L")
        adds = {kind: gained(each.crossed(half) - plain, prompts) for kind, each in charged.items()}
        found.append({"head": name, "k": k, "block": float(block.sum()), "L": float(plain.sum()), **adds})
    return found


if __name__ == "__main__":
    answer = [row for file in sys.argv[1:] for row in rows(read_any(file), Path(file).parent.name)]
    out = Path(__file__).parent / "results" / "limits" / "start_limits.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"rows": answer}, indent=1) + "\n", encoding="utf-8")
    for row in answer:
        print(row)
