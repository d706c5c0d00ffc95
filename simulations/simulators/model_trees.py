"""Best trees of the built-in target after text of its own (§5), and trees of a drafter that knows the draft alone (B8).

A trial is a start: it draws a prompt of the built-in pair, a start, and a continuation by the target, at temperature 1
and past any end of text. Of ``model-trees`` the best tree is grown from the start. B6 takes the same text, averaged
over all places where a start may lie: the mean is the same, the spread smaller.

Parameters are ``capacities``, ascending numbers P of prefixes, for each its threshold t in nats, ``thresholds``, and
``starts``: a start lies uniformly at 0 to ``starts`` - 1 tokens after the prompt. Samples are, for each P,

- ``P=1``: total probability of the P heaviest prefixes, predicted tokens of a call without the bonus token;
- ``text P=1``: the sum over i <= P of (1 - e^(S_i - t))+, S_i the surprisal of the i tokens after a start, mean over
  the places where a start may lie;
- ``P=1 less text``: their difference;

and ``entropy`` and ``second moment`` of the pmf, means over the same places, and ``surprisal less entropy``, the mean
over the text. The same machine and version of torch repeat the numbers exactly.

Of ``draft-trees`` two trees of P prefixes are grown from the start: T_p, the heaviest under the target, and T_q, the
heaviest under the draft. Both models weigh the nodes of both.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from simulations.counts import Mean, Tally
from simulations.draws import Floats, Words, uniform
from simulations.experiments.tasks import simulator
from simulations.models.model_growth import Reader, Texts, Tokens, Trees, grow, sample
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import SettingError, load_extra

TOGETHER, DRAFTED_TOGETHER = 16, 48
"""Trials that are read together: of the target alone, and with a draft."""


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
    return in_parts(trials, TOGETHER, lambda size: _trials(target, parameters, size, state))


def in_parts(trials: int, most: int, run: Callable[[int], dict[str, Floats]]) -> Tally:
    """The tally of trials of which at most so many are read together; `run` gives the samples of a number of them."""
    parts = [run(min(most, trials - done)) for done in range(0, trials, most)]
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
    roots = texts.pmfs[np.arange(trials), starts]
    weights = grow([reader], [roots], starts, capacities[-1]).weights[0]
    samples = _of_text(texts, places)
    # Cumulative surprisal from every place with so many tokens left, [rows, places, depth].
    walks = np.cumsum(np.lib.stride_tricks.sliding_window_view(texts.surprisals, capacities[-1], axis=1), axis=-1)
    for capacity, threshold in zip(capacities, parameters["thresholds"], strict=True):
        tree = weights[:, :capacity].sum(axis=1)
        text = -np.expm1(np.minimum(walks[..., :capacity] - threshold, 0.0)).sum(axis=-1).mean(axis=1)
        samples |= {f"P={capacity}": tree, f"text P={capacity}": text, f"P={capacity} less text": tree - text}
    return samples


def _of_text(texts: Texts, places: int) -> dict[str, Floats]:
    logs = np.log(np.maximum(texts.pmfs, np.finfo(np.float64).tiny))  # where p is 0, p log p is
    entropies = -(texts.pmfs * logs).sum(axis=-1)
    second = (texts.pmfs * logs**2).sum(axis=-1)
    return {
        "entropy": entropies[:, :places].mean(axis=1),
        "second moment": second[:, :places].mean(axis=1),
        "surprisal less entropy": (texts.surprisals - entropies).mean(axis=1),
    }


# Trees of a drafter


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
    return in_parts(trials, DRAFTED_TOGETHER, lambda size: _drafted_trials(target, readers, parameters, size, state))


def _drafted_trials(
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
    best = grow([knows.select(row), drafts.select(row)], roots, starts, capacities[-1])
    chosen = grow([drafts, knows], roots[::-1], starts, capacities[-1])
    chosen = Trees(chosen.weights[::-1], chosen.parents, chosen.tokens)
    following = np.stack([np.roll(text, -start) for text, start in zip(texts.tokens, starts, strict=True)])
    walks = np.stack([np.cumsum(s[at : at + capacities[-1]]) for s, at in zip(texts.surprisals, starts, strict=True)])
    samples: dict[str, Floats] = {}
    for capacity, threshold in zip(capacities, parameters["thresholds"], strict=True):
        values = _of_trees(best, chosen, following, capacity)
        text = -np.expm1(np.minimum(walks[:, :capacity] - threshold, 0.0)).sum(axis=1)
        values |= {"text": text, "drafted less text": values["drafted"] - text}
        samples |= {f"{name} P={capacity}": each for name, each in values.items()}
    return samples


def _of_trees(best: Trees, chosen: Trees, following: Tokens, capacity: int) -> dict[str, Floats]:
    """What is counted of both trees of a capacity, ``[rows]`` each."""
    best_paths, drafted_paths = (_paths(trees, capacity) for trees in (best, chosen))
    alone = [
        np.array([[path not in theirs for path in mine] for mine, theirs in zip(paths, others, strict=True)])
        for paths, others in ((best_paths, drafted_paths), (drafted_paths, best_paths))
    ]
    p, q = best.weights[..., :capacity]
    p_chosen, q_chosen = chosen.weights[..., :capacity]
    bound = (np.maximum(p - q, 0) * alone[0] + np.maximum(q_chosen - p_chosen, 0) * alone[1]).sum(axis=1)
    depth = np.array([_depth(set(paths), text) for paths, text in zip(drafted_paths, following.tolist(), strict=True)])
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
    rows = []
    for parents, tokens in zip(trees.parents[:, :capacity].tolist(), trees.tokens[:, :capacity].tolist(), strict=True):
        paths: list[tuple[int, ...]] = []
        for parent, token in zip(parents, tokens, strict=True):
            paths.append((*(paths[parent] if parent >= 0 else ()), token))
        rows.append(paths)
    return rows


def _depth(paths: set[tuple[int, ...]], text: Sequence[int]) -> int:
    """How many tokens of a text are predicted, one after the other."""
    return next((n for n in range(len(text)) if tuple(text[: n + 1]) not in paths), len(text))


# What theory says


@predicts("model-trees")
def model_trees_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """B6 at every capacity, and that the surprisal of what is sampled is the entropy in the mean."""
    for capacity, threshold in zip(parameters["capacities"], parameters["thresholds"], strict=True):
        rest = capacity * math.exp(-threshold)
        says = f"E[X] less the text's part of the bound, P = {capacity}"
        yield Predicted(says, "B6", Mean(f"P={capacity} less text"), rest, "upper bound")
    yield Predicted("mean surprisal less mean entropy", "many-to-one", Mean("surprisal less entropy"), 0.0)


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
