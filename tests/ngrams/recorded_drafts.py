"""Drafts that the engines' own code makes on random and repetitive texts, for ``recorded_drafts.json``.

``python -m tests.ngrams.recorded_drafts LLAMA_CPP VLLM`` writes it, from the sources of llama.cpp (build 11434; a C++
compiler is needed) and of vLLM (0.33.0).
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spectheory.ngrams import NgramDraft, read_ngrams
from spectheory.ngrams.base import Ids, leading

FILE = Path(__file__).with_suffix(".json")
DRIVER = Path(__file__).with_name("llamacpp_driver.cpp")
_STUBS = {
    "llama.h": "#include <cstdint>\n#include <cstdlib>\n#include <string>\n#include <vector>\n"
    "typedef int32_t llama_token;\n#define LLAMA_TOKEN_NULL -1\nint64_t ggml_time_ms();\n"
    "#define GGML_ASSERT(x) do { if (!(x)) std::abort(); } while (0)\n#define GGML_ABORT(...) std::abort()\n",
    "common.h": '#include "llama.h"\n#include <unordered_map>\ntypedef std::vector<llama_token> llama_tokens;\n',
    "log.h": "#define LOG_DBG(...) (void) 0\n#define LOG_INF(...) (void) 0\n",
}
"""What the sources of the drafts use of the rest of llama.cpp."""


class Recorded(NamedTuple):
    """A draft, the length of a prompt, the text with its output, and what each call drafted after how many tokens."""

    draft: str
    prompt: int
    text: list[int]
    calls: list[list[int]]


def texts(rng: np.random.Generator) -> Iterator[Ids]:
    """Random texts over a few tokens, and texts of phrases that return."""
    for vocabulary in (2, 4, 9):
        yield rng.integers(0, vocabulary, 60)
        phrases = [rng.integers(0, vocabulary, size) for size in (4, 7, 11)]
        yield np.concatenate([phrases[i] if i < 3 else rng.integers(0, vocabulary, 2) for i in rng.integers(0, 4, 12)])


def recorded() -> list[Recorded]:
    """What the file holds."""
    return [Recorded(*each) for each in json.loads(FILE.read_text(encoding="utf-8"))]


def _by_llamacpp(drafts: list[tuple[NgramDraft, int, Ids]], source: Path) -> list[list[list[int]]]:
    lines = []
    for draft, prompt, text in drafts:
        settings = {"n": 1, "m": draft.k, "hits": 1, **draft.settings}
        lines.append(" ".join(map(str, (draft.name, *(settings[name] for name in ("n", "m", "hits")), prompt, *text))))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stub, content in _STUBS.items():
            (folder / stub).write_text(f"#pragma once\n{content}", encoding="utf-8")
        for part in ("ngram-map", "ngram-cache"):
            for suffix in (".h", ".cpp"):
                shutil.copy(source / "common" / f"{part}{suffix}", folder)
        code = [DRIVER, folder / "ngram-map.cpp", folder / "ngram-cache.cpp"]
        subprocess.run(["c++", "-std=c++17", f"-I{folder}", *code, "-o", folder / "driver"], check=True)
        out = subprocess.run([folder / "driver"], input="\n".join(lines), capture_output=True, text=True, check=True)
    return [[[*map(int, line.split())] for line in part.splitlines()] for part in out.stdout.split("end\n")[:-1]]


def _by_vllm(draft: NgramDraft, prompt: int, text: Ids, source: Path) -> list[list[int]]:
    """Calls of 8 drafts, by the one function of the file that looks up; numba is not needed."""
    path = source / "vllm" / "v1" / "spec_decode" / "ngram_proposer.py"
    name = "_find_longest_matched_ngram_and_propose_tokens"
    wanted = [
        each
        for each in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    wanted[0].decorator_list = []
    known: dict[str, Any] = {"np": np}
    exec(compile(ast.Module(wanted, []), str(path), "exec"), known)
    calls, at = [], prompt + 1
    while at < len(text):
        copied = known[name](text[:at], draft.settings["min"], draft.settings["max"], 10**6, 8)
        calls.append([at - prompt, *copied.tolist()])
        at += leading(copied, text[at:]) + 1
    return calls


def _write(llamacpp: Path, vllm: Path) -> None:
    rng = np.random.default_rng(31)
    grid = ["ngram-simple:n=1|3,m=4", "ngram-map-k:n=2,m=3|6", "ngram-map-k4v:n=1|2,m=3,hits=2", "ngram-cache"]
    asked = [(draft, int(rng.integers(4, 40)), text) for text in texts(rng) for draft in read_ngrams(grid)]
    rows = [
        Recorded(str(draft), prompt, text.tolist(), calls)
        for (draft, prompt, text), calls in zip(asked, _by_llamacpp(asked, llamacpp), strict=True)
    ]
    for text in texts(rng):
        for draft in read_ngrams(["ngram-vllm:min=1|2,max=2|4"]):
            prompt = int(rng.integers(4, 40))
            rows.append(Recorded(str(draft), prompt, text.tolist(), _by_vllm(draft, prompt, text, vllm)))
    FILE.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]\n")


if __name__ == "__main__":
    _write(*map(Path, sys.argv[1:]))
