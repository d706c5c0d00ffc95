"""What prompt lookup drafts at each position of a text, and what a trace says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.measure import MeasureSettings, ModelPair, measure, teacher_forced
from spectheory.measure.copied import lookup_columns
from spectheory.measure.decoders import Decoded, Method, decode
from spectheory.ngrams.base import LONGEST_COPY
from spectheory.prediction import plan, predict
from spectheory.prediction.paths import TextCalls, calls_of_texts
from spectheory.prompts import Prompt
from spectheory.trace import MEASURED, Trace
from spectheory.verification import LookupMatch
from tests.measure.lookup_cases import END, KS, PROMPTS, by_hand, text_trace

FEW = 5
"""Tokens of the vocabulary where texts are to repeat themselves."""

TOKENS = 40


def matches(prompt: Any, output: Any, ngram: int = 3) -> np.ndarray:
    return lookup_columns(prompt, output, ngram=ngram)["lookup_match"]


@pytest.mark.parametrize("seed", range(30))
def test_columns_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = rng.integers(0, 2 + seed % 4, 60)
    text[40:] = text[10:30]  # a long repetition
    for cut in (1, 2, 25, 59):
        for ngram in (1, 2, 3, 7):
            for ends in ((), (0,), (0, 1), (3,)):
                columns = lookup_columns(text[:cut], text[cut:], ends, ngram)
                assert {column.dtype for column in columns.values()} == {np.dtype(np.int16)}
                known = by_hand(text[:cut].tolist(), text[cut:].tolist(), ngram, ends)
                assert {name: column.tolist() for name, column in columns.items()} == known


def test_a_draft_ends_where_the_text_does() -> None:
    """Of 1 1 1 1 ... one token follows the latest earlier occurrence; nothing stands before a single new token."""
    assert matches([1], [1, 1, 1, 1]).tolist() == [0, 1, 1, 1]
    assert matches([1, 2, 3, 4, 1, 2], [3, 4, 1, 2, 9]).tolist() == [4, 3, 2, 1, 0]
    again = np.arange(LONGEST_COPY + 9)
    assert [column.max() for column in lookup_columns(again, again).values()] == [LONGEST_COPY] * 2


def test_nothing_is_drafted_after_an_end() -> None:
    """Unless the text went on after it: then it was none."""
    ahead, text = [1, 2, END, 3, 4, 1], [2, 5]
    assert [lookup_columns(ahead, text, ends)["lookup_drafted"][0] for ends in ((), (END,))] == [5, 2]
    assert lookup_columns(ahead, [2, END, 3, 4], (END,))["lookup_match"][0] == 4


# What is decoded


Decoding = Callable[..., Sequence[Decoded]]
"""Decodes with k drafts at a temperature, with or without a stop at the end of a text."""


@pytest.fixture(scope="module")
def decoded_with(tiny_pair: ModelPair) -> Decoding:
    """The tiny pair cut to few tokens decodes; the same question is decoded once."""
    few = dataclasses.replace(tiny_pair, vocabulary=FEW)

    @cache
    def of(k: int, temperature: float, stop: bool = True) -> Sequence[Decoded]:
        how: dict[str, Any] = {"tokens": TOKENS, "seed": 7, "batch": 10, "stop_at_end": stop}
        return tuple(decode(few, PROMPTS, Method("lookup", Chain(k)), sampling=Sampling(temperature), **how))

    return of


def expected(decoded: Sequence[Decoded], k: int, ngram: int = 3, more: int = 0) -> TextCalls:
    """Calls of the texts by the path theorem; `more` spoils the matches."""
    texts = [one.output_ids for one in decoded]
    matched = [matches(prompt, text, ngram) + more for prompt, text in zip(PROMPTS, texts, strict=True)]
    survival = LookupMatch().path_survival({"lookup_match": np.concatenate(matched)}, k)
    return calls_of_texts(survival, np.array([len(text) for text in texts]))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("k", KS)
def test_decoded_calls_are_the_expected_ones(k: int, temperature: float, decoded_with: Decoding) -> None:
    """Text by text, no tolerance: given the text nothing is random."""
    for stop in (True, False):
        decoded = decoded_with(k, temperature, stop)
        calls = expected(decoded, k)
        assert calls.expected.tolist() == [len(one.calls) for one in decoded]
        assert calls.variance.tolist() == [0.0] * len(decoded)
    assert any(call.accepted for one in decoded for call in one.calls)


def test_ends_of_texts_are_drafted_and_accepted(decoded_with: Decoding) -> None:
    """What the test above rests on: texts that end by a draft and by the token after drafts."""
    decoded = [one for k in KS for one in decoded_with(k, 1.0)]
    assert {one.calls[-1].last for one in decoded if one.output_ids[-1] == END} >= {"end", "recovered"}


def test_wrong_matches_are_seen(decoded_with: Decoding) -> None:
    """Negative controls: another n-gram, and matches that are one too many or too few."""
    decoded = decoded_with(5, 1.0, False)
    counted = sum(len(one.calls) for one in decoded)
    for wrong in ({"ngram": 1}, {"ngram": 2}, {"more": 1}, {"more": -1}):
        assert expected(decoded, 5, **wrong).expected.sum() != counted, wrong


def lengths_of(decoded: Sequence[Decoded]) -> np.ndarray:
    return np.array([len(one.output_ids) for one in decoded])


def columns_of(decoded: Sequence[Decoded], ends: Sequence[int]) -> dict[str, np.ndarray]:
    """What a trace of the decoded texts has."""
    each = [lookup_columns(prompt, one.output_ids, ends) for prompt, one in zip(PROMPTS, decoded, strict=True)]
    return {name: np.concatenate([columns[name] for columns in each]) for name in each[0]}


def counted(decoded: Sequence[Decoded], k: int) -> np.ndarray:
    """Calls of each text by the tokens they drafted, as decoded."""
    return np.stack([np.bincount([call.drafted for call in one.calls], minlength=k + 1) for one in decoded])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("k", KS)
def test_calls_draft_what_the_replay_says(k: int, temperature: float, decoded_with: Decoding) -> None:
    """Text by text and call by call, no tolerance; texts that end by themselves had room for more."""
    most = np.full(len(PROMPTS), TOKENS)
    for stop in (True, False):
        decoded = decoded_with(k, temperature, stop)
        columns, lengths = columns_of(decoded, [END] if stop else []), lengths_of(decoded)
        replayed = LookupMatch().calls_by_drafted(columns, lengths, most, k)
        np.testing.assert_array_equal(replayed, counted(decoded, k))
        for one, begin in zip(decoded, np.cumsum(lengths) - lengths, strict=True):
            at = 0
            for call in one.calls:
                assert call.drafted == min(columns["lookup_drafted"][begin + at], k, TOKENS - at - 1)
                at += call.tokens
        assert (replayed.sum(axis=0) > 0).sum() >= min(k, 3), "calls of several lengths"


def test_what_ends_of_texts_do_to_the_replay(decoded_with: Decoding) -> None:
    """Negative controls: without limits, or without ends of texts, the replay is another."""
    most = np.full(len(PROMPTS), TOKENS)
    wrong = {
        "no limit": (False, [], most + LONGEST_COPY),
        "no room behind an end": (True, [END], None),
        "drafts go on after an end": (True, [], most),
    }
    for name, (stop, ends, room) in wrong.items():
        decoded = decoded_with(12, 1.0, stop)
        lengths = lengths_of(decoded)
        replayed = LookupMatch().calls_by_drafted(
            columns_of(decoded, ends), lengths, lengths if room is None else room, 12
        )
        assert (replayed.sum(axis=1) == [len(one.calls) for one in decoded]).all(), "as many calls all the same"
        assert (replayed != counted(decoded, 12)).any(), name


def test_the_columns_are_those_of_the_text(tiny_pair: ModelPair) -> None:
    for chunk in (1, 256):
        columns = teacher_forced(tiny_pair, PROMPTS[0], PROMPTS[1].repeat(3), Sampling(), chunk=chunk)
        known = by_hand(PROMPTS[0].tolist(), PROMPTS[1].repeat(3).tolist())
        assert {name: columns[name].tolist() for name in known} == known
        assert max(known["lookup_match"]) > 3
    ending = teacher_forced(tiny_pair, PROMPTS[0], PROMPTS[1][2:3].repeat(9), Sampling())
    assert ending["lookup_drafted"][0] < by_hand(PROMPTS[0].tolist(), [1])["lookup_drafted"][0]


def test_texts_that_go_on_are_drafted_for_through_ends(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also through an end that the output does not have; what is drafted is what the decoder's own drafter does."""
    monkeypatch.setattr(ModelPair, "end_of_text", frozenset({3, 4}))
    prompt, output, k = [1, 0, 3], [1, 0, 1, 0, 4, 0], 3
    lengths, by_drafted = np.array([len(output)]), dict[bool, list[int]]()
    for stop in (True, False):
        columns = teacher_forced(tiny_pair, torch.tensor(prompt), torch.tensor(output), Sampling(), stop_at_end=stop)
        by_drafted[stop] = LookupMatch().calls_by_drafted(columns, lengths, lengths, k)[0].tolist()
    at, drafted = 0, list[int]()
    while at < len(output):
        draft = LookupMatch.copies.draft(np.array(prompt + output[:at]), None)[: min(k, len(output) - at - 1)].tolist()
        drafted.append(len(draft))
        at += 1 + next((n for n, token in enumerate(draft) if token != output[at + n]), len(draft))
    assert drafted == [0, 3, 2, 0]
    assert by_drafted == {True: [2, 0, 2, 0], False: np.bincount(drafted).tolist()}


@pytest.mark.parametrize("stop", [True, False])
def test_measured_drafts_are_those_of_texts_that_go_on(stop: bool, tiny_pair: ModelPair, tmp_path: Path) -> None:
    prompts = [Prompt(str(i), "", f"t{i} <end> t9 t{i}") for i in range(1, 4)]
    settings = MeasureSettings(Sampling(0.5), tokens=20, stop_at_end=stop)
    trace = measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")
    start = 0
    for i, length in enumerate(trace.lengths, start=1):
        rows = slice(start, start := start + length)
        text = trace.columns["token"][rows].tolist()
        known = by_hand([i, END, 9, i], text, ends=[END] if stop and END not in text[:-1] else [])
        assert trace.columns["lookup_drafted"][rows].tolist() == known["lookup_drafted"]


# Measured and kept


def test_measured_matches(tiny_pair: ModelPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As read back from the file; what a version without the column measured is neither mixed in nor taken for it."""
    prompts = [Prompt(str(i), "", f"t{i} t9 t{i} t9 t{i}") for i in range(1, 4)]
    settings = MeasureSettings(Sampling(0.5), tokens=20)
    trace = measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")
    start = 0
    for i, length in enumerate(trace.lengths, start=1):
        text = trace.columns["token"][start : start + length].tolist()
        for name, known in by_hand([i, 9, i, 9, i], text, ends=[END]).items():
            column = trace.columns[name][start : start + length]
            assert (column.dtype, column.tolist()) == (np.int16, known)
        start += length
    ended = np.array([text.ended for text in trace.texts])
    assert trace.most_tokens.tolist() == np.where(ended, 20, trace.lengths).tolist()
    before = tuple(name for name in MEASURED if name != "lookup_drafted")
    monkeypatch.setattr("spectheory.measure.job.MEASURED", before)
    with pytest.raises(TraceError, match="another measurement"):
        measure(tiny_pair, prompts, settings, tmp_path / "trace.parquet")


def test_traces_without_matches(tmp_path: Path) -> None:
    trace = text_trace()
    trace.write(tmp_path / "new.parquet")
    old, matched = (
        Trace({n: c for n, c in trace.columns.items() if n not in less}, trace.texts, trace.provenance)
        for less in (LookupMatch.needs, LookupMatch.needs[1:])
    )
    old.write(tmp_path / "old.parquet")
    read = Trace.read(tmp_path / "new.parquet").columns["lookup_match"]
    assert (read.dtype, read.tolist()) == (np.int16, trace.columns["lookup_match"].tolist())
    with pytest.raises(TraceError, match=r"no lookup_match.*measure again with this version") as caught:
        predict(Trace.read(tmp_path / "old.parquet"), LookupMatch(), Chain(2))
    assert "\n" not in str(caught.value)
    with pytest.raises(TraceError, match=r"has no lookup_drafted.*measure again with this version"):
        predict(matched, LookupMatch(), Chain(2))
    with pytest.raises(SettingError, match=f"chain of {LONGEST_COPY + 1} copied tokens.*up to {LONGEST_COPY}"):
        predict(trace, LookupMatch(), Chain(LONGEST_COPY + 1))
    assert [list(map(str, plan(t).labels)) for t in (old, trace)] == [["token", "block"], ["token", "block", "lookup"]]
