"""Model folders that others made: none of their code is run, whoever would say yes."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from spectheory.errors import ModelError
from spectheory.measure import load_pair

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
    with pytest.raises(ModelError) as caught:
        load_pair(folder, folder, device="cpu")
    assert not mark.exists()
    message = str(caught.value)
    assert f"{str(folder)!r} needs its own code to load its" in message
    assert ": code that comes with a model is never run;" in message
    assert "\n" not in message


@pytest.mark.parametrize(("file", "kind", "base", "unknown"), CASES)
def test_known_models_load_without_their_code(file: str, kind: str, base: str, unknown: str, folder: Path) -> None:
    mark = with_code(folder, file, kind, base)
    assert load_pair(folder, folder, device="cpu").vocabulary == 64
    assert not mark.exists()


def test_an_architecture_that_nobody_has(folder: Path) -> None:
    edited(folder / "config.json", model_type="own")
    with pytest.raises(ModelError, match="needs an architecture that transformers has"):
        load_pair(folder, folder, device="cpu")


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
    with pytest.raises(ModelError) as caught:
        load_pair(folder, folder, device="cpu")
    assert "weights" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not mark.exists()
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert mark.exists(), "negative control: a plain pickle runs it"


def test_a_pickle_of_objects_is_refused_without_advice_to_load_it(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"weights": Path("x")}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="holds Python objects, not only numbers; it is never loaded") as caught:
        load_pair(folder, folder, device="cpu")
    assert "weights_only" not in str(caught.value)
