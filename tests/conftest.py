"""What all tests share: repeatable property tests, and tiny random models for those that need torch."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The same examples everywhere and always, however slow the machine.
settings.register_profile(
    "repeatable", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

# A shell that runs the tests in the background has SIGINT ignored, which they and their children would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

VOCABULARY = 64
WINDOW = 128


@pytest.fixture(scope="session", autouse=True)
def without_power_cuts() -> Iterator[None]:
    """Nothing waits for the disk: no test cuts the power; test_store.py looks at when the store asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def save_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that saves a tiny Llama model with a word tokenizer ``<end> t1 t2 ...`` into a folder.

    It is made once; other folders get copies.
    """

    @cache
    def made(
        *,
        seed: int = 0,
        like: Path | None = None,
        noise: float = 0.08,
        outputs: int = VOCABULARY,
        tokens: int = VOCABULARY,
        window: int = WINDOW,
        dtype: str = "float32",
        words: str = "t",
    ) -> Path:
        import torch
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

        from spectheory.measure.model_files import quiet

        config = LlamaConfig(
            vocab_size=outputs,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            intermediate_size=64,
            max_position_embeddings=window,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
            initializer_range=0.5,  # wide, so that the pmfs are peaked like a trained model's
        )
        torch.set_num_threads(1)  # the fastest for matrices this small, and the same sums everywhere
        folder = tmp_path_factory.mktemp("made")
        generator_state = torch.random.get_rng_state()
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        with quiet(), torch.no_grad():
            if like is not None:
                original = LlamaForCausalLM.from_pretrained(like).state_dict()
                for name, weights in model.state_dict().items():
                    source = original[name]
                    rows = min(len(weights), len(source))
                    weights[:rows] = source[:rows] + noise * source.std() * torch.randn_like(source[:rows])
            model.to(getattr(torch, dtype)).save_pretrained(folder)
            vocabulary = {"<end>": 0, **{f"{words}{i}": i for i in range(1, tokens)}}
            tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<end>"))
            tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
            PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
        torch.random.set_rng_state(generator_state)
        return folder

    return lambda folder, **how: Path(shutil.copytree(made(**how), folder, dirs_exist_ok=True))


@pytest.fixture(scope="session")
def tiny_folders(save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of a target and of a draft that is the target with noise."""
    root = tmp_path_factory.mktemp("models")
    target = save_model(root / "target", seed=1)
    return target, save_model(root / "draft", seed=2, like=target)


@pytest.fixture(scope="session")
def tiny_pair(tiny_folders: tuple[Path, Path]) -> Any:
    """The tiny target and draft, loaded on the CPU."""
    from spectheory.measure import load_pair

    return load_pair(*tiny_folders, device="cpu")


@pytest.fixture(scope="session")
def padded_pair(
    tiny_folders: tuple[Path, Path], save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """A target with more outputs than tokens, whose padding is as probable as its tokens, and the tiny draft."""
    from spectheory.measure import load_pair

    folder = save_model(tmp_path_factory.mktemp("padded"), outputs=VOCABULARY + 16, like=tiny_folders[0], noise=0.0)
    return load_pair(folder, tiny_folders[1], device="cpu")


@pytest.fixture(scope="module")
def quick_latencies() -> Iterator[None]:
    """Validations and commands measure latency tables in two rounds, for tests that do not look at times."""
    from spectheory.measure import Timing, latency, measure_latency

    quick = {"rounds": 1, "warm_up": 0}
    with pytest.MonkeyPatch.context() as patch:
        for name, groups in (("GROUPS", 2), ("FEWEST_GROUPS", 2), ("BEFORE", 1)):
            patch.setattr(latency, name, groups)
        for measuring, name, how in (
            ("spectheory.measure.validation.run", "measure_latency", partial(measure_latency, **quick)),
            ("spectheory.cli.measure", "Timing", partial(Timing, **quick)),
        ):
            patch.setattr(importlib.import_module(measuring), name, how)
        yield
