"""ERSD along texts of the built-in target: a trial is a run, in which every text is decoded once by every shape.

Parameters are the recipe of the texts, ``shapes``, the paths of each draft tree by its label, and ``nodes_of``, the
labels of those whose nodes are counted one by one. The recipe: ``draft``, ``distilled`` or ``draft``; ``prompts``,
their places in the built-in file; ``continuations`` of each; ``tokens`` of each, to the last one; ``temperature`` of
both models; ``text_seed``.

Each position runs its full race, given that the text's token won the target's: no law of the rank is used. All shapes
of a run read the same ranks. Samples are ``LABEL: calls``, the calls that all texts of a run took together, and
``LABEL: node i``, how many of them accepted node i, counted from 1 in the order of
:func:`~simulations.simulators.trees.tree_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.counts import Mean, Moments, Tally
from simulations.draws import Floats, Words
from simulations.experiments.tasks import cache_by_text, simulator
from simulations.simulators.trees import tree_of
from simulations.verdicts.predictions import Predicted
from spectheory.distributions import Sampling
from spectheory.drafting import Tree
from spectheory.errors import SettingError
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prediction.paths import PathLaws, calls_and_visits, tree_survival
from spectheory.prompts import read_prompts
from spectheory.trace import RECORDED_RANKS
from spectheory.verification import RaceVerification

if TYPE_CHECKING:
    from torch import Tensor

    from spectheory.measure import ModelPair

Ints = NDArray[np.int64]
Children = list[dict[int, int]]
"""Of each node, the root first: its children by their ranks."""


# Continuations by the built-in target, the same for every simulator with the same recipe

RECIPE = ("draft", "prompts", "continuations", "tokens", "temperature", "text_seed")


class Text(NamedTuple):
    """Token ids of a prompt and of what the target wrote behind it."""

    prompt: Tensor
    output: Tensor


class Pmfs(NamedTuple):
    """What both models say along a text: target and draft, ``[N, V]``, and the text's tokens, ``[N]``."""

    target: Floats
    draft: Floats
    tokens: Any


@lru_cache(maxsize=2)
def models(draft: str) -> ModelPair:
    """The built-in pair with this draft, on one thread: with more, sums may round differently."""
    from spectheory.measure import load_pair

    import torch  # isort: skip  # behind the line that names the extra where it is missing

    torch.set_num_threads(1)
    return load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + draft), device="cpu")


@cache_by_text(4, only=RECIPE)
def texts(recipe: Mapping[str, Any]) -> tuple[Text, ...]:
    """The texts of a recipe, prompt by prompt; each prompt has a stream of its own."""
    from spectheory.measure import sample_continuations
    from spectheory.measure.tokens import encode_prompt

    made: list[Text] = []
    pair, prompts = models(recipe["draft"]), read_prompts(PROMPTS)
    for number in recipe["prompts"]:
        if not 0 <= number < len(prompts):
            raise SettingError(f"a prompt is {number}", limit=f"there are 0..{len(prompts) - 1}", remedy="name another")
        ids = encode_prompt(pair.tokenizer, prompts[number])
        outputs = sample_continuations(
            pair,
            ids,
            sampling(recipe),
            tokens=recipe["tokens"],
            count=recipe["continuations"],
            rng=np.random.default_rng(np.random.SeedSequence(recipe["text_seed"], spawn_key=(number,))),
            stop_at_end=False,
        )
        made += [Text(ids, output) for output in outputs]
    return tuple(made)


def sampling(recipe: Mapping[str, Any]) -> Sampling:
    """What turns both models' logits into pmfs."""
    return Sampling(temperature=recipe["temperature"])


def pmfs_along(recipe: Mapping[str, Any], text: Text) -> Pmfs:
    """Both models' pmfs at every token of a text, in their own precision, given what stands before it."""
    import torch

    from spectheory.measure.columns.pmf import log_pmf
    from spectheory.measure.reading import Reading, read_last

    pair, ids = models(recipe["draft"]), torch.cat([text.prompt, text.output[:-1]])
    rows = []
    for model in (pair.target, pair.draft):
        (logits,) = read_last(Reading(model, pair.vocabulary), ids, len(text.output), len(text.output))
        rows.append(log_pmf(logits.float(), sampling(recipe)).double().exp().numpy())
    return Pmfs(rows[0], rows[1], text.output.numpy())


# Their races


@simulator("model-races", version="1")
def model_races(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A run through texts of the built-in target, a race at every position (§7, R2)."""
    rng = np.random.default_rng([int(word) for word in state])
    shapes = {label: tree_of(paths) for label, paths in parameters["shapes"].items()}
    children = {label: children_of(shape) for label, shape in shapes.items()}
    accepted = {label: np.zeros((trials, shape.nodes + 1), dtype=np.int64) for label, shape in shapes.items()}
    for text in texts(parameters):
        target, draft, tokens = pmfs_along(parameters, text)
        for run in range(trials):
            ranks = raced_ranks(target, draft, tokens, rng).tolist()
            for label in shapes:
                accepted[label][run] += decoded(children[label], ranks)
    samples = {f"{label}: calls": counts[:, 0] for label, counts in accepted.items()}
    for label in parameters["nodes_of"]:
        samples |= {f"{label}: node {node}": accepted[label][:, node] for node in range(1, shapes[label].nodes + 1)}
    return Tally.of(trials, samples=samples)


def raced_ranks(target: Floats, draft: Floats, tokens: Any, rng: np.random.Generator) -> Ints:
    r"""The rank of each token in the draft's race, given that it won the target's; 0 where the draft cannot draw it.

    The winner's clock is :math:`E_x = p_x u`, u ~ Exp(1). The others ring later, :math:`E_y > p_y u`, and the excess is
    Exp(1) again. The rank is the place of :math:`E_x/q_x` among all :math:`E_y/q_y`, compared by cross-multiplication.
    """
    rows = np.arange(len(target))
    first = rng.standard_exponential(len(target))
    clocks = rng.standard_exponential(target.shape)
    clocks += target * first[:, None]
    winner_clock = target[rows, tokens] * first
    clocks[rows, tokens] = winner_clock
    own_draft = draft[rows, tokens]
    before = np.count_nonzero(clocks * own_draft[:, None] < winner_clock[:, None] * draft, axis=1)
    return np.where(own_draft > 0, 1 + before, 0)


def children_of(shape: Tree) -> Children:
    """The table of a tree's children."""
    children: Children = [{} for _ in range(shape.nodes + 1)]
    for node, (parent, rank) in enumerate(zip(shape.parents.tolist(), shape.ranks.tolist(), strict=True), start=1):
        children[parent + 1][rank] = node
    return children


def decoded(children: Children, ranks: Sequence[int]) -> list[int]:
    """Calls that a text takes, and how often each node is accepted, ``[nodes + 1]``; a call ends where the text ends.

    The token that leaves the tree is recovered, or a bonus token below a leaf; the next call starts after it.
    """
    accepted = [0] * len(children)
    at, end = 0, len(ranks)
    while at < end:
        node: int | None = 0
        while node is not None:
            accepted[node] += 1
            if at == end:
                break
            node = children[node].get(ranks[at])
            at += 1
    return accepted


# What theory says


@cache_by_text(8)
def path_theorem(recipe: Mapping[str, Any]) -> Tally:
    """The expected counts of "model-races" (§7, exact), a sample for each text, by the names of the counts."""
    shapes = {label: tree_of(paths) for label, paths in recipe["shapes"].items()}
    rows: list[dict[str, float]] = []
    for law in _rank_laws(recipe):
        row = {f"P(R = {r + 1})": float(share) for r, share in enumerate(law.mean(axis=0))}
        for label, shape in shapes.items():
            row |= expected_counts(label, shape, law, nodes=label in recipe["nodes_of"])
        rows.append(row)
    return Tally.of(len(rows), samples={name: [row[name] for row in rows] for name in rows[0]})


def _rank_laws(parameters: Mapping[str, Any]) -> Iterator[Floats]:
    """P(R = r | text) at every position of each text, ``[N, 8]``, from one reading by both models."""
    from spectheory.measure import teacher_forced

    pair = models(parameters["draft"])
    for text in texts(parameters):
        columns = teacher_forced(pair, text.prompt, text.output, sampling(parameters), sampled=True)
        yield RaceVerification().rank_law(columns, RECORDED_RANKS)


def expected_counts(label: str, shape: Tree, law: Floats, *, nodes: bool) -> dict[str, float]:
    """Expected calls of a text with a law ``[N, A]`` of ranks along it, and how many of them accept each node."""
    survival, _ = tree_survival(law, shape)
    calls, starts = calls_and_visits(survival, np.array([len(law)]))
    expected = {f"{label}: calls": float(calls[0])}
    weights: dict[tuple[int, ...], Floats] = {(): np.ones(len(law))}
    for number, path in enumerate(shape.paths if nodes else [], start=1):
        weights[path] = PathLaws(law).times(weights[path[:-1]], len(path), path[-1])
        expected[f"{label}: node {number}"] = float(starts @ weights[path])
    return expected


OFTEN = 1000
"""Counts are judged if theory expects so many in all runs: Student's verdict is too strict on rarer ones."""


def path_predictions(theorem: Tally, runs: int) -> tuple[Predicted, ...]:
    """Sums over the texts of what the theorem expects of a run, if it is :data:`OFTEN` or more in all `runs`."""
    return tuple(
        Predicted(name, "§7", Mean(name), float(moments.total))
        for name, moments in theorem.moments.items()
        if ":" in name and runs * moments.total >= OFTEN
    )


def all_texts(tallies: Iterable[Tally]) -> Tally:
    """The theorem's tallies of several groups of texts as one."""
    parts = [Tally(tally.trials, tally.counts, tally.moments) for tally in tallies]
    return sum(parts[1:], parts[0])


def side_by_side(tallies: Iterable[Tally]) -> Tally:
    """Equally many runs through independent groups of texts, as runs through all texts: means and variances add up."""
    parts = list(tallies)
    runs = parts[0].trials
    made = {}
    for name in parts[0].moments:
        each = [tally.moments[name] for tally in parts]
        total = sum((m.total for m in each), Fraction(0))
        spread = sum((m.squares - m.total**2 / runs for m in each), Fraction(0))
        made[name] = Moments(runs, total, spread + total**2 / runs)
    return Tally(runs, {}, made)
