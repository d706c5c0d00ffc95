"""Paired reading in chunks with caches equals one whole pass; texts that cannot be read are named."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.errors import DeviceMemoryError, TextError
from spectheory.measure import ModelPair, forward, load_pair, position_statistics, teacher_forced

PROMPT, OUTPUT = torch.arange(1, 24) % 64, (torch.arange(70) * 7 + 3) % 64
CACHE = 2e-4
"""Relative and absolute: cached and whole attention add in other orders; logits move by 1e-6, columns by some more."""


def whole_pass(pair: ModelPair, sampling: Sampling) -> dict[str, torch.Tensor]:
    ids = torch.cat([PROMPT, OUTPUT])[None]
    with torch.inference_mode():
        target, draft = (
            model.network(ids, use_cache=False).logits[0, len(PROMPT) - 1 : -1, : pair.vocabulary]
            for model in (pair.target, pair.draft)
        )
    return position_statistics(target, draft, OUTPUT, sampling)


def assert_same(columns: dict[str, Any], expected: dict[str, torch.Tensor]) -> None:
    assert set(columns) == {*expected, "lookup_match", "lookup_drafted"}  # which are of the text alone
    for name, values in expected.items():
        assert len(columns[name]) == len(OUTPUT)
        np.testing.assert_allclose(columns[name], values.numpy(), rtol=CACHE, atol=CACHE, err_msg=name)


@pytest.mark.parametrize("chunk", [1, 9, 22, 23, 64, 1000])
def test_chunks_equal_one_pass(chunk: int, tiny_pair: ModelPair) -> None:
    sampling = Sampling(temperature=0.8)
    assert_same(teacher_forced(tiny_pair, PROMPT, OUTPUT, sampling, chunk=chunk), whole_pass(tiny_pair, sampling))


def test_logits_in_memory_are_a_chunk(tiny_pair: ModelPair) -> None:
    rows: list[int] = []
    hook = tiny_pair.target.network.lm_head.register_forward_hook(lambda _, __, out: rows.append(out.shape[1]))
    try:
        teacher_forced(tiny_pair, PROMPT, OUTPUT, Sampling(), chunk=16)
    finally:
        hook.remove()
    assert rows == [1, 1, 16, 16, 16, 16, 6]


def test_columns_without_memory_advise_a_chunk(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(forward, "position_statistics", full)
    with pytest.raises(DeviceMemoryError, match=r"the columns ran out of memory on 16 .* use --chunk 8"):
        teacher_forced(tiny_pair, PROMPT, OUTPUT, Sampling(), chunk=16)


def without(name: str, network: Any) -> Any:
    """A forward that lacks an option of the original."""

    class Limited(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        if name == "cache":

            def forward(self, input_ids: Any, past_key_values: Any, use_cache: bool, logits_to_keep: int) -> Any:
                assert past_key_values is None
                return self.inner(input_ids, use_cache=False, logits_to_keep=logits_to_keep)

        else:

            def forward(self, input_ids: Any, past_key_values: Any, use_cache: bool) -> Any:
                return self.inner(input_ids, past_key_values=past_key_values, use_cache=use_cache)

    return Limited()


@pytest.mark.parametrize("name", ["cache", "logits_to_keep"])
def test_models_with_less(name: str, tiny_pair: ModelPair) -> None:
    target = dataclasses.replace(tiny_pair.target, network=without(name, tiny_pair.target.network))
    limited = dataclasses.replace(tiny_pair, target=target)
    columns = teacher_forced(limited, PROMPT, OUTPUT, Sampling(), chunk=16)
    assert_same(columns, whole_pass(tiny_pair, Sampling()))


def test_padded_vocabularies(tiny_folders: tuple[Path, Path], save_model: Callable[..., Path], tmp_path: Path) -> None:
    """Outputs past the common ids get no probability."""
    padded = save_model(tmp_path / "padded", outputs=80, like=tiny_folders[0], noise=0.0)
    pair = load_pair(padded, tiny_folders[0], device="cpu")
    columns = teacher_forced(pair, PROMPT, OUTPUT, Sampling())
    assert_same(columns, whole_pass(pair, Sampling()))
    assert columns["total_variation"].max() < CACHE


def test_one_token_after_one(tiny_pair: ModelPair) -> None:
    columns = teacher_forced(tiny_pair, PROMPT[:1], OUTPUT[:1], Sampling())
    assert columns["token"].tolist() == [3]
    assert columns["rejection_rank"].shape == (1, 8)


def test_errors_name_the_text(tiny_pair: ModelPair) -> None:
    with pytest.raises(TextError, match=r"prompt 'q7' has 23 tokens and 110 follow: the models take 128; .* 105"):
        teacher_forced(tiny_pair, PROMPT, OUTPUT.repeat(2)[:110], Sampling(), name="q7")
    with pytest.raises(TextError, match=r"text 'q7', token \d+ \(id \d+\) has target probability 0"):
        teacher_forced(tiny_pair, PROMPT, OUTPUT, Sampling(top_k=1), name="q7")


def test_logits_that_are_not_finite_are_placed(tiny_folders: tuple[Path, Path]) -> None:
    pair = load_pair(*tiny_folders, device="cpu")
    weights = pair.draft.network.get_input_embeddings().weight.data
    weights[int(OUTPUT[40])] = torch.nan  # embeddings are tied: every row of logits has this NaN
    with pytest.raises(TextError, match=r"text 'q7', token 1: logits of row 0 contain nan"):
        teacher_forced(pair, PROMPT, OUTPUT, Sampling(), name="q7", chunk=16)
