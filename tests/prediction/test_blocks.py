"""Large traces: predicted block by block, choices made on a sample of their texts, the columns left in their file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spectheory import kernels
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain, KAry, Shape, Tree, read_stop
from spectheory.errors import SettingError
from spectheory.prediction import plan
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.paths import PathLaws, calls_of_chains, calls_of_laws, visits_of
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.prediction.text_limit import TextLimit
from spectheory.prediction.trace_limits import TraceLimits, _visits_of_calls
from spectheory.trace import Trace, record, sample
from spectheory.trace.sample import of_texts, spread
from spectheory.verification import PATH_RULES, LookupMatch, RecursiveRejection
from tests.commands import answer
from tests.prediction.blocks_made import LENGTHS, SAME, made_up, numbers, of_head

RANKED: tuple[ShapeRequest, ...] = (Chain(1), Chain(4), KAry((2, 2)), BestTree(5))
CHAINS: tuple[ShapeRequest, ...] = (Chain(1), Chain(4))
ASKED: list[tuple[str, tuple[ShapeRequest, ...]]] = [
    *((name, CHAINS) for name in ("token", "block", "lookup", "argmax")),
    *((name, RANKED) for name in ("race", "recursive", "topk")),
    ("token", (*CHAINS, Chain(4, stop=read_stop("token<0.3")))),
]


@pytest.mark.parametrize("prefill", [False, True])
def test_many_blocks_say_what_one_says(monkeypatch: pytest.MonkeyPatch, prefill: bool) -> None:
    """Every rule, drafts by position and by start, chains, trees, searched trees and drafts that decide."""
    checked = 0
    for trace in (made_up(), of_head()):
        for name, shapes in ASKED:
            rule = PATH_RULES[name]
            needed = [*rule.needs, *([rule.recorded_in] if shapes is RANKED else [])]  # type: ignore[attr-defined]
            if rule.missing_columns(trace.columns) or not {*needed} <= set(trace.columns):
                continue
            asked = {"rules": [rule], "shapes": shapes, "prefill_emits_token": prefill}
            monkeypatch.undo()
            whole = numbers(plan(trace, ConstantRatio(0.1), **asked))  # type: ignore[arg-type]
            monkeypatch.setattr(record, "BLOCK", 31)
            assert len(list(trace.blocks())) > 5
            np.testing.assert_allclose(numbers(plan(trace, ConstantRatio(0.1), **asked)), whole, rtol=SAME)  # type: ignore[arg-type]
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("made", [made_up, of_head])
def test_plans_that_share_limits_say_what_each_says(made: Callable[[], Trace]) -> None:
    """One after the other, with and without the prompt's token; the limits of another trace are refused."""
    trace = made()
    limits = TraceLimits(trace)
    for prefill in (False, True):
        for names, shapes in ((("token", "block"), CHAINS), (("race", "lookup"), (Chain(4), Chain(2)))):
            rules = [PATH_RULES[name] for name in names if not PATH_RULES[name].missing_columns(trace.columns)]
            alone, together = (
                plan(trace, rules=rules, shapes=shapes, prefill_emits_token=prefill, limits=given)
                for given in (None, limits)
            )
            np.testing.assert_allclose(numbers(together), numbers(alone), rtol=SAME)
    with pytest.raises(SettingError, match="another trace"):
        plan(made(), shapes=CHAINS, limits=limits)


def test_blocks_are_whole_texts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = made_up()
    blocks = list(trace.blocks(["kl"], positions=31))
    assert [text for block in blocks for text in block.texts] == list(trace.texts)
    assert max(len(block) for block in blocks if len(block.texts) > 1) <= 31
    assert {name for block in blocks for name in block.columns} == {"kl", "log_target", "log_draft"}
    np.testing.assert_array_equal(np.concatenate([block.columns["kl"] for block in blocks]), trace.columns["kl"])
    assert list(trace.blocks(["kl"])) == [trace]


# Compiled loops and the arrays that they stand for


def arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "pays", lambda positions: False)


def test_compiled_loops_say_what_arrays_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains, trees by position and by start, and visits; texts of one token, and of more than a loop takes at once."""
    pytest.importorskip("numba")
    rng, lengths = np.random.default_rng(0), np.array([1, 2, 3, 5, 700, 1, 40, 6000])
    survival = np.sort(rng.random((int(lengths.sum()), 9)), axis=1)[:, ::-1]
    tree = Tree.from_paths([(1,), (2,), (1, 1), (1, 2), (1, 1, 1), (4,), (4, 3), (1, 1, 1, 2)])
    laws = [PathLaws(rng.dirichlet(np.ones(5), (len(survival), *deep))[..., :4]) for deep in ((), (4,))]
    assert kernels.pays(len(survival))
    for prefill in (False, True):
        at = {"prefill_emits_token": prefill}

        def results() -> list[np.ndarray]:
            chains = calls_of_chains(survival, lengths, [1, 4, 9], **at)  # noqa: B023
            trees = [calls_of_laws(law, tree, lengths, **at) for law in laws]  # noqa: B023
            of_chains = [part for k in (1, 4, 9) for part in (chains[k].expected, chains[k].full)]
            of_trees = [part for calls, first in trees for part in (calls.expected, calls.full, first)]
            return [*of_chains, *of_trees, visits_of(survival, lengths, **at)]  # noqa: B023

        ours = results()
        with monkeypatch.context() as patched:
            arrays_alone(patched)
            for one, other in zip(ours, results(), strict=True):
                np.testing.assert_allclose(one, other, rtol=SAME, atol=SAME)
    off = calls_of_chains(survival * (1 - 1e-6), lengths, [4])[4].expected
    assert np.abs(off / calls_of_chains(survival, lengths, [4])[4].expected - 1).max() > 1e3 * SAME


def test_compiled_limits_and_copies_say_what_arrays_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """B6 over all starts and over those of prompt lookup, and the calls by the tokens that they copy."""
    pytest.importorskip("numba")
    trace, rule, ks = made_up((900,) * 5 + (1, 2, 300)), LookupMatch(), [1, 3, 8]
    most = np.minimum(trace.most_tokens, trace.lengths + 3)

    def results() -> list[float]:
        limit = TextLimit(Prompts(trace.texts), trace, ks)
        of_calls = limit.means([(k, _visits_of_calls(rule, Chain(k), False)) for k in ks], rule.needs)
        every = [limit.at(k) for k in ks] + of_calls
        return [end for each in every if each for end in (each.low, each.best, each.high)]

    copies = rule.calls_by_drafted(trace.columns, trace.lengths, most, 4, first=1)
    assert kernels.pays(len(trace))
    assert len(results()) == 18
    ours = results()
    arrays_alone(monkeypatch)
    monkeypatch.setattr("spectheory.kernels.installed", lambda: False)
    np.testing.assert_allclose(ours, results(), rtol=SAME)
    np.testing.assert_array_equal(copies, rule.calls_by_drafted(trace.columns, trace.lengths, most, 4, first=1))


@pytest.mark.parametrize("least", [0.0, 640.0, 720.0])
def test_b6_of_improbable_tokens_is_finite(monkeypatch: pytest.MonkeyPatch, least: float) -> None:
    """Compiled or not, thresholds and walks whose exponentials are no floats give what arrays give."""
    pytest.importorskip("numba")
    surprisals = least + np.random.default_rng(3).exponential(size=(6, 800))
    trace = Trace.from_log_probabilities([(-row, -row) for row in surprisals])
    assert kernels.pays(len(trace))
    limit = TextLimit(Prompts(trace.texts), trace, [1, 4])
    ours = [limit.at(k) for k in (1, 4)]
    arrays_alone(monkeypatch)
    limit = TextLimit(Prompts(trace.texts), trace, [1, 4])
    for one, other in zip(ours, [limit.at(k) for k in (1, 4)], strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_allclose([one.low, one.best, one.high], [other.low, other.best, other.high], rtol=SAME)
        assert np.isfinite(one.high)


# Choices on a sample


def test_a_sample_has_texts_of_every_group() -> None:
    rng = np.random.default_rng(2)
    lengths, groups = rng.integers(1, 50, 400), rng.integers(0, 4, 400)
    chosen = spread(lengths, groups, 1000)
    shares = [int(lengths[chosen & (groups == group)].sum()) for group in range(4)]
    assert 0.6 * 250 < min(shares) <= max(shares) < 1.5 * 250
    assert spread(lengths, groups, int(lengths.sum())).all()
    assert spread(np.array([500, 500, 9]), np.array([0, 1, 0]), 10).tolist() == [True, True, False]


def test_the_texts_of_a_sample_keep_their_rows() -> None:
    trace = made_up()
    chosen = np.arange(len(LENGTHS)) % 3 == 1
    sample = of_texts(trace, chosen, ["kl"])
    rows = np.repeat(chosen, trace.lengths)
    np.testing.assert_array_equal(sample.columns["kl"], trace.columns["kl"][rows])
    assert [text.id for text in sample.texts] == [
        text.id for text, taken in zip(trace.texts, chosen, strict=True) if taken
    ]
    assert of_texts(trace, np.ones(len(LENGTHS), bool)) is trace


def test_trees_of_a_large_trace_are_found_on_the_sample_and_scored_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text is scored by the tree that the sampled texts of other prompts give."""
    monkeypatch.setattr(sample, "CHOSEN_ON", 80)
    trace, rule = made_up(), RecursiveRejection()
    (calls,) = calls_by_shape(trace, rule, [BestTree(3)])
    part = Prompts(trace.texts).folds(4)
    chosen = spread(trace.lengths, part)
    assert 4 <= chosen.sum() < len(chosen)
    assert calls.shape == searched(of_texts(trace, chosen), rule, 3)
    for number in range(4):
        tree = searched(of_texts(trace, chosen & (part != number)), rule, 3)
        (scored,) = calls_by_shape(trace, rule, [tree])
        inside = part == number
        np.testing.assert_allclose(calls.calls.expected[inside], scored.calls.expected[inside], rtol=SAME)


SMALL = {
    "predict": ["--c", "0.1", "--k-max", "2", "--rule", "recursive"],
    "plan": ["--c", "0.1", "--k-max", "2", "--nodes-max", "1"],
    "bounds": [],
}


@pytest.mark.parametrize("command", SMALL)
def test_an_answer_says_that_its_choices_are_made_on_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """How many tokens the sample has; of a trace no larger than that nothing is said."""
    made_up().write(tmp_path / "trace.parquet")
    asked = [command, tmp_path, *SMALL[command]]
    whole = answer(capsys, *asked)
    assert not any("sample of whole texts" in note for note in whole["notes"])
    assert "chosen_on" not in whole
    monkeypatch.setattr(sample, "CHOSEN_ON", 80)
    content = answer(capsys, *asked)
    groups = [Prompts(made_up().texts).folds(most) for most in (2, 4)]
    lengths = made_up().lengths
    fewest = min(int(lengths[spread(lengths, group)].sum()) for group in groups)
    assert fewest < lengths.sum()
    (note,) = (note for note in content["notes"] if "sample of whole texts" in note)
    assert f"{fewest:,} tokens or more" in note
    assert content.get("chosen_on") == (fewest if command == "predict" else None)


def searched(trace: Trace, rule: RecursiveRejection, nodes: int) -> Shape:
    (calls,) = calls_by_shape(trace, rule, [BestTree(nodes)])
    return calls.shape


# Columns that stay in their file
