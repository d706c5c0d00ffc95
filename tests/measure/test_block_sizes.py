"""The slots of a block are a setting: other logits than the whole block's, as a head of that size gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spectheory.errors import SettingError
from spectheory.measure import Model, ModelPair, load_pair
from spectheory.measure.heads.load import load_head
from tests.measure.heads_made import V, config_of, made_head, made_text, save_head

SLOTS, FEWER = 5, 3
CASES: dict[str, dict[str, Any]] = {
    "dflash": config_of("dflash", block_size=SLOTS),
    "dspark": config_of("dspark", block_size=SLOTS, markov_rank=4),
    "domino": config_of("domino", block_size=SLOTS, emb_dim=4, gru_hidden_dim=4),
}
DRAFTS = {"dflash": FEWER - 1, "dspark": FEWER, "domino": FEWER - 1}


def drafts_of(head: Any, depth: int) -> Tensor:
    hidden, text = made_text(head, 9)
    reading = head.reading()
    reading.read(hidden, text[1:])
    drafted = torch.arange(9 * (depth - 1)).reshape(9, depth - 1) % V
    return torch.stack(list(reading.depths(torch.arange(9), drafted, depth)), dim=1)


@pytest.fixture(params=CASES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def loaded(kind: str, pair: ModelPair, folder: Path, block: int | None) -> Model:
    raw = CASES[kind]
    return load_head(save_head(folder, made_head(raw), raw), pair.target, block=block)


def test_a_smaller_block_is_that_of_a_head_of_its_size(kind: str, tiny_pair: ModelPair, tmp_path: Path) -> None:
    """And the control: the whole block's first drafts are others."""
    small = loaded(kind, tiny_pair, tmp_path / "head", FEWER)
    assert small.head is not None
    assert (small.head.block_size, small.head.deepest) == (FEWER, DRAFTS[kind])
    other = made_head(CASES[kind] | {"block_size": FEWER})
    other.load_state_dict(made_head(CASES[kind]).state_dict())
    assert torch.equal(drafts_of(small.head, DRAFTS[kind]), drafts_of(other, DRAFTS[kind]))
    whole = loaded(kind, tiny_pair, tmp_path / "head", None)
    differ = drafts_of(whole.head, DRAFTS[kind]) - drafts_of(small.head, DRAFTS[kind])
    assert float(differ.abs().amax(dim=-1).min()) > 1e-3


def test_what_is_measured_knows_its_block(kind: str, tiny_pair: ModelPair, tmp_path: Path) -> None:
    small, whole = (loaded(kind, tiny_pair, tmp_path / "head", block) for block in (FEWER, None))
    assert small.fingerprint != whole.fingerprint, "finished work of another block is not taken"
    assert [(each.describe()["block"], each.describe()["deepest"]) for each in (small, whole)] == [
        (FEWER, DRAFTS[kind]),
        (SLOTS, SLOTS - (kind != "dspark")),
    ]


def test_a_block_that_cannot_be_is_refused(kind: str, tiny_pair: ModelPair, tmp_path: Path) -> None:
    for block, said in ((SLOTS + 1, "block is 6: must be at most 5"), (0, "block is 0: must be >= ")):
        with pytest.raises(SettingError, match=said):
            loaded(kind, tiny_pair, tmp_path / "head", block)


def test_other_drafts_have_no_block(tiny_pair: ModelPair, tiny_folders: tuple[Path, Path], tmp_path: Path) -> None:
    raw = config_of("eagle3")
    with pytest.raises(SettingError, match="block is 4 for the draft 'eagle': heads of the kinds dflash, dspark"):
        load_head(save_head(tmp_path / "eagle", made_head(raw), raw), tiny_pair.target, block=4)
    with pytest.raises(SettingError, match=r"block is 4 for the draft .*; leave it out"):
        load_pair(*tiny_folders, device="cpu", block=4)
