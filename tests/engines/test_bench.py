"""Timing a server at few points: exact times of a server with a known law, and designs that a fit takes."""

from __future__ import annotations

import itertools
import json
import math
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from spectheory.answers import json_schema
from spectheory.cli import bench as command
from spectheory.cli import main
from spectheory.cost.served import StepTime, fit_server
from spectheory.errors import EngineError, SettingError, SpectheoryError, TextError
from spectheory.measure.engines import Models, find_engine
from spectheory.measure.engines.bench import BENCH_FILE, Bench, Benched, bench
from spectheory.measure.engines.design import timed_points
from spectheory.measure.engines.load import Load, Streamed
from spectheory.measure.engines.server import ServerEngine
from spectheory.pairs import resolve
from spectheory.trace.timed import timed_runs
from tests.engines import timed_server
from tests.engines.timed_server import TimedStub, serving
from tests.made_up import each, one_line


def law(batch: float, context: float, k: int) -> float:
    """Seconds of a step of the stub."""
    plain = 0.01 + 0.001 * batch + 1e-6 * batch * context
    return plain + (0.003 if k else 0.0) + k * (0.002 + 0.0005 * batch + 1e-6 * batch * context)


SHORT = ("--output-tokens", "32", "--repeats", "1")


def asked(*ks: int, **others: Any) -> Bench:
    return Bench(**{"batches": (1, 4), "contexts": (40, 200), "text": "t", "ks": ks, "output_tokens": 32, **others})


def timed(out: Path, stub: TimedStub, question: Bench) -> Benched:
    with serving(stub) as url:
        return bench(ServerEngine(url, 20.0), question, out, clock=stub.clock)


def stub(k: int = 0, accepted: int = 0, **others: Any) -> TimedStub:
    return TimedStub(law, k, accepted, **{"prefill": 0.05, **others})


# The points

RANGES = st.tuples(st.integers(1, 4), st.integers(0, 64))
CONTEXTS = st.lists(st.integers(64, 20_000), min_size=1, max_size=2)


@given(
    st.builds(lambda ends: (ends[0], ends[0] + ends[1]), RANGES),
    CONTEXTS,
    st.lists(st.integers(1, 16), min_size=1, max_size=3, unique=True),
    st.floats(0.0, 1.0),
)
@settings(max_examples=60, deadline=None)
def test_every_design_is_taken_by_the_fit(
    batches: tuple[int, int], contexts: list[int], ks: list[int], rate: float
) -> None:
    """Contexts are one, or differ by more than the fit takes for one; the fit predicts the law where nothing ran."""
    if len(contexts) > 1 and max(contexts) < 1.1 * min(contexts):
        contexts = contexts[:1]
    points = timed_points(batches, contexts, [0, *ks])
    fit = fit_server([StepTime(p.batch, p.context, p.k, law(p.batch, p.context, p.k), rate * p.k) for p in points])
    assert fit.freedom >= 2
    between = (batches[0] + batches[1]) / 2, sum(contexts) / len(contexts)
    for k in (0, *ks):
        assert fit.seconds(*between, k).best == pytest.approx(law(*between, k), rel=1e-6)


def test_a_design_without_its_middle_is_not_taken() -> None:
    """Negative control: three points at each k leave nothing for the error."""
    points = [p for p in timed_points((1, 8), (100, 900), (0, 2)) if p.batch != 3]
    with pytest.raises(SettingError, match="6 runs are given for 6 terms"):
        fit_server([StepTime(p.batch, p.context, p.k, law(p.batch, p.context, p.k)) for p in points])


def test_the_corners_are_the_best_three_points() -> None:
    """Of all triples of a grid none has a larger determinant of 1, B, BL: by brute force."""
    batches, contexts = (1, 2, 3, 5, 9), (10, 30, 70)

    def determinant(points: Any) -> float:
        return abs(float(np.linalg.det([[1, batch, batch * context] for batch, context in points])))

    corners = [(p.batch, p.context) for p in timed_points(batches[::4], contexts[::2], [0])][:3]
    every = itertools.combinations(itertools.product(batches, contexts), 3)
    assert determinant(corners) == pytest.approx(max(map(determinant, every)))


@each(
    "batches, contexts, ks, words",
    [
        ((), (100,), (1,), "batches is empty"),
        ((0, 4), (100,), (1,), "batches is 0"),
        ((1, 4), (0,), (1,), "contexts is 0"),
        ((1, 4), (100,), (-1,), "ks is -1"),
    ],
)
def test_ranges_that_are_refused(batches: Any, contexts: Any, ks: Any, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        timed_points(batches, contexts, ks)
    assert words in one_line(caught)


# The time of a token


def streamed(began: float, *tokens: tuple[float, int]) -> Streamed:
    return Streamed(began, tokens)


def test_the_time_of_a_token_leaves_prompts_and_ends_out() -> None:
    """Steps of 1 s while both decode; what is before the second's first token or after the first end is left out."""
    one = streamed(0, (1, 1), (6, 2), (7, 3), (8, 4), (9, 5), (10, 6))
    other = streamed(0, (6, 1), (7, 2), (8, 3), (9, 4), (10, 5), (12, 6))
    load = Load.of([one, other])
    assert load.token_seconds == pytest.approx(1.0)
    assert load.ttft == pytest.approx((1 + 6) / 2)
    assert load.share == pytest.approx((3 + 4) / 10)


def test_a_step_of_one_request_is_too_long_by_a_known_share() -> None:
    """Calls of one second each: long ones end outputs more often, and the end is left out (1e-6 either way)."""
    rng, output, times = np.random.default_rng(4), 64, []
    law = np.array([0.2, 0.16, 0.128, 0.1024, 0.4096])  # tokens of a call, k = 4 and 80% accepted
    mean, square = law @ np.arange(1, 6), law @ np.arange(1, 6) ** 2
    for _ in range(3000):
        sizes = rng.choice(np.arange(1, 6), output, p=law)
        ends = 1 + np.cumsum(sizes)
        calls = int(np.argmax(ends >= output)) + 1
        events = [(0.0, 1), *((1.0 + i, min(int(end), output)) for i, end in enumerate(ends[:calls]))]
        times.append(Load.of([Streamed(0.0, tuple(events))]).token_seconds * sizes[:calls].mean())
    share, error = np.mean(times) - 1, np.std(times) / math.sqrt(len(times))
    assert share == pytest.approx((square / mean - mean) / output, abs=4.9 * error)
    assert share > 4.9 * error


@given(st.lists(st.integers(1, 4), min_size=8, max_size=20), st.floats(0.001, 1.0))
@settings(max_examples=50, deadline=None)
def test_bursts_are_one_step(calls: list[int], step: float) -> None:
    """Tokens of a call that come one by one, or in one piece, give the same time: calls less the first and last."""
    at, total, pieces, bursts = 0.0, 0, [], []
    for tokens in calls:
        at += step
        bursts += [(at + step * 0.001 * i, total + i + 1) for i in range(tokens)]
        total += tokens
        pieces.append((at, total))
    whole, burst = Load.of([Streamed(0.0, tuple(pieces))]), Load.of([Streamed(0.0, tuple(bursts))])
    assert burst.token_seconds == pytest.approx(whole.token_seconds, rel=1e-9)
    assert whole.token_seconds == pytest.approx(step * (len(calls) - 2) / sum(calls[1:-1]))


# Servers of a known law


def test_the_times_are_those_of_the_server(tmp_path: Path) -> None:
    """Prompts take five steps' time, and none of it is in the times; acceptance and survival are the server's."""
    for k, accepted in ((0, 0), (1, 1), (4, 2)):
        answer = timed(tmp_path, stub(k, accepted), asked(repeats=2 if k == 4 else 1))
    assert [run.k for run in answer.runs] == [0] * 4 + [1] * 4 + [4] * 4
    for run in answer.runs:
        assert run.step_seconds == pytest.approx(law(run.batch, run.context, run.k), rel=1e-9)
        assert run.tokens_per_call == {0: None, 1: 2.0, 4: 3.0}[run.k]
        assert run.survival == {0: (), 1: (1.0,), 4: (1.0, 1.0, 0.0, 0.0)}[run.k]
        assert run.requests == run.batch * (2 if run.k == 4 else 1)
    assert not answer.lacking
    assert timed_runs(answer.file) == list(answer.runs)
    fit = fit_server([run.step for run in answer.runs])
    assert fit.seconds(3, 100, 2).best == pytest.approx(law(3, 100, 2), rel=1e-6)


@each("style", ["ids", "total"])
def test_tokens_are_counted_however_a_server_says_them(style: str, tmp_path: Path) -> None:
    """By their ids; or only their total at the end, which is spread over the texts."""
    (first, *_) = timed(tmp_path / style, stub(4, 2, style=style), asked(contexts=(40,), repeats=1)).runs
    assert first.step_seconds == pytest.approx(law(1, 40, 4), rel=1e-9)


def test_what_requests_are_sent(tmp_path: Path) -> None:
    """Every request of a point has a prompt of its length, other pieces in each repeat, and the same at every k."""
    one, other = stub(), stub(2, 1)
    timed(tmp_path, one, asked(repeats=2))
    timed(tmp_path, other, asked(repeats=2))
    assert all(body["stream"] and body["ignore_eos"] and "logprobs" not in body for body in one.asked)
    points = [body for body in one.asked if body["max_tokens"] == 32]
    assert sorted({len(body["prompt"]) for body in points}) == [24, 104, 184]
    assert len(points) == 2 * (1 + 4 + 4 + 2)
    waves = [points[:1], points[1:2], points[2:6], points[6:10], points[10:14], points[14:18], points[18:20]]
    assert all(len({tuple(body["prompt"]) for body in wave}) == len(wave) for wave in waves)
    assert points[0]["prompt"] != points[1]["prompt"]
    key = lambda body: (len(body["prompt"]), body["prompt"])  # noqa: E731
    assert [body["prompt"] for body in sorted(points, key=key)] == [
        body["prompt"] for body in sorted((b for b in other.asked if b["max_tokens"] == 32), key=key)
    ]


def test_a_rerun_times_what_is_missing(tmp_path: Path) -> None:
    """A server that fails at the third point keeps two; a torn line is timed again; a finished run sends no point."""
    first = stub(fails=8 + 1 + 4 + 2)  # two warm-ups of four requests, two points, the third's third request
    with pytest.raises(EngineError, match="answered 500") as caught:
        timed(tmp_path, first, asked(repeats=1))
    assert "the same command continues" in one_line(caught)
    file = tmp_path / BENCH_FILE
    kept = file.read_bytes()
    assert len(timed_runs(file)) == 2
    file.write_bytes(kept[:-20])
    again = timed(tmp_path, stub(), asked(repeats=1))
    assert [(run.batch, run.context) for run in again.runs] == [(1, 40), (4, 40), (4, 200), (2, 120)]
    assert file.read_bytes().startswith(kept.rpartition(b"\n")[0].rpartition(b"\n")[0])
    more = stub()
    timed(tmp_path, more, asked(repeats=1))
    assert len(more.asked) == 8, "the warm-ups alone"


def test_a_client_that_leaves_holds_up_nobody(tmp_path: Path) -> None:
    """It closes its connection amid the stream, as a killed process does; the next ones are served."""
    made = stub(pace=timed_server.PACE)
    with serving(made) as url:
        body = json.dumps({"prompt": [1], "max_tokens": 4000})
        with socket.create_connection(urlsplit(url)[1].split(":"), timeout=5.0) as left:
            left.sendall(f"POST /v1/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            left.recv(1)
            left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        answer = bench(ServerEngine(url, 20.0), asked(batches=(1,), contexts=(40,), repeats=1), tmp_path)
    assert len(answer.runs) == 2


def test_another_setting_is_refused_and_more_points_are_not(tmp_path: Path) -> None:
    timed(tmp_path, stub(), asked(repeats=1))
    with pytest.raises(EngineError):
        timed(tmp_path / "none", stub(fails=0), asked(repeats=1))
    assert timed(tmp_path / "none", stub(), asked(repeats=1, seed=1)).runs, "nothing was finished with the other seed"
    for other in ({"output_tokens": 30}, {"seed": 1}, {"text": "another"}, {"temperature": 0.5}):
        with pytest.raises(TextError) as caught:
            timed(tmp_path, stub(), asked(**{"repeats": 1, **other}))
        assert "output tokens, temperature, seed and prompts must be the same" in one_line(caught)
    further = timed(tmp_path, stub(), asked(repeats=1, batches=(1, 2, 4)))
    assert len(further.runs) == 4, "the middle is the same"


@each(
    "made, question, words",
    [
        (stub(2, 1, slots=2), asked(repeats=1), "steps of 4 requests while all decode have"),
        (stub(2, 1, style="none"), asked(repeats=1), "no event says how many tokens it brings"),
        (stub(style="mute"), asked(repeats=1), "streams no tokens to /v1/completions (it ended without one)"),
        (stub(2, 1, tokenizes=False), asked(repeats=1), "answered 404 to /tokenize"),
        (stub(4, 1, drafted=0.6), asked(repeats=1), "calls drafted 2.4"),
        (stub(2, 1), asked(1, 4, repeats=1), "drafts 2 tokens: --k is 1, 4"),
        (stub(2, 1, metrics=False), asked(repeats=1), "has no /metrics"),
    ],
)
def test_servers_that_are_refused(made: TimedStub, question: Bench, words: str, tmp_path: Path) -> None:
    with pytest.raises(SpectheoryError) as caught:
        timed(tmp_path / f"{id(made)}", made, question)
    assert words in one_line(caught)


def test_what_a_request_may_be() -> None:
    for other, words in (
        ({"contexts": (16,)}, "context 16 with 32 output tokens"),
        ({"output_tokens": 4}, "with 4 output tokens"),
        ({"text": " "}, "the prompts are empty"),
        ({"repeats": 0}, "repeats is 0"),
        ({"seed": -1}, "seed is -1"),
    ):
        with pytest.raises(SettingError) as caught:
            asked(**other)
        assert words in one_line(caught)
    assert asked(1, 4).seats.tokens == 200 + 16 + 4 + 1


def test_an_engine_is_started_for_each_k(tmp_path: Path) -> None:
    """In real time, of which nothing is asserted; a finished run starts nothing."""
    file, runs = tmp_path / "program", tmp_path / "starts"
    stub = f"{sys.executable} {timed_server.__file__}"
    file.write_text(
        f'#!/bin/sh\nif [ "$1" = -c ]; then echo 9.9.9; exit; fi\necho >> {runs}\nshift 2\nexec {stub} "$@"\n'
    )
    file.chmod(0o755)
    engine, question = find_engine(f"vllm={file}"), asked(2, batches=(1, 2), contexts=(40,), repeats=1)
    models = Models(*(Path(resolve(f"builtin:{name}")) for name in ("target", "draft")), tmp_path / "models")
    for _ in range(2):
        answer = bench(engine, question, tmp_path, models)
        assert [(run.k, run.batch) for run in answer.runs] == [(0, 1), (0, 1), (0, 2), (2, 1), (2, 1), (2, 2)]
        assert [run.tokens_per_call for run in answer.runs] == [None] * 3 + [2.0] * 3
        assert len(runs.read_text()) == 2, "starts"


@pytest.mark.evidence
def test_a_kill_loses_nothing_that_is_finished(tmp_path: Path) -> None:
    """A process that is killed after its second point leaves both; the next run times the others."""
    file, paced = tmp_path / BENCH_FILE, stub(2, 1, pace=timed_server.PACE)
    with serving(paced) as url:
        how = ["--batch", "1,4", "--context", "40,200", *SHORT, "--out", str(tmp_path)]
        command = [sys.executable, "-m", "spectheory", "bench", "--server", url, *how]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and not (file.exists() and file.read_bytes().count(b"\n") >= 3):
                time.sleep(0.02)
            process.kill()
        kept = file.read_bytes().split(b"\n")[:3]
        sent = len(paced.asked)
        assert main(command[3:]) == 0
    assert file.read_bytes().split(b"\n")[:3] == kept
    assert sorted((run.batch, run.context) for run in timed_runs(file)) == [(1, 40), (2, 120), (4, 40), (4, 200)]
    again = {len(body["prompt"]) for body in paced.asked[sent:] if body["max_tokens"] == 32}
    assert again == {104, 184}, "those of the finished points have 24 tokens"


# The command


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """How a stub is timed by the command line: on its own clock."""

    def run(made: TimedStub, *words: str) -> int:
        monkeypatch.setattr(command, "bench", partial(bench, clock=made.clock))
        with serving(made) as url:
            return main(["bench", "--server", url, "--batch", "1,4", "--context", "40,200", *words])

    return run


def test_a_plan_says_that_prefill_is_left_out(server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where prompts take most of the time, its times per token are those of steps of all requests."""
    for made in (stub(prefill=2.0), stub(4, 2, prefill=2.0)):
        assert server(made, *SHORT, "--out", str(tmp_path)) == 0
    capsys.readouterr()
    assert main(["plan", "--bench", str(tmp_path / BENCH_FILE), "--all"]) == 0
    said = capsys.readouterr().out
    assert "Times of steps are without prefill" in said
    assert "fewer than half of the requests were decoding" not in said


def test_the_command_ends_with_the_plan(server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", str(tmp_path))
    assert server(stub(), *SHORT, *out) == 0
    said = capsys.readouterr().out
    assert said.startswith("A plain step takes 11 to 14.8 ms (4 points).\n")
    assert "Not timed yet: start the server with" in said
    assert server(stub(4, 2), *SHORT, *out) == 0
    said = capsys.readouterr().out
    assert said.rstrip().endswith(f"\nspectheory plan --bench {tmp_path / BENCH_FILE}")
    assert max(map(len, said.splitlines()[1:11])) <= 80
    assert server(stub(4, 2), *SHORT, *out, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(Draft202012Validator(json_schema("bench")).iter_errors(answer)) == []
    assert (len(answer["runs"]), answer["lacking"]) == (8, [])
    assert answer["plan"].startswith("spectheory plan --bench")
    assert math.isclose(answer["runs"][0]["step_seconds"], law(1, 40, 0), rel_tol=1e-9)
