"""DFlash and P-EAGLE: one pass of many starts against a readable twin, one start at a time, and what it may see."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spectheory.errors import ModelError, SettingError
from spectheory.measure.heads import dflash, peagle
from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.config import HeadConfig, parse_config
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.peagle import PEagle
from tests.measure.parallel_twins import dflash_drafts, peagle_drafts

KINDS: dict[str, type[CheckpointHead]] = {"dflash": DFlash, "peagle": PEagle}
TWINS = {"dflash": dflash_drafts, "peagle": peagle_drafts}
WIDTH, V, PAIRS, DRAFTS, MASK = 24, 40, 13, 4, 3
CLOSE = {"rtol": 0.0, "atol": 1e-5}  # single precision, of logits near 5
SLIDING = {"use_sliding_window": True, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "dflash": ("dflash", {}),
    "dflash of llama's family": ("dflash", {"family": "llama"}),
    "dflash, pruned": ("dflash", {"draft_vocab_size": 17}),
    "dflash that samples from the anchor": ("dflash", {"sample_from_anchor": True, "block_size": DRAFTS}),
    "dflash, sliding": ("dflash", {"layer": SLIDING}),
    "dflash, sliding both ways": ("dflash", {"layer": SLIDING, "sliding_window_non_causal": True}),
    "peagle": ("peagle", {"family": "llama"}),
    "peagle of qwen3's family": ("peagle", {"norm_before_residual": True}),
    "peagle, pruned": ("peagle", {"draft_vocab_size": 17, "norm_before_fc": True}),
    "peagle, other norms": ("peagle", {"family": "llama", "fc_norm": True, "norm_output": True}),
}


def config_of(kind: str, *, family: str = "qwen3", layer: dict[str, Any] | None = None, **fields: Any) -> HeadConfig:
    made = KINDS[kind]
    shape = {"hidden_size": WIDTH, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": V, "head_dim": 6}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
    raw = {
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "speculators_config": {"proposal_methods": [{"speculative_tokens": DRAFTS}]},
        "transformer_layer_config": {"model_type": family, **shape, **heads, **(layer or {})},
        "mask_token_id": MASK,
        made.layer_field: [1, 3],
        **({"block_size": DRAFTS + 1} if kind == "dflash" else {}),
        **fields,
    }
    return parse_config(raw, "toy", made.fields, made.layer_field, made.families)


def head_of(kind: str, settings: dict[str, Any], seed: int = 0) -> CheckpointHead:
    torch.manual_seed(seed)
    config = config_of(kind, **settings)
    head = KINDS[kind](config, config.layers or ())
    with torch.no_grad():
        for parameter in head.parameters():  # norms too, and all weights large enough to matter
            parameter.copy_(torch.randn_like(parameter) * 0.25 + (parameter.ndim == 1))
    if config.drafted < V:
        head.draft_only(torch.randperm(V)[: config.drafted].sort().values)
    return head.eval()


def text_of(seed: int = 1) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(seed)
    return torch.randn(PAIRS, 2 * WIDTH, generator=made), torch.randint(0, V, (PAIRS,), generator=made)


def drafts_of(head: CheckpointHead, hidden: Tensor, tokens: Tensor, starts: range, depth: int = DRAFTS) -> Tensor:
    reading = head.reading()
    reading.read(hidden, tokens)
    logits: Tensor = reading.block(torch.tensor(starts), depth)  # type: ignore[attr-defined]
    return logits


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> tuple[str, CheckpointHead]:
    kind, settings = CASES[request.param]
    return kind, head_of(kind, settings)


def test_every_start_is_as_in_the_readable_twin(case: tuple[str, CheckpointHead]) -> None:
    kind, head = case
    hidden, tokens = text_of()
    drafts = drafts_of(head, hidden, tokens, range(PAIRS)).double()
    for pair in (0, 1, 5, 8, PAIRS - 1):
        twin = TWINS[kind](head, hidden, tokens, pair)
        torch.testing.assert_close(drafts[pair], twin, **CLOSE)
    assert not torch.allclose(drafts[PAIRS - 1], TWINS[kind](head, hidden, tokens, PAIRS - 2), atol=0.01)


def test_one_start_after_the_other_gives_the_same(case: tuple[str, CheckpointHead]) -> None:
    _, head = case
    hidden, tokens = text_of()
    at_once = drafts_of(head, hidden, tokens, range(PAIRS))
    reading, read = head.reading(), 0
    for piece in (1, 1, 3, 2, 5, 1):
        reading.read(hidden[read : read + piece], tokens[read : read + piece])
        read += piece
        alone = reading.block(torch.tensor([read - 1]), DRAFTS)  # type: ignore[attr-defined]
        torch.testing.assert_close(alone[0], at_once[read - 1], **CLOSE)
    assert read == reading.pairs == PAIRS


def test_nothing_of_the_future_is_seen(case: tuple[str, CheckpointHead]) -> None:
    _, head = case
    (hidden, tokens), (others, else_tokens) = text_of(), text_of(2)
    cut = 7
    changed = torch.cat([hidden[:cut], others[cut:]]), torch.cat([tokens[:cut], else_tokens[cut:]])
    before, after = (drafts_of(head, *text, range(PAIRS)) for text in ((hidden, tokens), changed))
    assert torch.equal(before[:cut], after[:cut])
    assert not torch.isclose(before[cut:], after[cut:]).all(dim=-1).any()


def test_a_depth_depends_neither_on_drafts_before_it_nor_on_their_number(case: tuple[str, CheckpointHead]) -> None:
    _, head = case
    hidden, tokens = text_of()
    reading = head.reading()
    reading.read(hidden, tokens)
    pairs = torch.arange(PAIRS)
    drafted = [torch.randint(0, V, (PAIRS, DRAFTS - 1), generator=torch.Generator().manual_seed(i)) for i in (0, 1)]
    one, other = (torch.stack(list(reading.depths(pairs, each, DRAFTS)), dim=1) for each in drafted)
    assert torch.equal(one, other)
    for depth in range(1, DRAFTS):
        torch.testing.assert_close(drafts_of(head, hidden, tokens, range(PAIRS), depth), one[:, :depth], **CLOSE)


def test_passes_of_bounded_size_give_the_same(
    case: tuple[str, CheckpointHead], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, head = case
    hidden, tokens = text_of()
    whole = drafts_of(head, hidden, tokens, range(PAIRS))
    monkeypatch.setattr(dflash, "SCORES", 2 * 4 * 5 * (PAIRS + 5))
    monkeypatch.setattr(peagle, "CELLS", 2 * (DRAFTS - 1))
    torch.testing.assert_close(drafts_of(head, hidden, tokens, range(PAIRS)), whole, **CLOSE)


def test_ids_that_a_pruned_vocabulary_lacks_are_impossible() -> None:
    for kind in KINDS:
        head = head_of(kind, {"draft_vocab_size": 17})
        drafts = drafts_of(head, *text_of(), range(PAIRS))
        kept = head.t2d
        assert int(kept.sum()) == 17
        assert bool((drafts[..., ~kept] == -torch.inf).all())
        assert bool(drafts[..., kept].isfinite().all())


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_runs_and_stays_near(kind: str) -> None:
    head, (hidden, tokens) = head_of(kind, {}), text_of()
    exact = drafts_of(head, hidden, tokens, range(PAIRS))
    for dtype in (torch.bfloat16, torch.float16):
        half = drafts_of(head_of(kind, {}).to(dtype), hidden, tokens, range(PAIRS))
        assert half.dtype == dtype
        assert float((half.float() - exact).square().mean() / exact.square().mean()) < 0.03**2


@pytest.mark.parametrize("kind", KINDS)
def test_more_drafts_than_a_pass_gives_are_refused(kind: str) -> None:
    head = head_of(kind, {})
    assert head.deepest == head.trained == DRAFTS
    with pytest.raises(SettingError, match=f"5 drafts .* this {kind} head drafts at most 4; use at most 4"):
        drafts_of(head, *text_of(), range(2), DRAFTS + 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", [None, -1, V])
def test_a_mask_token_outside_the_vocabulary_is_refused(kind: str, mask: int | None) -> None:
    with pytest.raises(ModelError, match=f"mask_token_id = {mask}: .*0 to 39"):
        head_of(kind, {"mask_token_id": mask})


def test_a_block_without_drafts_is_refused() -> None:
    with pytest.raises(ModelError, match="block_size = 1: a block has an anchor and at least one draft"):
        head_of("dflash", {"block_size": 1})


def test_scores_of_a_pass_do_not_compare_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, softmax = [], Tensor.softmax
    monkeypatch.setattr(Tensor, "softmax", lambda x, *a, **k: (sizes.append(x.numel()), softmax(x, *a, **k))[1])
    drafts_of(head_of("dflash", {}), *text_of(), range(PAIRS))
    slots = PAIRS * (DRAFTS + 1)
    assert sizes == 2 * [4 * slots * (PAIRS + DRAFTS + 1)]
