"""Timed runs of llama.cpp: llama-bench, llama-batched-bench, llama-spec-bench, and the server's timings and log.

Keys and columns as in ggml-org/llama.cpp, tools/llama-bench/README.md, tools/batched-bench/batched-bench.cpp and
tools/server/README.md, and in ikawrakow/ik_llama.cpp, examples/spec-bench/spec-bench.cpp.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spectheory.engines.llamacpp.bench import SPEC_BENCH
from spectheory.errors import TextError
from spectheory.files import parsed_json
from spectheory.trace.importers.answers import at, entries
from spectheory.trace.importers.base import text_of
from spectheory.trace.timed import Answer, TimedFormat, TimedRun, Untimed, runs_of_answers

_LONGEST = 64
"""Drafts of the longest pass that is read as a verification; longer ones read prompts."""
_PASSES = (
    "Passes of llama-bench over k + 1 tokens verify k drafts and draft none: drafts are free in these times, and one "
    "token's logits are computed."
)
_OUTPUT_ALONE = "Compact lines and tables say no prompt length: the context is half of the output (--output-details)."
Row = Mapping[str, Any]


def _rows(path: Path, mark: str) -> Iterator[Row]:
    """The rows of a file of JSON, JSON lines, CSV or a Markdown table; other lines stand between."""
    text = text_of(path)
    if text.lstrip().startswith("["):
        yield from parsed_json(text, str(path))
        return
    lines = text.splitlines()
    if any(line.startswith("{") for line in lines):
        yield from (parsed_json(line, str(path)) for line in lines if line.startswith("{"))
        return
    if any(line.startswith(mark + ",") or f",{mark}," in line for line in lines):
        first = next(i for i, line in enumerate(lines) if f"{mark}," in line)
        yield from csv.DictReader(lines[first:])
        return
    names: list[str] = []
    for cells in ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if "|" in line):
        if not set("".join(cells)) <= set("-: "):
            if names and len(cells) == len(names):
                yield dict(zip(names, cells, strict=True))
            names = names or cells


def _bench(path: Path) -> Iterator[TimedRun]:
    """llama-bench: `-n` gives plain steps, `-p 2,3,5,9` passes that verify 1, 2, 4 and 8 drafts, `-d` the context."""
    rows = list(_rows(path, "n_prompt"))
    models = {row.get("model_filename", row.get("model")) for row in rows}
    if len(models) > 1:
        raise TextError(
            f"{path} has runs of {len(models)} models", limit="runs are of one target", remedy="keep its rows"
        )
    for prompt, generated, depth, seconds in filter(None, map(_test, rows)):
        if bool(prompt) == bool(generated) or (prompt or 1) > _LONGEST + 1:
            continue
        k = max(prompt - 1, 0)
        context, note = depth + (prompt or generated) / 2, _PASSES if k else ""
        yield TimedRun("llama.cpp", 1, context, k, seconds / (generated or 1), name=path.stem, note=note)


def _test(row: Row) -> tuple[int, int, int, float] | None:
    """Prompt tokens, generated ones, depth and seconds of a row."""
    if "n_prompt" in row:
        return (*(int(row.get(name) or 0) for name in ("n_prompt", "n_gen", "n_depth")), 1e-9 * float(row["avg_ns"]))  # type: ignore[return-value]
    match = re.fullmatch(r"(pp|tg) ?(\d+)(?: @ d(\d+))?", row.get("test", ""))
    if match is None:
        return None
    tokens, depth = int(match[2]), int(match[3] or 0)
    seconds = tokens / float(row["t/s"].split()[0])
    return (tokens, 0, depth, seconds) if match[1] == "pp" else (0, tokens, depth, seconds)


def _batched(path: Path) -> Iterator[TimedRun]:
    """llama-batched-bench: plain steps of several sequences at once."""
    for row in _rows(path, "pp"):
        low = {name.lower().split(" ")[0]: value for name, value in row.items()}
        prompt, output, batch = (int(low[name]) for name in ("pp", "tg", "pl" if "pl" in low else "b"))
        if output:
            step = float(low["t_tg"]) / output
            yield TimedRun(
                "llama.cpp", batch, prompt + output / 2, 0, step, None, prompt, output, batch, name=path.stem
            )


def _attempts(path: Path) -> Iterator[Answer]:
    """Attempts of llama-spec-bench: compact or detailed lines, or rows of its table."""
    for row in _rows(path, "task"):
        if row.get("row_type") == "summary" or row.get("stop") == "fail" or row.get("ok") is False:
            continue
        seconds = at(row, "decode_s", "timing.decode_s", "time(s)")
        tokens = at(row, "generated", "tokens.generated") or row["tokens"]
        prompt = at(row, "tokens.prompt")
        if "accepted" in row:
            counts = [int(count) for count in re.findall(r"\d+", row["accepted"])] or [0, 0]
        else:
            stages = at(row, "stages", "speculative.stages") or ()
            counts = [
                sum(at(s, *names) for s in stages) for names in (("accepted", "accepted_tokens"), ("draft_tokens",))
            ]
        # The first token comes with the prompt here too.
        note = "" if prompt else _OUTPUT_ALONE
        yield Answer(prompt or 0, int(tokens) + 1, float(seconds), counts[0], counts[1], note)


def _timings(path: Path) -> Iterator[Answer]:
    """`timings` of the server's answers, alone or in them."""
    for entry in entries(path).values():
        each = entry.get("timings") or entry
        prompt = each.get("cache_n", 0) + each.get("prompt_n", 0)
        counts = each.get("draft_n_accepted", 0), each.get("draft_n", 0)
        yield Answer(prompt, each["predicted_n"], 1e-3 * each["predicted_ms"], *counts)


_PROMPT = re.compile(r"prompt eval time = +[\d.]+ ms / +(\d+) tokens")
_EVAL = re.compile(r"(?<!prompt )\beval time = +([\d.]+) ms / +(\d+) (?:tokens|runs)")
_DRAFTS = re.compile(r"draft acceptance(?: rate)? = .*\( *(\d+) accepted / +(\d+) generated\)")
_CACHED = re.compile(r"stop processing: n_(?:tokens|past) = (\d+)")


def _logged(path: Path) -> Iterator[Answer]:
    """Requests of the server's log, one after the other: what stands between two lines of a prompt is of the first."""
    found: dict[str, tuple[float, ...]] = {}
    for line in [*text_of(path).splitlines(), "prompt eval time = 0 ms / 0 tokens"]:
        for name, pattern in (("prompt", _PROMPT), ("eval", _EVAL), ("drafts", _DRAFTS), ("cached", _CACHED)):
            if match := pattern.search(line):
                if name == "prompt" and "eval" in found:
                    yield _request(found)
                    found = {}
                found[name] = tuple(map(float, match.groups()))


def _request(found: Mapping[str, tuple[float, ...]]) -> Answer:
    milliseconds, tokens = found["eval"]
    cached = found.get("cached", (found.get("prompt", (0.0,))[0] + tokens,))[0]
    accepted, drafted = found.get("drafts", (0, 0))
    return Answer(max(cached - tokens, 0.0), int(tokens), 1e-3 * milliseconds, int(accepted), int(drafted))


TIMED = (
    TimedFormat(
        "llama-bench",
        lambda head: (
            all(name in head for name in (b"n_prompt", b"n_gen", b"avg_ns")) or _is_table(head, b"test", b"t/s")
        ),
        _bench,
        title="`llama-bench`: JSON, JSON lines, CSV or its table; `-p 3,5` times passes that verify 2 and 4 drafts",
        lacks="drafting and acceptance: name a trace",
    ),
    TimedFormat(
        "llama-batched-bench",
        lambda head: (b'"n_kv"' in head and b'"t_tg"' in head) or _is_table(head, b"N_KV", b"T_TG s"),
        _batched,
        title="`llama-batched-bench`: its table or JSON lines",
        lacks="speculation: plain steps alone",
    ),
    TimedFormat(
        "llama-spec-bench",
        lambda head: SPEC_BENCH.recognises(head) or (b'"row_type"' in head and b'"decode_s"' in head),
        lambda path: runs_of_answers("ik_llama.cpp", _attempts(path), path),
        title="`llama-spec-bench` of ik_llama.cpp: its table or JSON lines",
        lacks="prompt lengths, unless `--output-details` is given",
    ),
    TimedFormat(
        "llama.cpp-timings",
        lambda head: b'"predicted_ms"' in head and b'"predicted_n"' in head,
        lambda path: runs_of_answers("llama.cpp", _timings(path), path),
        title="answers of llama.cpp's server with `timings`, one at a time",
        lacks="other requests served at the same time: keep one slot busy",
    ),
    TimedFormat(
        "llama.cpp-log",
        lambda head: _EVAL.search(head.decode(errors="replace")) is not None,
        lambda path: runs_of_answers("llama.cpp", _logged(path), path),
        title="the log of llama.cpp's server, of Ollama's or LM Studio's: lines of `eval time` and `draft acceptance`",
        lacks="other requests served at the same time: keep one slot busy",
    ),
)
UNTIMED = (
    Untimed(
        lambda head: b"draft acceptance" in head and b"eval time" not in head,
        "a log of llama.cpp's server without its times",
        "needs the lines of eval time",
        "keep the whole log, or save the answers with their timings",
    ),
)


def _is_table(head: bytes, *names: bytes) -> bool:
    return any(line.startswith(b"|") and all(name in line for name in names) for line in head.splitlines())
