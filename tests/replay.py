"""A server whose counters grow as if it served requests, in vLLM's, SGLang's or llama.cpp's words."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np


def page(engine: str, calls: int, reached: Sequence[int], model: str = "target", started: float = 1e9) -> str:
    """`/metrics` of an engine that counted so many calls, of which `reached[i]` accepted more than i drafts."""
    accepted, k = sum(reached), len(reached)
    if engine == "sglang":
        tokens = calls + accepted + calls // 10
        values = {
            "spec_verify_calls_total": calls,
            "generation_tokens_total": tokens,
            "num_requests_total": calls // 10,
        }
        return "".join(f'sglang:{n}{{model_name="{model}"}} {v}\n' for n, v in {**values, "spec_num_steps": k}.items())
    prefix = {"vllm": "vllm", "llama.cpp": "llamacpp"}[engine]
    label = f'engine="0",model_name="{model}"' if engine == "vllm" else ""
    names = {"drafts": calls, "draft_tokens": k * calls, "accepted_tokens": accepted}
    lines = [f"{prefix}:spec_decode_num_{name}_total{{{label}}} {value}" for name, value in names.items()]
    per_position = f"{prefix}:spec_decode_num_accepted_tokens_per_pos_total"
    lines += [f'{per_position}{{{label}{"," * bool(label)}position="{i}"}} {count}' for i, count in enumerate(reached)]
    if engine == "vllm":
        lines.append(f"vllm:spec_decode_num_drafts_created{{{label}}} {started}")
    return "\n".join(lines) + "\n"


@dataclass
class Replay:
    """Counters that each scrape finds further on: `calls` more, accepted with the chances of `survival`.

    From scrape `falls_at` on a draft is accepted less often by a factor `kept`; at scrape `restarts_at` the counters
    begin again. Scrapes in `down` are answered with status 500.
    """

    survival: tuple[float, ...] = (0.8, 0.6, 0.4)
    engine: str = "vllm"
    calls: int = 1000
    falls_at: int = 1 << 30
    kept: float = 0.8
    restarts_at: int = -1
    down: tuple[int, ...] = ()
    seed: int = 0
    scrapes: int = 0
    totals: list[int] = field(default_factory=list)
    started: float = 1e9

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.totals = self.totals or [0] * (1 + len(self.survival))

    def next(self) -> str:
        """The next page."""
        if self.scrapes == self.restarts_at:
            self.totals, self.started = [0] * len(self.totals), self.started + 1
        falls = self.kept if self.scrapes >= self.falls_at else 1.0
        hazards = [falls * b / a for a, b in zip((1.0, *self.survival), self.survival, strict=False)]
        reached = self.calls
        self.totals[0] += reached
        for i, hazard in enumerate(hazards, start=1):
            reached = int(self.rng.binomial(reached, hazard))
            self.totals[i] += reached
        self.scrapes += 1
        return page(self.engine, self.totals[0], self.totals[1:], started=self.started)


@contextmanager
def served(replay: Replay) -> Iterator[str]:
    """The URL of a server of these counters."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            down = replay.scrapes in replay.down
            text = replay.next() if self.path == "/metrics" else ""
            self.send_response(500 if down else 200 if text else 404)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
