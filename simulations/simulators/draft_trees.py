"""Draft trees of a drafter that knows the draft alone, along text of the built-in target (B8): a trial is a start.

A trial draws a prompt, a start and a continuation by the target, as in :mod:`simulations.simulators.model_trees`. From
the start two trees of P prefixes are grown: T_p, the heaviest under the target, and T_q, the heaviest under the draft.
Both models weigh the nodes of both.

Parameters are ``draft``, the name of a built-in model; ``capacities``, ascending numbers P; ``thresholds``, one t in
nats for each; ``starts``: a start lies uniformly at 0 to ``starts`` - 1 tokens after the prompt. Samples, for each P:

- ``best P=1``, ``drafted P=1``: probability under the target of T_p and of T_q; ``loss P=1``: their difference;
- ``claimed P=1``: probability of T_q under the draft, what the drafter itself expects;
- ``bound P=1``: sum of (p - q)+ over T_p without T_q and of (q - p)+ over T_q without T_p; ``loss less bound P=1``;
- ``depth P=1``: how deep the text lies in T_q; ``depth less drafted P=1``;
- ``text P=1``: the text's part of B6, the sum over i <= P of (1 - e^(S_i - t))+; ``drafted less text P=1``.

Draws of a trial, in order: a uniform for the prompt, one for the start, one for each token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from simulations.counts.quantities import Mean
from simulations.counts.tally import Tally
from simulations.draws.streams import Words, uniform
from simulations.experiments.registry import simulator
from simulations.models.model_growth import Floats, Reader, Tokens, Trees, grow_beside, sample
from simulations.simulators.model_trees import Target, builtin_target, checked
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import load_extra

TOGETHER = 48
"""Trials that are read together."""


@simulator("draft-trees", version="1")
def draft_trees(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The P prefixes that a built-in draft finds heaviest, beside the target's own (B8)."""
    return drafted_trees(builtin_target(), builtin_network(parameters["draft"]), parameters, trials, state)


@cache
def builtin_network(name: str) -> Any:
    """The network of a built-in model; kept by the process."""
    measure = load_extra("spectheory.measure", extra="models")
    from spectheory.pairs import resolve

    folder = resolve(name)
    return measure.load_pair(folder, folder, dtype="float32", device="cpu").target.network


def drafted_trees(target: Target, draft: Any, parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same of any two models over one vocabulary."""
    checked(target, parameters)
    readers = [Reader(network, target.vocabulary, target.prompts) for network in (target.network, draft)]
    sizes = [min(TOGETHER, trials - done) for done in range(0, trials, TOGETHER)]
    parts = [_trials(target, readers, parameters, size, state) for size in sizes]
    return Tally.of(trials, samples={name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _trials(
    target: Target, readers: Sequence[Reader], parameters: Mapping[str, Any], trials: int, state: Words
) -> dict[str, Floats]:
    """Samples ``[trials]`` of trials that are read together; the readers have read every prompt."""
    capacities, places = parameters["capacities"], parameters["starts"]
    length, row = places - 1 + capacities[-1], np.arange(trials)
    uniforms = np.array([[uniform(state) for _ in range(2 + length)] for _ in range(trials)])
    prompts = (uniforms[:, 0] * len(target.prompts)).astype(np.int64)
    starts = (uniforms[:, 1] * places).astype(np.int64)
    knows, drafts = (reader.select(prompts) for reader in readers)
    texts = sample(knows, uniforms[:, 2:])
    drafted = np.stack([drafts.first, *(drafts.go_on(tokens) for tokens in texts.tokens.T[:-1])], axis=1)
    roots = [pmfs[row, starts] for pmfs in (texts.pmfs, drafted)]
    best = grow_beside([knows.select(row), drafts.select(row)], roots, starts, capacities[-1])
    chosen = grow_beside([drafts, knows], roots[::-1], starts, capacities[-1])
    chosen = Trees(chosen.weights[::-1], chosen.parents, chosen.tokens)
    following = np.stack([np.roll(text, -start) for text, start in zip(texts.tokens, starts, strict=True)])
    walks = np.stack([np.cumsum(s[at : at + capacities[-1]]) for s, at in zip(texts.surprisals, starts, strict=True)])
    samples: dict[str, Floats] = {}
    for capacity, threshold in zip(capacities, parameters["thresholds"], strict=True):
        found = _of_trees(best, chosen, following, capacity)
        text = -np.expm1(np.minimum(walks[:, :capacity] - threshold, 0.0)).sum(axis=1)
        found |= {"text": text, "drafted less text": found["drafted"] - text}
        samples |= {f"{name} P={capacity}": each for name, each in found.items()}
    return samples


def _of_trees(best: Trees, chosen: Trees, following: Tokens, capacity: int) -> dict[str, Floats]:
    """What is counted of both trees of a capacity, ``[rows]`` each."""
    own, other = (_paths(trees, capacity) for trees in (best, chosen))
    alone = [
        np.array([[path not in theirs for path in mine] for mine, theirs in zip(paths, others, strict=True)])
        for paths, others in ((own, other), (other, own))
    ]
    p, q = best.weights[..., :capacity]
    p_chosen, q_chosen = chosen.weights[..., :capacity]
    bound = (np.maximum(p - q, 0) * alone[0] + np.maximum(q_chosen - p_chosen, 0) * alone[1]).sum(axis=1)
    depth = np.array([_depth(set(paths), text) for paths, text in zip(other, following.tolist(), strict=True)])
    loss = p.sum(axis=1) - p_chosen.sum(axis=1)
    return {
        "best": p.sum(axis=1),
        "drafted": p_chosen.sum(axis=1),
        "claimed": q_chosen.sum(axis=1),
        "loss": loss,
        "bound": bound,
        "loss less bound": loss - bound,
        "depth": depth.astype(np.float64),
        "depth less drafted": depth - p_chosen.sum(axis=1),
    }


def _paths(trees: Trees, capacity: int) -> list[list[tuple[int, ...]]]:
    """The tokens of every prefix, row by row."""
    found = []
    for parents, tokens in zip(trees.parents[:, :capacity].tolist(), trees.tokens[:, :capacity].tolist(), strict=True):
        paths: list[tuple[int, ...]] = []
        for parent, token in zip(parents, tokens, strict=True):
            paths.append((*(paths[parent] if parent >= 0 else ()), token))
        found.append(paths)
    return found


def _depth(paths: set[tuple[int, ...]], text: Sequence[int]) -> int:
    """How many tokens of a text are predicted, one after the other."""
    return next((n for n in range(len(text)) if tuple(text[: n + 1]) not in paths), len(text))


# What theory says


@predicts("draft-trees")
def draft_trees_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The identity, both sides of the loss, and B6, which bounds every tree that does not see the sampling."""
    for capacity, threshold in zip(parameters["capacities"], parameters["thresholds"], strict=True):
        at = f"P = {capacity}"
        yield Predicted(f"depth of the text less p(T_q), {at}", "B8", Mean(f"depth less drafted P={capacity}"), 0.0)
        yield Predicted(f"loss, {at}", "B8", Mean(f"loss P={capacity}"), 0.0, "lower bound")
        yield Predicted(f"loss less bound, {at}", "B8", Mean(f"loss less bound P={capacity}"), 0.0, "upper bound")
        rest = capacity * math.exp(-threshold)
        says = f"p(T_q) less the text's part of the bound, {at}"
        yield Predicted(says, "B6", Mean(f"drafted less text P={capacity}"), rest, "upper bound")
