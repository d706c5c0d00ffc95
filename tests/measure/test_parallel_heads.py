"""DFlash and P-EAGLE: one pass of many starts against a readable twin, one start at a time, and what it may see."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from spectheory.errors import ModelError, SettingError
from spectheory.measure.heads import dflash, eagle3
from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.load import load_head
from spectheory.measure.pair import ModelPair
from tests.measure.heads_made import DRAFTED, TWINS, V, config_of, made_head, made_text, save_head

PAIRS, DRAFTS = 12, 4
CLOSE = {"rtol": 0.0, "atol": 1e-5}
"""Rounding of logits of order 1 in float32, after some hundred sums."""
LLAMA: dict[str, Any] = {"model_type": "llama"}
GQA: dict[str, Any] = {"num_key_value_heads": 2}
TWO: dict[str, Any] = GQA | {"num_hidden_layers": 2}
SLIDING: dict[str, Any] = TWO | {
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 4,
    "use_sliding_window": True,
    "max_window_layers": 0,
}
BLOCK = {"block_size": DRAFTS + 1}
CASES = {
    "dflash": config_of("dflash", TWO, **BLOCK),
    "dflash of llama's family": config_of("dflash", LLAMA | TWO, **BLOCK),
    "dflash, pruned": config_of("dflash", draft_vocab_size=DRAFTED, **BLOCK),
    "dflash that samples from the anchor": config_of("dflash", GQA, sample_from_anchor=True, block_size=DRAFTS),
    "dflash, sliding": config_of("dflash", SLIDING, **BLOCK),
    "dflash, sliding both ways": config_of("dflash", SLIDING, sliding_window_non_causal=True, **BLOCK),
    "peagle": config_of("peagle", LLAMA | TWO),
    "peagle of qwen3's family": config_of("peagle", TWO, norm_before_residual=True),
    "peagle, pruned": config_of("peagle", GQA, draft_vocab_size=DRAFTED, norm_before_fc=True),
    "peagle, other norms": config_of("peagle", LLAMA, fc_norm=True, norm_output=True),
}
PLAIN = {"dflash": CASES["dflash"], "peagle": CASES["peagle"]}


def text_of(head: CheckpointHead, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Hidden states of all pairs, and the tokens after them."""
    hidden, text = made_text(head, PAIRS, seed)
    return hidden, text[1:]


def drafts_of(head: CheckpointHead, hidden: Tensor, tokens: Tensor, starts: range, depth: int = DRAFTS) -> Tensor:
    reading = head.reading()
    reading.read(hidden, tokens)
    logits: Tensor = reading.block(torch.tensor(starts), depth)  # type: ignore[attr-defined]
    return logits


@pytest.fixture(params=CASES, ids=str)
def raw(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The configuration of a case."""
    return CASES[request.param]


@pytest.fixture
def head(raw: dict[str, Any]) -> CheckpointHead:
    """A head of it."""
    return made_head(raw)


def test_every_start_is_as_in_the_readable_twin(raw: dict[str, Any], head: CheckpointHead) -> None:
    hidden, tokens = text_of(head)
    drafts = drafts_of(head, hidden, tokens, range(PAIRS)).double()
    twin = TWINS[raw["speculators_model_type"]](head.weights(), raw)

    def readable(pair: int) -> Tensor:
        return torch.from_numpy(twin.drafts(hidden, tokens[: pair + 1].tolist(), [0] * (DRAFTS - 1)))

    for pair in (0, 1, 5, 8, PAIRS - 1):
        torch.testing.assert_close(drafts[pair], readable(pair), **CLOSE)
    assert not torch.allclose(drafts[PAIRS - 1], readable(PAIRS - 2), atol=0.01)


def test_one_start_after_the_other_gives_the_same(head: CheckpointHead) -> None:
    hidden, tokens = text_of(head)
    at_once = drafts_of(head, hidden, tokens, range(PAIRS))
    reading, read = head.reading(), 0
    for piece in (1, 1, 3, 0, 2, 5):
        reading.read(hidden[read : read + piece], tokens[read : read + piece])
        read += piece
        alone = reading.block(torch.tensor([read - 1]), DRAFTS)  # type: ignore[attr-defined]
        torch.testing.assert_close(alone[0], at_once[read - 1], **CLOSE)
    assert read == reading.pairs == PAIRS


def test_nothing_of_the_future_is_seen(head: CheckpointHead) -> None:
    (hidden, tokens), (others, else_tokens) = text_of(head), text_of(head, 2)
    cut = 7
    changed = torch.cat([hidden[:cut], others[cut:]]), torch.cat([tokens[:cut], else_tokens[cut:]])
    before, after = (drafts_of(head, *text, range(PAIRS)) for text in ((hidden, tokens), changed))
    assert torch.equal(before[:cut], after[:cut])
    assert not torch.isclose(before[cut:], after[cut:]).all(dim=-1).any()


def test_a_depth_depends_neither_on_drafts_before_it_nor_on_their_number(head: CheckpointHead) -> None:
    hidden, tokens = text_of(head)
    reading = head.reading()
    reading.read(hidden, tokens)
    pairs = torch.arange(PAIRS)
    drafted = [torch.randint(0, V, (PAIRS, DRAFTS - 1), generator=torch.Generator().manual_seed(i)) for i in (0, 1)]
    one, other = (torch.stack(list(reading.depths(pairs, each, DRAFTS)), dim=1) for each in drafted)
    assert torch.equal(one, other)
    for depth in range(1, DRAFTS):
        torch.testing.assert_close(drafts_of(head, hidden, tokens, range(PAIRS), depth), one[:, :depth], **CLOSE)


def test_passes_of_bounded_size_give_the_same(head: CheckpointHead, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, tokens = text_of(head)
    whole = drafts_of(head, hidden, tokens, range(PAIRS))
    monkeypatch.setattr(dflash, "SCORES", 2 * 4 * 5 * (PAIRS + 5))
    monkeypatch.setattr(eagle3, "CELLS", 2 * (DRAFTS - 1))
    torch.testing.assert_close(drafts_of(head, hidden, tokens, range(PAIRS)), whole, **CLOSE)


@pytest.mark.parametrize("name", ["dflash, pruned", "peagle, pruned"])
def test_ids_that_a_pruned_vocabulary_lacks_are_impossible(name: str) -> None:
    head = made_head(CASES[name])
    drafts = drafts_of(head, *text_of(head), range(PAIRS))
    assert head.t2d is not None
    assert int(head.t2d.sum()) == DRAFTED
    assert bool((drafts[..., ~head.t2d] == -torch.inf).all())
    assert bool(drafts[..., head.t2d].isfinite().all())


@pytest.mark.parametrize("kind", PLAIN)
def test_half_precision_runs_and_stays_near(kind: str) -> None:
    head = made_head(PLAIN[kind])
    hidden, tokens = text_of(head)
    exact = drafts_of(head, hidden, tokens, range(PAIRS))
    for dtype in (torch.bfloat16, torch.float16):
        half = drafts_of(made_head(PLAIN[kind]).to(dtype), hidden, tokens, range(PAIRS))
        assert half.dtype == dtype
        assert float((half.float() - exact).square().mean() / exact.square().mean()) < 0.03**2


@pytest.mark.parametrize("kind", PLAIN)
def test_more_drafts_than_a_pass_gives_are_refused(kind: str) -> None:
    head = made_head(PLAIN[kind])
    assert head.deepest == head.trained == DRAFTS
    with pytest.raises(SettingError, match=f"5 drafts .* this {kind} head drafts at most 4; use at most 4"):
        drafts_of(head, *text_of(head), range(2), DRAFTS + 1)


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("mask", [None, -1, V])
def test_a_mask_token_outside_the_vocabulary_is_refused(kind: str, mask: int | None) -> None:
    with pytest.raises(ModelError, match=f"mask_token_id = {mask}: .*0 to {V - 1}"):
        made_head(PLAIN[kind] | {"mask_token_id": mask})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"block_size": 1}, "block_size = 1: a block has an anchor and 1 to 1024 drafts"),
        ({"aux_hidden_state_layer_ids": None}, "names no layers of its target: aux_hidden_state_layer_ids must list"),
    ],
    ids=str,
)
def test_a_block_that_cannot_be_drafted_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        made_head(PLAIN["dflash"] | fields)


@pytest.mark.parametrize("name", CASES)
def test_a_saved_head_drafts_the_same(name: str, tiny_pair: ModelPair, tmp_path: Path) -> None:
    head = made_head(CASES[name])
    loaded = load_head(save_head(tmp_path / "head", head, CASES[name]), tiny_pair.target)
    assert loaded.describe()["parallel"] is True
    assert isinstance(loaded.network, type(head))
    again, first = (drafts_of(each, *text_of(head), range(PAIRS)) for each in (loaded.network, head))
    assert torch.equal(again, first)


def test_scores_of_a_pass_do_not_compare_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, softmax = [], Tensor.softmax
    monkeypatch.setattr(Tensor, "softmax", lambda x, *a, **k: (sizes.append(x.numel()), softmax(x, *a, **k))[1])
    head = made_head(PLAIN["dflash"])
    drafts_of(head, *text_of(head), range(PAIRS))
    slots = PAIRS * (DRAFTS + 1)
    assert sizes == 2 * [4 * slots * (PAIRS + DRAFTS + 1)]
