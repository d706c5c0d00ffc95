"""A server that decodes requests together in steps of known time, on a clock of its own; tokens are streamed.

The clock stands still until every reader has noted the time of what it was sent, so that times are exact. As a program
it takes a server's arguments and keeps to the real time of :data:`PACE` a step, so that an engine can start it.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Seconds = Callable[[int, float, int], float]
"""Of a step: batch, context, k."""
PACE = 0.004
_SETTLED = 0.02
"""Seconds without a new request after which the waiting ones begin."""


@dataclass(eq=False)
class _Request:
    """A request that decodes: how it is sent tokens, those still to come and all of them, and its context."""

    send: Callable[[int, int], None]
    left: int
    total: int
    context: float
    ended: threading.Event = field(default_factory=threading.Event)


@dataclass
class TimedStub:
    """A server of `seconds` a step that accepts `accepted` of `k` drafts in each call; a prompt takes `prefill` more.

    One prompt is read in a step, beside the decoding of the others. `slots` are the most requests at a time; `style` is
    how a chunk says its tokens: usage, ids, only the total at the end, or none; a mute one has no text either. `fails`
    is the request, from 0, that it answers with status 500. `pace` is the real time of a step.
    """

    seconds: Seconds
    k: int = 0
    accepted: int = 0
    prefill: float = 0.0
    slots: int = 1 << 10
    style: str = "usage"
    metrics: bool = True
    tokenizes: bool = True
    drafted: float = 1.0
    fails: int = -1
    pace: float = 0.0
    now: float = 0.0
    calls: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[_Request] = field(default_factory=list)
    noted: int = 0
    sent: int = 0
    change: threading.Condition = field(default_factory=threading.Condition)
    over: bool = False

    def clock(self) -> float:
        """The time; asking for it in a thread other than the main one notes that a piece was read."""
        with self.change:
            if threading.current_thread() is not threading.main_thread():
                self.noted += 1
                self.change.notify_all()
            return self.now

    def run(self) -> None:
        """Decode until the end: a step of all, then the next."""
        active: list[_Request] = []
        while not self.over:
            if not active:
                self._await_requests()
            joining = self.waiting.pop(0) if self.waiting and len(active) < self.slots else None
            if joining is None and not active:
                continue
            context = active[0].context if active else 0.0
            batch = len(active) or 1
            self._pass(self.seconds(batch, context, self.k) + (self.prefill if joining else 0.0))
            self.calls += len(active) if self.k else 0
            for each in active:
                self._give(each, 1 + self.accepted if self.k else 1)
            if joining:
                self._give(joining, 1)
                active.append(joining)
            self._await_readers()
            active = [each for each in active if each.left]

    def _await_requests(self) -> None:
        known = -1
        while not self.over and (not self.waiting or len(self.waiting) != known):
            known = len(self.waiting)
            time.sleep(_SETTLED)

    def _pass(self, seconds: float) -> None:
        with self.change:
            self.noted = self.sent = 0
            self.now += seconds
        time.sleep(self.pace)

    def _give(self, request: _Request, tokens: int) -> None:
        """Send a request its tokens; one whose client left decodes no further."""
        given = min(tokens, request.left)
        request.left -= given
        try:
            request.send(given, request.total - request.left)
            self.sent += 1
        except OSError:
            request.left = 0
        if not request.left:
            request.ended.set()

    def _await_readers(self) -> None:
        with self.change:
            self.change.wait_for(lambda: self.pace or self.over or self.noted >= self.sent, timeout=5.0)

    def scrape(self) -> str:
        """``/metrics`` as vLLM writes them; without speculation none of its counters."""
        if not self.k:
            return "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 0.0\n"
        counts = {"drafts": self.calls, "draft_tokens": int(self.calls * self.k * self.drafted)}
        counts |= {"accepted_tokens": self.calls * self.accepted}
        lines = [
            f"# TYPE vllm:spec_decode_num_{n}_total counter\nvllm:spec_decode_num_{n}_total {v}.0"
            for n, v in counts.items()
        ]
        lines += [
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {self.calls * (i < self.accepted)}.0'
            for i in range(self.k)
        ]
        return "\n".join(lines) + "\n"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        stub = self.server.stub
        pages = {
            "/health": "{}",
            "/v1/models": json.dumps({"data": [{"id": "target", "owned_by": "vllm"}]}),
            "/version": "{}",
        }
        pages |= {"/metrics": stub.scrape()} if stub.metrics else {}
        self._answer(200 if self.path in pages else 404, pages.get(self.path, "none"))

    def do_POST(self) -> None:
        stub, body = self.server.stub, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize":
            ids = list(range(1, 401))
            return self._answer(200 if stub.tokenizes else 404, json.dumps({"tokens": ids, "count": len(ids)}))
        number = len(stub.asked)
        stub.asked.append(body)
        if number == stub.fails:
            return self._answer(500, "out of memory")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        context = len(body["prompt"]) + body["max_tokens"] / 2
        request = _Request(self._send, body["max_tokens"], body["max_tokens"], context)
        stub.waiting.append(request)
        request.ended.wait(30.0)
        if stub.style == "total":
            self._chunk({"choices": [], "usage": {"completion_tokens": request.total}})
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _send(self, tokens: int, total: int) -> None:
        mute = self.server.stub.style == "mute"
        event: dict[str, Any] = {"choices": [{"text": "" if mute else "t" * tokens}]}
        if self.server.stub.style == "usage":
            event["usage"] = {"completion_tokens": total}
        elif self.server.stub.style == "ids":
            event["choices"][0]["token_ids"] = [7] * tokens
        self._chunk(event)

    def _chunk(self, event: dict[str, Any]) -> None:
        content = f"data: {json.dumps(event)}\n\n".encode()
        self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, stub: TimedStub, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.stub = stub

    def handle_error(self, *_: Any) -> None:
        """A client that left early is no fault of the server."""


@contextmanager
def serving(stub: TimedStub) -> Iterator[str]:
    """The URL of a server with this stub."""
    server = _Server(stub)
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True),
        threading.Thread(target=stub.run, daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        stub.over = True
        with stub.change:
            stub.change.notify_all()
        server.shutdown()
        server.server_close()
        for thread in threads:
            thread.join(5.0)


def main(arguments: list[str]) -> None:
    """Serve until killed, with the k of vLLM's `--speculative-config`; half of the drafts are accepted."""
    named = dict(itertools.pairwise(arguments))
    k = json.loads(named.get("--speculative-config", "{}")).get("num_speculative_tokens", 0)
    stub = TimedStub(lambda batch, context, k: 1.0, k, k // 2, pace=PACE)
    threading.Thread(target=stub.run, daemon=True).start()
    _Server(stub, int(named["--port"])).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
