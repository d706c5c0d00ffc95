"""A head measured at every start equals one call after the other; what lies past the text is never accepted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spectheory.measure.job as measure_run
from spectheory.distributions import Sampling
from spectheory.drafting import Grown, KAry
from spectheory.errors import ModelError, SettingError, TextError
from spectheory.measure import (
    MeasureSettings,
    ModelPair,
    compare_with_assisted,
    fingerprint_of_run,
    measure,
    position_statistics,
    teacher_forced,
)
from spectheory.measure.columns.noise import DEFAULT_KEY, position_keys
from spectheory.measure.forward import depth_of, paired_logits
from spectheory.measure.grown import grown_columns
from spectheory.measure.heads.base import AutoregressiveReading, HiddenStates, ParallelReading
from spectheory.prediction.paths import PathLaws, calls_of_laws
from spectheory.prompts import Prompt
from spectheory.trace import BY_START, MEASURED, Trace
from spectheory.verification import RecursiveRejection
from tests.toy_heads import TOYS, ToyHead, ToyParallelHead, with_head

PROMPT, OUTPUT = torch.arange(1, 24) % 64, (torch.arange(24) * 7 + 3) % 64
CACHE = 2e-4
RECORDED = tuple(name for name in BY_START if name != "start_confidence")
"""Of a head without a confidence."""
"""As in test_forward.py: cached and whole attention add in other orders."""
PROMPTS = tuple(Prompt(f"q{i}", "", f"t{i} t{i + 1} t7") for i in range(1, 5))


class MadeMtp(ToyHead):
    """A head that names four drafts, of which it makes one."""

    def __init__(self, target: Any) -> None:
        super().__init__(target, trained=4, deepest=1)


def call_by_call(pair: ModelPair, prompt: torch.Tensor, output: torch.Tensor, depth: int) -> Iterator[torch.Tensor]:
    """The head's logits ``[d, V]`` of a call from each output token, as a decoder makes it: d as far as the text goes.

    Nothing of the text after the start is read before the drafts are made; those before are the text's.
    """
    head = pair.draft.network
    ids = torch.cat([prompt, output])
    for start in range(len(prompt), len(ids)):
        with HiddenStates(pair.target.network, head.layers) as states, torch.inference_mode():
            pair.target.network(ids[None, : start - 1], use_cache=False)
        reading = head.reading()
        reading.read(states.take()[0], ids[1:start])
        last, d = torch.tensor([start - 2]), min(depth, len(ids) - start)
        if isinstance(reading, ParallelReading):
            yield reading.block(last, depth)[0, :d]
            continue
        assert isinstance(reading, AutoregressiveReading)
        rows, parent = [reading.first(last)], -1 - last
        for i in range(d - 1):
            rows.append(reading.extend(parent, ids[start + i : start + i + 1]))
            parent = torch.tensor([i])
        yield torch.cat(rows)


def expected(pair: ModelPair, sampling: Sampling, depth: int, prompt: Any = PROMPT, output: Any = OUTPUT) -> Any:
    """Columns by start from single calls and a whole pass of the target."""
    with torch.inference_mode():
        whole = pair.target.network(torch.cat([prompt, output])[None], use_cache=False).logits[0, len(prompt) - 1 : -1]
    for start, logits in enumerate(call_by_call(pair, prompt, output, depth)):
        rows = slice(start, start + len(logits))
        keys = position_keys(DEFAULT_KEY, start, len(logits))
        yield start, position_statistics(whole[rows], logits, output[rows], sampling, keys=keys)


@pytest.mark.parametrize("kind", TOYS)
@pytest.mark.parametrize(("chunk", "depth", "temperature"), [(1, 3, 1.0), (9, 5, 0.7), (16, 1, 1.0), (200, 6, 1.0)])
def test_starts_equal_single_calls(
    kind: type[ToyHead], chunk: int, depth: int, temperature: float, tiny_pair: ModelPair
) -> None:
    pair, sampling = with_head(tiny_pair, kind), Sampling(temperature)
    columns = teacher_forced(pair, PROMPT, OUTPUT, sampling, chunk=chunk, depth=depth)
    for start, single in expected(pair, sampling, depth):
        for name in RECORDED:
            row = columns[name][start]
            assert row.shape[0] == depth
            values = single[name.removeprefix("start_")].numpy()
            values = values[:, :4] if values.ndim == 2 else values
            np.testing.assert_allclose(row[: len(values)], values, rtol=CACHE, atol=CACHE, err_msg=f"{name} {start}")


@pytest.mark.parametrize("kind", TOYS)
def test_padding_of_the_target_is_never_drafted(kind: type[ToyHead], padded_pair: ModelPair) -> None:
    """Control: with the padding the drafts are others."""
    pair = with_head(padded_pair, kind)
    log_draft = teacher_forced(pair, PROMPT, OUTPUT, Sampling(), depth=3, race=False)["start_log_draft"]
    for start, logits in enumerate(call_by_call(pair, PROMPT, OUTPUT, 3)):
        at = torch.arange(len(logits)), OUTPUT[start : start + len(logits)]
        cut, whole = (each.log_softmax(dim=-1)[at].numpy() for each in (logits[:, : pair.vocabulary], logits))
        np.testing.assert_allclose(log_draft[start, : len(cut)], cut, rtol=CACHE, atol=CACHE)
        assert (np.abs(log_draft[start, : len(cut)] - whole) > CACHE).all()


def test_a_draft_with_its_own_sampling() -> None:
    """By start as by position; control: the target's sampling gives others."""
    target, draft = (torch.randn(5, 20, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    texts, options = torch.arange(5), {"draft_sampling": Sampling(0.5)}
    by_start = position_statistics(target, draft, texts, Sampling(), by_start=True, **options)
    by_position = position_statistics(target, draft, texts, Sampling(), **options)
    other = position_statistics(target, draft, texts, Sampling(), by_start=True)
    assert torch.equal(by_start["log_draft"], by_position["log_draft"])
    assert not torch.equal(by_start["log_draft"], other["log_draft"])


@pytest.mark.parametrize("kind", TOYS)
def test_the_columns_by_position_are_those_of_the_first_draft(kind: type[ToyHead], tiny_pair: ModelPair) -> None:
    columns = teacher_forced(with_head(tiny_pair, kind), PROMPT, OUTPUT, Sampling(), chunk=9, depth=3)
    assert set(columns) == {*MEASURED, *RECORDED}
    for name in RECORDED:
        first = columns[name.removeprefix("start_")]
        first = first[:, :4] if first.ndim == 2 else first
        np.testing.assert_allclose(columns[name][:, 0], first, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", TOYS)
def test_one_position_further_is_another_pmf(kind: type[ToyHead], tiny_pair: ModelPair) -> None:
    """Control: the first draft one start later is not the second draft."""
    columns = teacher_forced(with_head(tiny_pair, kind), PROMPT, OUTPUT, Sampling(), race=False)
    deep = columns["start_log_draft"]
    assert np.abs(deep[:-1, 1] - deep[1:, 0]).max() > 0.1


def test_the_estimated_law_gives_unbiased_calls(tiny_pair: ModelPair) -> None:
    """Calls of a tree of distinct candidates, over 24 readings of a text, against the enumerated law by start.

    |z| > 6 in 4e-6 of all runs (Student, 23 degrees of freedom); the control, the law of i.i.d. candidates, is refuted.
    """
    pair, shape, output = with_head(tiny_pair, ToyParallelHead), KAry((2, 2)), OUTPUT[:10]
    lengths = np.array([len(output)])
    distinct, iid = RecursiveRejection(replacement=False), RecursiveRejection()
    with torch.inference_mode():
        whole = pair.target.network(torch.cat([PROMPT, output])[None], use_cache=False).logits[0, len(PROMPT) - 1 : -1]
    laws = {rule: np.zeros((len(output), 2, 2)) for rule in (distinct, iid)}
    for start, logits in enumerate(call_by_call(pair, PROMPT, output, 2)):
        rows = slice(start, start + len(logits))
        p, q = (each.double().softmax(dim=-1).numpy() for each in (whole[rows], logits))
        for rule, law in laws.items():
            law[start, : len(logits)] = rule.rank_pmf_given(p, q, output[rows].numpy(), 2)
    exact, wrong = (calls_of_laws(PathLaws(law), shape.tree(), lengths)[0].expected[0] for law in laws.values())
    counted = []
    for key in range(24):
        columns = teacher_forced(pair, PROMPT, output, Sampling(), depth=2, key=key)
        law = distinct.path_laws(columns, 2, 2)
        counted.append(calls_of_laws(PathLaws(law), shape.tree(), lengths)[0].expected[0])
    error = np.std(counted, ddof=1) / math.sqrt(len(counted))
    assert abs(np.mean(counted) - exact) < 6 * error
    assert abs(np.mean(counted) - wrong) > 6 * error


def test_past_the_text_nothing_is_accepted(tiny_pair: ModelPair) -> None:
    """As many starts as there are tokens, and a last call of which only the first draft lies in the text."""
    columns = teacher_forced(with_head(tiny_pair), PROMPT, OUTPUT[:2], Sampling(), depth=4)
    assert columns["start_log_draft"].shape == (2, 4)
    past = {name: columns[name][1, 1:] for name in RECORDED}
    assert (past["start_log_draft"] == -math.inf).all()
    assert (past["start_draft_rank"] == 64).all()
    assert (past["start_total_variation"] == 1).all()
    assert (past["start_race_g"] == math.inf).all()
    for name in ("start_greedy_agreement", "start_rejection_rank", "start_race_rank", "start_distinct_rank"):
        assert not past[name].any()
    assert (columns["start_log_draft"][0, :2] > -math.inf).all()


def test_logits_in_memory_are_a_chunk(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the target a chunk at a time; of a head a chunk of starts and the few that lag behind, or all depths of
    fewer.
    """
    rows: list[int] = []
    for kind, most in ((ToyHead, 8 + 4 - 1), (ToyParallelHead, 8)):
        pair = with_head(tiny_pair, kind)
        made, rows = pair.draft.network.logits, []
        monkeypatch.setattr(
            pair.draft.network,
            "logits",
            lambda s, made=made, rows=rows: (rows.append(s.shape[:-1].numel()), made(s))[1],
        )
        teacher_forced(pair, PROMPT, OUTPUT, Sampling(), chunk=8, race=False)
        assert max(rows) <= most
        assert sum(rows) == 4 * len(OUTPUT), "each depth of each start once"


@pytest.mark.parametrize(("kind", "pass_of"), [(ToyHead, "extend"), (ToyParallelHead, "block")])
def test_memory_that_ends_while_drafting(
    kind: type[ToyHead], pass_of: str, tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error counts starts, and its remedy is the chunk: one text is read."""

    def fails(*_: Any) -> None:
        raise torch.OutOfMemoryError("no memory")

    pair = with_head(tiny_pair, kind)
    assert pair.draft.head is not None
    monkeypatch.setattr(type(pair.draft.head.reading()), pass_of, fails)
    with pytest.raises(ModelError, match=r"'toy head' ran out of memory on \d+ starts at once.*use a smaller --chunk"):
        teacher_forced(pair, PROMPT, OUTPUT, Sampling())


def test_temperature_0_and_filters(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Sampled texts stay possible, whatever cuts them."""
    for sampling in (Sampling(0.0), Sampling(0.9, top_k=5, top_p=0.9)):
        settings = MeasureSettings(sampling, tokens=12, race=False)
        path = tmp_path / f"{sampling.temperature}.parquet"
        trace = measure(with_head(tiny_pair), PROMPTS[:1], settings, path)
        assert np.isfinite(trace.columns["log_target"]).all()
        assert trace.provenance["settings"]["depth"] == 4


@pytest.mark.parametrize("kind", TOYS)
def test_interrupted_and_resumed_is_the_same(kind: type[ToyHead], tiny_pair: ModelPair, tmp_path: Path) -> None:
    pair, settings = with_head(tiny_pair, kind), MeasureSettings(tokens=10, count=2, depth=3)
    whole = measure(pair, PROMPTS, settings, tmp_path / "whole.parquet")

    def stop(progress: Any) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "trace.parquet"
    with pytest.raises(KeyboardInterrupt):
        measure(pair, PROMPTS, settings, out, on_progress=stop)
    resumed = measure(pair, PROMPTS, settings, out)
    assert set(whole.columns) == set(Trace.read(out).columns) == {*MEASURED, *RECORDED}
    for name, values in whole.columns.items():
        assert values.dtype == resumed.columns[name].dtype
        assert values.tobytes() == resumed.columns[name].tobytes(), name
    assert resumed.provenance["settings"]["depth"] == 3
    draft = resumed.provenance["draft"]
    assert (draft["kind"], draft["parallel"]) == (kind.kind, kind.parallel)


def test_the_fingerprint_knows_the_depth_of_heads_alone(tiny_pair: ModelPair, monkeypatch: Any) -> None:
    head, settings = with_head(tiny_pair), MeasureSettings(tokens=10)
    deep = dataclasses.replace(settings, depth=4)
    assert fingerprint_of_run(head, PROMPTS, settings) == fingerprint_of_run(head, PROMPTS, deep), "it is the default"
    deeper = dataclasses.replace(settings, depth=5)
    assert fingerprint_of_run(head, PROMPTS, deeper) != fingerprint_of_run(head, PROMPTS, deep)
    of_model = fingerprint_of_run(tiny_pair, PROMPTS, settings)
    monkeypatch.setattr(measure_run, "BY_START", ())
    assert fingerprint_of_run(tiny_pair, PROMPTS, settings) == of_model
    assert fingerprint_of_run(head, PROMPTS, settings) != fingerprint_of_run(head, PROMPTS, deeper)


@pytest.mark.parametrize(
    ("kind", "depth", "named"),
    [
        (ToyParallelHead, 7, r"--depth is 7: the head 'toy head' is measured to 1\.\.6 drafts.* pass drafts no more"),
        (ToyHead, 65, r"--depth is 65: .* 1\.\.64 drafts"),
        (MadeMtp, 2, r"1\.\.1 drafts in a call: it has a module for each"),
        (ToyHead, 0, r"--depth is 0: .* 1\.\.64 drafts"),
        (None, 3, "--depth is 3 for the draft 'draft': its pmfs depend on the position alone"),
    ],
)
def test_depths_that_cannot_be_measured(kind: Any, depth: int, named: str, tiny_pair: ModelPair) -> None:
    pair = with_head(tiny_pair, kind) if kind else tiny_pair
    with pytest.raises(SettingError, match=named):
        teacher_forced(pair, PROMPT, OUTPUT, Sampling(), depth=depth)


def test_the_default_depth_is_no_deeper_than_the_head(tiny_pair: ModelPair) -> None:
    """As a checkpoint of MTP that names several drafts."""
    assert depth_of(with_head(tiny_pair, MadeMtp).draft, None) == 1
    assert depth_of(with_head(tiny_pair).draft, None) == 4
    assert depth_of(tiny_pair.draft, None) is None


def test_a_prompt_of_one_token(tiny_pair: ModelPair, tmp_path: Path) -> None:
    pair, short = with_head(tiny_pair), Prompt("q7", "", "t5")
    for run in (
        lambda: teacher_forced(pair, PROMPT[:1], OUTPUT, Sampling(), name="q7"),
        lambda: measure(pair, [short], MeasureSettings(tokens=4), tmp_path / "trace.parquet"),
        lambda: grown_columns(pair, PROMPT[:1], OUTPUT, Grown(4, 2, 2), name="q7"),
    ):
        with pytest.raises(TextError, match="prompt 'q7' has 1 token: a draft head needs 2"):
            run()
    columns = teacher_forced(pair, PROMPT[:2], OUTPUT, Sampling(), chunk=3)
    for start, single in expected(pair, Sampling(), 4, PROMPT[:2]):
        at = single["log_draft"].numpy()
        np.testing.assert_allclose(columns["start_log_draft"][start, : len(at)], at, rtol=CACHE, atol=CACHE)


def test_what_reads_by_position_refuses_a_head(tiny_pair: ModelPair) -> None:
    """Log-probabilities side by side, and transformers' assisted generation: one line each."""
    pair = with_head(tiny_pair)
    with pytest.raises(SettingError, match="'toy head' is a draft head: this reading is by position"):
        next(paired_logits(pair, PROMPT, OUTPUT, chunk=4, name="one"))
    with pytest.raises(SettingError, match="'toy head' is a draft head: transformers' generation does not run it"):
        compare_with_assisted(pair, PROMPTS, Sampling(), ks=(1,), tokens=4)
