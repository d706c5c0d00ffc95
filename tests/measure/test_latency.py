"""Latency tables: their form, what they leave out, and the interval of a median."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from spectheory.drafting import Batch, KAry
from spectheory.errors import SettingError
from spectheory.measure import ModelPair, measure_latency
from spectheory.measure.latency import BURST, DRAFT_TOKENS, TAKING, _passes, _round
from spectheory.measure.rounds import PLAIN, Budget, Pass


def test_table(tiny_pair: ModelPair) -> None:
    rounds: list[tuple[int, int]] = []
    table = measure_latency(
        tiny_pair,
        context=100,
        tokens=(1, 4, 28, 29),
        repeats=8,
        warm_up=1,
        budget=Budget(width=1e-9),
        on_progress=lambda done, total: rounds.append((done, total)),
    )
    assert set(table.target) == {1, 4, 28}, "100 + 29 tokens do not fit a window of 128"
    assert set(table.draft) == {1, 2, 4, 28}
    for entry in (*table.target.values(), *table.draft.values()):
        assert 0 < entry.low <= entry.best <= entry.high
        assert entry.kind == "statistical"
    assert table.context == 100
    assert rounds == [(i, 9) for i in range(1, 10)]
    provenance = table.provenance
    assert provenance["repeats"] == 8
    assert provenance["batch"] == 1
    assert provenance["target"]["dtype"] == "float32"
    low, high = provenance["quartiles"]["target 4"]
    assert table.call(KAry((2, 4))).best > table.call(Batch(10)).best, "a pass on two tokens more"
    assert table.target[4].low <= high
    assert low <= table.target[4].high
    assert provenance["hardware"]["cpu"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"context": 127}, "context is 127: the models take 128"),
        ({"context": 0}, "context is 0"),
        ({"context": 8, "repeats": 5}, "repeats is 5"),
        ({"context": 8, "tokens": (0, 1)}, "tokens is 0"),
        ({"context": 8, "tokens": ()}, "tokens is 0"),
    ],
)
def test_bad_settings(options: dict[str, Any], named: str, tiny_pair: ModelPair) -> None:
    with pytest.raises(SettingError, match=named):
        measure_latency(tiny_pair, **options)


def test_models_without_a_cache_read_everything_again(tiny_pair: ModelPair) -> None:
    read = []

    class Plain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = tiny_pair.draft.network
            self.get_input_embeddings, self.num_parameters = self.inner.get_input_embeddings, self.inner.num_parameters
            self.dtype = self.inner.dtype

        def forward(self, input_ids: Any, past_key_values: Any, use_cache: bool) -> Any:
            read.append(input_ids.shape[1])
            return self.inner(input_ids, use_cache=False)

    pair = dataclasses.replace(tiny_pair, draft=dataclasses.replace(tiny_pair.draft, network=Plain()))
    table = measure_latency(pair, context=8, tokens=(1, 4), repeats=6, warm_up=0)
    assert sorted(table.draft) == [1, 2, 4]
    assert table.provenance["read_again"] == ["draft"]
    assert read[0] == 8
    assert set(read[1:]) == {8 + 1, 8 + 2, 8 + 4}


class Clock:
    """Stands for a model: a pass takes what it reads, a draft's first one after the target's 1 more; it is listed."""

    def __init__(self, name: str, listed: list[Pass], longer: Sequence[int] = (), layers: Sequence[int] = ()) -> None:
        self.name, self.listed, self.longer, self.layers = name, listed, longer, layers

    def run(self, tokens: int, keep: int, *, alone: bool = False) -> float:
        """Seconds of a pass."""
        taking = bool(self.layers) and tokens == 1 and not alone
        fresh = self.name == "draft" and self.listed[-1][0] != "draft"
        self.listed.append((TAKING if taking else self.name, tokens))
        return tokens + 0.5 * taking + fresh

    def burst(self, tokens: int) -> list[float]:
        """Seconds of a chain's passes."""
        return [self.run(tokens, keep=1) for _ in range(BURST)]


@pytest.mark.parametrize("longer", [(), (8,), (64,)])
@pytest.mark.parametrize("sizes", [[1], [1, 2], [1, 4], [1, 2, 4], [1, 4, 16, 64]])
def test_a_round_has_what_is_due_and_drafts_after_the_target(sizes: list[int], longer: tuple[int, ...]) -> None:
    """Of any due passes: each burst of drafts follows the target, whichever sizes are left."""
    listed: list[Pass] = [PLAIN]
    draft, target = Clock("draft", listed, longer), Clock("target", listed, layers=(1,) if longer else ())
    passes = _passes(draft, target, sizes)  # type: ignore[arg-type]
    dues = [set(passes), *({one, other} for one in passes for other in passes)]
    for number, due in enumerate(due for due in dues for _ in range(4)):
        taken = _round(draft, target, sizes, number, due)  # type: ignore[arg-type]
        assert taken.keys() == due | {PLAIN}
        for step in taken.keys() & {("draft", m) for m in DRAFT_TOKENS}:
            assert taken[step] == pytest.approx(step[1] + 1 / BURST)
        assert all(taken[who, m] == m for who, m in taken if who == "target")
