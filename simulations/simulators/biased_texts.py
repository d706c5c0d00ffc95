"""Biased decoding of whole texts by the built-in pair: OPT and UNO recovery beside plain sampling (Y5, Y6; yin2024).

A trial draws a prompt, and decodes it three times, independently, at temperature 1 and past any end of text: by the
over-accepting rule with OPT recovery, by the same rule with UNO recovery, and by plain sampling from the target. At
each position the draft proposes x ~ q. It is accepted with probability b_x; after a rejection the token is drawn from
norm(p - q)+ (OPT) or from p (UNO). The draft runs to the horizon, so a position is rejected independently of how calls
are cut. The third built-in model reads all texts and is no part of the decoding.

Parameters are ``form`` and ``amount`` of the over-acceptance: ``threshold`` e is b = min(1, (p + e)/q), ``share`` t is
b = (1 - t) min(1, p/q) + t; and ``tokens``, the length of a text. Samples are, for each decoder D of ``opt``, ``uno``,

- ``D: rejections``: per token; ``D: loss``, ``D: distance``: total variation to p of the token's law, and of q from p,
  means over the positions of D's text; ``D: excess``, their balance: rejections + loss - distance;
- ``D: shift``: surprisal less entropy per token under the target, nats; 0 in the mean if D is lossless;
- ``D: own shift``: the same under D's own law of the token;
- ``D: calls``: of the target per text, the draft running to the horizon;

and for ``plain`` too, with the SCOREs ``target`` and ``judge``, mean log-probability of a token by the target or by the
third model, and ``typical``, minus the size of the text's shift,

- ``SCORE: D``, and ``SCORE: A over B``: 1 if A's text has the larger score, 1/2 if equal, else 0.

Draws of a trial, in order: a uniform for the prompt; for each text three for each token (draft, coin, recovery).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.counts import Mean, Tally
from simulations.draws import Floats, Words, uniform
from simulations.experiments.tasks import simulator
from simulations.models.model_growth import Reader, Tokens, inverted
from simulations.simulators.model_trees import builtin_network, builtin_target, in_parts
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.errors import SettingError

TOGETHER = 32
"""Trials that are read together, three texts each."""

DECODERS = ("opt", "uno", "plain")
PAIRS = (("opt", "uno"), ("opt", "plain"), ("uno", "plain"))
"""Texts that are compared."""

FORMS = ("threshold", "share")


class Trio(NamedTuple):
    """Target, draft and a third model over one vocabulary, and the token ids of the prompts."""

    target: Any
    draft: Any
    judge: Any
    vocabulary: int
    window: int
    prompts: Sequence[Sequence[int]]


class Decoded(NamedTuple):
    """Texts ``[rows, n]``, rejections ``[rows, n]`` and, at each position, p, q and the law of the token."""

    tokens: Tokens
    rejected: NDArray[np.bool_]
    target: Floats
    draft: Floats
    law: Floats


@simulator("biased-texts", version="1")
def biased_texts(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A prompt of the built-in pair, decoded with OPT, with UNO and from the target (Y5, Y6)."""
    return texts_of(builtin_trio(), parameters, trials, state)


@lru_cache(maxsize=1)
def builtin_trio() -> Trio:
    """The built-in target, draft and distilled draft, which serves as the judge; kept by the process."""
    target = builtin_target()
    draft, judge = (builtin_network(name) for name in ("builtin:draft", "builtin:distilled"))
    return Trio(target.network, draft, judge, target.vocabulary, target.window, target.prompts)


def texts_of(trio: Trio, parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """The same of any three models."""
    length = parameters["tokens"]
    if parameters["form"] not in FORMS or not 0 <= parameters["amount"] <= 1:
        raise SettingError(
            f"over-acceptance is {parameters['form']} {parameters['amount']}",
            limit=f"must be {' or '.join(FORMS)}, in [0, 1]",
            remedy="threshold 0 is lossless with OPT",
        )
    if not 1 <= length <= trio.window - max(map(len, trio.prompts)):
        raise SettingError(
            f"texts have {length} tokens",
            limit=f"prompt and text must fit {trio.window} tokens",
            remedy="use shorter texts",
        )
    networks = (trio.target, trio.draft, trio.judge)
    readers = [Reader(network, trio.vocabulary, trio.prompts) for network in networks]
    return in_parts(trials, TOGETHER, lambda size: _trials(readers, parameters, size, state))


def _trials(readers: Sequence[Reader], parameters: Mapping[str, Any], trials: int, state: Words) -> dict[str, Floats]:
    """Samples ``[trials]`` of trials that are read together; a decoder's rows stand together.

    The readers are those of target, draft and judge, and have read every prompt.
    """
    length = parameters["tokens"]
    draws = np.array([[uniform(state) for _ in range(1 + 9 * length)] for _ in range(trials)])
    prompts = np.tile((draws[:, 0] * len(readers[0].lengths)).astype(np.int64), 3)
    target_reader, draft_reader, judge_reader = (reader.select(prompts) for reader in readers)
    uniforms = np.vstack(np.hsplit(draws[:, 1:], 3)).reshape(3 * trials, length, 3)
    decoded = _decode([target_reader, draft_reader], parameters, uniforms)
    rows = {decoder: slice(at * trials, (at + 1) * trials) for at, decoder in enumerate(DECODERS)}
    target, judge = _logs(decoded.target, decoded.tokens), _read(judge_reader, decoded.tokens)
    along = _along(decoded, target)
    scores = {"target": target.mean(axis=1), "judge": judge.mean(axis=1), "typical": -np.abs(along["shift"])}
    samples = {f"{name}: {one}": score[rows[one]] for name, score in scores.items() for one in DECODERS}
    for name, score in scores.items():
        for one, other in PAIRS:
            samples[f"{name}: {one} over {other}"] = (1 + np.sign(score[rows[one]] - score[rows[other]])) / 2
    for name, each in along.items():
        samples |= {f"{one}: {name}": each[rows[one]] for one in ("opt", "uno")}
    return samples


def _decode(readers: Sequence[Reader], parameters: Mapping[str, Any], uniforms: Floats) -> Decoded:
    """Token by token; the rows are thirds: OPT, UNO, and plain sampling, which rejects every draft."""
    third = len(uniforms) // 3
    p, q = (reader.first for reader in readers)
    steps = []
    for at in range(uniforms.shape[1]):
        accept = accepted_with(p, q, parameters["form"], parameters["amount"])
        accept[2 * third :] = 0.0
        recovery = p.copy()
        recovery[:third] = residual(p, q)[:third]
        drafted = inverted(q, uniforms[:, at, 0])
        rejected = uniforms[:, at, 1] >= accept[np.arange(len(p)), drafted]
        token = np.where(rejected, inverted(recovery, uniforms[:, at, 2]), drafted)
        kept = accept * q
        law = kept + (1 - kept.sum(axis=1, keepdims=True)) * recovery
        steps.append(Decoded(token, rejected, p, q, law))
        if at + 1 < uniforms.shape[1]:
            p, q = (reader.go_on(token) for reader in readers)
    return Decoded(*(np.stack(each, axis=1) for each in zip(*steps, strict=True)))


def accepted_with(p: Floats, q: Floats, form: str, amount: float) -> Floats:
    """Probability b ``[..., V]`` that a drafted token is accepted; where q = 0 nothing is drafted."""
    positive = np.where(q > 0, q, 1.0)
    if form == "threshold":
        return np.minimum(1.0, (p + amount) / positive)
    return (1 - amount) * np.minimum(1.0, p / positive) + amount


def residual(p: Floats, q: Floats) -> Floats:
    """(p - q)+ normalised ``[..., V]``; p where nothing is left."""
    excess = np.maximum(p - q, 0.0)
    total = excess.sum(axis=-1, keepdims=True)
    return np.where(total > 0, excess / np.where(total > 0, total, 1.0), p)


def _along(decoded: Decoded, logs: Floats) -> dict[str, Floats]:
    """Means over the positions of each text ``[rows]``, by name."""
    p, q, law = decoded.target, decoded.draft, decoded.law
    rejections = decoded.rejected.mean(axis=1)
    loss, distance = (np.abs(each - p).sum(axis=-1).mean(axis=1) / 2 for each in (law, q))
    log_masses = _logs(law, decoded.tokens)
    return {
        "rejections": rejections,
        "calls": 1.0 + decoded.rejected[:, :-1].sum(axis=1),
        "loss": loss,
        "distance": distance,
        "excess": rejections + loss - distance,
        "shift": (-logs - _entropy(p)).mean(axis=1),
        "own shift": (-log_masses - _entropy(law)).mean(axis=1),
    }


def _read(reader: Reader, tokens: Tokens) -> Floats:
    """Log-probabilities ``[rows, n]`` of the texts."""
    pmf, rows = reader.first, []
    for at in range(tokens.shape[1]):
        rows.append(_logs(pmf, tokens[:, at]))
        if at + 1 < tokens.shape[1]:
            pmf = reader.go_on(tokens[:, at])
    return np.stack(rows, axis=1)


def _logs(pmfs: Floats, tokens: Tokens) -> Floats:
    """Log-probability ``[...]`` of each token."""
    masses = np.take_along_axis(pmfs, tokens[..., None], axis=-1)[..., 0]
    return np.log(np.maximum(masses, np.finfo(np.float64).tiny))


def _entropy(pmfs: Floats) -> Floats:
    return -(pmfs * np.log(np.maximum(pmfs, np.finfo(np.float64).tiny))).sum(axis=-1)


# What theory says


@predicts("biased-texts")
def biased_texts_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Rejections and loss add up to the distance with OPT, to no less with UNO; OPT at 0 is plain sampling."""
    yield Predicted("rejections + loss - TV with OPT", "Y6", Mean("opt: excess"), 0.0)
    yield Predicted("rejections + loss - TV with UNO", "Y5", Mean("uno: excess"), 0.0, "lower bound")
    for decoder in ("opt", "uno"):
        says = f"mean surprisal less entropy of the output law with {decoder.upper()}"
        yield Predicted(says, "many-to-one", Mean(f"{decoder}: own shift"), 0.0)
    if parameters["amount"] == 0:
        yield Predicted("mean surprisal less entropy of the target with OPT", "Y5", Mean("opt: shift"), 0.0)
        for score in ("target", "judge", "typical"):
            says = f"share of texts that OPT wins over plain sampling, scored by {score}"
            yield Predicted(says, "Y5", Mean(f"{score}: opt over plain", 0.0, 1.0), 0.5)
