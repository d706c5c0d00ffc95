"""Prompt files: what is read, and how each fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from spectheory.errors import TextError
from spectheory.prompts import Prompt, read_prompts

GOOD = '{"question_id": 81, "category": "writing", "turns": ["Compose a travel blog.", "Rewrite it."], "extra": 1}'


def test_first_turn_and_given_output_are_read(tmp_path: Path) -> None:
    file = tmp_path / "question.jsonl"
    file.write_text(f'{GOOD}\n\n{{"question_id": "a", "category": "", "turns": ["x\u2028y"], "output": " z"}}\n')
    assert read_prompts(file) == (
        Prompt("81", "writing", "Compose a travel blog."),
        Prompt("a", "", "x\u2028y", " z"),
    )


def test_a_prompt_needs_no_category(tmp_path: Path) -> None:
    file = tmp_path / "question.jsonl"
    file.write_text('{"question_id": 1, "turns": ["x"]}\n{"question_id": 2, "category": null, "turns": ["y"]}\n')
    assert read_prompts(file) == (Prompt("1", "", "x"), Prompt("2", "", "y"))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "is not JSON"),
        ("[1]", "holds a list"),
        ('{"category": "c", "turns": ["x"]}', "has no 'question_id'"),
        ('{"question_id": 1, "category": "c"}', "has no 'turns'"),
        ('{"question_id": 1.5, "category": "c", "turns": ["x"]}', "question_id is 1.5"),
        ('{"question_id": true, "category": "c", "turns": ["x"]}', "question_id is true"),
        ('{"question_id": 1, "category": 2, "turns": ["x"]}', "category is 2"),
        ('{"question_id": 1, "category": "c", "turns": "x"}', 'turns is "x"'),
        ('{"question_id": 1, "category": "c", "turns": []}', "turns is []"),
        ('{"question_id": 1, "category": "c", "turns": [1]}', "turns is [1]"),
        ('{"question_id": 1, "category": "c", "turns": [" \\n"]}', "the first turn is empty"),
        ('{"question_id": 1, "category": "c", "turns": ["x"], "output": 3}', "output is 3"),
        ('{"question_id": 1, "category": "c", "turns": ["x"], "output": ""}', "output is empty"),
        ('{"question_id": 81, "category": "c", "turns": ["x"]}', "question_id '81' is also in line 1"),
    ],
)
def test_faults_name_file_and_line(line: str, named: str, tmp_path: Path) -> None:
    file = tmp_path / "question.jsonl"
    file.write_text(f"{GOOD}\n{line}\n")
    with pytest.raises(TextError) as caught:
        read_prompts(file)
    message = str(caught.value)
    assert "\n" not in message
    assert f"{file}, line 2" in message
    assert named in message
