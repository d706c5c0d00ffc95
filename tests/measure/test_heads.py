"""Draft heads: the target's hidden states that they read, and their networks against twins written out once more."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from spectheory.errors import SettingError
from spectheory.measure import ModelPair
from spectheory.measure.heads.base import HiddenStates
from spectheory.measure.heads.checkpoint import AutoregressiveHead
from tests.made_up import each
from tests.measure.heads_made import DRAFTED, ModulesTwin, Twin, V, config_of, made_head, made_text

LAYERS = (2, 0, 1)
"""The last one, the embeddings and the one between, out of order."""


@pytest.fixture
def text() -> Tensor:
    return torch.randint(0, 64, (3, 11), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def by_transformers(network: Any, ids: Tensor) -> Tensor:
    """The same states, from transformers' list; the last layer's is worked out from what the layer reads."""
    states = network(ids, output_hidden_states=True).hidden_states
    seen = list[Tensor]()
    hook = network.model.layers[-1].register_forward_hook(lambda module, given, output: seen.append(output))
    network(ids)
    hook.remove()
    assert torch.equal(network.model.norm(seen[0]), states[-1])  # transformers' last state is after the norm
    assert not torch.equal(seen[0], states[-1])
    return torch.cat([seen[0], states[0], states[1]], dim=-1)


@torch.no_grad()
def test_states_of_a_batch(tiny_pair: ModelPair, text: Tensor) -> None:
    network = tiny_pair.target.network
    with HiddenStates(network, LAYERS) as states:
        network(text)
        taken = states.take()
    assert taken.shape == (3, 11, 3 * 32)
    assert torch.equal(taken, by_transformers(network, text))


@torch.no_grad()
def test_states_in_pieces_with_a_cache(tiny_pair: ModelPair, text: Tensor) -> None:
    network, cache, parts = tiny_pair.target.network, None, []
    with HiddenStates(network, LAYERS) as states:
        for piece in text.split((4, 1, 6), dim=1):
            cache = network(piece, past_key_values=cache, use_cache=True).past_key_values
            parts.append(states.take())
    whole = by_transformers(network, text)
    assert torch.allclose(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-5 * float(whole.std()))


@torch.no_grad()
def test_states_in_half_precision(tiny_pair: ModelPair) -> None:
    network, ids = deepcopy(tiny_pair.target.network).to(torch.bfloat16), torch.tensor([[1, 2, 3, 4]])
    with HiddenStates(network, LAYERS) as states:
        network(ids)
        taken = states.take()
    assert taken.dtype == torch.bfloat16
    assert torch.equal(taken, by_transformers(network, ids))


@torch.no_grad()
def test_nothing_is_taken_afterwards(tiny_pair: ModelPair, text: Tensor) -> None:
    network = tiny_pair.target.network
    with HiddenStates(network, LAYERS) as states:
        network(text)
        taken = states.take().clone()
    network(text.flip(1))
    assert torch.equal(states.take(), taken)


CLOSE = 1e-5
"""Rounding of logits of order 1 in float32, after some hundred sums."""
PAIRS, DEPTH = 12, 4
LLAMA: dict[str, Any] = {"model_type": "llama"}
GQA: dict[str, Any] = {"num_key_value_heads": 2}
MODULES: dict[str, Any] = {"num_nextn_predict_layers": DEPTH}
CASES = {
    "eagle3": config_of("eagle3"),
    "llama": config_of("eagle3", LLAMA, norm_before_residual=True),
    "pruned": config_of("eagle3", LLAMA, draft_vocab_size=DRAFTED),
    "normed before the fusion": config_of("eagle3", LLAMA | GQA, norm_before_fc=True, norm_output=True),
    "each layer normed": config_of("eagle3", GQA, fc_norm=True, norm_before_residual=True),
    "two layers": config_of("eagle3", GQA | {"num_hidden_layers": 2}, draft_vocab_size=DRAFTED, norm_output=True),
    "two layers of llama": config_of("eagle3", LLAMA | {"num_hidden_layers": 2}),
    "mtp": config_of("mtp"),
    "mtp, shared keys": config_of("mtp", GQA | {"num_hidden_layers": 2}),
    "mtp, states fed back before the norm": config_of("mtp", mtp_fed_normed=False),
    "mtp, states first": config_of("mtp", mtp_hidden_states_first=True, mtp_zero_first=True),
    "mtp, modules": config_of("mtp", GQA, **MODULES),
    "mtp, modules before the norm": config_of("mtp", mtp_fed_normed=False, mtp_zero_first=True, **MODULES),
}
every_case = each("name", list(CASES))


def made(name: str) -> tuple[AutoregressiveHead, Tensor, Tensor, int]:
    """A head, a text for it, and how many drafts its calls have."""
    head = made_head(CASES[name])
    assert isinstance(head, AutoregressiveHead)
    return head, *made_text(head, PAIRS), head.deepest or DEPTH


def twin_of(name: str, head: AutoregressiveHead) -> Twin:
    """The network of a head written out once more."""
    return (ModulesTwin if "modules" in name else Twin)(head.weights(), CASES[name])


def at_once(head: AutoregressiveHead, hidden: Tensor, text: Tensor, starts: Tensor, depth: int) -> Tensor:
    """Logits ``[s, depth, V]`` of teacher-forced drafts at many starts."""
    reading = head.reading()
    reading.read(hidden, text[1:])
    following = starts[:, None] + 2 + torch.arange(depth - 1)
    return torch.stack(list(reading.depths(starts, text[following], depth)), dim=1)


def apart(ours: Tensor, theirs: Tensor) -> float:
    """Largest difference; both must have -inf at the same ids."""
    finite = theirs.isfinite()
    assert torch.equal(ours.isfinite(), finite)
    return float((ours.double() - theirs.double())[finite].abs().max())


@every_case
def test_many_starts_are_as_one_after_the_other(name: str) -> None:
    head, hidden, text, depth = made(name)
    starts = torch.arange(PAIRS - depth)
    together = at_once(head, hidden, text, starts, depth)
    reading = head.reading()
    for n in starts.tolist():
        reading.read(hidden[n : n + 1], text[n + 1 : n + 2])
        logits = [reading.first(torch.tensor([n]))]
        parent = torch.tensor([-1 - n])
        for i in range(depth - 1):
            logits.append(reading.extend(parent, text[n + 2 + i, None]))
            parent = torch.tensor([i])
        assert apart(together[n], torch.cat(logits)) < CLOSE


@every_case
def test_numpy_gives_the_same(name: str) -> None:
    head, hidden, text, depth = made(name)
    starts = torch.tensor([0, 3, PAIRS - depth - 1])
    twin = twin_of(name, head)
    for start, ours in zip(starts.tolist(), at_once(head, hidden, text, starts, depth), strict=True):
        drafts = text[start + 2 : start + depth + 1].tolist()
        theirs = twin.drafts(hidden, text[1 : start + 2].tolist(), drafts)
        assert apart(ours, torch.tensor(theirs)) < CLOSE


@every_case
def test_no_future_is_seen(name: str) -> None:
    """Everything after pair t changes: the drafts after it, given the tokens before them, stay bit for bit."""
    head, hidden, text, depth = made(name)
    t = torch.tensor([3, 4, 5])
    before = at_once(head, hidden, text, t, depth)
    known = text[: 6 + depth].clone()
    others, words = made_text(head, PAIRS, seed=1)
    changed = torch.cat([hidden[:6], others[6:]])
    following = torch.cat([known, words[len(known) :]])
    assert not torch.equal(changed, hidden)
    assert torch.equal(at_once(head, changed, following, t, depth), before)
    changed[5] += 1  # control: what is known moves the last start alone
    moved = at_once(head, changed, following, t, depth)
    assert torch.equal(moved[:2], before[:2])
    assert apart(moved[2], before[2]) > 0.1


@every_case
def test_the_token_drafted_after_a_depth_is_not_seen_at_it(name: str) -> None:
    head, hidden, text, depth = made(name)
    start = torch.tensor([4])
    before = at_once(head, hidden, text, start, depth)
    for i in range(depth):
        changed = text.clone()
        changed[6 + i] = (text[6 + i] + 1) % V  # the token that draft i + 1 proposes
        after = at_once(head, hidden, changed, start, depth)
        assert torch.equal(after[:, : i + 1], before[:, : i + 1])
        assert i + 1 == depth or apart(after[:, i + 1], before[:, i + 1]) > 1e-3


@every_case
def test_a_text_is_read_in_any_pieces(name: str) -> None:
    head, hidden, text, _ = made(name)
    whole, pieces = head.reading(), head.reading()
    whole.read(hidden, text[1:])
    for part in torch.arange(PAIRS).split(5):
        pieces.read(hidden[part], text[part + 1])
        pieces.extend(torch.tensor([-1]), torch.tensor([1]))  # forgotten at the next piece
    assert pieces.pairs == whole.pairs == PAIRS
    assert apart(pieces.first(torch.arange(PAIRS)), whole.first(torch.arange(PAIRS))) < CLOSE


@every_case
def test_a_tree_is_its_paths(name: str) -> None:
    head, hidden, text, _ = made(name)
    reading = head.reading()
    reading.read(hidden, text[1:])
    paths = {0: [7], 1: [8], 2: [7, 9], 3: [8, 9], 4: [7, 10], 5: [7, 9, 11]}
    level1 = reading.extend(torch.tensor([-6, -6]), torch.tensor([7, 8]))
    level2 = reading.extend(torch.tensor([0, 1, 0]), torch.tensor([9, 9, 10]))
    level3 = reading.extend(torch.tensor([2]), torch.tensor([11]))
    twin = twin_of(name, head)
    for node, logits in enumerate(torch.cat([level1, level2, level3])):
        theirs = twin.drafts(hidden, text[1:7].tolist(), paths[node])[-1]
        assert apart(logits, torch.tensor(theirs)) < CLOSE
    assert apart(level2[0], level2[1]) > 1e-3  # the same token below other parents


@each("name", ["pruned", "two layers"])
def test_ids_that_cannot_be_drafted(name: str) -> None:
    head, hidden, text, depth = made(name)
    assert head.t2d is not None
    logits = at_once(head, hidden, text, torch.tensor([2]), depth)
    assert torch.equal(logits.isfinite(), head.t2d.expand_as(logits))
    assert int(head.t2d.sum()) == DRAFTED


def test_depths_of_mtp() -> None:
    """One module drafts any number of tokens, several one each."""
    one, several = made("mtp")[0], made("mtp, modules")[0]
    assert (one.deepest, one.trained) == (None, 4)
    assert several.deepest == several.trained == DEPTH
    hidden, text = made_text(several, PAIRS)
    with pytest.raises(SettingError, match="5 drafts in a call are asked for: this mtp head drafts at most 4; use"):
        at_once(several, hidden, text, torch.tensor([0]), DEPTH + 1)


def test_weights_of_the_target_are_none_of_the_head() -> None:
    raw = CASES["eagle3"]
    whole = made_head(raw)
    embeddings, outputs = torch.zeros(V, 32), torch.ones(V, 32)
    shared = type(whole)(whole.config, whole.layers, embeddings=embeddings, outputs=outputs)
    assert whole.num_parameters() - shared.num_parameters() == 2 * V * 32
    assert whole.weights().keys() - shared.weights().keys() == {"embed_tokens.weight", "lm_head.weight"}
    assert shared.get_input_embeddings().weight is not None
    assert torch.equal(shared.embed(torch.tensor([1])), embeddings[:1])


@every_case
def test_every_tensor_of_a_checkpoint_counts(name: str) -> None:
    head, hidden, text, depth = made(name)
    before = at_once(head, hidden, text, torch.tensor([6]), depth)
    ids = torch.randperm(V, generator=torch.Generator().manual_seed(1))[:DRAFTED].sort().values
    for tensor, values in head.weights().items():
        kept = values.clone()
        if tensor in ("d2t", "t2d"):  # they change together
            continue
        values += 0.1 * torch.randn(values.shape, generator=torch.Generator().manual_seed(2))
        assert apart(at_once(head, hidden, text, torch.tensor([6]), depth), before) > CLOSE, tensor
        values.copy_(kept)
    if head.d2t is not None:
        head.draft_only(ids)
        after = at_once(head, hidden, text, torch.tensor([6]), depth)
        assert not torch.equal(after.isfinite(), before.isfinite())
