"""Whole texts decoded call by call: a trial is a text, or a batch of texts in lock-step.

Parameters are ``length`` and ``k``, and the chains (:func:`simulations.models.pairs.chains_of`) or the n-gram models
(:func:`simulations.models.ngram.ngram_pair_of`); of ``decode`` ``rule`` and ``paths`` of the draft tree, a chain of 2
as [[1], [1, 1]]; of ``lock-step`` ``batch``, the texts of a batch; of ``stopped`` ``stop``, a rule as ``token<0.4``, or
None.

Counted are ``accepted``, ``[k + 1]``, calls by their accepted drafts, and ``texts``, ``[length + 1]``, texts by their
number of calls, whose moments are ``calls``. Calls of one text are dependent: intervals come from ``texts`` and
``calls``. Of lock-step ``batches``, ``[length + 1]``, by their rounds, whose moments are ``rounds``: texts are
independent, so those that a kernel decodes are put into batches at random. Of stopped drafts ``calls`` and ``drafted``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from simulations.counts import Mean, Moments, Tally
from simulations.draws import Floats, Stream, Words, next_word
from simulations.experiments.tasks import cache_by_text, simulator
from simulations.kernels.block_decoding import block_calls
from simulations.kernels.markov_decoding import Tables, ngram_tables, tabled_calls, token_calls
from simulations.kernels.stopped_decoding import stopped_calls, stops_of
from simulations.models.ngram import ngram_pair_of
from simulations.models.pairs import CallCounts, chains_of, checked_chains, checked_stream, whole_number
from simulations.reference.decoding import ALGORITHMS, DraftTree, Pair, decoded
from simulations.verdicts.markov_calls import MarkovCalls, markov_call_law, markov_calls, mean_acceptance
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.drafting import Chain, Tree, read_stop
from spectheory.errors import SettingError
from spectheory.prediction.stopped import Drafted, drafted_along
from spectheory.trace import TextInfo, Trace
from spectheory.verification import RULES, PathRule, TokenVerification


@simulator("token", version="1")
def token(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by token verification (§7)."""
    return _on_chains(token_calls, parameters, trials, state)


@simulator("block", version="1")
def block(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by block verification (§7)."""
    return _on_chains(block_calls, parameters, trials, state)


@simulator("ngram", version="1")
def ngram(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by token verification, n-gram models of real text (§7)."""
    how = {"length": parameters["length"], "k": parameters["k"], "texts": trials, "state": state}
    return _call_tally(tabled_calls(_tables(parameters), **how))


@cache_by_text(2, but=("length", "k"))
def _tables(models: Mapping[str, Any]) -> Tables:
    """A worker makes the tables of a pair once, for many batches."""
    return ngram_tables(*ngram_pair_of(models))


def _on_chains(kernel: Callable[..., CallCounts], parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    chains = chains_of(parameters)
    return _call_tally(kernel(*chains, length=parameters["length"], k=parameters["k"], texts=trials, state=state))


def _call_tally(counts: CallCounts) -> Tally:
    return Tally.of(
        int(counts.texts.sum()),
        counts={"accepted": counts.accepted, "texts": counts.texts},
        samples={"calls": Moments.of_histogram(counts.texts)},
    )


# Every rule and every draft tree, readably and slowly


@simulator("decode", version="1")
def decode(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by any rule and draft tree, readably and slowly (§7)."""
    length = whole_number("length", parameters["length"])
    chains = checked_chains(*chains_of(parameters), length=length)
    pair = Pair(*(chain if len(chain) > 1 else chain[0] for chain in (chains.target, chains.draft)))
    rule, tree = parameters["rule"], DraftTree(parameters["paths"])
    _check_tree(rule, tree)
    texts, accepted = np.zeros(length + 1, dtype=np.int64), np.zeros(tree.depth + 1, dtype=np.int64)
    stream = Stream(checked_stream(state))
    for _ in range(trials):
        calls = decoded(ALGORITHMS[rule].call, tree, pair, stream.token(chains.initial), length, stream)
        counts = [call.accepted for call in calls]
        texts[len(counts)] += 1
        np.add.at(accepted, counts, 1)
    return Tally.of(
        trials, counts={"texts": texts, "accepted": accepted}, samples={"calls": Moments.of_histogram(texts)}
    )


def _check_tree(rule: str, tree: DraftTree) -> None:
    """Check that a rule is known and takes the tree."""
    if rule not in ALGORITHMS:
        raise SettingError(f"rule is {rule!r}", limit=f"known are {', '.join(ALGORITHMS)}", remedy="name one of them")
    if not tree.nodes or any(not n or (n[:-1] and n[:-1] not in tree.nodes) or min(n) < 1 for n in tree.nodes):
        raise SettingError("the paths are no tree", limit="every node needs its parent", remedy="give all paths")
    most = max(max(node) for node in tree.nodes)
    if not ALGORITHMS[rule].several and most > 1:
        raise SettingError(f"a rank is {most}", limit=f"{rule} has one candidate", remedy="draft a chain")
    if ALGORITHMS[rule].consecutive and any(node[-1] > tree.candidates[node[:-1]] for node in tree.nodes):
        raise SettingError("a rank is left out", limit=f"{rule} tries children 1..m", remedy="draft all of them")


# Calls by the path theorem

CHAINED = {"token": "token", "block": "block", "ngram": "token"}
"""Simulators of chains of ``k`` drafts, and the rule they run; ``decode`` states its rule and tree."""


@cache_by_text()
def calls_of(kind: str, parameters: Mapping[str, Any]) -> MarkovCalls:
    """Mean and variance of the calls of a text that a simulator decodes (§7, exact); worked out once per setting."""
    tree = _tree_of(kind, parameters)
    target, draft, following, initial = _models_of(kind, parameters)
    rule, length = _rule_of(kind, parameters), parameters["length"]
    return markov_calls(rule, target, draft, initial, length=length, tree=tree, following=following)


@cache_by_text(but=("k", "paths"))
def acceptance_of(kind: str, parameters: Mapping[str, Any]) -> float:
    """Acceptance rate of the simulator's rule on the mean over positions and texts: what C1 knows of a setting."""
    target, draft, following, initial = _models_of(kind, parameters)
    rule, length = _rule_of(kind, parameters), parameters["length"]
    return mean_acceptance(rule, target, draft, initial, length=length, following=following)


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


# Lock-step


@simulator("lock-step", version="1")
def lock_step(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A batch of texts by token verification, a call of each live text per round (§12)."""
    length, batch = parameters["length"], parameters["batch"]
    made = {"length": length, "k": parameters["k"], "texts": trials * batch}
    counted = token_calls(*chains_of(parameters), **made, state=state).texts
    calls = np.random.default_rng(int(next_word(state))).permutation(np.repeat(np.arange(length + 1), counted))
    rounds = np.bincount(calls.reshape(trials, batch).max(axis=1), minlength=length + 1)
    return Tally.of(trials, counts={"batches": rounds}, samples={"rounds": Moments.of_histogram(rounds)})


@predicts("lock-step")
def lock_step_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """E[max] of a batch."""
    length, tree = parameters["length"], Chain(parameters["k"]).tree()
    law = markov_call_law(TokenVerification(), *chains_of(parameters), length=length, tree=tree)
    longer = 1 - np.cumsum(law)[:-1] ** parameters["batch"]  # P(max > t), t = 0, 1, ...
    quantity = Mean("rounds", -(-length // (parameters["k"] + 1)), length)
    mean, square = float(longer.sum()), float((2 * np.arange(length) + 1) @ longer)
    yield Predicted("rounds per batch", "§12-lock-step", quantity, mean, variance=max(square - mean**2, 0.0))


# Stopped drafts


@simulator("stopped", version="1")
def stopped(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A text by token verification, drafting stopped by a rule (§11)."""
    length, k = (whole_number(name, parameters[name]) for name in ("length", "k"))
    chains = checked_chains(*chains_of(parameters), length=length)
    stops = stops_of(chains.draft[0], parameters["stop"])
    rng = np.random.default_rng([int(word) for word in state])
    calls, drafted = stopped_calls(chains, stops, length=length, k=k, texts=trials, rng=rng)
    return Tally.of(trials, samples={"calls": calls, "drafted": drafted})


@predicts("stopped")
def stopped_predicted(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Both means (exact): by the path theorem, and by likelihood ratios."""
    length, k = parameters["length"], parameters["k"]
    trace, shares = _texts(parameters)
    stop = read_stop(parameters["stop"]) if parameters["stop"] else None
    along = np.full(len(trace), k) if stop is None else drafted_along(trace.columns, stop, k).sum(axis=1)
    keeps = stop is None or stop.keeps
    lengths = Drafted(trace, TokenVerification(), k).lengths_of_calls(along, keeps=keeps)
    calls = Mean("calls", -(-length // (k + 1)), length + 1)
    yield Predicted("calls per text", "§11", calls, float(shares @ lengths.calls))
    drafted = float(shares @ lengths.going.sum(axis=1))
    yield Predicted("drafted tokens per text", "§11/drafted", Mean("drafted", 0, length * k), drafted)


def _texts(parameters: dict[str, Any]) -> tuple[Trace, Floats]:
    """All texts as a trace, and their probabilities."""
    target, draft, initial = chains_of(parameters)
    tokens, length = len(initial), parameters["length"]
    runs = np.array(list(product(range(tokens), repeat=length + 1)))  # the token before the text, then the text
    before, text = runs[:, :-1], runs[:, 1:]
    log_target = np.log(target[before, text])
    shares = initial[runs[:, 0]] * np.exp(log_target.sum(axis=1))
    pmfs = draft[before].reshape(-1, tokens)
    columns = {
        "log_target": log_target.ravel(),
        "log_draft": np.log(draft[before, text]).ravel(),
        "draft_top": pmfs.max(axis=1),
        "draft_entropy": -(pmfs * np.log(pmfs)).sum(axis=1),
    }
    return Trace(columns, tuple(TextInfo(str(number), length) for number in range(len(runs)))), shares
