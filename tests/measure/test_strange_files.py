"""Model folders that others made: none of their code is run, and what is faulty is one line, and ends in time."""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spectheory.errors import ModelError
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.tokens import _apply_template, encode_prompt
from spectheory.prompts import Prompt
from tests.made_up import each

SaveModel = Callable[..., Path]

CODE = """
from pathlib import Path
from transformers import {base}
Path({mark!r}).touch()
class Own({base}):
    model_type = "own"
"""


@pytest.fixture
def folder(save_model: SaveModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model's folder, and a user who answers every question with yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    return save_model(tmp_path / "model")


def edited(path: Path, **entries: Any) -> None:
    """Overwrite entries of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(ModelError) as caught:
        act()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)


CASES = [
    ("config.json", "AutoConfig", "LlamaConfig", "own"),
    ("config.json", "AutoModelForCausalLM", "LlamaForCausalLM", "t5"),  # a type without a causal model
    ("tokenizer_config.json", "AutoTokenizer", "PreTrainedTokenizerFast", "vit"),
]
"""A file that names code, what for, of which class, and a type that transformers has none of its own for."""


def with_code(folder: Path, file: str, kind: str, base: str) -> Path:
    """Have a file of the folder name code that leaves a mark when it is run; return the mark."""
    mark = folder / "was-run"
    (folder / "own.py").write_text(CODE.format(base=base, mark=str(mark)))
    edited(folder / file, auto_map={kind: [None, "own.Own"] if kind == "AutoTokenizer" else "own.Own"})
    return mark


@pytest.mark.parametrize(("file", "kind", "base", "unknown"), CASES)
def test_code_of_a_folder_is_never_run(file: str, kind: str, base: str, unknown: str, folder: Path) -> None:
    mark = with_code(folder, file, kind, base)
    edited(folder / "config.json", model_type=unknown)
    edited(folder / "tokenizer_config.json", tokenizer_class="TokenizersBackend" if unknown == "t5" else "Own")
    message = refused(lambda: load_pair(folder, folder, device="cpu"))
    assert not mark.exists()
    assert f"{str(folder)!r} needs its own code to load its" in message
    assert ": code that comes with a model is never run;" in message


@pytest.mark.parametrize(("file", "kind", "base", "unknown"), CASES)
def test_known_models_load_without_their_code(file: str, kind: str, base: str, unknown: str, folder: Path) -> None:
    mark = with_code(folder, file, kind, base)
    assert load_pair(folder, folder, device="cpu").vocabulary == 64
    assert not mark.exists()


def test_pickled_weights_are_read_with_a_remark(folder: Path) -> None:
    safe = load_pair(folder, folder, device="cpu")
    assert safe.remarks == ()
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    assert load_pair(folder, folder, device="cpu").remarks == (), "safetensors come first"
    (folder / "model.safetensors").unlink()
    pair = load_pair(folder, folder, device="cpu")
    (remark,) = pair.remarks
    assert "weights of 'model' are pickled" in remark
    for name, values in safe.target.network.state_dict().items():
        assert torch.equal(pair.target.network.state_dict()[name], values)


def test_a_pickle_with_code_is_refused(folder: Path) -> None:
    mark = folder / "was-run"

    class Harmful:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(mark),)

    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"weights": Harmful()}))
    assert "weights" in refused(lambda: load_pair(folder, folder, device="cpu"))
    assert not mark.exists()
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert mark.exists(), "negative control: a plain pickle runs it"


def test_ends_of_text(save_model: SaveModel, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")

    def ends(value: Any) -> Any:
        edited(folder / "generation_config.json", eos_token_id=value)
        return load_pair(folder, folder, device="cpu").end_of_text

    assert ends([3, 5]) == {0, 3, 5}
    assert ends([-1, 10**300, 64]) == {0}, "ids that no text has"
    for value in ("</s>", ["</s>"], {"a": 1}, 1e300, float("nan"), [[3]]):
        said = refused(partial(ends, value))
        assert "eos_token_id of generation_config.json is" in said


@each("field", ["num_hidden_layers", "num_labels", "text_config", "vision_config"])
def test_layers_without_end(field: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Refused before anything is built: 10^9 layers would be a list of 10^9 names."""
    folder = save_model(tmp_path_factory.mktemp("models") / "model")
    for count in (10**5, 10**9, 10**300) if field != "num_labels" else (10**9, 10**300):
        edited(folder / "config.json", **{field: {"num_layers": count} if "_config" in field else count})
        start = time.perf_counter()
        said = refused(lambda: load_pair(folder, folder, device="cpu"))
        assert "a model has 1 to " in said
        assert time.perf_counter() - start < 2


@each("rope", [{"partial_rotary_factor": 0}, {"rope_type": "yarn", "factor": 2.0, "attention_factor": [1]}])
def test_a_model_whose_first_pass_fails(
    rope: dict[str, Any], save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = save_model(tmp_path_factory.mktemp("models") / "model")
    rope = {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **rope}
    rope |= {"rope_theta": 1e4, "original_max_position_embeddings": 32}
    edited(folder / "config.json", rope_parameters=rope)
    assert "'model' cannot read a text (" in refused(lambda: load_pair(folder, folder, device="cpu"))


@each("field", ["vocab_size", "intermediate_size", "num_key_value_heads"])
def test_more_weights_than_bytes(field: str, save_model: SaveModel, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Ten times more are still read and refused by their shapes; a million times more would fill the memory."""
    folder = save_model(tmp_path_factory.mktemp("models") / "model")
    known = json.loads((folder / "config.json").read_text())[field]
    for times, what in ((10, "mismatched keys"), (10**6, "config.json describes")):
        edited(folder / "config.json", **{field: known * times})
        assert what in refused(lambda: load_pair(folder, folder, device="cpu"))


TEMPLATES: dict[str, Any] = {
    "no syntax": "{% for %}",
    "its own error": "{{ raise_exception('no users\nhere') }}",
    "unknown": "{{ messages.nothing.at.all }}",
    "outside": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "division": "{{ 1 / 0 }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "number": 5,
    "several": {"one": "a", "two": "b"},
    "range": "{% for i in range(10**9) %}{% endfor %}",
}


@each("kind", list(TEMPLATES))
def test_faults_of_chat_templates(kind: str, tiny_pair: ModelPair) -> None:
    tokenizer = type("With", (), {"chat_template": TEMPLATES[kind]})()
    tokenizer.apply_chat_template = lambda *args, **named: type(tiny_pair.tokenizer).apply_chat_template(
        tiny_pair.tokenizer, *args, chat_template=TEMPLATES[kind], **named
    )
    said = refused(lambda: _apply_template(tokenizer, "t1"))
    assert said.startswith("the tokenizer's chat template was refused (")


def test_a_template_ends_in_time(folder: Path) -> None:
    """10^15 steps: three loops of 10^5."""
    loop = "{% for i in range(99999) %}"
    endless = f"{loop * 3}{{% endfor %}}{{% endfor %}}{{% endfor %}}"
    pair = load_pair(folder, folder, device="cpu")
    pair.tokenizer.chat_template = endless
    before, start = sys.gettrace(), time.monotonic()
    said = refused(lambda: _apply_template(pair.tokenizer, "t1", seconds=0.2))
    assert "refused (it takes more than 0.2 s): it must turn one message of a user into text within 0.2 s" in said
    assert time.monotonic() - start < 5
    assert sys.gettrace() is before
    pair.tokenizer.chat_template = "{% for m in messages %}t2 {{ m.content }}{% endfor %}"
    assert encode_prompt(pair.tokenizer, Prompt("a", "", "t1"), chat_template=True).tolist() == [2, 1]
