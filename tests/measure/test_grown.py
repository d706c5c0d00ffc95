"""Trees that a draft's confidences grow: by models, by heads, in traces, and in the commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Parallel, Shape
from spectheory.errors import SettingError, SpectheoryError, TextError
from spectheory.measure import MeasureSettings, ModelPair, fingerprint_of_run, grown, measure, teacher_forced
from spectheory.measure.decoders import Method, decode
from spectheory.measure.decoders.methods import _grow_tree as growing
from spectheory.measure.decoders.tree import DraftTree
from spectheory.measure.grown import _CachedText, _matches, _most_probable, _RereadText, grown_columns
from spectheory.measure.heads.base import AutoregressiveReading, HiddenStates, ParallelReading
from spectheory.measure.reading import Reading
from spectheory.measure.validation import Validation, validate
from spectheory.prediction import Prediction, predict
from spectheory.prediction.paths import calls_of_texts
from spectheory.prompts import Prompt
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES
from tests.decoders.test_drafts import drafted, paths_of
from tests.made_up import each
from tests.toy_heads import TOYS, ToyHead, with_head

V = 7
Branch = tuple[int, ...]
Pmf = Callable[[Branch], Sequence[Fraction]]
SHAPES = [(1, 1, 1), (4, 2, 3), (6, 3, 2), (9, 2, 4), (3, 7, 3), (20, 9, 2)]


def enumerated(pmf: Pmf, nodes: int, top: int, depth: int) -> set[Branch]:
    """The tree from the exact confidences of all paths: the most confident of each level, then of all."""
    every = _below(pmf, {(): Fraction(1)}, depth)
    paths: dict[Branch, Fraction] = {}
    expanded: list[Branch] = [()]
    for _ in range(depth):
        level: dict[Branch, Fraction] = {}
        for path in expanded:
            children = sorted((child for child in every if child[:-1] == path and child), key=lambda c: (-every[c], c))
            level |= {child: every[child] for child in children[:top] if every[child] > 0}
        place = {path: i for i, path in enumerate(level)}
        expanded = sorted(sorted(level, key=lambda path: (-level[path], place[path]))[:top], key=place.__getitem__)
        paths |= level
    order = {path: i for i, path in enumerate(paths)}
    return set(sorted(paths, key=lambda path: (-paths[path], len(path), order[path]))[:nodes])


def _below(pmf: Pmf, level: dict[Branch, Fraction], depth: int) -> dict[Branch, Fraction]:
    every = dict(level)
    for _ in range(depth):
        level = {
            (*path, token): weight * mass for path, weight in level.items() for token, mass in enumerate(pmf(path))
        }
        every |= level
    return every


def exact(seed: int, path: Branch, size: int = V) -> list[Fraction]:
    """A pmf after a path in eighths, so that confidences tie often, and some are 0."""
    rng = np.random.default_rng([seed, *path])
    counts = rng.multinomial(8, np.full(size, 1 / size))
    return [Fraction(int(count), 8) for count in counts]


class Toy:
    """A draft with these exact pmfs that extends trees at places, each of which begins with another path."""

    def __init__(self, seed: int) -> None:
        self.seed, self.nodes = seed, list[Branch]()

    def first(self, places: Tensor) -> Tensor:
        """After the places."""
        return self._after([(int(place),) for place in places])

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """After new nodes."""
        paths = [
            (*(self.nodes[parent] if parent >= 0 else (-1 - parent,)), token)
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
        self.nodes += paths
        return self._after(paths)

    def forget(self) -> None:
        """Begin again."""
        self.nodes = []

    def _after(self, paths: Sequence[Branch]) -> Tensor:
        """Probabilities, so that ties stay ties; :func:`largest` takes them as they are."""
        return torch.tensor([[float(p) for p in exact(self.seed, path)] for path in paths], dtype=torch.float64)


def largest(pmfs: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The most probable tokens of pmfs; ties: lowest id first."""
    values, ids = pmfs.sort(dim=-1, descending=True, stable=True)
    return values[:, :count], ids[:, :count]


def depth_of(path: Branch, tree: set[Branch]) -> int:
    """How deep a path lies in a tree."""
    return max((i for i in range(len(path) + 1) if i == 0 or path[:i] in tree), default=0)


@each("nodes, top, depth", [shape for shape in SHAPES if shape[1] <= 3 or shape[2] <= 3])
def test_the_tree_is_that_of_all_paths_enumerated(
    nodes: int, top: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder's and the measured one, with ties and with probabilities of 0; confidences are exact in floats."""
    monkeypatch.setattr(grown, "_most_probable", largest)
    shape, places = Grown(nodes, top, depth), [3, 5, 11]
    rng = np.random.default_rng(nodes)
    depths: set[int] = set()
    for seed in range(6):
        trees = [
            enumerated(lambda path, at=at, seed=seed: exact(seed, (at, *path)), nodes, top, depth) for at in places
        ]
        for at, tree in zip(places, trees, strict=True):
            decoded_tree = DraftTree()
            drive(decoded_tree, shape, lambda path, at=at, seed=seed: exact(seed, (at, *path)))
            assert paths_of(decoded_tree) == tree
        for _ in range(12):
            texts = [_text(rng, tree, depth) for tree in trees]
            depths_on_text = _matches(Toy(seed), torch.tensor(places), torch.tensor(texts), shape, V)
            assert depths_on_text.tolist() == [depth_of(text, tree) for text, tree in zip(texts, trees, strict=True)]
            depths |= set(depths_on_text.tolist())
    assert len(depths) >= min(depth, 2)


def _text(rng: np.random.Generator, tree: set[Branch], depth: int) -> Branch:
    """A path of the tree, gone on at random."""
    known = sorted(tree) or [()]
    start = known[rng.integers(len(known))]
    return (*start, *(int(t) for t in rng.integers(V, size=depth - len(start))))


def drive(tree: DraftTree, shape: Grown, pmf: Pmf, room: int = 99, ends: frozenset[int] = frozenset()) -> None:
    drafting = growing(tree, shape, room, ends)
    wanted = next(drafting, None)
    while wanted is not None:
        paths = [tuple(tree.tokens[on] for on in tree.path(node)) for node in wanted]
        try:
            wanted = drafting.send([np.array([float(p) for p in pmf(path)]) for path in paths])
        except StopIteration:
            break


def test_what_lies_too_deep_or_after_an_end_is_left_out() -> None:
    shape, ends = Grown(12, 3, 4), frozenset({2, 5})
    for seed in range(5):
        whole, cut = DraftTree(), DraftTree()
        passes = drafted(whole, growing(whole, shape, 9, frozenset()), seed)
        assert passes == len(shape.passes)
        drafted(cut, growing(cut, shape, 2, ends), seed)
        kept = {path for path in paths_of(whole) if len(path) <= 2 and not ends & set(path[:-1])}
        assert paths_of(cut) == kept != paths_of(whole)


def test_ties_take_the_lowest_id() -> None:
    logits = torch.tensor([[0.0, 2.0, 1.0, 2.0, 1.0, 1.0], [1.0] * 6])
    masses, ids = _most_probable(logits, 3)
    assert ids.tolist() == [[1, 3, 2], [0, 1, 2]]
    torch.testing.assert_close(masses, torch.softmax(logits.double(), -1).gather(1, ids))


@pytest.fixture(scope="module")
def texts(tiny_pair: ModelPair) -> list[tuple[Tensor, Tensor]]:
    prompts = [torch.tensor([1, 2, 3]), torch.tensor([9, 8, 7, 6, 5])]
    made = decode(tiny_pair, prompts, Method("plain"), tokens=40, stop_at_end=False, seed=3)
    return [(prompt, one.output_ids) for prompt, one in zip(prompts, made, strict=True)]


def brute_force(pair: ModelPair, prompt: Tensor, output: Tensor, shape: Grown) -> list[int]:
    """Start by start, path by path, each read from its first token."""
    depths = []
    for start in range(len(output)):
        before = torch.cat([prompt, output[:start]])

        def pmf(path: Branch, before: Tensor = before) -> Any:
            ids = torch.cat([before, torch.tensor(path, dtype=torch.int64)])
            return Reading(pair.draft, pair.vocabulary).read(ids[None])[0, -1].double().softmax(-1).tolist()

        tree = DraftTree()
        drive(tree, shape, pmf)
        depths.append(depth_of(tuple(output[start : start + shape.depth].tolist()), paths_of(tree)))
    return depths


@each("size", ["6x2x3", "12x4x4"])
def test_measured_is_brute_force(tiny_pair: ModelPair, texts: list[tuple[Tensor, Tensor]], size: str) -> None:
    """With a cache and any chunk, and without a cache."""
    shape, (prompt, output) = Grown.sized_as(size), texts[0]
    expected = brute_force(tiny_pair, prompt, output[:12], shape)
    assert len(set(expected)) > 1
    for chunk in (1, 7, 256):
        measured = grown_columns(tiny_pair, prompt, output[:12], shape, chunk=chunk)["grown_match"]
        assert measured.tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grown, "why_uncached", lambda model: "has no cache")
        assert grown_columns(tiny_pair, prompt, output[:12], shape)["grown_match"].tolist() == expected


def test_the_cached_and_the_reread_text_say_the_same(tiny_pair: ModelPair) -> None:
    both = [kind(tiny_pair.draft, tiny_pair.vocabulary) for kind in (_CachedText, _RereadText)]
    ids, places = torch.tensor([4, 9, 1, 3, 3]), torch.tensor([4])
    logits = []
    with torch.inference_mode():
        for text in both:
            text.read(ids)
            first = text.first(places)
            second = text.extend(torch.tensor([-5, -5]), torch.tensor([7, 8]))
            third = text.extend(torch.tensor([1, 0, 1]), torch.tensor([5, 6, 2]))
            text.forget()
            again = text.extend(torch.tensor([-5]), torch.tensor([7]))
            assert torch.equal(again.argmax(-1), second[:1].argmax(-1))
            logits.append(torch.cat([first, second, third, again]))
    torch.testing.assert_close(logits[0], logits[1], rtol=1e-4, atol=1e-4)


@pytest.mark.evidence
@each("temperature", [0.0, 1.0])
@each("size", ["6x2x3", "14x4x5"])
def test_counted_calls_are_those_expected(tiny_pair: ModelPair, size: str, temperature: float) -> None:
    """Exactly, given the text; with another draft's trees they differ (the control)."""
    shape, sampling = Grown.sized_as(size), Sampling(temperature)
    prompts = [torch.tensor([1 + i, 2, 3 * i + 1]) for i in range(5)]
    made = decode(tiny_pair, prompts, Method("grown", shape), tokens=40, sampling=sampling, seed=1, batch=3)
    other = replace(tiny_pair, draft=_perturbed(tiny_pair))
    counted = [len(one.calls) for one in made]

    def expected(pair: ModelPair) -> list[float]:
        return [
            _calls(grown_columns(pair, prompt, one.output_ids, shape), len(one.output_ids), shape)
            for prompt, one in zip(prompts, made, strict=True)
        ]

    assert counted == expected(tiny_pair)
    assert counted != expected(other)
    assert all(call.drafted <= shape.nodes and call.depth <= shape.depth for one in made for call in one.calls)


def _calls(columns: Any, tokens: int, shape: Grown) -> float:
    survival = PATH_RULES["grown"].path_survival(columns, shape.depth)
    return float(calls_of_texts(survival, np.array([tokens])).expected[0])


def _perturbed(pair: ModelPair) -> Any:
    """The draft with its embeddings, which are its output matrix too, moved by noise."""
    import copy

    network = copy.deepcopy(pair.draft.network)
    weight = network.get_input_embeddings().weight
    with torch.no_grad():
        weight += 0.3 * weight.std() * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    return replace(pair.draft, network=network)


def test_a_chain_is_the_tree_of_top_one(tiny_pair: ModelPair, texts: list[tuple[Tensor, Tensor]]) -> None:
    """Grown(k, 1, k) is the chain of first choices: its survival is that of the rule argmax."""
    prompt, output = texts[1]
    survival = PATH_RULES["grown"].path_survival(grown_columns(tiny_pair, prompt, output, Grown(4, 1, 4)), 4)
    chain = PATH_RULES["argmax"].path_survival(teacher_forced(tiny_pair, prompt, output, Sampling(), race=False), 4)
    inside = np.arange(len(output))[:, None] + np.arange(1, 5) <= len(output)
    assert np.array_equal(survival[inside], chain[inside])
    assert 0 < survival[inside].mean() < 1


@each(
    "wrong, said",
    [
        (lambda: Grown(0, 2, 2), "must be"),
        (lambda: Grown(7, 2, 2), "its passes find 6 nodes"),
        (lambda: Grown.sized_as("7x2"), "written as NODESxTOPxDEPTH|NODESxTOPxDEPTH"),
        (lambda: Grown(4, 2, 2).tree(), "no fixed tree"),
        (lambda: Method("token", Grown(4, 2, 2)), "token is asked for grown 4x2x2"),
        (lambda: Method("topk", Grown(4, 2, 2)), "topk is asked for grown 4x2x2"),
    ],
)
def test_refusals(wrong: Callable[[], Any], said: str) -> None:
    with pytest.raises(SpectheoryError, match=said) as refused:
        wrong()
    assert "\n" not in str(refused.value)


def test_trees_that_do_not_fit_are_refused(tiny_pair: ModelPair) -> None:
    prompt, output = torch.tensor([1, 2]), torch.ones(120, dtype=torch.int64)
    with pytest.raises(TextError, match="use --tokens 116 at most"):
        grown_columns(tiny_pair, prompt, output, Grown(4, 1, 10))
    with pytest.raises(SettingError, match="at most 64"):
        grown_columns(tiny_pair, prompt, output, Grown(4, 1, 65))
    with pytest.raises(TextError, match="use --tokens 116 at most"):
        decode(tiny_pair, [prompt], Method("grown", Grown(4, 1, 10)), tokens=120)


OF_HEADS = Grown(10, 3, 4)
PROMPT = torch.arange(1, 12) % 64


def one_call(pair: ModelPair, before: Tensor, path: Branch) -> Tensor:
    """The head's logits after a path of drafts, from the text before the call alone."""
    head = pair.draft.network
    with HiddenStates(pair.target.network, head.layers) as states, torch.inference_mode():
        pair.target.network(before[None, :-1], use_cache=False)
    reading = head.reading()
    reading.read(states.take()[0], before[1:])
    last = torch.tensor([len(before) - 2])
    if isinstance(reading, ParallelReading):
        return reading.block(last, OF_HEADS.depth)[0, len(path)]
    assert isinstance(reading, AutoregressiveReading)
    logits, parent = reading.first(last), -1 - last
    for depth, token in enumerate(path):
        logits = reading.extend(parent, torch.tensor([token]))
        parent = torch.tensor([depth])
    return logits[0]


def followed(pair: ModelPair, calls: int) -> Tensor:
    """A text that follows the head's most probable drafts for a whole call each time."""
    text = PROMPT
    for _ in range(calls):
        path: Branch = ()
        for _ in range(OF_HEADS.depth):
            path = (*path, int(one_call(pair, text, path).argmax()))
        text = torch.cat([text, torch.tensor(path)])
    return text[len(PROMPT) :]


@each("kind", TOYS)
def test_measured_is_one_call_after_the_other(tiny_pair: ModelPair, kind: type[ToyHead]) -> None:
    pair = with_head(tiny_pair, kind)
    output = followed(pair, 4)
    expected = []
    for start in range(len(output)):
        before, tree = torch.cat([PROMPT, output[:start]]), DraftTree()
        drive(tree, OF_HEADS, lambda path, before=before: one_call(pair, before, path).double().softmax(-1).tolist())
        follows = tuple(output[start : start + OF_HEADS.depth].tolist())
        expected.append(depth_of(follows, paths_of(tree)))
    assert len(set(expected)) > 2
    assert max(expected) == OF_HEADS.depth
    for chunk in (4, 256):
        measured = grown_columns(pair, PROMPT, output, OF_HEADS, chunk=chunk)["grown_match"]
        assert measured.tolist() == expected


@each("kind", TOYS)
@each("temperature", [0.0, 1.0])
@each("name", ["tiny_pair", "padded_pair"])
def test_counted_calls_of_heads_are_those_expected(
    name: str, kind: type[ToyHead], temperature: float, request: pytest.FixtureRequest
) -> None:
    """Exactly, given the text; the trees of the draft model of the pair expect others (the control)."""
    plain: ModelPair = request.getfixturevalue(name)
    pair, prompts = with_head(plain, kind), [PROMPT, PROMPT + 20]
    made = decode(pair, prompts, Method("grown", OF_HEADS), tokens=30, sampling=Sampling(temperature), seed=2, batch=2)

    def expected(of: ModelPair) -> list[float]:
        calls = []
        for prompt, one in zip(prompts, made, strict=True):
            survival = PATH_RULES["grown"].path_survival(
                grown_columns(of, prompt, one.output_ids, OF_HEADS), OF_HEADS.depth
            )
            calls.append(float(calls_of_texts(survival, np.array([len(one.output_ids)])).expected[0]))
        return calls

    counted = [len(one.calls) for one in made]
    assert counted == expected(pair)
    assert counted != expected(plain)


SHAPE = Grown(8, 2, 4)
PROMPTS = tuple(Prompt(f"q{i}", "", f"t{i} t{i + 1} t7") for i in range(1, 5))
GROWN = PATH_RULES["grown"]


@pytest.fixture(scope="module")
def trace(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("grown")
    return measure(tiny_pair, PROMPTS, MeasureSettings(tokens=24, grown=SHAPE.size), folder / "trace.parquet")


def predicted(trace: Trace) -> Prediction:
    return predict(trace, GROWN, SHAPE, ConstantRatio(0.1))


def test_the_trace_says_the_size_and_gives_the_calls(trace: Trace) -> None:
    assert trace.provenance["settings"]["grown"] == "8x2x4"
    match, calls, at = trace.columns["grown_match"], 0, 0
    for length in trace.lengths:
        start = 0
        while start < length:
            start += int(match[at + start]) + 1
            calls += 1
        at += length
    prediction = predicted(trace)
    assert prediction.tokens_per_call.best == pytest.approx(len(trace) / calls, rel=1e-12)
    assert 1 < prediction.tokens_per_call.best < SHAPE.depth + 1
    assert (prediction.shape, prediction.shape.listed, prediction.limits.decoding, prediction.limits.iid_channel) == (
        SHAPE,
    ) + (None,) * 3
    assert prediction.limits.text is None or prediction.limits.text.kind == "statistical"


def test_runs_without_trees_are_those_of_before(tiny_pair: ModelPair, trace: Trace, tmp_path: Path) -> None:
    """The fingerprint has the size where there is one; the other columns are the same with trees and without."""
    plain = MeasureSettings(tokens=24)
    marks = {fingerprint_of_run(tiny_pair, PROMPTS, replace(plain, grown=size)) for size in (None, "8x2x4", "8x2x3")}
    assert len(marks) == 3
    without = measure(tiny_pair, PROMPTS, plain, tmp_path / "trace.parquet")
    assert set(trace.columns) - set(without.columns) == {"grown_match"}
    assert all(np.array_equal(values, trace.columns[name]) for name, values in without.columns.items())


@pytest.mark.evidence
@pytest.mark.usefixtures("quick_latencies")
def test_a_validation_decodes_the_trees(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Given the text nothing is random: counted and expected calls are equal at every temperature."""
    how = MeasureSettings(tokens=12, grown=SHAPE.size)
    validation = validate(tiny_pair, PROMPTS[:2], Validation((), (SHAPE,), (0.0, 1.0), how), tmp_path)
    assert validation["comparisons"] == 2
    for at in validation["temperatures"]:
        (record,) = at["settings"]
        assert (record["rule"], record["shape"], record["nodes"]) == ("grown", "grown 8x2x4", 8)
        assert (record["expected"]["calls"], record["expected"]["deviation"]) == (record["calls"], 0)


def test_trees_of_a_parallel_head_are_the_measured_ones(trace: Trace) -> None:
    """A validation asks for the shape with its one pass: the same calls, drafted for less."""
    prediction = predict(trace, GROWN, SHAPE.by(Parallel()), ConstantRatio(0.1))
    assert (prediction.shape.passes, prediction.tokens_per_call) == ((4,), predicted(trace).tokens_per_call)
    assert prediction.speedup is not None
    assert prediction.speedup.best == pytest.approx(prediction.tokens_per_call.best / 1.1)


@each("shape, longest", [(Chain(3), 4), (Grown(4, 16, 2), 17), (Grown(2, 2, 5), 6), (SHAPE, 9)])
def test_latencies_reach_every_pass(shape: Shape, longest: int) -> None:
    """Trees that read more nodes, or more levels, than they keep."""
    assert Validation((), (shape,), (1.0,), MeasureSettings()).longest == longest


def _unnamed(trace: Trace) -> Trace:
    return replace(trace, provenance={**trace.provenance, "settings": {}})


def _without(trace: Trace) -> Trace:
    return replace(trace, columns={n: v for n, v in trace.columns.items() if n != "grown_match"})


@each(
    "ask, said",
    [
        (lambda trace: predict(trace, GROWN, Grown(8, 2, 3)), "measured trees of 8x2x4.*use grown:8x2x4"),
        (lambda trace: predict(trace, GROWN, Chain(3)), "the rule grown is asked for chain k=3"),
        (lambda trace: predict(trace, PATH_RULES["topk"], SHAPE), "use the rule grown"),
        (lambda trace: predict(_without(trace), GROWN, SHAPE), "measure with grown"),
        (lambda trace: predict(_unnamed(trace), GROWN, SHAPE), "no size of its trees"),
    ],
)
def test_refusals_of_commands(trace: Trace, ask: Callable[[Trace], Any], said: str) -> None:
    with pytest.raises(SpectheoryError, match=said) as refused:
        ask(trace)
    assert "\n" not in str(refused.value)


def test_predict_shows_them(trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.write(tmp_path / "trace.parquet")
    for more in ([], ["--rule", "grown"], ["--shape", "grown:8x2x4"]):
        assert main(["predict", str(tmp_path), "--c", "0.1", "--k-max", "2", "--all", *more]) == 0
        shown = capsys.readouterr().out
        assert "grown 8x2x4" in shown
        assert (" block " in shown) == (more == [])
    for more, said in (
        (["--shape", "grown:8x2x3"], "use grown:8x2x4"),
        (["--rule", "token", "--shape", "grown:8x2x4"], "rule grown"),
        (["--shape", "grown:8x2"], "write it as 16x4x5"),
    ):
        assert main(["predict", str(tmp_path), "--c", "0.1", *more]) == 2
        assert said in capsys.readouterr().err
    command = ["validate", "--out", str(tmp_path / "v"), "--grow", "8x2x4", "--shape", "grown:8x2x3"]
    assert main(command) == 2
    assert "validate each by itself" in capsys.readouterr().err
