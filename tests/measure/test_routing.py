"""Routing logs: recorded as the routers say, counted window by window, and what plans make of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from spectheory.cost import Routing
from spectheory.errors import ModelError, SettingError
from spectheory.measure.pair import Model
from spectheory.measure.routing import _record_routing

SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
SIZES |= {"num_key_value_heads": 2, "vocab_size": 97, "num_experts_per_tok": 2}
KINDS = {
    "mixtral": {"num_local_experts": 8},
    "qwen2_moe": {"num_experts": 6, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16},
    "olmoe": {"num_experts": 5},
}


def made(kind: str, **others: Any) -> Model:
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **SIZES, **KINDS.get(kind, {}), **others, pad_token_id=0)
    network = AutoModelForCausalLM.from_config(config).eval()
    return Model(kind, None, network, 97, None, "")


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_is_what_routers_say(kind: str) -> None:
    """The largest logits of each layer's router, as transformers returns them."""
    model, ids = made(kind), torch.arange(3, 23)
    log = _record_routing(model, [ids, ids.flip(0)], [0, 4])
    assert [len(text) for text in log.texts] == [20, 16]
    for text, read, start in zip(log.texts, (ids, ids.flip(0)), (0, 4), strict=True):
        with torch.no_grad():
            logits = model.network(read[None], output_router_logits=True).router_logits
        for layer, scores in enumerate(logits):
            expected = scores.topk(2).indices.sort(dim=-1).values.numpy()[start:]
            assert np.array_equal(np.sort(text[:, layer], axis=-1), expected)
    pairs = [
        len({*text[i, layer], *text[j, layer]})
        for text in log.texts
        for layer in (0, 1)
        for i, j in pairwise(range(len(text)))
    ]
    assert log.distinct(2) == pytest.approx(np.mean(pairs))


def test_a_model_without_experts_is_refused() -> None:
    with pytest.raises(ModelError, match="has layers with no experts"):
        _record_routing(made("llama"), [torch.arange(3)])
    with pytest.raises(SettingError, match="a text has no token to record"):
        _record_routing(made("mixtral"), [torch.arange(3)], [3])


def test_logs_are_written_and_read_again(tmp_path: Path) -> None:
    log = _record_routing(made("mixtral"), [torch.arange(3, 13), torch.arange(9)])
    log.write(tmp_path / "routing.npz")
    lines = [json.dumps({"experts": text.tolist(), "count": 8}) for text in log.texts]
    (tmp_path / "routing.jsonl").write_text("\n".join(lines))
    for name in ("routing.npz", "routing.jsonl"):
        again = Routing.read(tmp_path / name)
        assert all(np.array_equal(one, other) for one, other in zip(log.texts, again.texts, strict=True))
        assert [again.distinct(m, 3) for m in (1, 4)] == [log.distinct(m, 3) for m in (1, 4)]
