"""A simulated server (§15): the law of its steps, the readable twin, and what limits requests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import simulations.simulators  # noqa: F401  registers them
from simulations.draws import Stream, words
from simulations.experiments.tasks import registered
from simulations.kernels.serving import Served, Service, Texts, serve
from simulations.reference.serving import Server, arrivals, played
from simulations.verdicts.predictions import agrees, predictions
from spectheory.deployment.batch_budget import call_laws, sum_law
from tests.made_up import each

ALARM = 1e-6


def texts(seed: int, k: int = 3) -> Texts:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 20, 8)
    tokens = int(lengths.sum())
    return Texts(np.cumprod(rng.beta(4, 1, (tokens, k)), axis=1), rng.integers(0, k + 1, tokens), lengths)


def setting(seed: int, batch: int) -> dict[str, Any]:
    """A setting of the simulator, with stairs of four tokens."""
    served = texts(seed)
    seconds = 1 + 0.1 * np.ceil(np.arange(3 * batch + 1) / 4)
    return {
        **{name: value.tolist() for name, value in served._asdict().items()},
        "batch": batch,
        "seconds": seconds.tolist(),
    }


@each("seed, batch", [(1, 1), (2, 6)])
def test_a_step_has_the_law_of_the_convolution(seed: int, batch: int) -> None:
    """Means of 20,000 steps at a false alarm of 1e-6 each; the law with one draft more of each call is refuted."""
    parameters = setting(seed, batch)
    tally = registered("serving").run(parameters, 20_000, words(seed))

    def verdicts(of: dict[str, Any]) -> list[bool]:
        said: Any = predictions("serving", of)
        return [bool(agrees(tally, each.quantity, each.value, ALARM, each.variance)) for each in said]

    assert all(verdicts(parameters))
    assert not any(verdicts({**parameters, "drafts": [min(each + 1, 3) for each in parameters["drafts"]]}))


def service(**how: Any) -> Service:
    return Service(**{"seconds": 1e-3 * (5 + np.arange(200)), "prefill": 1e-4, "seats": 6, "cache": 70, **how})


def run(seed: int, prompts: np.ndarray, how: Service, rate: float, requests: int = 300) -> Served:
    return serve(texts(seed), prompts, how, rate=rate, requests=requests, state=words(seed))


@each("seed, rate, seats, cache", [(1, 40.0, 6, 70), (2, 5.0, 3, 10_000), (3, np.inf, 8, 60), (4, 200.0, 1, 1)])
def test_the_compiled_server_is_the_readable_one(seed: int, rate: float, seats: int, cache: int) -> None:
    """With the same random numbers every time is the same, queue, cache and seats included."""
    served, prompts = texts(seed), np.random.default_rng(seed).integers(1, 30, 8)
    how = service(seats=seats, cache=cache)
    compiled = run(seed, prompts, how, rate)
    stream = Stream(words(seed))
    requests = arrivals(prompts.tolist(), served.lengths.tolist(), rate, 300, stream)
    server = Server(seats, cache, lambda verified, prompt: float(how.seconds[verified] + how.prefill * prompt))
    survival, drafts = served.survival, served.drafts

    def accepts(n: int, u: float) -> int:
        return int((survival[n, : drafts[n]] > u).sum())

    assert played(requests, server, accepts, drafts.tolist(), stream) == compiled.steps
    for name, times in (("arrival", compiled.arrived), ("first", compiled.first), ("ended", compiled.ended)):
        np.testing.assert_allclose([getattr(each, name) for each in requests], times, rtol=1e-12)


def test_a_full_server_gives_what_the_sum_says() -> None:
    """All requests at once. A request holds its place for its calls and the step of its prompt, which verifies nothing:
    places are independent, so the step's law is again a convolution. 60,000 requests leave a standard error of 0.2%,
    and the last ones, with empty places, 0.1%; without the prompt's step the sum is refuted.
    """
    served, batch, requests = texts(7), 16, 60_000
    seconds = 1e-3 * (5 + np.maximum(np.arange(200) - 30, 0))
    drafts, tokens = call_laws(*served)
    mean = float(tokens @ np.arange(len(tokens)))
    calls = float((served.lengths - 1).mean()) / mean

    def rate(share: float) -> float:
        step = sum_law(np.concatenate([[1 - share], share * drafts]), batch)
        return batch * share * mean / float(step @ seconds[: len(step)])

    how = service(seconds=seconds, prefill=0.0, seats=batch, cache=10**9)
    counted = serve(served, np.ones(8, np.int64), how, rate=np.inf, requests=requests, state=words(7))
    assert counted.read / counted.busy == pytest.approx(rate(calls / (calls + 1)), rel=0.02)
    assert counted.read / counted.busy != pytest.approx(rate(1.0), rel=0.02)
    assert counted.ended.max() == pytest.approx(counted.busy)


def test_less_room_and_more_requests_take_longer() -> None:
    prompts = np.full(8, 20, np.int64)
    usual = run(5, prompts, service(cache=10**6), 20.0)
    for slower in (run(5, prompts, service(cache=60), 20.0), run(5, prompts, service(seats=2), 20.0)):
        assert (slower.first - slower.arrived).mean() > (usual.first - usual.arrived).mean()
    assert (usual.arrived < usual.first).all()
    assert (usual.first <= usual.ended).all()
    calm = run(5, prompts, service(cache=10**6), 1.0)
    assert (calm.ended - calm.arrived).mean() < (usual.ended - usual.arrived).mean()
