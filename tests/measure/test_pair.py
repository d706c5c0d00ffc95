"""Loading pairs: what is accepted, and one clear line for everything that is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from spectheory.errors import ModelError
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.model_files import fingerprint_of
from spectheory.pairs import resolve

SaveModel = Callable[..., Path]


def refused(*arguments: Any, **options: Any) -> str:
    """Load, check that one line of ours comes back, return it."""
    with pytest.raises(ModelError) as caught:
        load_pair(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.count(";") >= 1
    return message


def test_pair_is_ready_to_measure(tiny_pair: ModelPair) -> None:
    assert tiny_pair.vocabulary == 64
    assert tiny_pair.window == 128
    assert tiny_pair.end_of_text == {0}
    for model in (tiny_pair.target, tiny_pair.draft):
        assert not model.network.training
        assert model.dtype == "float32"


def test_description_holds_no_path(tiny_pair: ModelPair, tiny_folders: tuple[Path, Path]) -> None:
    text = json.dumps(tiny_pair.describe())
    assert str(tiny_folders[0].parent) not in text
    assert tiny_pair.describe()["target"]["name"] == "target"
    assert tiny_pair.describe()["draft"]["parameters"] == tiny_pair.draft.network.num_parameters()


def test_folders_given_as_relative_text(tiny_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_folders[0].parent)
    assert load_pair("target", "./draft", device="cpu").draft.name == "draft"


def test_dtype(tiny_folders: tuple[Path, Path], save_model: SaveModel, tmp_path: Path) -> None:
    assert load_pair(*tiny_folders, dtype="bfloat16", device="cpu").target.dtype == "bfloat16"
    half = save_model(tmp_path / "half", dtype="float16")
    assert load_pair(half, half, device="cpu").target.dtype == "float32"
    assert load_pair(half, half, dtype="float16", device="cpu").target.dtype == "float16"
    assert "dtype is 'float33'" in refused(half, half, dtype="float33")
    assert "dtype is 'int8'" in refused(half, half, dtype="int8")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_device_that_is_not_there(tiny_folders: tuple[Path, Path]) -> None:
    message = refused(*tiny_folders, device="cuda")
    assert "device is 'cuda'" in message
    assert "cpu" in message
    assert "one of them" in refused(*tiny_folders, device="cpu", device_map="auto")


@pytest.mark.parametrize("device", ["cpu:3", "cuda:64", "cpu:", "cpu:x", "tpu", "meta", ""])
def test_devices_that_no_machine_has(device: str, tiny_folders: tuple[Path, Path]) -> None:
    message = refused(*tiny_folders, device=device)
    assert f"device is {device!r}: this machine has cpu" in message
    assert "use one of them" in message


def test_the_cpu_is_also_number_0(tiny_folders: tuple[Path, Path]) -> None:
    assert load_pair(*tiny_folders, device="cpu:0").describe() == load_pair(*tiny_folders, device="cpu").describe()


def test_folders_have_no_revisions(tiny_folders: tuple[Path, Path]) -> None:
    for options in ({"target_revision": "v1"}, {"draft_revision": "v1"}):
        message = refused(*tiny_folders, device="cpu", **options)
        assert "revision 'v1' is given for the folder" in message
        assert "leave the revision out" in message
    assert str(tiny_folders[1]) in message


def test_missing_folder(tiny_folders: tuple[Path, Path], tmp_path: Path) -> None:
    message = refused(tiny_folders[0], tmp_path / "nothing")
    assert "nothing" in message
    assert "does not exist" in message
    file = tmp_path / "file"
    file.touch()
    assert "is a file" in refused(file, tiny_folders[1])


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_half_written_folder(name: str, save_model: SaveModel, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")
    (folder / name).unlink()
    assert "lacks" in refused(folder, folder)


def test_missing_shard(save_model: SaveModel, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-00002.safetensors"}}))
    assert "lacks model-00002.safetensors" in refused(folder, folder)
    index.write_text("{")
    assert "cannot be read" in refused(folder, folder)


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
def test_truncated_files(name: str, save_model: SaveModel, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    assert "cannot be loaded" in refused(folder, folder)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", {"num_attention_heads": 0}, {"dtype": "banana"}, {"model_type": 5}], ids=str
)
def test_faults_of_the_configuration_are_its_own(
    content: str | dict[str, Any], save_model: SaveModel, tmp_path: Path
) -> None:
    folder = save_model(tmp_path / "model")
    file = folder / "config.json"
    file.write_text(content if isinstance(content, str) else json.dumps(json.loads(file.read_text()) | content))
    assert f"config.json of {str(folder)!r} cannot be loaded" in refused(folder, folder)


@pytest.mark.parametrize("layers", [-1, 0])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_number_of_layers_below_one(kind: str, layers: int, save_model: SaveModel, tmp_path: Path) -> None:
    """It is named as in the file, whatever the family calls it."""
    folder = save_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    name = "num_hidden_layers"
    if kind == "gpt2":
        sizes = {"n_embd": 32, "n_head": 2, "vocab_size": 64, "n_positions": 128}
        config, name = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **sizes}, "n_layer"
    (folder / "config.json").write_text(json.dumps(config | {name: layers}))
    assert f"config.json has {name} = {layers}: a model has 1 to 1024" in refused(folder, folder)


@pytest.mark.parametrize(("lost", "named"), [(True, "missing keys"), (False, "")])
def test_weights_are_never_made_up(lost: bool, named: str, save_model: SaveModel, tmp_path: Path) -> None:
    """A weight that is missing, or of another size, would be filled with random numbers."""
    from safetensors.torch import load_file, save_file

    folder = save_model(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.1.mlp.up_proj.weight"
    if lost:
        del weights[name]
    else:
        weights[name] = weights[name][:, :16].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    message = refused(folder, folder)
    assert named in message
    assert "weights" in message


def test_tokenizers_that_differ(tiny_folders: tuple[Path, Path], save_model: SaveModel, tmp_path: Path) -> None:
    other = load_pair(tiny_folders[0], save_model(tmp_path / "other", words="w"), device="cpu")
    assert "(token 't1' is 1 and absent): only what they have in common is drafted, 1 of 64 and 64" in other.remarks[0]
    larger = load_pair(tiny_folders[0], save_model(tmp_path / "larger", outputs=80, tokens=70), device="cpu")
    assert "(token 't64' is absent and 64): only what they have in common is drafted, 64 of" in larger.remarks[0]
    assert "have no token in common" in refused(tiny_folders[0], resolve("builtin:draft"))


def test_padded_vocabularies(tiny_folders: tuple[Path, Path], save_model: SaveModel, tmp_path: Path) -> None:
    padded = save_model(tmp_path / "padded", outputs=80)
    pair = load_pair(tiny_folders[0], padded, device="cpu")
    assert (pair.draft.outputs, pair.vocabulary) == (80, 64)
    assert load_pair(padded, padded, device="cpu").vocabulary == 64, "padding that both have is nothing to decode"
    short = save_model(tmp_path / "short", outputs=60)
    message = refused(tiny_folders[0], short)
    assert "60 outputs, and the tokenizer's ids go up to 63: token 't60' is 60" in message


def test_a_token_that_appears_when_the_tokenizer_is_loaded(
    tiny_folders: tuple[Path, Path], save_model: SaveModel, tmp_path: Path
) -> None:
    """A special token or a tokenizer class can add one that tokenizer.json lacks."""
    folder, padded = save_model(tmp_path / "model"), save_model(tmp_path / "padded", outputs=80)
    file = folder / "tokenizer_config.json"
    assert load_pair(padded, padded, device="cpu").remarks == ()
    for entry, token in (({"pad_token": "<pad>"}, "<pad>"), ({"tokenizer_class": "GPT2Tokenizer"}, "<|endoftext|>")):
        kept = file.read_text()
        file.write_text(json.dumps(json.loads(kept) | entry))
        for message in (refused(folder, folder), refused(tiny_folders[0], folder)):
            assert f"token {token!r} is" in message
            assert "remove what adds it from tokenizer_config.json" in message
        (padded / "tokenizer_config.json").write_text(file.read_text())
        (remark,) = load_pair(padded, padded, device="cpu").remarks
        assert f"loading the tokenizer of {str(padded)!r} adds token {token!r}" in remark
        assert "remove what adds it from tokenizer_config.json" in remark
        file.write_text(kept)


def test_hub_that_does_not_answer(tiny_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> None:
        raise OSError("We couldn't connect to 'https://huggingface.co'\nand more lines")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    message = refused("someone/some-model", tiny_folders[1])
    assert "'someone/some-model'" in message
    assert "check the name and the connection" in message


@pytest.mark.parametrize(
    ("reason", "said"),
    [("No file.", "No file."), ("No file. " + "See caches, " * 30, "No file"), ("x" * 300, "x" * 197 + "...")],
)
def test_a_long_reason_ends_with_a_sentence_or_a_mark(reason: str, said: str) -> None:
    from spectheory.measure import model_files

    def fail() -> None:
        raise OSError(reason)

    with pytest.raises(ModelError, match=re.escape(f"({said})")):
        model_files.guarded("someone/some-model", "config.json", fail)


def test_no_network_is_no_wait(tiny_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where names do not resolve, only what was downloaded before is looked at."""
    from spectheory.measure import model_files

    def unresolved(*_: Any) -> None:
        raise OSError("Name or service not known")

    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(model_files.socket, "getaddrinfo", unresolved)
    assert not model_files.hub_answers()
    assert "check the name and the connection" in refused("someone/no-such-model", tiny_folders[1])


def test_fingerprint_follows_the_content(save_model: SaveModel, tmp_path: Path) -> None:
    first, second = (save_model(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 2)))
    one = load_pair(first, second, device="cpu")
    assert one.target.fingerprint == load_pair(first, first, device="cpu").target.fingerprint
    assert one.target.fingerprint != one.draft.fingerprint


def test_copies_have_one_fingerprint_and_other_weights_another(save_model: SaveModel, tmp_path: Path) -> None:
    """Same sizes and same times, as in an archive: only the content tells models apart."""
    first, second = (save_model(tmp_path / name, seed=seed) for name, seed in (("first", 1), ("second", 2)))
    copy = tmp_path / "copy"
    shutil.copytree(first, copy, copy_function=shutil.copyfile)
    for folder in (first, second, copy):
        for path in folder.iterdir():
            os.utime(path, (1_000_000_000, 1_000_000_000))
    pair = load_pair(first, second, device="cpu")
    assert load_pair(copy, copy, device="cpu").target.fingerprint == pair.target.fingerprint != pair.draft.fingerprint


def test_large_files_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectheory.measure.model_files._WHOLE", 1000)
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = folder / "model.safetensors"

    def fingerprint(changed: int | None = None, time: int = 0) -> str:
        content = bytearray(3_000_000)
        if changed is not None:
            content[changed] = 1
        weights.write_bytes(content)
        os.utime(weights, (time, time))
        return fingerprint_of(folder, None)

    plain = fingerprint()
    assert fingerprint() == plain
    assert len({plain, fingerprint(0), fingerprint(2_999_999), fingerprint(time=9)}) == 4
