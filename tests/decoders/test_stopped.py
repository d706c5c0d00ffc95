"""Chains that a stopping rule ends (§11): lossless, with the predicted calls, by exploring every outcome of a draw."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, StoppingRule, read_stop
from spectheory.errors import SettingError
from spectheory.measure import ModelPair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.decoders.decode import Decoded
from spectheory.measure.decoders.methods import _draft_until_stop
from spectheory.measure.decoders.tree import DraftTree, Floats
from spectheory.measure.decoders.verifiers import Source, Verdict, _Pmfs, _recursive_rejection
from spectheory.prediction.paths import calls_of_texts
from spectheory.prediction.stopped import drafted_along
from spectheory.verification import PATH_RULES
from tests.decoders.test_head_law import (
    HANDMADE,
    PROMPT,
    _Handmade,
    _HandmadeReading,
    pmfs_by_start,
    readers_with,
    state_after,
)
from tests.decoders.test_law import (
    EXACT,
    along,
    chain_survival,
    distance,
    law_of,
    outcomes,
    raced_texts,
    target_law,
)

STOPS = [read_stop(text) for text in ("token<0.6", "top<0.6", "entropy>0.6")]
RULES = ["token", "block", "independent", "argmax", "recursive", "topk"]
TOKENS = 4
PROMPTS = [torch.tensor(ids) for ids in ([1, 2, 3], [5, 4], [7])]


def columns(q: Floats, text: tuple[int, ...]) -> dict[str, Floats]:
    """What stopping rules read of the draft's pmfs ``[..., V]`` at the tokens of a text."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q > 0, q * np.log(q), 0.0)
        return {
            "log_draft": np.log(np.take_along_axis(q, np.array(text)[..., None], axis=-1)[..., 0]),
            "draft_top": q.max(axis=-1),
            "draft_entropy": -terms.sum(axis=-1),
        }


def counted(method: Method, tokens: int = TOKENS, **how: object) -> tuple[dict[tuple[int, ...], float], ...]:
    """Probability of each text, and its mean calls."""
    mass: dict[tuple[int, ...], float] = defaultdict(float)
    calls: dict[tuple[int, ...], float] = defaultdict(float)
    for output, count, weight in outcomes(method, tokens, **how):  # type: ignore[arg-type]
        mass[output] += weight
        calls[output] += weight * count
    return mass, {text: calls[text] / share for text, share in mass.items() if share > 0}


@pytest.mark.parametrize("stop", STOPS, ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_output_and_calls_are_as_predicted(rule: str, stop: StoppingRule) -> None:
    """The text is the target's, and its calls those of the survival with the stop; without the stop they are others."""
    mass, calls = counted(Method(rule, Chain(3, stop=stop)))
    assert math.isclose(sum(mass.values()), 1.0, abs_tol=EXACT)
    assert distance(mass, target_law(TOKENS)) < EXACT
    off = []
    for text, count in calls.items():
        p, q = along(text, (1, 2))
        fixed = chain_survival(PATH_RULES[rule], 3, text, p, q)
        drafted = drafted_along(columns(q, text), stop, 3)
        assert math.isclose(count, calls_of_texts(fixed * drafted, np.array([TOKENS])).expected[0], abs_tol=EXACT)
        off.append(count - calls_of_texts(fixed, np.array([TOKENS])).expected[0])
    assert max(off) > 1e-3


@pytest.mark.parametrize("kind", HANDMADE)
@pytest.mark.parametrize(
    ("rule", "stop", "k"),
    [
        ("token", STOPS[0], 3),
        ("block", STOPS[1], 2),
        pytest.param("block", STOPS[1], 3, marks=pytest.mark.evidence),
        ("argmax", STOPS[2], 3),
    ],
    ids=str,
)
def test_heads_stop_by_start_and_depth(rule: str, stop: StoppingRule, k: int, kind: type[_Handmade]) -> None:
    """The same of a head, and of a parallel one; at most k drafts."""
    mass, calls = counted(Method(rule, Chain(k, stop=stop)), readers=readers_with(kind, k))
    assert distance(mass, target_law(TOKENS)) < EXACT
    off = []
    for text, count in calls.items():
        p, _ = along(text, (1, 2))
        q = pmfs_by_start(kind, text, k)
        survival = np.zeros((TOKENS, k))
        drafted = np.zeros((TOKENS, k), bool)
        for n in range(TOKENS):
            here = min(k, TOKENS - n)
            survival[n, :here] = chain_survival(
                PATH_RULES[rule], here, text[n : n + here], p[n : n + here], q[n, :here]
            )[0]
            drafted[n, :here] = drafted_along(columns(q[n, :here], text[n : n + here]), stop, here)[0]
        assert math.isclose(count, calls_of_texts(survival * drafted, np.array([TOKENS])).expected[0], abs_tol=EXACT)
        off.append(count - calls_of_texts(survival, np.array([TOKENS])).expected[0])
    assert max(off) > 1e-3


class _Confident(_Handmade):
    """A head with a confidence in each draft, made of what it knows before the draft."""

    def reading(self) -> Any:
        return _ConfidentReading(self)


class _ConfidentReading(_HandmadeReading):
    def first(self, pairs: Tensor) -> Tensor:
        self.confidence = torch.sigmoid(3 * self.states[pairs, 0])
        return super().first(pairs)

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        logits = super().extend(parents, tokens)
        self.confidence = torch.sigmoid(3 * self.nodes[-len(tokens) :, 0])
        return logits


def confidences(text: tuple[int, ...], k: int) -> Floats:
    """The confidence ``[N, k]`` in each draft of calls from every start along a text, from single calls."""
    whole = [*PROMPT, *text]
    hidden = torch.stack([state_after(tuple(whole[: i + 1])) for i in range(len(whole) - 1)])
    made = np.zeros((len(text), k))
    for n in range(len(text)):
        reading, last = _Confident().reading(), len(PROMPT) + n - 2
        reading.read(hidden[: last + 1], torch.tensor(whole[1 : last + 2]))
        reading.first(torch.tensor([last]))
        made[n, 0] = reading.confidence.item()
        for i in range(1, min(k, len(text) - n)):
            above = torch.tensor([-1 - last if i == 1 else i - 2])
            reading.extend(above, torch.tensor([text[n + i - 1]]))
            made[n, i] = reading.confidence.item()
    return made


@pytest.mark.parametrize("rule", ["token", "block"])
def test_a_confidence_stops_a_call_and_changes_no_text(rule: str) -> None:
    """The text is the target's, and its calls those of drafts up to the first below; else others."""
    k, stop = 2, read_stop("confidence<0.5")
    with torch.inference_mode():
        mass, calls = counted(Method(rule, Chain(k, stop=stop)), readers=readers_with(_Confident, k))
        assert distance(mass, target_law(TOKENS)) < EXACT
        off = []
        for text, count in calls.items():
            p, _ = along(text, (1, 2))
            q, sure = pmfs_by_start(_Confident, text, k), confidences(text, k)
            survival, lengths = np.zeros((TOKENS, k)), np.array([TOKENS])
            for n in range(TOKENS):
                here = slice(0, min(k, TOKENS - n))
                of_text = text[n : n + here.stop]
                law = chain_survival(PATH_RULES[rule], here.stop, of_text, p[n : n + here.stop], q[n, here])
                survival[n, here] = law[0]
            drafted = np.logical_and.accumulate(sure >= stop.threshold, axis=1)
            assert math.isclose(count, calls_of_texts(survival * drafted, lengths).expected[0], abs_tol=EXACT)
            off.append(count - calls_of_texts(survival, lengths).expected[0])
    assert max(off) > 1e-3


def test_a_draft_without_a_confidence_is_refused() -> None:
    with pytest.raises(SettingError, match=r"confidence<0.5 is asked for: the draft has no confidence; stop by token"):
        counted(Method("token", Chain(2, stop=read_stop("confidence<0.5"))), readers=readers_with(_Handmade, 2))


def test_an_end_of_text_in_the_drafts() -> None:
    ends = frozenset({0})
    for stop in STOPS:
        assert distance(law_of(Method("block", Chain(3, stop=stop)), 3, ends), target_law(3, ends)) < EXACT


@pytest.mark.parametrize(
    ("stop", "room", "end", "drafted", "passes"),
    [
        ("token<0.1", 9, 3, 3, 3),
        ("token<0.1", 2, 3, 2, 2),
        ("token<0.1", 9, 1, 2, 2),
        ("token<0.5", 9, 3, 1, 1),
        ("top<0.9", 9, 3, 0, 1),
    ],
)
def test_passes_and_drafts_of_a_call(stop: str, room: int, end: int, drafted: int, passes: int) -> None:
    """At most k and the room there is, none after an end of text; a token that is not kept costs its pass."""
    tree, pmf = DraftTree(), np.array([0.4, 0.4, 0.2])
    call = _draft_until_stop(
        tree, read_stop(stop), min(3, room), lambda *_: [len(tree.nodes)], Mock(), frozenset({end})
    )
    made = [next(call)]
    with contextlib.suppress(StopIteration):
        while True:
            made.append(call.send((pmf,)))
    assert (len(tree.nodes), len(made)) == (drafted, passes)


def stopped_by_acceptance(tree: DraftTree, target: _Pmfs, source: Source) -> Verdict:
    """Biased: a rejected draft is not judged but taken for a chain that stopped before it."""
    path, token = _recursive_rejection(tree, target, source)
    if len(path) < len(tree.nodes):
        token = source.chance.categorical(target[path[-1] if path else -1])
    return path, token


def test_a_stop_that_looks_at_the_coins_is_biased() -> None:
    """Negative control of losslessness: the stop must be a function of the drafts."""
    law = law_of(Method("token", Chain(2, stop=STOPS[0])), verifier=stopped_by_acceptance)
    assert distance(law, target_law(3)) > 1e-2


@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_races_output_what_they_do_without_drafts(stop: StoppingRule) -> None:
    keys = range(100)
    assert raced_texts(Method("race", Chain(3, stop=stop)), keys) == raced_texts(Method("race"), keys)


def test_a_stop_before_the_first_draft_is_a_plain_call(tiny_pair: ModelPair) -> None:
    """No pmf has a top probability of 1, so nothing is drafted, and the text is the plain one."""
    method = Method("token", Chain(3, stop=read_stop("top<1")))
    (text,) = decode(tiny_pair, PROMPTS[:1], method, tokens=12, sampling=Sampling(temperature=2.0))
    assert {(call.drafted, call.last) for call in text.calls} == {(0, "plain")}
    assert all(call.draft_seconds > 0 for call in text.calls[:-1])


def test_batches_stop_each_by_itself(tiny_pair: ModelPair) -> None:
    """In step or alone: the same texts and calls."""
    method = Method("token", Chain(4, stop=read_stop("token<0.2")))
    alone = decode(tiny_pair, PROMPTS, method, tokens=20, seed=3)
    together = decode(tiny_pair, PROMPTS, method, tokens=20, seed=3, batch=3)
    for one, other in zip(alone, together, strict=True):
        assert one.output_ids.tolist() == other.output_ids.tolist()
        assert [(c.drafted, c.accepted) for c in one.calls] == [(c.drafted, c.accepted) for c in other.calls]
    assert {call.drafted for text in alone for call in text.calls} >= {1, 2}


GREEDY = Sampling(temperature=0)


@pytest.mark.parametrize("rule", ["token", "block", "argmax", "race", "greedy"])
def test_greedy_chains_stop_by_the_plain_softmax(
    rule: str, tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greedy text, and a call's drafts end where the softmax of a model read by hand says; one-hot pmfs never."""
    plain = decode(tiny_pair, PROMPTS, Method("plain"), tokens=20, sampling=GREEDY)
    for stop in STOPS[:2]:
        method = Method(rule, Chain(4, stop=stop))
        texts = decode(tiny_pair, PROMPTS, method, tokens=20, sampling=GREEDY, batch=3)
        assert [text.output_ids.tolist() for text in texts] == [text.output_ids.tolist() for text in plain]
        drafted = [call.drafted for text in texts for call in text.calls]
        by_hand = [
            n for ids, text in zip(PROMPTS, texts, strict=True) for n in drafted_by_hand(tiny_pair, ids, text, stop)
        ]
        assert drafted == by_hand
    with monkeypatch.context() as patched:
        patched.setattr(Method, "confidences", lambda self, sampling: sampling)
        texts = decode(tiny_pair, PROMPTS, method, tokens=20, sampling=GREEDY, batch=3)
        assert [call.drafted for text in texts for call in text.calls] != by_hand
        assert all(call.drafted == 4 for text in texts for call in text.calls[:-4])


def drafted_by_hand(pair: ModelPair, prompt: torch.Tensor, text: Decoded, stop: StoppingRule) -> list[int]:
    """How many first choices each call of a text drafts, one forward pass of the draft after the other."""
    ids, drafted, ends = [*prompt.tolist(), *text.output_ids.tolist()], [], pair.end_of_text
    at = len(prompt)
    for call in text.calls:
        prefix, made = ids[:at], 0
        while made < min(4, len(prompt) + 20 - at - 1):
            with torch.inference_mode():
                logits = pair.draft.network(input_ids=torch.tensor([prefix])).logits[0, -1, : pair.vocabulary].double()
            top = float(torch.softmax(logits, -1).max())
            if top < stop.threshold and not stop.keeps:
                break
            prefix, made = [*prefix, int(logits.argmax())], made + 1
            if top < stop.threshold or prefix[-1] in ends:
                break
        drafted.append(made)
        at += call.accepted + 1
    return drafted


def test_no_stop_by_entropy_at_temperature_zero(tiny_pair: ModelPair) -> None:
    with pytest.raises(SettingError, match=r"entropy>0\.6 is asked for at temperature 0.*stop by top or token"):
        decode(tiny_pair, PROMPTS, Method("token", Chain(3, stop=STOPS[2])), tokens=4, sampling=GREEDY)


def test_copied_drafts_have_no_draft_that_stops() -> None:
    with pytest.raises(SettingError, match=r"lookup is asked for chain k=3, token<0\.6: its drafts are copied"):
        Method("lookup", Chain(3, stop=STOPS[0]))
    assert Method("token", Chain(3)).uses_draft
