"""llama.cpp: its server, with a draft model; both as GGUF in single precision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file

from spectheory.errors import ModelError, SettingError, load_extra
from spectheory.files import read_text, write_whole
from spectheory.measure.engines import Engine, Job, Models, Seats
from spectheory.measure.engines.processes import Http, find_program, output_of, serving
from spectheory.measure.engines.server import Dialect, Reply, sampled, send_prompts, token_ids
from spectheory.measure.model_files import fingerprint_of
from spectheory.trace.calls import Request

Floats = NDArray[np.float32]

ARCHITECTURE = "LlamaForCausalLM"


def _export_gguf(folder: Path, file: Path) -> Path:
    """Write the model of `folder` as `file`, and return it; a file that is there already stays.

    Weights are in float32, whatever they were saved in: with float16 weights llama.cpp rounds activations too. Raises
    ``ModelError`` for another architecture or activation, scaled rotary positions, weights that are no safetensors, or
    a tokenizer that is not byte-level BPE.
    """
    if file.exists():
        return file
    config = json.loads(read_text(folder / "config.json"))
    _check(folder, config)
    tokenizer = json.loads(read_text(folder / "tokenizer.json"))
    write_whole(file, lambda partial: _write(partial, folder, config, tokenizer))
    return file


def _tensors(folder: Path, config: dict[str, Any]) -> Iterator[tuple[str, Floats]]:
    """Names and weights as llama.cpp reads them: rows of query and key are in pairs of adjacent rotary halves."""
    gguf = load_extra("gguf", extra="engines")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    heads = config["num_attention_heads"]
    rotary = {"q_proj": heads, "k_proj": config.get("num_key_value_heads") or heads}
    for path in sorted(folder.glob("*.safetensors")):
        for name, weights in load_file(path).items():
            if name == "lm_head.weight" and config.get("tie_word_embeddings"):
                continue
            theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if theirs is None:
                raise _refused(folder, f"has the weights {name!r}", "GGUF has no name for them")
            values: Floats = weights.float().numpy()
            turned = next((count for part, count in rotary.items() if part in name), None)
            yield theirs, values if turned is None else _adjacent(values, turned)


def _adjacent(weights: Floats, heads: int) -> Floats:
    """Rows i and i + d/2 of each head (transformers' rotary halves) put side by side, as llama.cpp rotates them."""
    rest = weights.shape[1:]
    halves = weights.reshape(heads, 2, weights.shape[0] // heads // 2, *rest)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(weights.shape))


def _check(folder: Path, config: dict[str, Any]) -> None:
    kinds = config.get("architectures") or ["no architecture"]
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if kinds != [ARCHITECTURE]:
        raise _refused(folder, f"is a {kinds[0]}", f"this writer knows {ARCHITECTURE}")
    kind = rotary.get("rope_type") or rotary.get("type") or "default"  # older configurations say `type`
    if kind != "default":
        raise _refused(folder, f"has rotary positions of type {kind!r}", "this writer knows the default")
    if config.get("hidden_act", "silu") != "silu":
        raise _refused(folder, f"has the activation {config['hidden_act']!r}", "llama.cpp computes silu")
    if not (folder / "tokenizer.json").is_file() or not any(folder.glob("*.safetensors")):
        raise _refused(folder, "lacks tokenizer.json or *.safetensors", "this writer reads these")


def _write(file: Path, folder: Path, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    gguf = load_extra("gguf", extra="engines")
    writer = gguf.GGUFWriter(file, "llama")
    _add_shapes(writer, gguf, config)
    _add_tokens(writer, gguf, config, tokenizer, folder)
    for name, values in _tensors(folder, config):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_shapes(writer: Any, gguf: Any, config: dict[str, Any]) -> None:
    heads = config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // heads
    rotary = config.get("rope_parameters") or config
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(rotary.get("rope_theta", 10000.0))
    writer.add_vocab_size(config["vocab_size"])


def _add_tokens(writer: Any, gguf: Any, config: dict[str, Any], tokenizer: dict[str, Any], folder: Path) -> None:
    """Tokens and merges; ids beyond the tokenizer's are unused."""
    model = tokenizer["model"]
    if model.get("type") != "BPE" or '"ByteLevel"' not in json.dumps(tokenizer.get("pre_tokenizer")):
        raise _refused(folder, f"has a tokenizer of type {model.get('type')}", "this writer knows byte-level BPE")
    kinds = dict.fromkeys(model["vocab"], gguf.TokenType.NORMAL)
    ids = dict(model["vocab"])
    for each in tokenizer.get("added_tokens", ()):
        ids[each["content"]] = each["id"]
        kinds[each["content"]] = gguf.TokenType.CONTROL if each["special"] else gguf.TokenType.USER_DEFINED
    by_id = {number: token for token, number in ids.items()}
    tokens = [by_id.get(number, f"[PAD{number}]") for number in range(config["vocab_size"])]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.UNUSED) for token in tokens])
    writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in model["merges"]])
    ends = config.get("eos_token_id")
    for add, value in ((writer.add_eos_token_id, ends), (writer.add_bos_token_id, config.get("bos_token_id"))):
        first = value[0] if isinstance(value, list) else value
        if first is not None:
            add(first)
    writer.add_add_bos_token(False)


def _refused(folder: Path, what: str, limit: str) -> ModelError:
    return ModelError(
        f"{folder.name} {what}", limit=limit, remedy="convert it with llama.cpp's own script, or use another engine"
    )


_PROGRAM = "llama-server"
_REMEDY = "install llama.cpp, or build it with cmake"
_SAMPLES = {"sampled": "probabilistic", "argmax": "greedy"}


class _LlamaEngine(Engine):
    """llama.cpp's server, without prompt cache; prompts of a job run one at a time.

    `program` is ``llama-server``. By its own default it drafts first choices (`greedy`).
    """

    name = "llama.cpp"
    counts_past_end = True
    drafts = ("sampled", "argmax")

    def version(self) -> str:
        """What the program says of its build."""
        said = output_of(self.name, [self._program(), "--version"], _REMEDY)
        lines = [line.partition(":")[2].strip() for line in said.splitlines() if line.startswith("version:")]
        if not lines:
            raise SettingError(f"{_PROGRAM} says no version", limit="needs llama.cpp's server", remedy=_REMEDY)
        return lines[0].replace(", commit unknown", "")

    def _program(self) -> str:
        return find_program(self.name, self.program, _PROGRAM, _REMEDY)

    def settings(self, job: Job) -> Mapping[str, Any]:
        """Arguments of the server, paths and port left out."""
        return _options(job)

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Export the models, start the server for this job and run its prompts."""
        with self.server(job, models, Seats()) as http:
            yield from send_prompts(http, job)

    def server(self, job: Job, models: Models, seats: Seats) -> AbstractContextManager[Http]:
        """The server with the models as GGUF; its context is shared by the requests."""
        named = {"model": models.target, "spec-draft-model": models.draft if job.k else None}
        files = {name: _gguf_of(folder, models.work) for name, folder in named.items() if folder}
        places = {"host": "127.0.0.1", "port": "{port}", **files}
        room = {"parallel": seats.requests} | ({"ctx-size": seats.requests * seats.tokens} if seats.tokens else {})
        command = [self._program(), "--metrics", "--no-webui"]
        for name, value in (_options(job) | room | places).items():
            command += [f"--{name}", str(value)]
        return serving([*command, *seats.arguments], models.work / "llama-server.log")


def _gguf_of(saved: Path, work: Path) -> Path:
    """A model as GGUF; two models of one name, or one that was trained on, have files of their own."""
    if saved.suffix == ".gguf":
        return saved
    return _export_gguf(saved, work / f"{saved.name}-{fingerprint_of(saved, None)}.gguf")


def _options(job: Job) -> dict[str, Any]:
    """Caches are in single precision like the weights; a request is alone in its batch."""
    options: dict[str, Any] = {"parallel": 1, "cache-type-k": "f32", "cache-type-v": "f32", "flash-attn": "off"}
    if not job.k:
        return options
    options |= {"spec-type": "draft-simple", "spec-draft-n-max": job.k}
    options |= {f"spec-draft-type-{each}": "f32" for each in "kv"}
    return options | ({"spec-draft-sampling": _SAMPLES[job.drafts]} if job.drafts else {})


def _body(job: Job, name: str, prompt: tuple[int, ...], model: str) -> dict[str, Any]:
    return {
        "prompt": list(prompt),
        "n_predict": job.tokens,
        "return_tokens": True,
        "cache_prompt": False,
        "samplers": ["temperature", "top_k", "top_p", "min_p"],  # the order of transformers
        **sampled(job, name),
    }


def _reply(answer: Mapping[str, Any]) -> Reply:
    timings = answer.get("timings") or {}
    counts = {}
    if "draft_n" in timings:
        counts = {"total_drafted": timings["draft_n"], "total_accepted": timings["draft_n_accepted"]}
    return Reply(token_ids(answer.get("tokens") or ()), answer.get("stop_type") == "eos", counts)


RUNS = _LlamaEngine
DIALECT = Dialect(
    "llama.cpp",
    "/completion",
    _body,
    _reply,
    owner="llamacpp",
    decodes="llamacpp:n_decode_total",
    text="content",
    drafting="--spec-draft-n-max {k}",
)
