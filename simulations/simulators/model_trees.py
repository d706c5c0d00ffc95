"""Best trees of the built-in target, its own conditional pmfs after text of its own (§5): a trial is a start.

A trial draws a prompt of the built-in pair, a start, and a continuation by the target, at temperature 1 and past
any end of text. The best tree is grown from the start. B6 takes the same text, averaged over all places where a start
may lie: the mean is the same, the spread smaller.

Parameters are ``capacities``, ascending numbers P of prefixes, for each its threshold t in nats, ``thresholds``, and
``starts``: a start lies uniformly at 0 to ``starts`` - 1 tokens after the prompt. Samples are, for each P,

- ``P=1``: total probability of the P heaviest prefixes, predicted tokens of a call without the bonus token;
- ``text P=1``: the sum over i <= P of (1 - e^(S_i - t))+, S_i the surprisal of the i tokens after a start, mean over
  the places where a start may lie;
- ``P=1 less text``: their difference;

and ``entropy`` and ``second moment`` of the pmf, means over the same places, and ``surprisal less entropy``, the mean
over the text. The same machine and version of torch repeat the numbers exactly.

Draws of a trial, in order: a uniform for the prompt, one for the start, one for each token.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simulations.counts.quantities import Mean
from simulations.counts.tally import Tally
from simulations.draws.streams import Words, uniform
from simulations.experiments.registry import simulator
from simulations.models.model_growth import Floats, Reader, Texts, grow, sample
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import SettingError, load_extra

TOGETHER = 16
"""Trials that are read together."""


class Target(NamedTuple):
    """A model ready to be read, and the token ids of the prompts."""

    network: Any
    vocabulary: int
    window: int
    prompts: tuple[tuple[int, ...], ...]


@simulator("model-trees", version="1")
def model_trees(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The P heaviest prefixes of the built-in target (B1-B3')."""
    return trees_of(builtin_target(), parameters, trials, state)


@lru_cache(maxsize=1)
def builtin_target() -> Target:
    """The built-in target on one core, with its prompts; kept by the process."""
    load_extra("torch", extra="models").set_num_threads(1)
    measure = load_extra("spectheory.measure", extra="models")
    from spectheory.measure.tokens import encode_prompt
    from spectheory.pairs import PROMPTS, resolve
    from spectheory.prompts import read_prompts

    folder = resolve("builtin:target")
    pair = measure.load_pair(folder, folder, dtype="float32", device="cpu")
    prompts = tuple(tuple(encode_prompt(pair.tokenizer, prompt).tolist()) for prompt in read_prompts(PROMPTS))
    return Target(pair.target.network, pair.vocabulary, pair.window, prompts)


def trees_of(target: Target, parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same of any target."""
    checked(target, parameters)
    parts = [_trials(target, parameters, min(TOGETHER, trials - done), state) for done in range(0, trials, TOGETHER)]
    return Tally.of(trials, samples={name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def checked(target: Target, parameters: Mapping[str, Any]) -> None:
    """Refuse capacities, thresholds and starts that do not fit."""
    capacities, starts = parameters["capacities"], parameters["starts"]
    if len(parameters["thresholds"]) != len(capacities) or sorted(set(capacities)) != capacities or capacities[0] < 1:
        raise SettingError(
            f"capacities are {capacities}", limit="must ascend from 1, a threshold for each", remedy="sort them"
        )
    if starts < 1 or max(map(len, target.prompts)) + starts - 1 + capacities[-1] > target.window:
        raise SettingError(
            f"starts is {starts} and the largest capacity {capacities[-1]}",
            limit=f"needs starts >= 1, and prompt, start and tree must fit {target.window} tokens",
            remedy="lower one of them",
        )


def _trials(target: Target, parameters: Mapping[str, Any], trials: int, state: Words) -> dict[str, Floats]:
    """Samples ``[trials]`` of trials that are read together."""
    capacities, places = parameters["capacities"], parameters["starts"]
    length = places - 1 + capacities[-1]
    uniforms = np.array([[uniform(state) for _ in range(2 + length)] for _ in range(trials)])
    prompts = [target.prompts[int(u * len(target.prompts))] for u in uniforms[:, 0]]
    starts = (uniforms[:, 1] * places).astype(np.int64)
    reader = Reader(target.network, target.vocabulary, prompts)
    texts = sample(reader, uniforms[:, 2:])
    weights = grow(reader, texts.pmfs[np.arange(trials), starts], starts, capacities[-1])
    samples = _of_text(texts, places)
    walks = _walks(texts.surprisals, capacities[-1])
    for capacity, threshold in zip(capacities, parameters["thresholds"], strict=True):
        tree = weights[:, :capacity].sum(axis=1)
        text = -np.expm1(np.minimum(walks[..., :capacity] - threshold, 0.0)).sum(axis=-1).mean(axis=1)
        samples |= {f"P={capacity}": tree, f"text P={capacity}": text, f"P={capacity} less text": tree - text}
    return samples


def _walks(surprisals: Floats, depth: int) -> Floats:
    """Cumulative surprisal S_1, ..., S_depth from every place with so many tokens left, ``[rows, places, depth]``."""
    return np.cumsum(np.lib.stride_tricks.sliding_window_view(surprisals, depth, axis=1), axis=-1)


def _of_text(texts: Texts, places: int) -> dict[str, Floats]:
    logs = np.log(np.maximum(texts.pmfs, np.finfo(np.float64).tiny))  # where p is 0, p log p is
    entropies = -(texts.pmfs * logs).sum(axis=-1)
    second = (texts.pmfs * logs**2).sum(axis=-1)
    return {
        "entropy": entropies[:, :places].mean(axis=1),
        "second moment": second[:, :places].mean(axis=1),
        "surprisal less entropy": (texts.surprisals - entropies).mean(axis=1),
    }


# What theory says


@predicts("model-trees")
def model_trees_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """B6 at every capacity, and that the surprisal of what is sampled is the entropy in the mean."""
    for capacity, threshold in zip(parameters["capacities"], parameters["thresholds"], strict=True):
        rest = capacity * math.exp(-threshold)
        says = f"E[X] less the text's part of the bound, P = {capacity}"
        yield Predicted(says, "B6", Mean(f"P={capacity} less text"), rest, "upper bound")
    yield Predicted("mean surprisal less mean entropy", "many-to-one", Mean("surprisal less entropy"), 0.0)
