"""Stopping rules on 100,000 positions, at most 16 drafts a call: 32 thresholds swept, and the clairvoyant bound.

Calls, drafted lengths and seconds of all thresholds on one thread, against the sums of one text written as Python loops
(the peer, on a few texts, scaled up); equality first. The slope says how time grows with the text.
"""

from __future__ import annotations

import numpy as np
from _rows import Row, publish
from _timing import median_seconds
from numpy.typing import NDArray

from spectheory.cost import ConstantRatio
from spectheory.drafting import Stopped
from spectheory.drafting.stopping import TopBelow
from spectheory.prediction.adaptive import sweep
from spectheory.prediction.clairvoyant import call_seconds, least_seconds
from spectheory.prediction.drafted_lengths import Drafted, DraftedLengths
from spectheory.prediction.stopped import drafted_along
from spectheory.trace import TextInfo, Trace
from spectheory.verification import TokenVerification

POSITIONS, TEXT, K, THRESHOLDS = 100_000, 125, 16, 32
PEER_TEXTS, REPEATS = 3, 3
SAME = "sums of one text as loops"
LIMIT = 3.0
Floats = NDArray[np.float64]
RULE, COST = TokenVerification(), ConstantRatio(0.1)


def made_up(positions: int) -> Trace:
    """Texts of a draft near its target, sampled as far as the trace says."""
    rng = np.random.default_rng(0)
    log_target = -rng.exponential(1.5, positions)
    log_draft = np.minimum(0.0, log_target + rng.normal(-0.05, 0.4, positions))
    top = np.maximum(np.exp(log_draft), rng.random(positions))
    texts = tuple(TextInfo(str(i), TEXT, prompt=str(i // 2)) for i in range(positions // TEXT))
    columns = {"log_target": log_target, "log_draft": log_draft, "draft_top": top}
    return Trace(columns, texts, {"settings": {"sampling": {"temperature": 1.0}}})


def lengths_of_text(trace: Trace, text: int, shape: Stopped) -> dict[str, object]:
    """One text's calls and those that draft 1..k tokens or more: the definitions as loops."""
    start = text * TEXT
    rho = np.exp(trace.columns["log_draft"] - trace.columns["log_target"]).tolist()
    stops = shape.stop.stops(trace.columns).tolist()
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


def least_of_text(survival: Floats, times: Floats) -> float:
    """The clairvoyant bound of one text: its recursion as a loop."""
    least = [0.0] * (TEXT + K + 2)
    for n in reversed(range(TEXT)):
        reached = [1.0, *survival[n].tolist(), 0.0]
        best = float("inf")
        for tau in range(K + 1):
            best = min(best, times[tau] + least[n + tau + 1])
            least[n] += (reached[tau] - reached[tau + 1]) * best
    return least[0]


def checked_peer(trace: Trace, shapes: list[Stopped]) -> None:
    """Ours equals the loops on some texts and thresholds."""
    shared = Drafted(trace, RULE, K)
    times, _ = call_seconds(COST, shapes[0])
    least = least_seconds(shared.survival, trace.lengths, times)
    for text in range(PEER_TEXTS):
        peer_bound = least_of_text(shared.survival[text * TEXT : (text + 1) * TEXT], times)
        np.testing.assert_allclose(least[text], peer_bound, rtol=1e-10)
    for shape in shapes[:: len(shapes) // 4]:
        along = drafted_along(trace.columns, shape.stop, K).sum(axis=1)
        found: DraftedLengths = shared.lengths_of_calls(along, keeps=shape.stop.keeps)
        for text in range(PEER_TEXTS):
            peer = lengths_of_text(trace, text, shape)
            for name, value in peer.items():
                np.testing.assert_allclose(getattr(found, name)[text], value, rtol=1e-9, atol=1e-9, err_msg=name)


def main() -> None:
    """Check equality, then time."""
    sizes = [POSITIONS // 4, POSITIONS // 2, POSITIONS]
    traces = [made_up(size) for size in sizes]
    shapes = [Stopped(K, TopBelow(at)) for at in np.linspace(0.05, 0.95, THRESHOLDS).tolist()]
    checked_peer(traces[-1], shapes)
    peer = median_seconds(lambda: lengths_of_text(traces[-1], 0, shapes[8]), 3) * len(traces[-1].texts) * THRESHOLDS
    seconds = [median_seconds(lambda given=given: sweep(given, RULE, shapes, COST), REPEATS) for given in traces]  # type: ignore[misc]
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    times = call_seconds(COST, shapes[0])[0]
    survival = RULE.path_survival(traces[-1].columns, K)
    bound = median_seconds(lambda: least_seconds(survival, traces[-1].lengths, times), REPEATS)
    work, loop = f"{THRESHOLDS} thresholds, {POSITIONS:,} positions, k = {K}", "Python loops"
    ours = seconds[-1]
    rows = [
        Row(work, "s", ours, SAME, peer, loop, wanted=LIMIT, at={"positions": POSITIONS}, curve="stopping rules"),
        *(
            Row(f"{size:,} positions", "s", took, SAME, at={"positions": size}, curve="stopping rules")
            for size, took in zip(sizes[:-1], seconds[:-1], strict=True)
        ),
        Row("the clairvoyant bound", "s", bound, SAME),
    ]
    publish(__file__, "A sweep of thresholds of a stopping rule", rows, f"Time grows as positions^{slope:.2f}.")


if __name__ == "__main__":
    main()
