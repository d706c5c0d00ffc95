"""Write a saved transformers model as OpenVINO's own format; a plain script for the interpreter that has OpenVINO.

Usage: ``python openvino_model.py SAVED OUT``. Llama-like decoders of text only (Llama, Mistral, Qwen2, Qwen3), with
weights in float32: OpenVINO GenAI's reader of GGUF files takes none, and its logits of the float16 pair are off by
3e-3, those written here by 1e-5.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops
from openvino import opset15

KINDS = ("llama", "mistral", "qwen2", "qwen3")
"""Model types of these very layers."""
NUMBERS = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
"""Types of numbers in safetensors files that are read."""


def weights_of(folder: Path) -> dict[str, NDArray[Any]]:
    """Every tensor of a folder's safetensors files, in float32."""
    weights = {}
    for file in sorted(folder.glob("*.safetensors")):
        content = file.read_bytes()
        start = 8 + int.from_bytes(content[:8], "little")
        for name, entry in json.loads(content[8:start]).items():
            if name != "__metadata__":
                first, last = entry["data_offsets"]
                raw = np.frombuffer(content[start + first : start + last], NUMBERS[entry["dtype"]])
                wide = (raw.astype(np.uint32) << 16).view(np.float32) if entry["dtype"] == "BF16" else raw
                weights[name] = wide.astype(np.float32).reshape(entry["shape"])
    return weights


class Decoder:
    """The graph of one model: token ids in, logits out, keys and values in the model's state."""

    def __init__(self, config: dict[str, Any], weights: dict[str, NDArray[Any]]) -> None:
        self.config, self.weights = config, weights
        self.heads = config["num_attention_heads"]
        self.groups = config.get("num_key_value_heads") or self.heads
        self.width = config.get("head_dim") or config["hidden_size"] // self.heads
        self.ids, self.mask, self.positions = (
            _named(ops.parameter([-1, -1], np.int64), name) for name in ("input_ids", "attention_mask", "position_ids")
        )
        self.beam = _named(ops.parameter([-1], np.int32), "beam_idx")
        self.stored: list[Any] = []

    def model(self) -> ov.Model:
        """The whole model."""
        state = ops.gather(self.weights_at("model.embed_tokens"), self.ids, _whole(0))
        self.rotation, self.visible = self._rotation(), self._visible()
        for layer in range(self.config["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            state = ops.add(state, self._attention(self._norm(state, at + "input_layernorm"), at + "self_attn."))
            state = ops.add(state, self._feed_forward(self._norm(state, at + "post_attention_layernorm"), at + "mlp."))
        head = "lm_head" if "lm_head.weight" in self.weights else "model.embed_tokens"
        logits = self._linear(self._norm(state, "model.norm"), head)
        result = ops.result(logits)
        result.output(0).get_tensor().set_names({"logits"})
        inputs = [self.ids, self.mask, self.positions, self.beam]
        return ov.Model([result], self.stored, inputs, "decoder")

    def weights_at(self, name: str) -> Any:
        """A tensor as a constant."""
        return ops.constant(self.weights[f"{name}.weight"])

    def _linear(self, state: Any, name: str) -> Any:
        product = ops.matmul(state, self.weights_at(name), False, True)
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else ops.add(product, ops.constant(bias))

    def _norm(self, state: Any, name: str) -> Any:
        mean = ops.reduce_mean(ops.power(state, np.float32(2)), _whole(-1), True)
        scale = ops.sqrt(ops.add(mean, np.float32(self.config["rms_norm_eps"])))
        return ops.multiply(self.weights_at(name), ops.divide(state, scale))

    def _feed_forward(self, state: Any, at: str) -> Any:
        gate = ops.swish(self._linear(state, at + "gate_proj"))
        return self._linear(ops.multiply(gate, self._linear(state, at + "up_proj")), at + "down_proj")

    def _attention(self, state: Any, at: str) -> Any:
        query = self._turned(self._split(state, at, "q", self.heads))
        key = self._with_past(self._turned(self._split(state, at, "k", self.groups)), at + "key")
        value = self._with_past(self._split(state, at, "v", self.groups), at + "value")
        repeated = [self._repeated(each) for each in (key, value)]
        mixed = ops.scaled_dot_product_attention(query, *repeated, self.visible)
        output = ops.reshape(ops.transpose(mixed, [0, 2, 1, 3]), [0, 0, self.heads * self.width], True)
        return self._linear(output, at + "o_proj")

    def _split(self, state: Any, at: str, which: str, heads: int) -> Any:
        """Queries, keys or values, `[batch, heads, tokens, width]`."""
        split = ops.reshape(self._linear(state, f"{at}{which}_proj"), [0, 0, heads, self.width], True)
        if f"{at}{which}_norm.weight" in self.weights:
            split = self._norm(split, f"{at}{which}_norm")
        return ops.transpose(split, [0, 2, 1, 3])

    def _rotation(self) -> tuple[Any, Any]:
        """Cosines and sines of the rotary embedding, `[batch, 1, tokens, width]`."""
        theta = (self.config.get("rope_parameters") or self.config).get("rope_theta", 10000.0)
        halves = theta ** -(np.arange(0, self.width, 2, dtype=np.float32) / np.float32(self.width))
        place = ops.unsqueeze(ops.convert(self.positions, "f32"), [1, 3])
        angle = ops.multiply(place, ops.constant(np.concatenate([halves, halves]).astype(np.float32)))
        return ops.cos(angle), ops.sin(angle)

    def _turned(self, state: Any) -> Any:
        first, second = ops.split(state, _whole(3), 2).outputs()
        other = ops.concat([ops.multiply(second, np.float32(-1)), first], 3)
        cosine, sine = self.rotation
        return ops.add(ops.multiply(state, cosine), ops.multiply(other, sine))

    def _with_past(self, new: Any, name: str) -> Any:
        """Keys or values of earlier calls, and the new ones."""
        batch = ops.gather(ops.shape_of(self.ids), [0], _whole(0))
        empty = ops.broadcast(np.float32(0), ops.concat([batch, np.array([self.groups, 0, self.width])], 0))
        shape = ov.PartialShape([-1, self.groups, -1, self.width])
        past = ops.read_value(empty, name, np.float32, shape)
        whole = ops.concat([ops.gather(past, self.beam, _whole(0)), new], 2)
        self.stored.append(ops.assign(whole, name))
        return whole

    def _repeated(self, state: Any) -> Any:
        """Keys or values, once for each head."""
        times = self.heads // self.groups
        if times == 1:
            return state
        shape = ops.shape_of(state)
        head, rest = ops.gather(shape, [0, 1], _whole(0)), ops.gather(shape, [2, 3], _whole(0))
        wide = ops.broadcast(ops.unsqueeze(state, 2), ops.concat([head, np.array([times]), rest], 0))
        return ops.reshape(wide, [0, self.heads, -1, self.width], True)

    def _visible(self) -> Any:
        """What each token may look at: 0, or minus infinity, `[batch, 1, tokens, all]`."""
        length = ops.squeeze(ops.gather(ops.shape_of(self.mask), [1], _whole(0)), [0])
        places = ops.range(np.int64(0), length, np.int64(1), "i64")
        later = ops.greater(places, ops.unsqueeze(self.positions, [1, 3]))
        return ops.select(later, np.float32(np.finfo(np.float32).min), np.float32(0))


def _named(parameter: Any, name: str) -> Any:
    parameter.output(0).get_tensor().set_names({name})
    parameter.set_friendly_name(name)
    return parameter


def _whole(number: int) -> Any:
    return ops.constant(np.int64(number))


def unused_tokenizer() -> ov.Model:
    """A tokenizer of one number per text: a pipeline with a draft asks for one, but ids go in and out."""
    text = opset15.parameter([-1], ov.Type.string)
    start = opset15.string_tensor_unpack(text).output(0)
    ids = ops.unsqueeze(ops.convert(start, "i64"), _whole(1))
    results = [ops.result(ids), ops.result(ops.add(ops.multiply(ids, _whole(0)), _whole(1)))]
    for result, name in zip(results, ("input_ids", "attention_mask"), strict=True):
        result.output(0).get_tensor().set_names({name})
    return ov.Model(results, [text], "tokenizer")


def refusal(config: dict[str, Any]) -> str:
    """Why a model cannot be written; empty if it can."""
    kind, rope = config.get("model_type"), config.get("rope_parameters") or config.get("rope_scaling") or {}
    if kind not in KINDS:
        return f"a model of type {kind} cannot be written for OpenVINO: needs one of {', '.join(KINDS)}"
    scaled = rope.get("rope_type") or rope.get("type") or "default"  # older configurations say `type`
    if scaled != "default":
        return f"rope type {scaled} cannot be written for OpenVINO: needs default"
    if config.get("hidden_act", "silu") != "silu":
        return f"the activation {config['hidden_act']} cannot be written for OpenVINO: needs silu"
    sliding = config.get("use_sliding_window", kind == "mistral") and config.get("sliding_window")
    return "sliding windows cannot be written for OpenVINO" if sliding else ""


def write(saved: Path, out: Path) -> None:
    """Write the model of one folder into another."""
    config = json.loads((saved / "config.json").read_text(encoding="utf-8"))
    if why := refusal(config):
        sys.exit(why)
    if not (weights := weights_of(saved)):
        sys.exit("a model without safetensors cannot be written for OpenVINO")
    model = Decoder(config, weights).model()
    out.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, out / "openvino_model.xml", compress_to_fp16=False)
    ov.save_model(unused_tokenizer(), out / "openvino_tokenizer.xml")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
