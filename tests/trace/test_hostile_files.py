"""Files that somebody else wrote: told apart by content, and damaged in every format: what they hold, or one line."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from spectheory.errors import SpectheoryError
from spectheory.trace import TRACE_FILE, Trace, read_any
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.parquet import METADATA_KEY
from spectheory.trace.reading import format_of, read_evidence
from tests.made_up import each
from tests.trace.counter_cases import SAMPLES

HUGE = "9" * 5000
DEEP = "[" * 100_000
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
DAMAGE: dict[str, Callable[[str, re.Match[str]], str]] = {
    name: (lambda text, at, put=put: text[: at.start()] + put + text[at.end() :])
    for name, put in {
        "a number of 5,000 digits": HUGE,
        "a number of 400 digits": "9" * 400,
        "1e400": "1e400",
        "NaN": "NaN",
        "infinity": "Infinity",
        "a negative number": "-7",
        "a fraction": "2.5",
        "a string": '"x"',
        "null": "null",
        "a list": "[1, [2]]",
        "an object": '{"a": {}}',
        "true": "true",
        "deep nesting": DEEP,
        "nothing": "",
        "a field of 200,000 letters": "x" * 200_000,
    }.items()
}


def damaged(text: str, most: int, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """The text with one of its numbers in another shape, for a few numbers and every kind of damage."""
    numbers = list(NUMBER.finditer(text))
    for number in rng.choice(len(numbers), min(most, len(numbers)), replace=False):
        for name, change in DAMAGE.items():
            yield name, change(text, numbers[number])
    yield "cut in the middle", text[: len(text) // 2]


def refusal(ask: Callable[[], object]) -> str:
    """What the project's own error says; nothing if there is none. Any other error comes through."""
    try:
        ask()
    except SpectheoryError as error:
        return str(error)
    return ""


@each("name", sorted(path.name for path in SAMPLES.iterdir() if path.is_file()))
def test_a_damaged_file_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    """Each sample of a format, damaged in some 75 ways: nothing but the project's own errors comes out."""
    text = (SAMPLES / name).read_text(encoding="utf-8")
    known = format_of(SAMPLES / name).name
    file = tmp_path / f"{name}.log"
    for what, changed in damaged(text[:200_000], 5, np.random.default_rng([ord(c) for c in name])):
        file.write_text(changed, encoding="utf-8")
        said = refusal(lambda: read_evidence(file, known))
        assert "\n" not in said, what
        assert len(said) < 1500, what


def test_the_damage_is_seen() -> None:
    """The control: without the one door these are other errors."""
    with pytest.raises(ValueError, match="digits"):
        int(HUGE)
    with pytest.raises(RecursionError):
        json.loads(DEEP)


@each("deep", ["[" * 500 + "]" * 500, '{"a": ' * 500 + "1" + "}" * 500, DEEP])
def test_nesting_that_a_parser_takes_is_refused_at_the_door(deep: str, tmp_path: Path) -> None:
    """500 levels pass the parser, and copying or comparing what was read does not: our own files are read so too."""
    made = {"spectheory": "spectheory counters", "schema": 1, "calls": 2, "accepted": 1, "provenance": "@"}
    counters, calls, trace = (tmp_path / name for name in ("counters.json", "calls.jsonl", "trace.parquet"))
    counters.write_text(json.dumps(made, indent=2).replace('"@"', f'{{"x": {deep}}}'))
    CallLog((Request("@", accepted=(1, 0)),), k=1).write(calls)
    calls.write_text(calls.read_text().replace('"@"', deep))
    Trace.from_log_probabilities([([-1.0], [-1.0])]).write(trace)
    table = pq.read_table(trace)
    header = json.dumps({**json.loads(table.schema.metadata[METADATA_KEY]), "provenance": {"settings": "@"}})
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: header.replace('"@"', deep).encode()}), trace)
    for file in (counters, calls, trace):
        assert refusal(lambda file=file: read_evidence(file)), file  # type: ignore[misc]


LINE = '{"target": [-1, -0.5], "draft": [-2, -0.1]}\n'


def test_a_byte_order_mark_hides_no_format(tmp_path: Path) -> None:
    for name in ("k3_c8_in16.json", "k3_c8_in16.txt"):
        content = (Path(__file__).parents[2] / "benchmarks/results/bench_serve" / name).read_bytes()
        (tmp_path / name).write_bytes(codecs.BOM_UTF8 + content)
        assert read_evidence(tmp_path / name) == read_evidence(tmp_path / name, "vllm-bench")


def test_each_kind_is_read(tmp_path: Path) -> None:
    trace = Trace.from_log_probabilities([([-1.0, -0.5], [-2.0, -0.1])])
    trace.write(tmp_path / TRACE_FILE)
    trace.write(tmp_path / "renamed.bin")
    (tmp_path / "log.txt").write_text("\ufeff\n " + LINE)
    for path in (tmp_path, tmp_path / TRACE_FILE, tmp_path / "renamed.bin", tmp_path / "log.txt"):
        assert read_any(path).columns["log_target"].tolist() == [-1.0, -0.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: needs a folder of spectheory measure, or a file of a known format"),
        (b"a,b\n1,2\n", "of an unknown format, text that begins with 'a,b"),
        (b"\0\1", "zero bytes"),
        (b"\xff\xfe", "is no UTF-8 text, and no trace"),
        (b'{"accepted": 3}\n', "unknown format, JSON with the keys 'accepted'"),
        (b'{"accepted": 3}\n{"accepted": 4}\n', "JSON with the keys 'accepted'"),
        (b'[{"text": "a"}]', "JSON with the keys 'text'"),
        (b"[]", "JSON with no keys"),
        (b'[{"target": [-1], "draft": [-1]}]', "not written as log-probabilities are: an object a line"),
        (b'{"Target": [-1], "Draft": [-1]}', "not written as log-probabilities are: an object a line"),
        (b'{"choices": [{"text": "a"}]}', "answers without counts of drafts: serve vLLM with"),
        (b'{"schema": 3, "unit": "seconds", "context": 8}', "is a latency table"),
        (b'{"metadata": {"guidellm_version": "0.5"}, "benchmarks": []}', "a report of GuideLLM: it has times of"),
        (b'{"model": "m", "eval_count": 9, "eval_duration": 8}', "an answer of Ollama: it has durations"),
        (b"Prompt: 4 tokens, 9.1 tokens-per-sec\nGeneration: 9 tokens, 8.2 tokens-per-sec", "what mlx-lm prints"),
        (
            b'{"summary": {"speculative_windows": 3, "draft_tokens": 9}}',
            "mesh-llm's llama-spec-bench: its loop",
        ),
        (b"  code : 3/ 3 ok | 9.1 t/s | draft_len= 5.00 | accept_len= 2.1 | accept_ratio= 40.0%", "for EAGLE's trees"),
        (b"ab code prompt 9 @ 1.0 tok/s | gen  99 @  9.0 tok/s draft 3/9 accepted", "a script that times llama-server"),
        (b"Test::eagle3:\n  ref_al: 2.02\n  min_al: 1.9\n", "acceptance lengths of tests, as TensorRT-LLM has it"),
        (b'{\n  "schema": 1,\n  "rule": "token"\n}', "is an answer of spectheory: it has no text"),
        (b'{"target": [-1]}\n', "line 1 has no list of numbers 'draft'"),
        (b"PAR1 cut off", "truncated or no Parquet file"),
    ],
)
def test_other_files_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(SpectheoryError, match=message) as caught:
        read_any(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_and_torn_traces(tmp_path: Path) -> None:
    (tmp_path / TRACE_FILE).write_bytes(b"")
    with pytest.raises(SpectheoryError, match="truncated or no Parquet"):
        read_any(tmp_path)
    with pytest.raises(SpectheoryError, match="is missing"):
        read_any(tmp_path / "absent")
