"""Calls of whole decodings, by the path theorem (§7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from simulations.counts.quantities import Mean
from simulations.experiments.tasks import canonical
from simulations.models.ngram import ngram_pair_of
from simulations.models.recipes import chains_of
from simulations.predicted.markov_calls import MarkovCalls, markov_calls, mean_acceptance
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.drafting import Chain, Tree
from spectheory.verification import RULES, PathRule

CHAINED = {"token": "token", "block": "block", "ngram": "token"}
"""Simulators of chains of ``k`` drafts, and the rule they run; ``decode`` states its rule and tree."""


def calls_of(kind: str, parameters: Mapping[str, Any]) -> MarkovCalls:
    """Mean and variance of the calls of a text that a simulator decodes (§7, exact); worked out once per setting."""
    return _calls_of(kind, canonical(parameters))


def acceptance_of(kind: str, parameters: Mapping[str, Any]) -> float:
    """Acceptance rate of the simulator's rule on the mean over positions and texts: what C1 knows of a setting."""
    return _acceptance_of(kind, canonical({name: parameters[name] for name in parameters if name not in _SHAPE}))


_SHAPE = ("k", "paths")
"""What a call drafts, which is nothing to the acceptance of one draft."""


@cache
def _acceptance_of(kind: str, text: str) -> float:
    parameters = json.loads(text)
    target, draft, following, initial = _models_of(kind, parameters)
    rule, length = _rule_of(kind, parameters), parameters["length"]
    return mean_acceptance(rule, target, draft, initial, length=length, following=following)


@cache
def _calls_of(kind: str, text: str) -> MarkovCalls:
    parameters = json.loads(text)
    tree = _tree_of(kind, parameters)
    target, draft, following, initial = _models_of(kind, parameters)
    rule, length = _rule_of(kind, parameters), parameters["length"]
    return markov_calls(rule, target, draft, initial, length=length, tree=tree, following=following)


def _tree_of(kind: str, parameters: Mapping[str, Any]) -> Tree:
    if kind == "decode":
        return Tree.from_paths([tuple(path) for path in parameters["paths"]])
    return Chain(parameters["k"]).tree()


def _models_of(kind: str, parameters: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Target, draft, the state after a state and token if that is not the token, pmf of the first state."""
    if kind == "ngram":
        return ngram_pair_of(parameters)
    target, draft, initial = chains_of(parameters)
    return target, draft, None, initial


def _rule_of(kind: str, parameters: Mapping[str, Any]) -> PathRule:
    return RULES[parameters["rule"] if kind == "decode" else CHAINED[kind]]


def _stated(kind: str, parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The mean; calls are as many as the text has tokens at most, and no fewer than with every draft accepted."""
    most, calls = parameters["length"], calls_of(kind, parameters)
    fewest = min(-(-most // (_tree_of(kind, parameters).depth + 1)), most - 1)
    quantity = Mean("calls", fewest, most)
    yield Predicted("calls per text", "§7", quantity, calls.expected, variance=max(calls.variance, 0.0))


for _kind in ("decode", *CHAINED):
    predicts(_kind)(partial(_stated, _kind))
