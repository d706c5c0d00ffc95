"""Drafts that the engines' own code makes on random and repetitive texts, for ``recorded_drafts.json``.

``python -m tests.ngrams.recorded_drafts LLAMA_CPP VLLM ARCTIC SGLANG`` writes it, from the sources of llama.cpp (build
11434), of vLLM (0.33.0), of Arctic Inference (0.3.0) and of SGLang (0.5.23). A C++ compiler is needed.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spectheory.ngrams import NgramDraft, read_ngrams
from spectheory.ngrams.base import Ids, leading

FILE = Path(__file__).with_suffix(".json")
_STUBS = {
    "llama.h": "#include <cstdint>\n#include <cstdlib>\n#include <string>\n#include <vector>\n"
    "typedef int32_t llama_token;\n#define LLAMA_TOKEN_NULL -1\nint64_t ggml_time_ms();\n"
    "#define GGML_ASSERT(x) do { if (!(x)) std::abort(); } while (0)\n#define GGML_ABORT(...) std::abort()\n",
    "common.h": '#include "llama.h"\n#include <unordered_map>\ntypedef std::vector<llama_token> llama_tokens;\n',
    "log.h": "#define LOG_DBG(...) (void) 0\n#define LOG_INF(...) (void) 0\n",
    "speculative.h": '#include "common.h"\n#include "ngram-mod.h"\n#include <cassert>\n#include <stdexcept>\n'
    "#define SPC_TRC(...) (void) 0\n#define SPC_WRN(...) (void) 0\ntypedef int32_t llama_seq_id;\n"
    "enum common_speculative_type { COMMON_SPECULATIVE_TYPE_NGRAM_MOD };\nstruct common_batch {};\n"
    "struct common_params_speculative_ngram_mod { int32_t n_match, n_max, n_min; };\n"
    "struct common_params_speculative { common_params_speculative_ngram_mod ngram_mod; };\n"
    "struct common_speculative_draft_params {\n"
    "    bool drafting; llama_token id_last; const llama_tokens * prompt; llama_tokens * result;\n};\n"
    "typedef std::vector<common_speculative_draft_params> common_speculative_draft_params_vec;\n",
}
"""What the sources of the drafts use of the rest of llama.cpp."""
_STRUCTS = ("common_speculative_impl ", "common_speculative_impl_ngram_mod ")
"""What is taken from its ``speculative.cpp``, where ngram-mod drafts."""


class Recorded(NamedTuple):
    """A draft, the length of a prompt, the text with its output, and what each call drafted after how many tokens.

    One that `goes_on` is served by the server that has served those before it. Trees are as :func:`listed`.
    """

    draft: str
    prompt: int
    text: list[int]
    calls: list[list[int]]
    goes_on: bool = False


def texts(rng: np.random.Generator) -> Iterator[Ids]:
    """Random texts over a few tokens, and texts of phrases that return."""
    for vocabulary in (2, 4, 9):
        yield rng.integers(0, vocabulary, 60)
        phrases = [rng.integers(0, vocabulary, size) for size in (4, 7, 11)]
        yield np.concatenate([phrases[i] if i < 3 else rng.integers(0, vocabulary, 2) for i in rng.integers(0, 4, 12)])


def listed(tokens: Sequence[int], above: Sequence[int]) -> list[int]:
    """A tree level by level, by rising tokens: the token of each node and the place of the one above it (-1: the text).

    Nodes with the same path are one.
    """
    paths: list[tuple[int, ...]] = []
    for token, over in zip(tokens, above, strict=True):
        paths.append((*(paths[over] if over >= 0 else ()), token))
    places = {path: place for place, path in enumerate(sorted(set(paths), key=lambda path: (len(path), path)))}
    return [number for path in places for number in (path[-1], places.get(path[:-1], -1))]


def recorded() -> list[Recorded]:
    """What the file holds."""
    return [Recorded(*each) for each in json.loads(FILE.read_text(encoding="utf-8"))]


Asked = list[tuple[NgramDraft, int, Ids, bool]]
"""Drafts, lengths of prompts, texts, and whether a server goes on from the one before."""


def _by_llamacpp(asked: Asked, source: Path) -> list[list[list[int]]]:
    lines = []
    for draft, prompt, text, goes_on in asked:
        settings = {"n": 1, "m": draft.k, "hits": draft.settings.get("min", 1), **draft.settings}
        sizes = [settings[name] for name in ("n", "m", "hits")]
        lines.append(" ".join(map(str, (int(goes_on), draft.name, *sizes, prompt, *text))))
    parts = [
        source / "common" / f"ngram-{part}{suffix}" for part in ("map", "cache", "mod") for suffix in (".h", ".cpp")
    ]
    code = (source / "common" / "speculative.cpp").read_text(encoding="utf-8")
    structs = [
        "struct " + name + code.split(f"struct {name}", 1)[1].split("\n};", 1)[0] + "\n};\n" for name in _STRUCTS
    ]
    stubs = {**_STUBS, "speculative.h": _STUBS["speculative.h"] + "".join(structs)}
    return _compiled("llamacpp_driver.cpp", parts, lines, stubs)


def _by_arctic(asked: Asked, source: Path) -> list[list[list[int]]]:
    lines = []
    for draft, prompt, text, goes_on in asked:
        settings = [draft.settings[name] for name in ("max", "depth", "factor", "probability")]
        lines.append(" ".join(map(str, (int(goes_on), *settings, prompt, *text))))
    folder = source / "csrc" / "suffix_decoding"
    return _compiled(
        "arctic_driver.cpp", [folder / f"{n}" for n in ("int32_map.h", "suffix_tree.h", "suffix_tree.cc")], lines
    )


def _by_sglang(asked: Asked, source: Path) -> list[list[list[int]]]:
    lines = []
    for draft, prompt, text, goes_on in asked:
        kind = "PROB" if draft.name.endswith("prob") else "BFS"
        lines.append(" ".join(map(str, (int(goes_on), kind, *draft.settings.values(), prompt, *text))))
    folder = source / "kernels" / "jit" / "csrc" / "ngram_corpus"
    names = ("param.h", "result.h", "trie.h", "result.cpp", "trie.cpp")
    return _compiled("sglang_driver.cpp", [folder / name for name in names], lines)


def _compiled(driver: str, parts: list[Path], lines: list[str], stubs: Mapping[str, str] = {}) -> list[list[list[int]]]:
    """Calls of each line, by a driver beside this file and an engine's own code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stub, content in stubs.items():
            (folder / stub).write_text(f"#pragma once\n{content}", encoding="utf-8")
        for part in parts:
            shutil.copy(part, folder)
        code = [Path(__file__).with_name(driver), *(folder / part.name for part in parts if part.suffix != ".h")]
        subprocess.run(["c++", "-std=c++20", "-w", f"-I{folder}", *code, "-o", folder / "driver"], check=True)
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


def _write(llamacpp: Path, vllm: Path, arctic: Path, sglang: Path) -> None:
    rng = np.random.default_rng(31)
    grid = ["ngram-simple:n=1|3,m=4", "ngram-map-k:n=2,m=3|6", "ngram-map-k4v:n=1|2,m=3,hits=2", "ngram-cache"]
    asked = [(draft, int(rng.integers(4, 40)), text, False) for text in texts(rng) for draft in read_ngrams(grid)]
    rows = [*zip(asked, _by_llamacpp(asked, llamacpp), strict=True)]
    for text in texts(rng):
        for draft in read_ngrams(["ngram-vllm:min=1|2,max=2|4"]):
            prompt = int(rng.integers(4, 40))
            rows.append(((draft, prompt, text, False), _by_vllm(draft, prompt, text, vllm)))
    serving: list[tuple[list[str], Callable[[Asked], list[list[list[int]]]]]] = [
        (["ngram-mod:n=1|2,min=1,max=4"], partial(_by_llamacpp, source=llamacpp)),
        (["suffix:max=4", "suffix:max=6,depth=6,factor=2,probability=0.3"], partial(_by_arctic, source=arctic)),
        (
            ["ngram-sglang:tokens=6,depth=5|18,max=3", "ngram-sglang-prob:tokens=6|9,depth=5,max=3"],
            partial(_by_sglang, source=sglang),
        ),
    ]
    for grid, made_by in serving:
        asked = [
            (draft, int(rng.integers(4, 40)), text, place > 0)
            for draft in read_ngrams(grid)
            for place, text in enumerate(texts(rng))
        ]
        rows += zip(asked, made_by(asked), strict=True)
    lines = [
        json.dumps([str(draft), prompt, text.tolist(), calls, *([True] if goes_on else [])], separators=(",", ":"))
        for (draft, prompt, text, goes_on), calls in rows
    ]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    _write(*map(Path, sys.argv[1:]))
