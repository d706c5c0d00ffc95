"""Exact recursions along texts of 100,000 positions, each against the same written as Python loops; equality first.

A prediction from a trace (all rules, k = 1..16, intervals over prompts), the limit L of a whole decoding, 32 thresholds
of a stopping rule with calls, drafted lengths and seconds, and bounds of adaptive lengths. The loops run on a few
texts, scaled up. Slopes say how time grows with text and depth. One text of 100,000 tokens is the slowest case of L,
since texts are worked through side by side.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from _rows import Row, median_seconds, publish
from _traces import made_up
from numpy.typing import NDArray

from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.drafting.stopping import TopBelow
from spectheory.prediction import plan
from spectheory.prediction.adaptive import call_seconds, least_seconds, least_seconds_of_any_rule, sweep
from spectheory.prediction.paths import calls_of_chains
from spectheory.prediction.stopped import Drafted, DraftedLengths, drafted_along
from spectheory.prediction.trace_limits import least_calls
from spectheory.trace import Trace
from spectheory.verification import TokenVerification

Floats = NDArray[np.float64]
POSITIONS, TEXT = 100_000, 125
PEER_TEXTS, REPEATS = 4, 3
DEPTH, SIZES = 16, ((100_000, 16, 800), (50_000, 16, 400), (200_000, 16, 1_600), (100_000, 8, 800), (100_000, 32, 800))
"""Of the limit: positions, depth, texts."""
K, THRESHOLDS = 16, 32
PREDICTED = ("log_target", "log_draft", "race_g", "target_entropy", "target_second_moment")
LAW = (0.7, 0.1, 0.05, 0.03, 0.02, 0.01, 0.01, 0.01)
"""Columns of token, block and race verification and of all limits, with one law of recursive rejection's rank."""
STOPPED = ("log_target", "log_draft", "draft_top")
RULE, COST = TokenVerification(), ConstantRatio(0.1)


# A prediction


def python_calls(survival: np.ndarray, start: int, end: int, k: int) -> float:
    """The calls recursion of one text as a plain loop."""
    calls = np.zeros(end + k + 2)
    for n in range(end - 1, start - 1, -1):
        steps = [1.0, *survival[n, :k], 0.0]
        calls[n] = 1 + sum((steps[i] - steps[i + 1]) * calls[n + i + 1] for i in range(k + 1) if n + i + 1 < end)
    return float(calls[start])


def predicting() -> Iterator[Row]:
    """All rules from traces of few and many texts; the peer is the recursion alone."""
    for texts in (8, 800, 10_000):
        length = POSITIONS // texts
        made = made_up(POSITIONS, np.random.default_rng(0), text=length, only=PREDICTED)
        trace = Trace({**made.columns, "rejection_rank": np.tile(LAW, (POSITIONS, 1))}, made.texts)
        survival = RULE.path_survival(trace.columns, 16)
        ours = calls_of_chains(survival, trace.lengths, range(1, 17))
        began = time.thread_time()
        for text in range(PEER_TEXTS):
            for k in (1, 16):
                peer = python_calls(survival, text * length, (text + 1) * length, k)
                assert abs(peer - ours[k].expected[text]) <= 1e-10 * peer
        peer_seconds = (time.thread_time() - began) / PEER_TEXTS * texts / (1 + 16) * 136 * 3
        median = median_seconds(lambda trace=trace: plan(trace, ConstantRatio(0.15)), 5)
        same, loop = "the recursion as a loop to 1e-10", "Python loop for the recursion alone"
        yield Row(f"a prediction, {texts:,} texts of {length:,}", "s", median, same, peer_seconds, loop, wanted=2.0)


# The limit L


def survival_of(positions: int, depth: int) -> np.ndarray:
    """Block verification's survival of made-up ratios, unrelated from start to start."""
    steps = np.random.default_rng(0).normal(-0.2, 0.8, (positions, depth))
    return np.exp(np.minimum(0.0, np.minimum.accumulate(np.cumsum(steps, axis=1), axis=1)))


def python_limit(survival: np.ndarray, start: int, end: int) -> float:
    """L of one text as a plain loop."""
    depth = survival.shape[1]
    ahead = [0.0] * (end - start + depth + 2)
    for n in range(end - start - 1, -1, -1):
        kept, least, total = [1.0, *survival[start + n].tolist(), 0.0], ahead[n + 1], 1.0
        for i in range(depth + 1):
            least = min(least, ahead[n + i + 1])
            total += (kept[i] - kept[i + 1]) * least if least else 0.0
        ahead[n] = total
    return ahead[0]


def peer_seconds(survival: np.ndarray, length: int) -> float:
    """Seconds of the plain loop for all texts; its values equal ours."""
    lengths = np.full(len(survival) // length, length)
    ours = least_calls(survival, lengths, [survival.shape[1]])[survival.shape[1]]
    checked, began = min(PEER_TEXTS, len(lengths)), time.thread_time()
    for text in range(checked):
        peer = python_limit(survival, text * length, (text + 1) * length)
        assert abs(peer - ours[text]) <= 1e-10 * peer, text
    return (time.thread_time() - began) / checked * len(lengths)


def limits() -> list[Row]:
    """L by text and depth."""
    rows = []
    for positions, depth, texts in (*SIZES, (POSITIONS, DEPTH, 1)):
        survival, lengths = survival_of(positions, depth), np.full(texts, positions // texts)
        peer = peer_seconds(survival, positions // texts)
        ours = median_seconds(lambda s=survival, n=lengths, k=depth: least_calls(s, n, [k]), 5)
        at, curve = {"positions": positions, "depth": depth}, "limit L" if texts > 1 else ""
        wanted = 0.5 if (positions, depth) == (POSITIONS, DEPTH) else None
        work, same = f"limit L, {positions:,} positions x {depth}, {texts} texts", "the recursion as a loop"
        rows.append(Row(work, "s", ours, same, peer, "Python loop", wanted=wanted, at=at, curve=curve))
    return rows


def slope(rows: list[Row], name: str, fixed: str, value: int) -> float:
    """Exponent of the time in one size at a value of the other, by least squares of logarithms."""
    of = [(row.at[name], row.ours) for row in rows if row.at and row.curve and row.at.get(fixed, value) == value]
    return float(np.polyfit(*np.log(of).T, 1)[0])


# Stopping rules


def lengths_of_text(trace: Trace, text: int, stop: TopBelow) -> dict[str, object]:
    """One text's calls and those that draft 1..k tokens or more: the definitions as loops."""
    start = text * TEXT
    rho = np.exp(trace.columns["log_draft"] - trace.columns["log_target"]).tolist()
    stops = stop.stops(trace.columns).tolist()
    visits, calls, full = [1.0] + [0.0] * (TEXT + K + 1), 0.0, 0.0
    going, stopping, low, high = ([0.0] * K for _ in range(4))
    for n in range(TEXT):
        along, room, weight, accepted = 0, min(K, TEXT - n - 1), [1.0], [1.0]
        while along < room and not stops[start + n + along]:
            ratio = rho[start + n + along]
            weight.append(weight[-1] * ratio)
            accepted.append(accepted[-1] * min(ratio, 1.0))
            along += 1
        v, calls = visits[n], calls + visits[n]
        full += v * accepted[along] * (along == K and n + along + 1 < TEXT)
        for j in range(1, room + 1):
            going[j - 1] += v * weight[j - 1] if along >= j else 0.0
            stopping[j - 1] += v * (1 - (weight[along] if along < j else 0.0))
            low[j - 1] += v * accepted[j - 1] if along >= j else 0.0
            high[j - 1] += v * (1 - (accepted[along] if along < j else 0.0))
        for tau in range(along + 1):
            visits[n + tau + 1] += v * (accepted[tau] - (accepted[tau + 1] if tau < along else 0.0))
    return {"calls": calls, "full": full, "going": going, "stopping": stopping, "low": low, "high": high}


def least_of_text(survival: Floats, weights: Floats, times: Floats) -> float:
    """The bound of adaptive lengths of one text: its recursion as a loop."""
    least = [0.0] * (TEXT + K + 2)
    for n in reversed(range(TEXT)):
        value = times[0] + least[n + 1]
        least[n] = value
        for i in range(1, K + 1):
            value += (times[i] - times[i - 1]) * weights[n, i - 1]
            value += survival[n, i - 1] * (least[n + i + 1] - least[n + i])
            least[n] = min(least[n], value)
    return least[0]


def checked_peer(trace: Trace, stops: list[TopBelow]) -> None:
    """Ours equals the loops on some texts and thresholds."""
    shared = Drafted(trace, RULE, K)
    times, _ = call_seconds(COST, Chain(K))
    least = least_seconds(shared.survival, trace.lengths, times, weights=shared.weights)
    for text in range(PEER_TEXTS):
        rows = slice(text * TEXT, (text + 1) * TEXT)
        peer_bound = least_of_text(shared.survival[rows], shared.weights[rows], times)
        np.testing.assert_allclose(least[text], peer_bound, rtol=1e-10)
    for stop in stops[:: len(stops) // 4]:
        along = drafted_along(trace.columns, stop, K).sum(axis=1)
        lengths: DraftedLengths = shared.lengths_of_calls(along, keeps=stop.keeps)
        for text in range(PEER_TEXTS):
            peer = lengths_of_text(trace, text, stop)
            for name, value in peer.items():
                np.testing.assert_allclose(getattr(lengths, name)[text], value, rtol=1e-9, atol=1e-9, err_msg=name)


def stopping() -> Iterator[Row]:
    """A sweep of thresholds by text, and the bounds of adaptive lengths."""
    stops, same = [*map(TopBelow, np.linspace(0.05, 0.95, THRESHOLDS).tolist())], "sums as loops"
    for positions in (POSITIONS, POSITIONS // 2, POSITIONS // 4):
        trace, at = made_up(positions, np.random.default_rng(0), text=TEXT, only=STOPPED), {"positions": positions}
        peer, wanted = (None, ""), None
        if positions == POSITIONS:
            checked_peer(trace, stops)
            loops = median_seconds(lambda trace=trace: lengths_of_text(trace, 0, stops[THRESHOLDS // 4]), 3)
            peer, wanted = (loops * len(trace.texts) * THRESHOLDS, "Python loops"), 3.0
            times, survival = call_seconds(COST, Chain(K))[0], RULE.path_survival(trace.columns, K)
            for work, bound in (("one rule", least_seconds), ("any rule", least_seconds_of_any_rule)):
                took = median_seconds(lambda b=bound, s=survival, n=trace.lengths, t=times: b(s, n, t), REPEATS)
                yield Row(f"the bound of adaptive lengths, {work}", "s", took, same)
        ours = median_seconds(lambda trace=trace: sweep(trace, RULE, K, stops, COST), REPEATS)
        work = f"{THRESHOLDS} thresholds, {positions:,} positions, k = {K}"
        yield Row(work, "s", ours, same, *peer, wanted=wanted, at=at, curve="stopping rules")


def main() -> None:
    """Check equality, then time."""
    limit, stopped = limits(), list(stopping())
    survival, lengths = survival_of(POSITIONS, DEPTH), np.full(POSITIONS // TEXT, TEXT)
    every = median_seconds(lambda: least_calls(survival, lengths, range(1, DEPTH + 1)), 3)
    in_text, in_depth = slope(limit, "positions", "depth", DEPTH), slope(limit, "depth", "positions", POSITIONS)
    notes = (
        f"L of k = 1..{DEPTH} together takes {every:.3f} s; it grows as text^{in_text:.2f} and depth^{in_depth:.2f}.",
        f"A sweep of thresholds grows as text^{slope(stopped, 'positions', '', 0):.2f}.",
    )
    publish(__file__, "Exact recursions along a text", [*predicting(), *limit, *stopped], *notes)


if __name__ == "__main__":
    main()
