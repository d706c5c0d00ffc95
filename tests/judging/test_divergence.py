"""Greedy output: ties and faults by their gaps, the bound of rounding, and texts with and without speculation."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.errors import SettingError, TextError, TraceError
from spectheory.judging.divergence import (
    GREEDY,
    ROUNDINGS,
    UNIT_ROUNDING,
    against_plain,
    divergences,
    engine_dtype,
    greedy_tests,
    rounding_bound,
)
from spectheory.judging.judgement import judge
from spectheory.measure import ModelPair, load_pair
from spectheory.pairs import resolve
from spectheory.reports.judgement import headline
from spectheory.trace import LAYERS, TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from tests.judging.toy_texts import columns_of, pmfs, toy_logits
from tests.made_up import all_refused


def a_trace(gaps: list[float], margins: list[float] | None = None, **provenance: Any) -> Trace:
    """Two texts of equal length, with these gaps; logits are at most 16."""
    n = len(gaps)
    columns = {
        "token": np.arange(n),
        "log_target": np.full(n, -1.0),
        "log_draft": np.full(n, -1.0),
        "target_rank": np.where(np.array(gaps) > 0, 2, 1),
        "target_gap": np.array(gaps),
        "target_margin": np.array(gaps if margins is None else margins),
        "target_scale": np.full(n, 16.0),
    }
    return Trace(columns, (TextInfo("a", n // 2), TextInfo("b", n - n // 2)), provenance)


def test_gaps_within_rounding_are_ties_and_larger_ones_faults() -> None:
    bound = rounding_bound(16.0, "float32")
    trace = a_trace([0, 0.9 * bound, 0, 1.1 * bound, 0, 2.0])
    places = divergences(trace)
    assert [(one.text, one.position, one.kind) for one in places] == [
        ("a", 1, "tie"),
        ("b", 0, "fault"),
        ("b", 2, "fault"),
    ]
    assert [one.kind for one in divergences(trace, dtype="bfloat16")] == ["tie", "tie", "fault"]
    half = replace(trace, provenance={"target": {"dtype": "bfloat16"}})  # the coarser precision counts
    assert [one.bound for one in divergences(half, dtype="float32")] == [rounding_bound(16.0, "bfloat16")] * 3


def test_the_greedy_test_refutes_faults_alone() -> None:
    bound = rounding_bound(16.0, "float32")
    (tied,) = greedy_tests(a_trace([0, 0.5 * bound, 0, 0]))
    (wrong,) = greedy_tests(a_trace([0, 2 * bound, 0, 0]))
    assert (tied.refuted, wrong.refuted) == (False, True)
    assert (wrong.statistic, wrong.text, wrong.side, wrong.null) == (1.0, "a", "estimate", GREEDY)
    assert tied.smallest == bound
    for provenance in ({"dtype": "float16"}, {"settings": {"dtype": "float16"}}):
        assert engine_dtype(CallLog((), provenance=provenance)) == "float16"
    assert engine_dtype(CallLog((), provenance={"settings": None})) == ""
    for dtype in ("bfloat16", "torch.bfloat16", "bf16"):
        assert not greedy_tests(a_trace([0, 2 * bound, 0, 0]), dtype=dtype)[0].refuted
    assert greedy_tests(a_trace([0, 2 * bound, 0, 0]), dtype="int8")[0].refuted  # read as the trace's own
    assert greedy_tests(Trace({"log_target": np.zeros(1), "log_draft": np.zeros(1)}, (TextInfo("a", 1),))) == ()


def test_a_judgement_at_temperature_0_tests_its_output() -> None:
    """One text of first choices, and the same with a last token that the target would not choose."""
    target, draft = pmfs(toy_logits(1)), pmfs(toy_logits(1) + toy_logits(2, 0.5))
    best = target.argmax(axis=1)
    text = [1]
    for _ in range(12):
        text.append(int(best[text[-1]]))
    swapped = [*text[:-1], int(target[text[-2]].argsort()[-4])]
    for output, refuted in ((text[1:], False), (swapped[1:], True)):
        made = Request("a", (1,), tuple(output), calls=0)
        last = np.array([1, *output[:-1]])
        columns = columns_of(target[last], draft[last], np.array(output))
        calls = len(output) - 1  # no draft is asked for: every call emits one token
        one = CallLog((replace(made, calls=calls),), k=1, temperature=0.0, prefill_emits_token=True)
        settings = {"settings": {"sampling": {"temperature": 1.0}}}
        judgement = judge(one, Trace(columns, (TextInfo("a", len(output)),), settings))
        assert judgement.output_refuted == refuted
        said = "REFUTED, not the target's first choices" if refuted else "the target's first choices"
        assert headline(judgement).endswith(f"Output: {said}")


def test_deeper_models_round_more() -> None:
    """Up to the layers of the calibration the bound is the same; then it grows with their root."""
    assert rounding_bound(8.0, "float16", 2) == rounding_bound(8.0, "float16", 12) == rounding_bound(8.0, "float16")
    assert math.isclose(rounding_bound(8.0, "float16", 48), 2 * rounding_bound(8.0, "float16"))
    deep = divergences(a_trace([0, 1.0], **{LAYERS: 48}))
    assert deep[0].bound == rounding_bound(16.0, "float32", 48)


@pytest.fixture(scope="module")
def builtin_pair() -> ModelPair:
    return load_pair(resolve("builtin:target"), resolve("builtin:draft"), device="cpu")


@pytest.mark.parametrize("model", ["target", "draft"])
def test_the_bound_covers_the_rounding_of_real_models(model: str, builtin_pair: ModelPair) -> None:
    """Margins in each precision against float64: no error beyond the bound, and the largest not below a twentieth."""
    network = getattr(builtin_pair, model).network
    ids = torch.from_numpy(np.random.default_rng(1).integers(3, 500, (2, 96)))
    exact = _logits(network, ids, torch.float64)
    top = exact.topk(2).indices
    scale, layers = exact.abs().amax(-1), network.config.num_hidden_layers
    for dtype in ("float32", "float16", "bfloat16"):
        margins = [
            x.gather(-1, top).diff(dim=-1)[..., 0] for x in (_logits(network, ids, getattr(torch, dtype)), exact)
        ]
        off = (margins[0] - margins[1]).abs() / scale / rounding_bound(1.0, dtype, layers)
        assert 1 / 20 < off.max() < 1, (dtype, off.max())


def _logits(network: Any, ids: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    with torch.inference_mode():
        return copy.deepcopy(network).to(dtype)(ids).logits.double()


# With and without speculation


def log(*outputs: tuple[int, ...], ended: tuple[bool, ...] = (False, False)) -> CallLog:
    names = ("a", "b")
    return CallLog(tuple(Request(n, (1,), out, ended=e) for n, out, e in zip(names, outputs, ended, strict=True)))


def test_texts_are_compared_up_to_their_first_difference() -> None:
    margins = [9.0, 9.0, 9.0, 9.0, 1e-6, 9.0]
    trace = a_trace([0.0] * 6, margins)
    ours = log((5, 6, 7), (5, 6, 7))
    assert against_plain(ours, log((5, 6, 7), (5, 6, 7)), trace) == ()
    (one,) = against_plain(ours, log((5, 6, 7), (5, 9, 1)), trace)
    assert (one.text, one.position, one.token, one.other, one.kind) == ("b", 1, 6, 9, "tie")
    (one,) = against_plain(ours, log((5, 6, 8), (5, 6, 7)), trace)
    assert (one.text, one.position, one.kind) == ("a", 2, "fault")
    # A small margin is no excuse for a token far below both.
    (one,) = against_plain(ours, log((5, 6, 7), (5, 9, 1)), a_trace([0, 0, 0, 0, 2.0, 0], margins))
    assert one.kind == "fault"


def test_a_text_that_ends_early_differs_and_one_cut_at_its_limit_does_not() -> None:
    trace = a_trace([0.0] * 6, [9.0] * 6)
    ours = log((5, 6, 7), (5, 6, 7))
    assert against_plain(ours, log((5, 6), (5, 6, 7, 8)), trace) == ()
    (one,) = against_plain(ours, log((5, 6), (5, 6, 7), ended=(True, False)), trace)
    assert (one.position, one.other, one.kind) == (2, -1, "fault")
    stopped = replace(ours, requests=(replace(ours.requests[0], ended=True), ours.requests[1]))
    (one,) = against_plain(stopped, log((5, 6, 7, 8), (5, 6, 7)), trace)
    assert (one.position, one.token, one.kind) == (3, None, "unknown")


def test_what_cannot_be_compared_is_refused() -> None:
    trace = a_trace([0.0] * 4)
    only = CallLog((Request("a", (1,), (5, 6)),))
    plain = Trace({"log_target": np.full(2, -1.0), "log_draft": np.full(2, -1.0)}, (TextInfo("a", 2),))
    all_refused(
        {
            "requests": (lambda: against_plain(log((5, 6), (5, 6)), only, trace), TextError, "request 'b' is not in"),
            "columns": (lambda: divergences(plain), TraceError, "lacks target_gap, target_margin"),
            "dtype": (lambda: rounding_bound(1.0, "int8"), SettingError, "dtype is 'int8'"),
        }
    )()
    assert set(ROUNDINGS) == set(UNIT_ROUNDING)
