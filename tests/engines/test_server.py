"""The client of servers, against a stub that speaks the recorded formats and fails on demand."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from spectheory.distributions import Sampling
from spectheory.errors import EngineError, SettingError, SpectheoryError
from spectheory.measure.engines import Job, Models
from spectheory.measure.engines.processes import Http
from spectheory.measure.engines.server import ServerEngine, _Scrape
from spectheory.measure.engines.validation import _run_job
from spectheory.pairs import resolve
from spectheory.trace.calls import CALLS_FILE, CallLog
from tests.engines.stub_server import Stub, running
from tests.made_up import each, one_line

PROMPTS = (("a", (1, 2, 3)), ("b", (4, 5)), ("c", (6,)), ("d", (7, 8, 9)))


def job(**others: Any) -> Job:
    return Job(**{"prompts": PROMPTS, "tokens": 20, "k": 3, "sampling": Sampling(0.7, top_k=9), "seed": 5, **others})


def models(work: Path) -> Models:
    return Models(Path(resolve("builtin:target")), Path(resolve("builtin:draft")), work)


def run(url: str, out: Path, asked: Job | None = None, timeout: float = 5.0) -> CallLog:
    return _run_job(ServerEngine(url, timeout), asked or job(), models(out), out)


EVERY = {"accepted", "drafted", "by_drafted"}


@each(
    "owner, ids, counts, known",
    [
        ("vllm", "token_ids", "detailed", EVERY),
        ("vllm", "token_ids", "histogram", {"by_drafted"}),
        ("vllm", "prefixed", "summary", set()),
        ("vllm", "token_ids", "none", set()),  # counted by /metrics
        ("llamacpp", "token_ids", "none", set()),
        ("other", "content", "none", set()),
        ("other", "prefixed", "detailed", EVERY),
    ],
)
def test_every_form_of_answer_gives_the_same_calls(
    owner: str, ids: str, counts: str, known: set[str], tmp_path: Path
) -> None:
    stub = Stub(owner, ids=ids, counts=counts)
    with running(stub) as url:
        log = run(url, tmp_path / f"{owner}-{ids}-{counts}")
    asked = job()
    for (name, prompt), request in zip(PROMPTS, log.requests, strict=True):
        output = stub.output(list(prompt), 20, asked.seed_of(name))
        calls = stub.accepted(list(prompt), len(output))
        assert (request.id, request.prompt, request.output) == (name, prompt, tuple(output))
        assert request.ended == (name == "a")
        assert (request.calls, request.total_accepted) == (len(calls), sum(calls))
        assert request.total_drafted == 3 * len(calls)
        assert {field for field in EVERY if getattr(request, field)} == known
        if known == EVERY:
            assert request.accepted == tuple(calls)
    assert (log.k, log.temperature, log.top_k, log.top_p) == (3, 0.7, 9, None)
    body = stub.asked[0]
    assert (body["temperature"], body["top_k"], body["top_p"], body["min_p"]) == (0.7, 9, 1.0, 0.0)


def test_a_job_without_speculation_needs_no_counts(tmp_path: Path) -> None:
    stub = Stub(counts="none", metrics=False)
    with running(stub) as url:
        log = run(url, tmp_path, job(k=None))
    assert [request.calls for request in log.requests] == [None] * 4
    assert stub.asked[0]["seed"] != stub.asked[1]["seed"]


@each(
    "owner, fault, fragment",
    [
        ("vllm", "500", "answered 500 to /v1/completions (out of memory)"),
        ("vllm", "hang", "did not answer /v1/completions: within 0.5 s"),
        ("vllm", "close", "cannot be reached or ended"),
        ("vllm", "form", "answered request 'c' in an unknown form (KeyError: 'choices')"),
        ("llamacpp", "reset", "went back by"),
    ],
)
def test_a_fault_is_one_line_and_the_finished_are_kept(owner: str, fault: str, fragment: str, tmp_path: Path) -> None:
    out = tmp_path / fault
    stub = Stub(owner, counts="detailed" if owner == "vllm" else "none", fault=fault)
    with running(stub) as url:
        with pytest.raises(EngineError) as caught:
            run(url, out, timeout=0.5)
        assert fragment in one_line(caught)
        kept = CallLog.read(out / CALLS_FILE)
        assert [request.id for request in kept.requests] == ["a", "b"]
        log = run(url, out)
    assert [request.id for request in log.requests] == ["a", "b", "c", "d"]
    assert log.requests[:2] == kept.requests
    assert len(stub.asked) == 5, "two, the one that failed, and the two that were missing"


@each(
    "stub, fragment",
    [
        (Stub(ids="none"), "gives no token ids"),
        (Stub("llamacpp", ids="none"), "gives no token ids"),
        (Stub(counts="none", metrics=False), "counts no drafts of request 'a'"),
        (Stub("llamacpp", fault="traffic", at=0), "at most 9, those past the end included"),
    ],
)
def test_a_server_that_cannot_be_judged_is_refused(stub: Stub, fragment: str, tmp_path: Path) -> None:
    with running(stub) as url, pytest.raises(SpectheoryError) as caught:
        run(url, tmp_path / f"{id(stub)}")
    assert fragment in one_line(caught)


def test_no_server_is_one_line(tmp_path: Path) -> None:
    with running(Stub()) as url:
        pass
    for named, kind in ((url, EngineError), ("no url", SettingError), ("", SettingError), ("http://", SettingError)):
        with pytest.raises(kind) as caught:
            _run_job(ServerEngine(named), job(), models(tmp_path), tmp_path)
        one_line(caught)


def test_what_a_server_says_of_itself(tmp_path: Path) -> None:
    for owner, said in (("vllm", "vllm 1.2.3"), ("llamacpp", "llama.cpp 1.2.3"), ("other", "server 1.2.3")):
        with running(Stub(owner, k=5)) as url:
            engine = ServerEngine(f"{url}/v1/")
            assert (engine.version(), engine.chain()) == (said, 5)


def test_a_torn_line_is_run_again_and_another_job_is_refused(tmp_path: Path) -> None:
    stub, seen = Stub(), list[tuple[int, int]]()
    path = tmp_path / CALLS_FILE
    with running(stub) as url:
        whole = run(url, tmp_path)
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:3]) + lines[3][:20])
        again = _run_job(
            ServerEngine(url), job(), models(tmp_path), tmp_path, on_progress=lambda *state: seen.append(state)
        )
        untimed = [
            [{**json.loads(line), "seconds": 0} for line in text] for text in (lines, path.read_text().splitlines())
        ]
        assert untimed[0] == untimed[1]
        assert [r.output for r in whole.requests] == [r.output for r in again.requests]
        assert seen == [(2, 4), (3, 4), (4, 4)]
        path.write_text(lines[0][:30])  # killed while it wrote the first line
        assert len(run(url, tmp_path)) == 4
        with pytest.raises(SpectheoryError) as caught:
            run(url, tmp_path, job(seed=6))
    assert "holds another job" in one_line(caught)


def hostile(write: Callable[[Any], None], **headers: str) -> Iterator[str]:
    """The URL of a server whose every answer `write` sends."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            with contextlib.suppress(OSError):
                write(self.wfile)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def drip(file: Any) -> None:
    for _ in range(200):
        file.write(b"x")
        file.flush()
        time.sleep(0.02)


def forever(file: Any) -> None:
    while True:
        file.write(bytes(1 << 16))


def bomb(file: Any) -> None:
    file.write(gzip.compress(bytes(50 << 20)))


@each(
    "write, packed, said",
    [
        (drip, False, "did not end its answer to /metrics: within 0.3 s"),
        (forever, False, "with more than 1048576 bytes"),
        (bomb, True, "with more than 1048576 bytes"),
    ],
)
def test_an_answer_that_does_not_end_is_refused(write: Callable[[Any], None], packed: bool, said: str) -> None:
    """Bytes that drip, a body without an end, and a small one that unpacks to 50 MB."""
    with contextlib.contextmanager(hostile)(write, **({"Content_Encoding": "gzip"} if packed else {})) as url:
        began = time.monotonic()
        with pytest.raises(EngineError, match=re.escape(said)):
            Http(url, 0.3 if write is drip else 20.0, 1 << 20).get("/metrics")
        assert time.monotonic() - began < 10


@each(
    "value, said",
    [("NaN", "is nan"), ("+Inf", "is inf"), ("-1", "is -1"), ("9" * 400, "is 9{20}")],
)
def test_counters_that_no_count_can_be(value: str, said: str) -> None:
    with pytest.raises(EngineError, match=said):
        _Scrape.of(f"vllm:spec_decode_num_drafts_total {value}\n")


@each("label", ['position="x"', 'position="1000000000"', 'position="-1"', 'other="0"', f'position="{"9" * 5000}"'])
def test_positions_that_no_draft_can_have(label: str) -> None:
    with pytest.raises(EngineError, match="/metrics are no counters"):
        _Scrape.of(f"vllm:spec_decode_num_accepted_tokens_per_pos_total{{{label}}} 3\n")
