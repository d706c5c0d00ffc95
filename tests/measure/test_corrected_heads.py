"""DSpark and Domino: drafts of many starts against the networks written out once more, one draft at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.errors import ModelError, SettingError
from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.load import load_head
from spectheory.measure.pair import ModelPair
from tests.measure.heads_made import DRAFTED, DFlashTwin, Floats, V, config_of, made_head, made_text, save_head

PAIRS, DRAFTS, RANK = 12, 4, 8
CLOSE = {"rtol": 0.0, "atol": 1e-5}
"""Rounding of logits of order 1 in float32, after some hundred sums."""
SIZES: dict[str, Any] = {"block_size": DRAFTS, "markov_rank": RANK}
NET: dict[str, Any] = {"block_size": DRAFTS + 1, "emb_dim": 10, "gru_hidden_dim": 6}
CASES = {
    "vanilla": config_of("dspark", **SIZES),
    "gated": config_of("dspark", {"num_hidden_layers": 2}, markov_head_type="gated", **SIZES),
    "rnn": config_of("dspark", {"num_key_value_heads": 2}, markov_head_type="rnn", **SIZES),
    "after the anchor": config_of("dspark", sample_from_anchor=False, **{**SIZES, "block_size": DRAFTS + 1}),
    "pruned": config_of("dspark", draft_vocab_size=DRAFTED, markov_head_type="rnn", **SIZES),
    "of the likeliest": config_of("dspark", dspark_draft_topk=5, **SIZES),
    "confidence of the slot": config_of("dspark", confidence_head_with_markov=False, **SIZES),
    "no confidence": config_of("dspark", enable_confidence_head=False, **SIZES),
    "no bias": config_of("dspark", confidence_head_with_markov=False, **{**SIZES, "markov_rank": 0}),
    "domino": config_of("domino", **NET),
    "domino, shifted": config_of("domino", shift_label=True, **{**NET, "block_size": DRAFTS}),
    "domino, later": config_of("domino", pure_draft_prefix_len=2, **NET),
    "domino, shifted, later": config_of("domino", shift_label=True, pure_draft_prefix_len=1, **NET),
}


def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


class CorrectedTwin(DFlashTwin):
    """A block, then its drafts one after the other, as the definitions say; `confidence` are those of the last call."""

    def drafts(self, hidden: Any, following: Sequence[int], drafted: Sequence[int]) -> Floats:
        """Logits ``[1 + drafted, V]`` after the last pair; draft i is corrected by the tokens before it."""
        outputs = [self._norm("norm", x) for x in self.block_after(hidden, following)]
        text = [following[-1], *drafted]
        logits, self.confidence = [], np.zeros(len(text))
        for i in range(len(text)):
            shifted = self.raw.get("shift_label", False) or self.raw.get("sample_from_anchor", self.kind == "dspark")
            z = outputs[i if shifted else i + 1]
            base = self.w["lm_head.weight"] @ z
            of_draft = self._markov(base, i, text, outputs) if self.kind == "dspark" else self._domino(base, z, i, text)
            full = np.full(V, -np.inf)
            ids = np.arange(len(base)) + self.w.get("d2t", np.zeros(len(base)))
            full[ids.astype(int)] = of_draft
            logits.append(full)
            if "confidence_head.proj.weight" in self.w:
                read = np.concatenate([z, self.w["markov_head.markov_w1.weight"][text[i]]]) if self._by_token else z
                w, b = (self.w[f"confidence_head.proj.{part}"] for part in ("weight", "bias"))
                self.confidence[i] = sigmoid(w[0] @ read + b[0])
        return np.array(logits)

    @property
    def kind(self) -> str:
        """Of the head."""
        return str(self.raw["speculators_model_type"])

    @property
    def _by_token(self) -> bool:
        return bool(self.raw.get("confidence_head_with_markov", True))

    def _markov(self, base: Floats, i: int, text: Sequence[int], outputs: Sequence[Floats]) -> Floats:
        if not self.raw["markov_rank"]:
            return base
        form, first = self.raw.get("markov_head_type", "vanilla"), 0 if self.raw.get("sample_from_anchor", True) else 1
        state = np.zeros(RANK)
        for j in range(i + 1):  # only the rnn needs those before
            e, z = self.w["markov_head.markov_w1.weight"][text[j]], outputs[first + j]
            mixed = e
            if form == "gated":
                mixed = e * sigmoid(self._affine("gate_proj", np.concatenate([z, e])))
            if form == "rnn":
                gate, new, out = np.split(self._affine("joint_proj", np.concatenate([state, e, z])), 3)
                state = sigmoid(gate) * state + (1 - sigmoid(gate)) * np.tanh(new)
                mixed = np.tanh(out)
        logits = base + self.w["markov_head.markov_w2.weight"] @ mixed
        top = self.raw.get("dspark_draft_topk")
        return logits if top is None else np.where(base >= np.sort(base)[-top], logits, -np.inf)

    def _affine(self, name: str, x: Floats) -> Floats:
        return self.w[f"markov_head.{name}.weight"] @ x + self.w[f"markov_head.{name}.bias"]

    def _domino(self, base: Floats, z: Floats, i: int, text: Sequence[int]) -> Floats:
        if i < self.raw.get("pure_draft_prefix_len", 0):
            return base
        g = np.zeros(self.raw["gru_hidden_dim"])
        for token in text[: i + 1]:
            of_input = np.split(self.w["prefix_gru.weight_ih_l0"] @ self.w["embed_tokens.weight"][token], 3)
            of_state = np.split(self.w["prefix_gru.weight_hh_l0"] @ g, 3)
            reset, update = (sigmoid(of_input[part] + of_state[part]) for part in (0, 1))
            g = (1 - update) * np.tanh(of_input[2] + reset * of_state[2]) + update * g
        inner = self.w["embed_proj.0.weight"] @ np.concatenate([z, g])
        return np.asarray(base + self.w["embed_proj.2.weight"] @ (inner * sigmoid(inner)))


def text_of(head: CheckpointHead, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states of all pairs, the tokens after them, and tokens ``[PAIRS, DRAFTS - 1]`` that are drafted."""
    hidden, text = made_text(head, PAIRS, seed)
    return hidden, text[1:], torch.randint(0, V, (PAIRS, DRAFTS - 1), generator=torch.Generator().manual_seed(seed))


def drafts_of(head: CheckpointHead, seed: int = 1) -> tuple[Tensor, Tensor | None]:
    """Logits ``[PAIRS, DRAFTS, V]`` at every start, and the confidence in each draft."""
    hidden, tokens, drafted = text_of(head, seed)
    reading = head.reading()
    reading.read(hidden, tokens)
    logits, sure = [], []
    for of_depth in reading.depths(torch.arange(PAIRS), drafted, DRAFTS):
        logits.append(of_depth)
        sure += [] if reading.confidence is None else [reading.confidence]
    return torch.stack(logits, dim=1), torch.stack(sure, dim=1) if sure else None


@pytest.fixture(params=CASES, ids=str)
def raw(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The configuration of a case."""
    return CASES[request.param]


@pytest.fixture
def head(raw: dict[str, Any]) -> CheckpointHead:
    """A head of it."""
    return made_head(raw)


def test_every_start_is_as_in_the_definition(raw: dict[str, Any], head: CheckpointHead) -> None:
    """Logits and confidences; the control: other drafts before give others, from the second draft on."""
    logits, sure = drafts_of(head)
    hidden, tokens, drafted = text_of(head)
    twin = CorrectedTwin(head.weights(), raw)
    for pair in range(PAIRS):
        following = tokens[: pair + 1].tolist()
        readable = torch.from_numpy(twin.drafts(hidden, following, drafted[pair].tolist()))
        torch.testing.assert_close(logits[pair].double(), readable, **CLOSE)
        assert (sure is None) == ("confidence_head.proj.weight" not in twin.w)
        if sure is not None:
            torch.testing.assert_close(sure[pair].double(), torch.from_numpy(twin.confidence), **CLOSE)
    others = torch.from_numpy(twin.drafts(hidden, tokens.tolist(), ((drafted[-1] + 1) % V).tolist()))
    differ = ~torch.isclose(others, logits[-1].double(), atol=1e-3).all(dim=-1)
    prefix = raw.get("pure_draft_prefix_len", 0)
    assert differ.tolist() == [i > 0 and i >= prefix and raw.get("markov_rank") != 0 for i in range(DRAFTS)]


@pytest.mark.parametrize("name", ["domino", "domino, later", "after the anchor"])
def test_the_other_label_shift_is_another_head(name: str) -> None:
    """Control: slots counted from the anchor give other logits of the same weights."""
    raw = CASES[name]
    head = made_head(raw)
    shifted = "shift_label" if raw["speculators_model_type"] == "domino" else "sample_from_anchor"
    hidden, tokens, drafted = text_of(head)
    wrong = CorrectedTwin(head.weights(), raw | {shifted: True}).drafts(hidden, tokens.tolist(), drafted[-1].tolist())
    right = drafts_of(head)[0][-1].double().numpy()
    assert np.abs(wrong - right).max(axis=-1).min() > 0.01


def test_nodes_of_a_tree_are_corrected_along_their_paths(head: CheckpointHead) -> None:
    """Two drafts below each start, and one below each of these, as the chains through them."""
    hidden, tokens, _ = text_of(head)
    reading = head.reading()
    reading.read(hidden, tokens)
    pairs = torch.tensor([3, 8])
    reading.first(pairs)  # type: ignore[attr-defined]
    children = torch.tensor([1, 2, 3, 4])
    reading.extend((-1 - pairs).repeat_interleave(2), children)  # type: ignore[attr-defined]
    logits = reading.extend(torch.arange(4), children + 4)  # type: ignore[attr-defined]
    for i in range(4):
        path = torch.tensor([[int(children[i]), int(children[i]) + 4]])
        alone = list(reading.depths(pairs[i // 2][None], path, 3))[-1]
        torch.testing.assert_close(alone[0], logits[i], **CLOSE)


def test_reading_piece_by_piece_gives_the_same(head: CheckpointHead) -> None:
    at_once, _ = drafts_of(head)
    hidden, tokens, drafted = text_of(head)
    reading, read = head.reading(), 0
    for piece in (1, 1, 3, 0, 2, 5):
        reading.read(hidden[read : read + piece], tokens[read : read + piece])
        read += piece
        alone = torch.stack(list(reading.depths(torch.tensor([read - 1]), drafted[read - 1][None], DRAFTS)), dim=1)
        torch.testing.assert_close(alone[0], at_once[read - 1], **CLOSE)
    assert read == reading.pairs == PAIRS


def test_more_drafts_than_slots_are_refused(head: CheckpointHead) -> None:
    hidden, tokens, _ = text_of(head)
    assert head.deepest is not None
    reading = head.reading()
    reading.read(hidden, tokens)
    with pytest.raises(SettingError, match=f"drafts at most {head.deepest}"):
        list(reading.depths(torch.arange(2), torch.zeros(2, head.deepest, dtype=torch.int64), head.deepest + 1))


@pytest.mark.parametrize("name", ["rnn", "domino, later"])
def test_half_precision_runs_and_stays_near(name: str) -> None:
    exact, _ = drafts_of(made_head(CASES[name]))
    for dtype in (torch.bfloat16, torch.float16):
        half, _ = drafts_of(made_head(CASES[name]).to(dtype))
        assert half.dtype == dtype
        assert float((half.float() - exact).square().mean() / exact.square().mean()) < 0.03**2


@pytest.mark.parametrize("name", CASES)
def test_a_saved_head_drafts_the_same(name: str, tiny_pair: ModelPair, tmp_path: Path) -> None:
    head = made_head(CASES[name])
    loaded = load_head(save_head(tmp_path / "head", head, CASES[name]), tiny_pair.target)
    assert (loaded.describe()["kind"], loaded.describe()["parallel"]) == (head.kind, True)
    assert torch.equal(drafts_of(loaded.network)[0], drafts_of(head)[0])


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        ("dspark", {"markov_rank": -1}, "markov_rank = -1: it must be at least 0"),
        ("dspark", {"markov_rank": 0}, "markov_rank = 0 and confidence_head_with_markov"),
        ("dspark", {"markov_head_type": "lstm"}, "markov_head_type = 'lstm': there are vanilla, gated, rnn"),
        ("dspark", {"markov_head_type": 3}, "markov_head_type = 3: it must be a word"),
        ("dspark", {"dspark_draft_topk": V + 1}, f"dspark_draft_topk = {V + 1}: it must be in 1..{V}"),
        ("dspark", {"markov_head_type": "rnn", "sample_from_anchor": False}, "its state begins at a slot that drafts"),
        ("domino", {}, "emb_dim = None: it must be a whole number of at least 1"),
        ("domino", {**NET, "pure_draft_prefix_len": -1}, "pure_draft_prefix_len = -1: .* at least 0"),
    ],
    ids=str,
)
def test_fields_of_no_head_are_refused(kind: str, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        made_head(config_of(kind, **fields))


def in_their_format(raw: dict[str, Any]) -> dict[str, Any]:
    """config.json as DeepSpec (fields beside those of the layers) or SpecForge (`dflash_config`) writes it."""
    ids = [layer - 1 for layer in raw["aux_hidden_state_layer_ids"]]
    names = {"block_size", "markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov"}
    names |= {"shift_label", "pure_draft_prefix_len", "emb_dim", "gru_hidden_dim", "mask_token_id"}
    fields = {"target_layer_ids": ids, **{name: raw[name] for name in sorted(names & raw.keys())}}
    if raw["speculators_model_type"] == "domino":
        of_kind = {"dflash_config": {"projector_type": "domino", **fields}, "block_size": fields.pop("block_size")}
        return {**raw["transformer_layer_config"], "architectures": ["DFlashDraftModel"], **of_kind}
    fields = {"enable_confidence_head": True, "confidence_head_with_markov": True, **fields}
    fields |= {} if fields["enable_confidence_head"] else {"confidence_head_with_markov": None}
    return {**raw["transformer_layer_config"], "architectures": ["Qwen3DSparkModel"], "num_anchors": 8, **fields}


@pytest.mark.parametrize(
    "name", ["vanilla", "gated", "rnn", "no confidence", "domino", "domino, shifted", "domino, shifted, later"]
)
def test_a_head_as_its_authors_save_it(name: str, tiny_pair: ModelPair, tmp_path: Path) -> None:
    """The same drafts, layers and drafts of a call as in the format of speculators; layers count outputs there."""
    head = made_head(CASES[name])
    folder = save_head(tmp_path / "head", head, in_their_format(CASES[name]))
    loaded = load_head(folder, tiny_pair.target).network
    assert (loaded.kind, loaded.layers, loaded.deepest) == (head.kind, head.layers, head.deepest)
    assert loaded.trained == head.deepest
    assert torch.equal(drafts_of(loaded)[0], drafts_of(head)[0])


def test_dspark_of_specforge(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Its fields are in `dflash_config`, one of its training among them."""
    theirs = in_their_format(CASES["vanilla"])
    moved = {name: theirs.pop(name) for name in ("mask_token_id", "target_layer_ids", "markov_rank")}
    moved |= {"projector_type": "dspark", "markov_head_type": "vanilla", "enable_confidence_head": True}
    moved |= {"confidence_head_with_markov": True, "confidence_head_alpha": 1.0}
    raw = {**theirs, "architectures": ["DSparkDraftModel"], "dflash_config": moved}
    head = made_head(CASES["vanilla"])
    loaded = load_head(save_head(tmp_path / "head", head, raw), tiny_pair.target).network
    assert torch.equal(drafts_of(loaded)[0], drafts_of(head)[0])
