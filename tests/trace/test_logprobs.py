"""The file of two numbers per token, and each way it can be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spectheory.errors import TextError
from spectheory.trace.importers.logprobs import _read_log_probabilities
from tests.made_up import each


def test_reads_texts_ids_and_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"target": [-1, -0.5], "draft": [-2.0, -Infinity], "id": "a"}\n\n{"target": [0], "draft": [-1]}\n')
    trace = _read_log_probabilities(file)
    assert [t.id for t in trace.texts] == ["a", "line 3"]
    assert trace.columns["log_target"].tolist() == [-1.0, -0.5, 0.0]


@each(
    "content, message",
    [
        ("", "holds no text"),
        ("\n\n", "holds no text"),
        ("not json\n", "line 1 is not JSON"),
        ('{"target": [-1]}\n', "line 1 has no list of numbers 'draft'"),
        ('{"target": [-1], "draft": [-1]}\n{"target": "x", "draft": [-1]}\n', "line 2 has no list of numbers 'target'"),
        ('{"target": [true], "draft": [-1]}\n', "line 1, token 1 of 'target' is true: must be a number"),
        ('{"target": [-1, "0.5"], "draft": [-1, -1]}\n', "line 1, token 2 of 'target' is \"0.5\": must be a number"),
        ('{"target": [-1, -1e308], "draft": [-1, -1]}\n', r"token 2 of 'target' is -1e\+308: must be in -1e\+300\.\.0"),
        ('{"target": [-1], "draft": [-1e308]}\n', r"'draft' is -1e\+308: .* -Infinity for probability zero"),
        ("[" * 100_000 + "\n", "line 1 is not JSON"),
        (
            '{"target": [-1' + "0" * 400 + '], "draft": [-1]}\n',
            "line 1, token 1 of 'target' is -1000.*: must be in -1e.300..0",
        ),
        ('{"target": [1' + "0" * 400 + '], "draft": [-1]}\n', "token 1 of 'target' is 1000.*: must be in"),
        ('{"target": [-1], "draft": [Infinity]}\n', "line 1, token 1 of 'draft' is Infinity: must be in"),
        ("[1, 2]\n", "line 1 has no list of numbers 'target'"),
        ('{"target": [-1, -2], "draft": [-1]}\n', "2 target and 1 draft"),
        ('{"target": [], "draft": []}\n', "0 target and 0 draft"),
        ('{"target": [-1, 0.5], "draft": [-1, -1]}\n', "token 2 is 0.5"),
        ('{"target": [-1, -1], "draft": [-1, 3]}\n', "log_draft of text 'line 1', token 2 is 3"),
        ('{"target": [-Infinity], "draft": [-1]}\n', "token 1 is -inf"),
        ('{"target": [NaN], "draft": [-1]}\n', "token 1 is nan"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text(content)
    with pytest.raises(TextError, match=message) as caught:
        _read_log_probabilities(file)
    assert "\n" not in str(caught.value)


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(TextError, match="cannot be read"):
        _read_log_probabilities(tmp_path / "absent.jsonl")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TextError, match="not UTF-8"):
        _read_log_probabilities(tmp_path / "binary")


def test_other_line_separators_and_ended(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"target": [-1], "draft": [-1], "id": "a\u2028b", "ended": true}\n', encoding="utf-8")
    (text,) = _read_log_probabilities(file).texts
    assert text.id == "a\u2028b"
    assert text.ended


def test_round_trip_through_json(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"target": [-0.1] * 5, "draft": [-0.2] * 5}))
    assert len(_read_log_probabilities(file)) == 5
