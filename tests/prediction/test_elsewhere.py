"""Drafting elsewhere: predictions along texts against clocks that run event by event, and what they must equal."""

from __future__ import annotations

import heapq
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from spectheory.cli import main
from spectheory.cost import ConstantRatio, LatencyTable, parallel_time
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction import predict
from spectheory.prediction.elsewhere import elsewhere
from spectheory.prediction.outcomes import Outcomes
from spectheory.prediction.parallel import parallel_seconds
from spectheory.prediction.placement import placement
from spectheory.trace import TextInfo, Trace
from spectheory.verification.registry import path_rule
from tests.made_up import by_start, each

Floats = NDArray[np.float64]
Z = float(norm.isf(0.5e-6))
"""Each simulation calls a right prediction wrong with probability 1e-6."""
TOKENS, TEXTS, K, C, LINK = 40, 250, 3, 0.2, 0.07


def clustered() -> tuple[Floats, Floats]:
    """Markov chains of 6 tokens: 0 to 2 follow each other and are easy, 3 to 5 too and are hard."""
    rng = np.random.default_rng(11)
    target = np.where(np.add.outer(np.arange(6) // 3, np.arange(6) // 3) % 2, 0.02, 0.3) * rng.uniform(0.5, 1.5, (6, 6))
    draft = target.copy()
    draft[3:] = target[3:, ::-1] ** 0.5
    return target / target.sum(1, keepdims=True), draft / draft.sum(1, keepdims=True)


TARGET, DRAFT = clustered()


def order(token: int) -> list[int]:
    """The draft's most probable tokens after one."""
    return sorted(range(6), key=lambda x: (-DRAFT[token, x], x))


def one_call(rng: np.random.Generator, text: list[int], *, first_choice: bool) -> tuple[list[int], int, int | None]:
    """Token verification as it is written: accepted drafts, the next token, the refused draft."""
    path: list[int] = []
    for _ in range(K):
        last = ([*text, *path] or [0])[-1]
        q = np.eye(6)[order(last)[0]] if first_choice else DRAFT[last]
        y = int(rng.choice(6, p=q))
        p = TARGET[last]
        if rng.random() >= min(1.0, p[y] / q[y]):
            residual = np.maximum(p - q, 0)
            return path, int(rng.choice(6, p=residual / residual.sum())), y
        path.append(y)
    return path, int(rng.choice(6, p=TARGET[path[-1]])), None


def ahead_clock(rng: np.random.Generator, guesses: int, *, first_choice: bool, pre: float) -> tuple[list[int], float]:
    """A draft and a target that send messages to each other; the time at which the last outcome is back."""
    text, clock, ready_at = [0], 0.0, math.inf
    ready: set[tuple[int, int]] = set()
    refused_at: dict[int, int | None] = {}
    outcome: tuple[int, int] | None = None
    while True:
        if outcome in ready:
            clock = max(clock, ready_at)
        else:
            clock += K * C  # drafted now
        ready_at = clock + pre
        path, token, refused_draft = one_call(rng, text, first_choice=first_choice)
        refused_at = {len(path): refused_draft}
        ready = {
            (j, x)
            for j in range(K + 1)
            for x in [g for g in order([*text, *path[:j]][-1]) if g != refused_at.get(j)][:guesses]
        }
        arrived = clock + LINK
        verified = arrived + 1.0
        clock = verified + LINK
        text += [*path, token]
        outcome = (len(path), token)
        if len(text) > TOKENS:
            return text[1 : TOKENS + 1], clock


def parallel_clock(rng: np.random.Generator, targets: int, lookahead: int) -> tuple[list[int], float]:
    """A draft that never waits, and targets that take the next pass when they are free: a heap of events."""
    text, clock = [0], 0.0
    while True:  # a branch: from a wrong draft to the next
        drafts: list[int] = []

        def drafted(i: int, drafts: list[int] = drafts, last: int = text[-1]) -> int:
            while len(drafts) < i:
                drafts.append(int(rng.choice(6, p=DRAFT[[last, *drafts][-1]])))
            return drafts[i - 1]

        events: list[tuple[float, int, str]] = [(clock, 0, "asked")]
        free, waiting, number = targets, list[int](), itertools.count(1)
        wrong, decided, kept = False, 0, list[int]()
        while not wrong and len(text) + len(kept) <= TOKENS:
            at, pass_of, what = heapq.heappop(events)
            if what == "asked":
                waiting.append(pass_of)
                later = next(number)
                heapq.heappush(events, (clock + 2 * LINK + later * lookahead * C, later, "asked"))
            else:
                free += 1
                while decided < pass_of * lookahead + 1 and not wrong and len(text) + len(kept) <= TOKENS:
                    decided += 1
                    last, y = [*text, *kept][-1], drafted(decided)
                    p, q = TARGET[last], DRAFT[last]
                    wrong = rng.random() >= min(1.0, p[y] / q[y])
                    residual = np.maximum(p - q, 0)
                    kept.append(int(rng.choice(6, p=residual / residual.sum())) if wrong else y)
                if wrong or len(text) + len(kept) > TOKENS:
                    clock = at
                    break
            while free and waiting:
                free -= 1
                heapq.heappush(events, (at + 1.0, waiting.pop(0), "done"))
        text += kept
        if len(text) > TOKENS:
            return text[1 : TOKENS + 1], clock


def trace_of(texts: list[list[int]]) -> Trace:
    """The columns of both chains along texts."""
    before = np.concatenate([[0, *text[:-1]] for text in texts])
    token = np.concatenate(texts)
    columns = {
        "token": token,
        "log_target": np.log(TARGET[before, token]),
        "log_draft": np.log(DRAFT[before, token]),
        "draft_rank": np.array([order(b).index(t) + 1 for b, t in zip(before, token, strict=True)]),
        "greedy_agreement": np.array([order(b)[0] == int(np.argmax(TARGET[b])) for b in before]),
    }
    infos = tuple(TextInfo(str(i), len(text), prompt=str(i)) for i, text in enumerate(texts))
    return Trace(columns, infos, {"settings": {"sampling": {"temperature": 1.0}}})


def simulated(
    clock: Callable[[np.random.Generator], tuple[list[int], float]], seed: int, texts: int = TEXTS
) -> tuple[Trace, Floats]:
    """Texts of a clock as a trace, and their times."""
    rng = np.random.default_rng(seed)
    runs = [clock(rng) for _ in range(texts)]
    return trace_of([text for text, _ in runs]), np.array([time for _, time in runs])


def deviations(simulated: Floats, predicted: Floats) -> float:
    """How far the mean of the differences is from 0, in its standard deviations."""
    off = simulated - predicted
    return float(off.mean() / (off.std(ddof=1) / math.sqrt(len(off))))


def seconds_ahead(law: Outcomes, hits: Floats, pre: float) -> Floats:
    """The stated time of each text."""
    turn = 1 + 2 * LINK
    return law.calls * turn + (law.calls - hits) * K * C + hits * max(pre - turn, 0.0)


@each("guesses, pre", [(1, 0.8), (2, 0.8), (2, 1.9)])
def test_drafting_ahead_takes_what_a_clock_says(guesses: int, pre: float) -> None:
    """First choices: given its text a run is certain and takes the stated time; a guess more or less is not it."""
    trace, times = simulated(lambda rng: ahead_clock(rng, guesses, first_choice=True, pre=pre), 3, 30)
    law = Outcomes.of(trace, path_rule("argmax"), K)
    low, high = law.hits((guesses,) * (K + 1))
    assert np.array_equal(low, high)
    assert times == pytest.approx(seconds_ahead(law, low, pre), rel=1e-12)
    for wrong in (guesses - 1, guesses + 1):
        assert abs(times - seconds_ahead(law, law.hits((wrong,) * (K + 1))[0], pre)).mean() > 0.5, wrong


def test_hits_of_drawn_drafts_lie_between_their_bounds() -> None:
    trace, times = simulated(lambda rng: ahead_clock(rng, 1, first_choice=False, pre=0.8), 5)
    law = Outcomes.of(trace, path_rule("token"), K)
    low, high = law.hits((1,) * (K + 1))
    assert deviations(times, seconds_ahead(law, low, 0.8)) < Z, "not slower than by the fewest hits"
    assert deviations(times, seconds_ahead(law, high, 0.8)) > -Z, "nor faster than by the most"
    assert deviations(times, seconds_ahead(law, 0 * low, 0.8)) < -Z, "without any hit it would be slower"


@each("targets", [1, 2, 5])
def test_parallel_drafting_takes_what_a_clock_says(targets: int) -> None:
    """Drafts of .2 steps: lookaheads of 5, 3 and 1. With one target i.i.d. acceptances of the same mean are refuted."""
    lookahead = math.ceil(1 / (targets * C))
    trace, times = simulated(lambda rng: parallel_clock(rng, targets, lookahead), 7)
    accepted = np.exp(np.minimum(0.0, trace.columns["log_draft"] - trace.columns["log_target"]))
    along = parallel_seconds(accepted, trace.lengths, 1.0, C, lookahead=lookahead, link=LINK)
    assert abs(deviations(times, along)) < Z
    if targets == 1:
        iid = np.full_like(accepted, accepted.mean())
        alike = parallel_seconds(iid, trace.lengths, 1.0, C, lookahead=lookahead, link=LINK)
        assert abs(deviations(times, alike)) > Z


def test_one_lookahead_without_messages_is_that_of_the_mean() -> None:
    rng = np.random.default_rng(2)
    accepted, lengths = rng.random(60), np.array([20, 40])
    seconds = parallel_seconds(accepted, lengths, 2.0, 0.5)
    for i, part in enumerate((accepted[:20], accepted[20:])):
        assert seconds[i] == pytest.approx(parallel_time(len(part), float(part[:-1].mean()), 2.0, 0.5), rel=1e-12)


def latencies() -> LatencyTable:
    """Passes that take longer on more tokens, with errors."""
    near = [Interval(0.95 * t, t, 1.05 * t, "statistical") for t in (1.0, 1.1, 1.3, 0.2, 0.21, 0.3)]
    return LatencyTable({1: near[0], 4: near[1], 8: near[2]}, {1: near[3], 2: near[4], 32: near[5]}, context=64)


@each("cost", [ConstantRatio(0.2), latencies()])
@each("rule", ["token", "block", "argmax"])
def test_in_turn_is_what_predict_says(rule: str, cost: ConstantRatio | LatencyTable) -> None:
    trace = trace_of([text for text, _ in (parallel_clock(np.random.default_rng(i), 1, 5) for i in range(12))])
    answer = elsewhere(trace, ["in-turn", "remote"], cost, rule=rule, k_max=4)
    for row in answer.rows[:4]:
        known = predict(trace, rule, Chain(row.k), cost)
        assert known.speedup is not None
        assert row.tokens_per_call is not None
        assert row.tokens_per_call.best == pytest.approx(known.tokens_per_call.best, rel=1e-12)
        assert row.speedup.best == pytest.approx(known.speedup.best, rel=1e-9)
        assert row.speedup.low == pytest.approx(known.speedup.low, rel=1e-3)
    assert [row.speedup for row in answer.rows[:4]] == [row.speedup for row in answer.rows[4:]], "a link of 0"


def rows_of(*drafting: str, link: float = 0.0, **of: object) -> Iterator[Interval]:
    trace = trace_of([text for text, _ in (parallel_clock(np.random.default_rng(i), 1, 5) for i in range(12))])
    answer = elsewhere(trace, drafting, ConstantRatio(0.2), link=link, k_max=4, **of)  # type: ignore[arg-type]
    yield from (row.speedup for row in answer.best)


def test_more_is_never_slower_and_messages_never_faster() -> None:
    turn, one, few, many, parallel = rows_of("in-turn", "ahead:1", "ahead:6", "ahead:6xall", "parallel:5")
    assert turn.best < one.best < few.best < many.best
    far = [*rows_of("remote", "ahead:6", "parallel:5", link=0.3)]
    assert all(here.best > there.best for here, there in zip((turn, few, parallel), far, strict=True))


def test_the_fan_out_is_the_best_of_all() -> None:
    """Against every way to share out guesses."""
    trace, _ = simulated(lambda rng: ahead_clock(rng, 1, first_choice=True, pre=0.8), 3, 30)
    law = Outcomes.of(trace, path_rule("argmax"), 2)
    for guesses in range(1, 6):
        chosen = law.fan_out(guesses)
        assert sum(chosen) == guesses
        ways = (way for way in itertools.product(range(guesses + 1), repeat=3) if sum(way) == guesses)
        most = max(law.hits(way)[0].sum() for way in ways)
        assert law.hits(chosen)[0].sum() == pytest.approx(most)
    assert law.fan_out(2, each=True) == (2, 2, 2)


def test_all_outcomes_predicted_is_no_miss_but_the_first() -> None:
    trace = trace_of([text for text, _ in (parallel_clock(np.random.default_rng(i), 1, 5) for i in range(9))])
    row = elsewhere(trace, ["ahead:6xall"], ConstantRatio(0.1), rule="block", k_max=1).rows[0]
    assert row.hits == Interval(1.0, 1.0, 1.0, "statistical")
    law = Outcomes.of(trace, path_rule("block"), 1)
    assert row.speedup.best == pytest.approx(9 * TOKENS / (law.calls.sum() + 9 * 0.1))


@each("words", ["nowhere", "ahead:0", "ahead", "parallel:0", "parallel:2xall", "ahead:9999", "remote:3"])
def test_unknown_placements_are_refused(words: str) -> None:
    with pytest.raises(SettingError):
        placement(words)


def test_what_drafts_ahead_must_know_its_order_and_read_the_text() -> None:
    trace = trace_of([text for text, _ in (parallel_clock(np.random.default_rng(i), 1, 5) for i in range(3))])
    bare = Trace({name: trace.columns[name] for name in ("log_target", "log_draft")}, trace.texts)
    assert elsewhere(bare, ["remote", "parallel:2"], ConstantRatio(0.2), k_max=2).rows
    with pytest.raises(TraceError, match="draft_rank"):
        elsewhere(bare, ["ahead:2"], ConstantRatio(0.2))
    head = Trace({**bare.columns, **by_start(bare.columns, 2)}, trace.texts)
    with pytest.raises(TraceError, match="hidden states"):
        elsewhere(head, ["remote"], ConstantRatio(0.2))


def test_the_command_shows_what_the_function_says(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["predict", "builtin:", "--drafting", "in-turn", "--drafting", "ahead:8", "--c", "0.2", "--k-max", "5"]
    assert main(words) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("ahead:8, k = 4: ")
    assert max(map(len, out)) <= 80
    assert main([*words, "--json", "--out", str(tmp_path)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["drafting"] for row in content["best"]] == ["in-turn", "ahead:8"]
    assert sum(each["share"] for each in content["outcomes"]) == pytest.approx(1)
    assert content == json.loads((tmp_path / "elsewhere.json").read_text())
