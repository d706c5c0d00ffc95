"""Heads that transformers drafts with by itself: its calls are those predicted; what it does not run is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.errors import SettingError
from spectheory.measure import ModelPair, compare_with_assisted, load_pair
from spectheory.measure.assistants import _assisting, drafts_of_head
from spectheory.measure.heads.base import HiddenStates
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import Prompt, read_prompts
from tests.measure.heads_made import config_of, made_head, save_head
from tests.measure.native_made import save_native, save_near

SLOTS, TEXT = 5, 20
WINDOWS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8, "use_sliding_window": True}
CLOSE = 1e-4
"""Of logits of order 1 in float32."""


def saved(folder: Path, kind: str = "dflash", block: Any = None, **fields: Any) -> Path:
    """A head that reads no output of the last layer, without matrices of its own."""
    raw = config_of(kind, {"num_hidden_layers": 2, **(block or {})}, aux_hidden_state_layer_ids=[1, 0], **fields)
    return save_head(folder, made_head(raw), raw, without=("embed_tokens.weight", "lm_head.weight"))


@pytest.mark.parametrize("windows", [False, True])
def test_its_dflash_gives_the_same_logits_at_every_start(
    windows: bool, tiny_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    """A window of each slot, with all slots of a block seen. The control: without the window logits are others."""
    fields = {"sliding_window_by_slot": True, "sliding_window_non_causal": True} if windows else {}
    folder = saved(tmp_path / "head", block=WINDOWS if windows else None, block_size=SLOTS, **fields)
    pair = load_pair(tiny_folders[0], folder, device="cpu")
    assert drafts_of_head(pair) == SLOTS - 1
    head: Any = pair.draft.network
    text = torch.randint(64, (TEXT,), generator=torch.Generator().manual_seed(2))
    with torch.no_grad(), HiddenStates(pair.target.network, head.layers) as states:
        pair.target.network(text[None])
        hidden = states.take()[0, :-1]
    reading = head.reading()
    reading.read(hidden, text[1:])
    ours = reading.block(torch.arange(TEXT - 1), SLOTS - 1)
    with _assisting(pair) as arguments:
        theirs = [logits_of(arguments["assistant_model"], head, hidden[: n + 1], text[n + 1]) for n in range(TEXT - 1)]
    apart = (ours - torch.stack(theirs)).abs().amax(dim=(1, 2))
    assert float(apart.max()) < CLOSE
    if windows:
        head.slides = (False, False)
        reached = (reading.block(torch.arange(TEXT - 1), SLOTS - 1) - ours).abs().amax(dim=(1, 2)) > CLOSE
        assert reached.tolist() == [SLOTS + n > 8 for n in range(1, TEXT)], "as soon as a slot's window ends"


@torch.no_grad()
def logits_of(model: Any, head: Any, hidden: torch.Tensor, anchor: torch.Tensor) -> torch.Tensor:
    """What transformers' network drafts after a context, as its candidate generator asks it."""
    from transformers.cache_utils import DFlashCache

    cache = DFlashCache(config=model.config)
    cache.set_previous_accepted_tokens(len(hidden))
    output = model(
        noise_embeds=head.slots(anchor[None]),
        context_hidden_states=hidden[None],
        position_ids=torch.arange(len(hidden) + SLOTS)[None],
        past_key_values=cache,
    )
    logits: torch.Tensor = output.last_hidden_state[0, 1:] @ head.lm_head.weight.T
    return logits


@pytest.mark.evidence
def test_calls_of_the_built_in_head_are_those_predicted() -> None:
    """Exact at temperature 0; a false alarm in 1e-6 at temperature 1. The control: calls of one draft fewer."""
    pair = load_pair(resolve("builtin:target"), resolve("builtin:dflash"), device="cpu")
    prompts, drafts = read_prompts(PROMPTS)[:3], drafts_of_head(pair)
    assert drafts is not None
    (greedy,) = compare_with_assisted(pair, prompts, Sampling(0.0), ks=[drafts], tokens=64)
    (warm,) = compare_with_assisted(pair, prompts, Sampling(1.0), ks=[drafts], tokens=64)
    assert greedy.counted == greedy.low == greedy.high
    assert warm.p > 1e-6
    with pytest.raises(SettingError, match=f"transformers drafts {drafts} with this head"):
        compare_with_assisted(pair, prompts, Sampling(), ks=[drafts - 1], tokens=64)


@pytest.mark.evidence
@pytest.mark.parametrize("modules", [1, 2])
def test_calls_of_mtp_modules_are_those_predicted(
    modules: int, save_model: Callable[..., Path], tmp_path: Path
) -> None:
    """A false alarm in 1e-6. By default such modules feed back states before the norm, which transformers does not."""
    fields = {"mtp_fed_normed": True, "mtp_zero_first": False}
    usual = load_pair(save_near(save_native(save_model, tmp_path / "usual", "glm4_moe", modules)), "mtp", device="cpu")
    with pytest.raises(SettingError, match="it feeds back states after the norm"):
        drafts_of_head(usual)
    folder = save_near(save_native(save_model, tmp_path, "glm4_moe", modules, **fields))
    pair = load_pair(folder, "mtp", device="cpu")
    prompts = [Prompt(str(i), "", f"t{i} t{i + 3} t9") for i in range(1, 5)]
    for temperature in (0.0, 0.8):
        (one,) = compare_with_assisted(pair, prompts, Sampling(temperature), ks=[modules], tokens=40)
        assert one.p > 1e-6
        assert temperature or one.counted == one.low


def test_heads_that_transformers_does_not_run_are_refused(tiny_folders: tuple[Path, Path], tmp_path: Path) -> None:
    cases = {
        "no heads of the kind eagle3": saved(tmp_path / "a", "eagle3"),
        "its slot of the anchor drafts": saved(tmp_path / "b", block_size=SLOTS, sample_from_anchor=True),
        "its vocabulary is pruned": saved(tmp_path / "c", block_size=SLOTS, draft_vocab_size=24),
        "its windows count otherwise": saved(tmp_path / "d", block=WINDOWS, block_size=SLOTS),
    }
    for reason, folder in cases.items():
        pair = load_pair(tiny_folders[0], folder, device="cpu")
        with pytest.raises(SettingError, match=f"does not run it: (it has )?{reason}; leave out --check") as caught:
            drafts_of_head(pair)
        assert "\n" not in str(caught.value)
    padded = dataclasses.replace(pair, vocabulary=60)
    with pytest.raises(SettingError, match="ids that the tokenizer lacks"):
        drafts_of_head(padded)


def test_draft_models_have_no_drafts_of_a_head(tiny_pair: ModelPair) -> None:
    assert drafts_of_head(tiny_pair) is None
    with _assisting(tiny_pair) as arguments:
        assert arguments == {"assistant_model": tiny_pair.draft.network}
