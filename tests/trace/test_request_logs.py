"""Calls of requests in the logs of servers and benchmarks, and each way such a log can be wrong."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import TextError
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import pooled
from spectheory.trace.reading import read_evidence
from tests.made_up import each, one_line

Json = dict[str, Any]

ACCEPTED = [2, 3, 1, 4, 2, 0, 3, 3]
VLLM: Json = {
    "mean_acceptance_length": 3.25,
    "draft_acceptance_rate": 0.5625,
    "acceptance_histogram": [1, 1, 2, 3, 1],
    "acceptance_histogram_by_draft_length": {"4": [1, 1, 2, 3, 1]},
    "num_spec_steps": 8,
    "num_accepted_draft_tokens": 18,
    "num_draft_tokens": 32,
    "num_spec_tokens": 4,
}
DETAILED = {**VLLM, "per_step_accepted": ACCEPTED, "per_step_drafted": [4] * 8}
AIPERF = {**DETAILED, "engine": "vllm", "acceptance_histogram": {"0": 1, "1": 1, "2": 2, "3": 3, "4": 1}}
VARIED: Json = {
    "acceptance_histogram": [1, 1, 1],
    "acceptance_histogram_by_draft_length": {"1": [0, 1], "2": [1, 0, 1], "3": [0, 0, 0, 0]},
    "num_spec_steps": 3,
    "num_accepted_draft_tokens": 3,
    "num_draft_tokens": 5,
    "num_spec_tokens": 3,
}
SGLANG: Json = {
    "id": "r1",
    "finish_reason": {"type": "length"},
    "completion_tokens": 4,
    "spec_verify_ct": 2,
    "spec_num_proposed_drafts": 6,
    "spec_num_correct_drafts": 2,
    "spec_accept_rate": 0.3333,
    "spec_accept_length": 2.0,
    "spec_correct_drafts_histogram": [1, 0, 1, 0],
}
OLDER = {
    "completion_tokens": 4,
    "spec_verify_ct": 2,
    "spec_accept_token_num": 2,
    "spec_draft_token_num": 6,
    "finish_reason": {"type": "stop"},
}
ALIASED = {
    "spec_verify_ct": 2,
    "spec_accepted_drafts": 2,
    "spec_proposed_drafts": 6,
    "spec_accept_histogram": [1, 0, 1, 0],
}


def spec_bench(lengths: list[int], new_tokens: list[int], steps: list[int]) -> Json:
    choice = {
        "index": 0,
        "turns": ["a", "b"],
        "decoding_steps": steps,
        "new_tokens": new_tokens,
        "wall_time": [4.1, 3.3],
    }
    return {
        "question_id": 81,
        "category": "writing",
        "model_id": "m",
        "choices": [{**choice, "accept_lengths": lengths}],
    }


EAGLE = {
    "question_id": 81,
    "choices": [
        {"index": 0, "turns": ["a", "b"], "idxs": [119, 97], "new_tokens": [310, 255], "wall_time": [4.0, 3.0]}
    ],
}


def read(folder: Path, *lines: Json, whole: Any = None) -> CallLog:
    text = json.dumps(whole, indent=1) if whole is not None else "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "log").write_text(text)
    evidence = read_evidence(folder / "log")
    assert isinstance(evidence, CallLog)
    return evidence


def metrics(record: Json, **more: Any) -> Json:
    return {"id": "a", **more, "metrics": {"speculative_decoding": record}}


@each(
    "lines, engine, k, calls, accepted, drafted",
    [
        ([metrics(VLLM)], "vllm", 4, 8, 18, 32),
        ([metrics(DETAILED, choices=[{"finish_reason": "stop"}])], "vllm", 4, 8, 18, 32),
        ([{"speculative_decoding": DETAILED}], "vllm", 4, 8, 18, 32),
        ([VLLM, VLLM], "vllm", 4, 8, 18, 32),
        ([metrics(VARIED)], "vllm", 3, 3, 3, 5),
        ([{"metadata": {"x": 1}, "spec_decode_acceptance": AIPERF}, {"error": {"code": 500}}], "vllm", 4, 8, 18, 32),
        ([{"spec_decode_acceptance": {**AIPERF, "engine": "trtllm"}}], "trtllm", 4, 8, 18, 32),
        ([{"text": "x", "meta_info": SGLANG}], "sglang", 3, 2, 2, 6),
        ([{"text": "x", "meta_info": OLDER}], "sglang", None, 2, 2, 6),
        ([{"sglext": {"spec_tokens_details": ALIASED}, "usage": {"completion_tokens": 4}}], "sglang", 3, 2, 2, 6),
        ([{"choices": [{"meta_info": ALIASED}]}], "sglang", 3, 2, 2, 6),
        ([{"meta_info": {**SGLANG, "spec_cap_length": 3.0}}], "sglang", None, 2, 2, 6),
        ([EAGLE], "", None, 120, 190, None),
        ([spec_bench([3, 1, 5, 2, 2], [9, 4], [3, 2])], "", None, 3, 6, None),
        ([spec_bench([2, 0, 4, 1, 1], [9, 4], [3, 2])], "", None, 3, 6, None),
        ([spec_bench([3, 1, 5, 2, 2], [9, 3], [7, 9])], "", None, 5, 8, None),
    ],
)
def test_counts_of_the_first_request(
    lines: list[Json], engine: str, k: int | None, calls: int, accepted: int, drafted: int | None, tmp_path: Path
) -> None:
    log = read(tmp_path, *lines)
    first = log.requests[0]
    assert (log.engine, log.k) == (engine, k)
    assert (first.calls, first.total_accepted, first.total_drafted) == (calls, accepted, drafted)
    assert len({request.id for request in log.requests}) == len(log)


def test_calls_of_detailed_logs_and_histograms(tmp_path: Path) -> None:
    """One entry per call; a histogram by the number of drafts; capped calls of SGLang have no common number."""
    for lines in ([metrics(DETAILED)], [{"spec_decode_acceptance": AIPERF}]):
        (request,) = read(tmp_path, *lines).requests
        assert (request.accepted, request.drafted) == (tuple(ACCEPTED), (4,) * 8)
        assert request.by_drafted == {4: (1, 1, 2, 3, 1)}
    (varied,) = read(tmp_path, metrics(VARIED)).requests
    assert varied.by_drafted == {1: (0, 1), 2: (1, 0, 1)}
    early = {**VLLM, "acceptance_histogram_by_draft_length": None, "num_spec_tokens": 5}
    (stopped,) = read(tmp_path, metrics(early)).requests
    assert not stopped.by_drafted  # 32 drafts in 8 calls of up to 5: not four in each
    (plain,) = read(tmp_path, {"meta_info": SGLANG}).requests
    assert plain.by_drafted == {3: (1, 0, 1)}
    (capped,) = read(tmp_path, {"meta_info": {**SGLANG, "spec_cap_length": 3.0}}).requests
    assert not capped.by_drafted
    turns = read(tmp_path, spec_bench([3, 1, 5, 2, 2], [9, 4], [3, 2])).requests
    assert [turn.accepted for turn in turns] == [(2, 0, 4), (1, 1)]
    assert [turn.tokens for turn in turns] == [9, 4]


def test_documents_lists_and_lines_hold_the_same(tmp_path: Path) -> None:
    """A list, a document of requests, one indented object, lines; texts and settings where they are."""
    one = metrics(VLLM, prompt_token_ids=[5, 6], choices=[{"token_ids": [1] * 27, "finish_reason": "stop"}], T=0.5)
    for whole in ([one], {"requests": [one]}, one):
        log = read(tmp_path, whole=whole)
        (request,) = log.requests
        assert (request.prompt, request.output, request.tokens, request.ended) == ((5, 6), (1,) * 27, 27, True)
        assert log.temperature == 0.5
        assert read(tmp_path, one) == log


@each(
    "lines, message",
    [
        ([metrics({**VLLM, "num_spec_steps": 9})], "calls is 9, its calls give 8"),
        ([metrics({**DETAILED, "per_step_accepted": ACCEPTED[:-1]})], "7 calls accepted, 8 drafted"),
        ([metrics({**DETAILED, "per_step_drafted": "44444444"})], "drafted has '4': must be integers >= 0"),
        ([metrics({**DETAILED, "per_step_accepted": [*ACCEPTED[:-1], 10**20]})], "accepted tokens in a call, 0..1024"),
        ([metrics({**VLLM, "num_spec_tokens": "4"})], "is not of the format vllm-requests (k is '4')"),
        ([metrics({**VLLM, "num_spec_tokens": 10**9})], "k is 1000000000: must be an integer in 1..1024"),
        ([metrics({**VLLM, "num_spec_tokens": math.inf})], "k is inf"),
        ([metrics(VLLM, temperature=math.nan)], "temperature is nan"),
        ([metrics({**DETAILED, "acceptance_histogram": [8]})], "per_step_accepted and acceptance_histogram differ"),
        ([metrics({**VLLM, "num_draft_tokens": "32"})], "total_drafted is '32': must be an integer"),
        ([metrics({**VLLM, "num_spec_steps": -8})], "calls is -8"),
        ([metrics(VLLM), {"speculative_decoding": {"num_spec_steps": 1}}], "no 'num_accepted_draft_tokens'"),
        ([metrics(VLLM, choices=[{"token_ids": [1] * 9}])], "its calls output 27 tokens, its text has 9"),
        ([metrics(VLLM, T=0), metrics(VLLM, T=1)], "line 2 was sampled with {'temperature': 1}"),
        ([{"meta_info": {**SGLANG, "spec_verify_ct": 3}}], "its histogram counts 2 calls, spec_verify_ct is 3"),
        ([{"meta_info": {**SGLANG, "spec_verify_ct": 0}}], "holds no request with counts"),
        ([{"spec_decode_acceptance": None}], "holds no request with counts"),
        ([spec_bench([3, 1, 5], [99, 44], [3, 2])], "accept_lengths add up to 9 over 3 calls, new_tokens to 143"),
        ([{**EAGLE, "choices": [{**EAGLE["choices"][0], "idxs": [400, 97]}]}], "total_accepted is -91"),
        ([metrics(VLLM), [1]], "line 2 is no object"),
    ],
)
def test_bad_logs_are_refused_in_one_line(lines: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TextError) as caught:
        read(tmp_path, *lines)
    assert message in one_line(caught)


def test_drafted_tokens_of_every_call_without_accepted_ones(tmp_path: Path) -> None:
    """The histogram by drafted tokens says what the list of calls leaves out."""
    log = read(tmp_path, metrics({**DETAILED, "per_step_accepted": None}))
    assert pooled(log).hazards == pooled(read(tmp_path, metrics(DETAILED))).hazards


def test_a_log_that_is_cut_off(tmp_path: Path) -> None:
    whole = json.dumps([metrics(VLLM)] * 3, indent=1)
    (tmp_path / "log").write_text(whole[: len(whole) // 2])
    with pytest.raises(TextError, match=r"is not JSON .*whole objects; check that the log is not cut off"):
        read_evidence(tmp_path / "log")
    lines = json.dumps(metrics(VLLM)) + "\n" + json.dumps(metrics(VLLM))[:-20]
    (tmp_path / "log").write_text(lines)
    with pytest.raises(TextError, match="line 2 is not JSON"):
        read_evidence(tmp_path / "log")


def test_counts_of_zero_are_written_and_read_back(tmp_path: Path) -> None:
    """Zero is a count: a request that accepted nothing is no request of unknown counts."""
    nothing = Request("a", calls=5, total_accepted=0, total_drafted=0, seconds=0.0)
    CallLog((nothing, Request("b", calls=0, tokens=0)), k=2).write(tmp_path / "calls.jsonl")
    assert CallLog.read(tmp_path / "calls.jsonl").requests == (nothing, Request("b", calls=0, tokens=0))


def test_counts_may_exceed_a_text_by_one_call(tmp_path: Path) -> None:
    """Of k drafts and one token more; the prompt's token counts where its pass emits one."""
    for surplus, prefill in ((3, True), (4, False)):
        request = Request("a", output=(1,) * 20, calls=10, total_accepted=10 + surplus)
        CallLog((request,), k=3, prefill_emits_token=prefill).write(tmp_path / "calls.jsonl")
        read_evidence(tmp_path / "calls.jsonl")
        more = dataclasses.replace(request, total_accepted=11 + surplus)
        with pytest.raises(TextError, match="its calls output 25 tokens, its text has 20: counts may exceed a text by"):
            CallLog((more,), k=3, prefill_emits_token=prefill)
        line = (tmp_path / "calls.jsonl").read_text().replace(f": {10 + surplus}", f": {11 + surplus}")
        (tmp_path / "calls.jsonl").write_text(line)
        with pytest.raises(TextError, match=r"calls\.jsonl is no call log \(request 'a': its calls output 25 tokens"):
            read_evidence(tmp_path / "calls.jsonl")


def test_a_log_is_written_and_read_back(tmp_path: Path) -> None:
    log = read(tmp_path, metrics(DETAILED, T=1.0))
    log.write(tmp_path / "calls.jsonl")
    assert read_evidence(tmp_path / "calls.jsonl") == log
