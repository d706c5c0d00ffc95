"""Budgets over a batch: a plan of 12 concurrencies from 100,000 starts, and an hour of serving; equality first.

The peer of the plan is the same in Python loops and repeated convolutions, on a few texts and settings, scaled up. That
of the simulated server is the readable one, with the same random numbers, on a twentieth of the requests.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _rows import Row, median_seconds, publish
from _traces import made_up

from simulations.draws import Stream, uniform, words
from simulations.kernels.serving import Service, Texts, serve
from simulations.reference.serving import Server, arrivals, played
from spectheory.deployment.budgets import FIXED, INFORMED, PLAIN, THRESHOLDS, BudgetPoint, plan_budgets
from spectheory.deployment.step_times import StepTable, read_steps
from spectheory.kernels.compiling import compiled
from spectheory.trace import Trace
from spectheory.trace.reading import evidence_file, read_files
from spectheory.verification import TokenVerification

POSITIONS, TEXT, K, PEER_TEXTS = 100_000, 125, 8, 4
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 384, 512, 1024)
STEPS = Path(__file__).parents[1] / "docs" / "figures" / "budgets" / "steps.csv"
RATE, HOUR, SEATS, CACHE, PROMPT, PREFILL = 10.0, 3600, 256, 131_072, 200, 2e-5


def looped(survival: np.ndarray, threshold: float, k: int) -> tuple[np.ndarray, float, float]:
    """Calls by drafts, calls and tokens of one text: the definitions as loops; the first token is the prompt's."""
    length = len(survival)
    visits, counts, calls = [0.0, 1.0, *[0.0] * (length + K)], np.zeros(K + 1), 0.0
    for n in range(1, length):
        room = min(K, length - n - 1)
        drafts = min(sum(1 for value in survival[n] if value >= threshold), k, room)
        counts[drafts] += visits[n]
        calls += visits[n]
        reached = [1.0, *survival[n, :drafts], 0.0]
        for i in range(drafts + 1):
            visits[n + i + 1] += visits[n] * (reached[i] - reached[i + 1])
    return counts, calls, length - 1.0


def rate_of(texts: list[tuple[np.ndarray, float, float]], batch: int, times: np.ndarray) -> float:
    """Tokens per second by repeated convolution."""
    counts, calls, tokens = (sum(each) for each in zip(*texts, strict=True))
    law, step = counts / calls, np.ones(1)
    for _ in range(batch):
        step = np.convolve(step, law)
    return float(batch * tokens / calls / (step @ times))


def planning() -> Row:
    """The plan; its peer works out one setting of four texts and one concurrency."""
    trace = made_up(POSITIONS, np.random.default_rng(0), text=TEXT, only=("log_target", "log_draft", "draft_top"))
    rows = np.arange(BATCHES[-1] * (K + 1))
    table = StepTable(tuple((rows + 1).tolist()), tuple((0.013 + 1e-4 * -(-rows // 64) * 64).tolist()))
    few = Trace({name: column[: PEER_TEXTS * TEXT] for name, column in trace.columns.items()}, trace.texts[:PEER_TEXTS])
    survival = TokenVerification().path_survival(few.columns, K).reshape(PEER_TEXTS, TEXT, K)

    def peer(point: BudgetPoint) -> float:
        level = {PLAIN: math.inf, FIXED: 0.0, INFORMED: point.threshold or 0.0}[point.policy]
        texts = [looped(rows, level, point.k) for rows in survival]
        return rate_of(texts, point.batch, table.verifying(point.batch, K))

    checked = plan_budgets(few, table, batches=[1, 16, 64], k_max=K).choices
    for choice in checked:
        for point in (choice.plain, choice.fixed, choice.longest, choice.informed):
            assert abs(peer(point) / point.per_second.best - 1) < 1e-9, point
    one = median_seconds(lambda: [looped(rows, 0.5, K) for rows in survival], 3)
    convolved = sum(
        median_seconds(lambda n=batch: rate_of([looped(survival[0], 0.5, K)], n, table.verifying(n, K)), 1)
        for batch in BATCHES[:9]
    )
    settings = 2 * (THRESHOLDS + 1) + K + 1
    loops = settings * (one * POSITIONS / TEXT / PEER_TEXTS + convolved)
    ours = median_seconds(lambda: plan_budgets(trace, table, batches=BATCHES, k_max=K), 3)
    work = f"budgets, {len(BATCHES)} concurrencies, {POSITIONS:,} starts x {K}"
    same = "rates of loops and repeated convolutions to 1e-9"
    return Row(work, "s", ours, same, loops, "Python loops, concurrencies to 256", wanted=5.0)


@compiled
def draws(number: int, state: np.ndarray) -> float:
    """So many uniforms."""
    total = 0.0
    for _ in range(number):
        total += uniform(state)
    return total


def serving() -> Row:
    """An hour at ten requests per second, 200 prompt tokens and the recorded texts, k = 2."""
    trace = read_files([evidence_file(Path("builtin:"))])
    assert isinstance(trace, Trace)
    survival = np.ascontiguousarray(TokenVerification().path_survival(trace.columns, 2))
    texts = Texts(survival, np.full(len(trace), 2), trace.lengths)
    prompts = np.full(len(trace.lengths), PROMPT)
    seconds = np.interp(np.arange(SEATS * 3 + 1), *np.loadtxt(STEPS, delimiter=",", skiprows=1).T)
    how, requests = Service(seconds, PREFILL, SEATS, CACHE), int(RATE * HOUR)

    def ours(number: int) -> object:
        return serve(texts, prompts, how, rate=RATE, requests=number, state=words(0))

    def readable(number: int) -> tuple[int, float]:
        stream = Stream(words(0))
        made = arrivals(prompts.tolist(), trace.lengths.tolist(), RATE, number, stream)
        server = Server(SEATS, CACHE, lambda verified, prompt: float(seconds[verified] + PREFILL * prompt))
        rows = survival.tolist()

        def accepts(n: int, u: float) -> int:
            return sum(value > u for value in rows[n])

        return played(made, server, accepts, texts.drafts.tolist(), stream), made[-1].ended

    part = requests // 20
    said, whole = readable(part), serve(texts, prompts, how, rate=RATE, requests=part, state=words(0))
    assert said[0] == whole.steps
    assert abs(said[1] - whole.ended[-1]) < 1e-6
    peer = 20 * median_seconds(lambda: readable(part), 1)
    hour = serve(texts, prompts, how, rate=RATE, requests=requests, state=words(0))
    calls = hour.verified // 3
    draws(1, words(0))
    least = median_seconds(lambda: draws(calls, words(0)), 3)
    took = median_seconds(lambda: ours(requests), 3)
    work = f"an hour of {RATE:g} requests/s served, {calls / 1e6:.1f} million calls"
    same = "steps and times of the readable server"
    return Row(work, "s", took, same, peer, "readable server", least, "its random numbers alone", wanted=60.0)


def main() -> None:
    """Check equality, then time."""
    read_steps(STEPS)
    publish(__file__, "Budgets over a batch", [planning(), serving()])


if __name__ == "__main__":
    main()
