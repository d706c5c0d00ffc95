"""The built-in prompts: ``python -m benchmarks.training.questions TOKENIZER OUT`` cuts them from held-out files.

One prompt per file, in the layout of Spec-Bench's ``question.jsonl``. It consists of whole lines; the hash of the
file's path decides where it starts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from benchmarks.training.corpus import SourceFile, standard_library

QUESTIONS = 48
PROMPT_TOKENS = 96
"""A prompt has as many whole lines as fit into this."""


def cut(file: SourceFile, tokenizer: PreTrainedTokenizerFast) -> str | None:
    """A prompt of whole lines, or None if the file is too short or its lines are too long."""
    lines = file.text.splitlines(keepends=True)
    digest = int.from_bytes(hashlib.sha256(file.path.encode()).digest()[8:16], "big")
    start = digest % max(1, len(lines) * 3 // 4)
    prompt = ""
    for line in lines[start:]:
        if len(tokenizer.encode(prompt + line)) > PROMPT_TOKENS:
            break
        prompt += line
    return prompt if len(tokenizer.encode(prompt)) >= PROMPT_TOKENS // 2 else None


def questions(tokenizer: PreTrainedTokenizerFast) -> list[dict[str, Any]]:
    """The prompts as rows of ``question.jsonl``; the held-out files are ordered by their hashes."""
    held_out = [file for file in standard_library() if file.held_out]
    held_out.sort(key=lambda file: hashlib.sha256(file.path.encode()).hexdigest())
    prompts = [(file, prompt) for file in held_out if (prompt := cut(file, tokenizer))]
    return [
        {
            "question_id": number,
            "category": "test" if "test" in file.path else "library",
            "turns": [prompt],
            "source": file.path,
        }
        for number, (file, prompt) in enumerate(prompts[:QUESTIONS], start=1)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", type=Path, help="folder of the tokenizer")
    parser.add_argument("out", type=Path, help="question.jsonl to write")
    arguments = parser.parse_args()
    rows = questions(PreTrainedTokenizerFast.from_pretrained(arguments.tokenizer))
    arguments.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
