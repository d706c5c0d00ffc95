"""The scripts of docs/how_to/my_engines_text_looks_wrong.md, against servers that answer as vLLM and SGLang do."""

from __future__ import annotations

import io
import json
import re
import sys
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spectheory.trace.calls import CallLog
from spectheory.trace.reading import read_evidence
from tests.made_up import each

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "my_engines_text_looks_wrong.md"
VLLM_SCRIPT, SGLANG_SCRIPT = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
COUNTS = {"num_spec_steps": 2, "num_accepted_draft_tokens": 2, "num_draft_tokens": 6, "acceptance_histogram": [1, 0, 1]}
VLLM = {
    "id": "cmpl-1",
    "choices": [{"prompt_token_ids": [5, 6], "token_ids": [7, 8, 9, 7], "finish_reason": "stop"}],
    "metrics": {"speculative_decoding": COUNTS},
}
SGLANG = {
    "text": "a b",
    "output_ids": [6, 7, 8, 9, 7],
    "meta_info": {
        "id": "r1",
        "finish_reason": {"type": "stop"},
        "input_token_logprobs": [],
        "output_token_logprobs": [[-0.5, 7, None], [-0.1, 8, None], [-0.2, 9, None], [-1.0, 7, None]],
        "spec_verify_ct": 2,
        "spec_num_proposed_drafts": 6,
        "spec_num_correct_drafts": 2,
        "spec_correct_drafts_histogram": [1, 0, 1, 0],
    },
}


@each("script, answer, name", [(VLLM_SCRIPT, VLLM, "vllm"), (SGLANG_SCRIPT, SGLANG, "sglang")])
def test_what_the_script_writes_is_a_log_with_texts_and_calls(
    script: str, answer: dict[str, Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SGLang's own `output_ids`, which may begin with tokens of the prompt, are not used."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(urllib.request, "urlopen", lambda question: io.BytesIO(json.dumps(answer).encode()))
    encoded = SimpleNamespace(from_pretrained=lambda folder: lambda text: SimpleNamespace(input_ids=[5, 6]))
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(AutoTokenizer=encoded))
    for _ in range(2):
        exec(compile(script, str(PAGE), "exec"), {})
    log = read_evidence(tmp_path / f"{name}.jsonl")
    assert isinstance(log, CallLog)
    assert len(log) == 2
    for request in log.requests:
        assert (request.prompt, request.output, request.ended) == ((5, 6), (7, 8, 9, 7), True)
        assert (request.calls, request.total_accepted, request.total_drafted) == (2, 2, 6)
    assert log.temperature == 1.0
