"""A stub of an OpenAI-compatible server: deterministic ids and calls in the recorded formats, and faults on demand.

As a program it takes a server's arguments and uses --port and --owner alone, so that an engine can start it.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

END = 0
VERSION = "1.2.3"


@dataclass
class Stub:
    """How the server behaves, and what it was asked.

    `owner` is vllm, llamacpp or other; `ids` how ids are given (token_ids, prefixed, content, none); `counts` what an
    answer says of its calls (detailed, histogram, summary, none); `ends` names prompts whose text ends by itself;
    `fault` happens at request `at` (from 0): 500, hang, close, form, reset (of the counters), traffic (of others).
    """

    owner: str = "vllm"
    k: int = 3
    ids: str = "token_ids"
    counts: str = "detailed"
    metrics: bool = True
    fault: str = ""
    at: int = 2
    asked: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("drafts", "drafted", "accepted", "passes"), 0)
    )

    def output(self, prompt: list[int], tokens: int, seed: int) -> list[int]:
        """The ids; a prompt that begins with 1 ends its text after five tokens."""
        made = [(7 * i + sum(prompt) + seed) % 500 + 1 for i in range(tokens)]
        return [*made[:5], END] if prompt[0] == 1 else made

    def accepted(self, prompt: list[int], tokens: int) -> list[int]:
        """Accepted drafts by call, for an output of so many tokens whose first comes from the prompt's pass."""
        calls: list[int] = []
        while 1 + len(calls) + sum(calls) < tokens:
            left = tokens - 2 - len(calls) - sum(calls)
            calls.append(min((2 * len(calls) + sum(prompt)) % (self.k + 1), left))
        return calls

    def count(self, calls: list[int]) -> None:
        """Add a request to the totals."""
        self.totals["drafts"] += len(calls)
        self.totals["drafted"] += self.k * len(calls)
        self.totals["accepted"] += sum(calls)
        self.totals["passes"] += 1 + len(calls)

    def scrape(self) -> str:
        """``/metrics`` as vLLM and llama.cpp write them."""
        name = {"vllm": "vllm", "llamacpp": "llamacpp"}.get(self.owner, "other")
        labels = '{engine="0",model_name="target"}' if name == "vllm" else ""
        lines = [
            f"# TYPE {name}:spec_decode_num_{what}_total counter\n"
            f"{name}:spec_decode_num_{what}_total{labels} {self.totals[of]}.0"
            for what, of in (("drafts", "drafts"), ("draft_tokens", "drafted"), ("accepted_tokens", "accepted"))
        ]
        lines += [
            f'{name}:spec_decode_num_accepted_tokens_per_pos_total{{position="{place}"}} 0.0' for place in range(self.k)
        ]
        if name == "llamacpp":
            lines.append(f"llamacpp:n_decode_total {self.totals['passes']}")
        return "\n".join(lines) + "\n"


def speculative(calls: list[int], k: int, kind: str) -> dict[str, Any] | None:
    """The field of vLLM's answers."""
    if kind == "none":
        return None
    histogram = [calls.count(n) for n in range(k + 1)]
    fields: dict[str, Any] = {
        "num_spec_steps": len(calls),
        "num_accepted_draft_tokens": sum(calls),
        "num_draft_tokens": k * len(calls),
        "num_spec_tokens": k,
    }
    if kind in ("histogram", "detailed"):
        fields |= {"acceptance_histogram": histogram, "acceptance_histogram_by_draft_length": {str(k): histogram}}
    if kind == "detailed":
        fields |= {"per_step_accepted": calls, "per_step_drafted": [k] * len(calls)}
    return {"speculative_decoding": fields}


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's stub says."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Models, version, health and metrics."""
        stub = self.server.stub
        pages = {
            "/health": "{}",
            "/v1/models": json.dumps({"data": [{"id": "target", "owned_by": stub.owner}]}),
            "/version" if stub.owner == "vllm" else "/props": json.dumps({"version": VERSION, "build_info": VERSION}),
        }
        if stub.metrics:
            pages["/metrics"] = stub.scrape()
        self._answer(200 if self.path in pages else 404, pages.get(self.path, "none"))

    def do_POST(self) -> None:
        """A completion, or a fault."""
        stub = self.server.stub
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        faulty = stub.fault if len(stub.asked) == stub.at else ""
        stub.asked.append(body)
        if faulty == "500":
            return self._answer(500, "out of\nmemory")
        if faulty == "hang":
            time.sleep(1.0)
        if faulty in ("close", "hang"):
            self.close_connection = True
            return None
        if faulty == "reset":
            stub.totals = dict.fromkeys(stub.totals, 0)
        prompt, tokens = body["prompt"], body.get("max_tokens") or body["n_predict"]
        output = stub.output(prompt, tokens, body["seed"])
        calls = stub.accepted(prompt, len(output))
        stub.count(calls if faulty != "traffic" else 9 * calls)
        made = llama if self.path == "/completion" else openai
        return self._answer(200, "{}" if faulty == "form" else json.dumps(made(stub, prompt, output, calls)))

    def _answer(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def openai(stub: Stub, prompt: list[int], output: list[int], calls: list[int]) -> dict[str, Any]:
    """An answer of ``/v1/completions``."""
    choice: dict[str, Any] = {"index": 0, "text": "...", "finish_reason": "stop" if output[-1] == END else "length"}
    if stub.ids == "token_ids":
        choice |= {"token_ids": output, "prompt_token_ids": prompt}
    elif stub.ids == "prefixed":
        choice["logprobs"] = {"tokens": [f"token_id:{token}" for token in output]}
    elif stub.ids == "content":
        choice["logprobs"] = {"content": [{"id": token, "token": "..."} for token in output]}
    return {"object": "text_completion", "choices": [choice], "metrics": speculative(calls, stub.k, stub.counts)}


def llama(stub: Stub, prompt: list[int], output: list[int], calls: list[int]) -> dict[str, Any]:
    """An answer of llama.cpp's ``/completion``."""
    return {
        "content": "...",
        "tokens": [] if stub.ids == "none" else output,
        "stop_type": "eos" if output[-1] == END else "limit",
        "tokens_predicted": len(output),
        "timings": {"predicted_n": len(output), "draft_n": stub.k * len(calls), "draft_n_accepted": sum(calls)},
    }


class Server(ThreadingHTTPServer):
    """The server of one stub."""

    daemon_threads = True

    def __init__(self, stub: Stub, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.stub = stub

    def handle_error(self, *_: Any) -> None:
        """A client that left early is no fault of the server."""


@contextmanager
def running(stub: Stub) -> Iterator[str]:
    """The URL of a server with this stub."""
    server = Server(stub)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main(arguments: list[str]) -> None:
    """Serve until killed."""
    if "--fail" in arguments:
        raise SystemExit("RuntimeError: no such model")
    named = dict(itertools.pairwise(arguments))
    Server(Stub(named.get("--owner", "vllm")), int(named["--port"])).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
