"""`spectheory doctor`: what it says of a whole, an old and a broken install, and of a pair's tokenizers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import doctor, main
from spectheory.measure.load import tokenizers_of
from spectheory.pairs import PROMPTS
from spectheory.prompts import read_prompts
from tests.commands import answer, refused
from tests.measure.other_made import save_pair

ASKED = [
    "numpy>=2.1",
    "scipy>=99",
    "pandas>=2.2; extra == 'pandas'",
    "unheard-of>=1; extra == 'models'",
    "torch>=2.9; extra == 'models'",
    "pytest>=9; extra == 'test'",
]
EXTRAS = ["pandas", "models", "test"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An install that asks for a package that is too old here, and for one that is missing."""
    monkeypatch.setattr(metadata, "requires", lambda name: ASKED)
    monkeypatch.setattr(doctor, "_extras", lambda: EXTRAS[:2])


@pytest.mark.usefixtures("installed")
def test_every_package_has_a_state(capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(capsys, "doctor")
    states = {(each["extra"], each["name"]): each["state"] for each in content["packages"]}
    assert states == {
        ("", "numpy"): "ok",
        ("", "scipy"): "too old",
        ("pandas", "pandas"): "ok",
        ("models", "unheard-of"): "missing",
        ("models", "torch"): "ok",
    }
    ready = {each["name"]: (each["ready"], each["lacks"]) for each in content["extras"]}
    assert ready == {"pandas": (True, []), "models": (False, ["unheard-of"])}
    (problem,) = content["problems"]
    assert problem.startswith("scipy ")
    assert "pip install --force-reinstall 'scipy>=99'" in problem


@pytest.mark.usefixtures("installed")
def test_the_text_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for words in (
        "1 problem: scipy ",
        "; extras that are ready: pandas",
        "pip install 'spectheory[models]' (lacks unheard-of)",
    ):
        assert words in out


def _fails(error: BaseException) -> Callable[[str], Any]:
    real = doctor.import_module

    def load(name: str) -> Any:
        if name in ("torch", "spectheory.kernels.logits"):
            raise error
        return real(name)

    return load


@pytest.mark.parametrize("error", [OSError("libcudart.so.12: cannot open"), SystemExit(3), RuntimeError("a\nb")])
@pytest.mark.usefixtures("installed")
def test_a_broken_import_is_an_answer(
    error: BaseException, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "import_module", _fails(error))
    content = answer(capsys, "doctor")
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    assert (content["torch"]["error"], content["kernel_cache"]["error"]) == (said, said)
    assert [each.split()[0] for each in content["problems"]] == ["scipy", "torch", "compiled"]


@pytest.mark.usefixtures("installed")
def test_lost_files_and_no_cache_are_problems(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = metadata.PackagePath("nowhere.py")
    lost.dist = metadata.distribution("numpy")
    monkeypatch.setattr(metadata, "files", lambda name: [lost])
    monkeypatch.setattr(doctor, "import_module", lambda name: type("kernels", (), {"k": _Kernel()}))
    problems = answer(capsys, "doctor")["problems"]
    assert any(each.startswith("numpy has lost its files") for each in problems)
    assert any("set NUMBA_CACHE_DIR" in each for each in problems)


class _Kernel:
    """A kernel without a cache."""

    py_func = _cache = None


def test_sources_that_are_not_installed_are_a_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    content = answer(capsys, "doctor")
    assert (content["packages"], content["extras"]) == ([], [])
    assert "is not installed" in content["problems"][0]


# A pair


def test_tokenizers_agree(tiny_folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = tiny_folders
    models = answer(capsys, "doctor", "--target", target, "--draft", draft)["models"]
    assert models == {"target": str(target), "draft": str(draft), "agree": True, "tokens": 64, "head": False}
    models = answer(capsys, "doctor", "--target", "builtin:target", "--draft", "builtin:eagle3")["models"]
    assert (models["agree"], models["tokens"], models["head"]) == (True, 512, True)


def test_tokenizers_that_differ_are_a_problem(
    tiny_folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    content = answer(capsys, "doctor", "--target", tiny_folders[0], "--draft", "builtin:draft", status=1)
    assert content["models"]["agree"] is False
    assert "no token in common" in content["problems"][-1]
    content = answer(capsys, "doctor", "--target", tiny_folders[0], "--draft", "/nowhere/at/all", status=1)
    assert "does not exist" in content["models"]["error"]


def test_a_draft_with_another_tokenizer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is no problem, unless too little of a text is common."""
    target, draft = save_pair(tmp_path)
    content = answer(capsys, "doctor", "--target", target, "--draft", draft)
    models = content["models"]
    assert (models["agree"], models["tokens"], models["common"]) == (False, 72, 58)
    tokenizer, common, _ = tokenizers_of((target, None), (draft, None))
    assert common is not None
    tokens = [token for prompt in read_prompts(PROMPTS) for token in tokenizer(prompt.text)["input_ids"]]
    known = {token.replace("\u2581", "\u0120") for token in common.draft.get_vocab()}
    shared = [token in known for token in tokenizer.convert_ids_to_tokens(tokens)]
    assert models["share"] == pytest.approx(np.mean(shared))
    assert models["most_tokens_per_call"] == pytest.approx(1 / (1 - models["share"]))
    assert models["share"] > 0.5
    assert not any("the draft lacks" in each for each in content["problems"])
    monkeypatch.setattr(doctor, "HOPELESS", models["most_tokens_per_call"] + 1)
    content = answer(capsys, "doctor", "--target", target, "--draft", draft, status=1)
    assert "the draft lacks" in content["problems"][-1]


def test_one_model_alone_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["doctor", "--target", "builtin:target"], capsys)
    assert "--draft is missing: tokenizers are compared; name both models, or none" in line
