"""DSpark and Domino decoded: calls expected by start, with a confidence that stops; other label shifts are refuted.

The heads have random backbones; their corrections are fitted to the tiny target, so that some drafts are accepted.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, read_stop
from spectheory.measure import ModelPair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.heads.base import HiddenStates
from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.corrected import CorrectedHead
from spectheory.measure.validation import Validation
from spectheory.measure.validation.run import decoded_rounds
from spectheory.measure.validation.runs import Run, compare_runs, expected_calls
from spectheory.verification import PATH_RULES
from tests.measure.heads_made import V, config_of, made_head
from tests.validation.validation_cases import HOW, PROMPTS, WARM

CASES: dict[str, dict[str, Any]] = {
    "vanilla": config_of("dspark", block_size=4, markov_rank=V),
    "rnn": config_of("dspark", block_size=4, markov_rank=V, markov_head_type="rnn"),
    "domino": config_of("domino", block_size=5, emb_dim=4 * V, gru_hidden_dim=V),
    "domino, shifted": config_of("domino", block_size=4, emb_dim=4 * V, gru_hidden_dim=V, shift_label=True),
}
STOP = read_stop("confidence<0.5")
STOPPED = f"argmax, chain k=4, {STOP}"
FITTED = [torch.tensor([i + 1, i % 7 + 1, 9]) for i in range(8)]
"""Prompts of the texts that heads are fitted on."""
FALSE_ALARM = 1e-9
"""Of each exact tail; there are twelve."""


def fitted(pair: ModelPair, raw: dict[str, Any]) -> CorrectedHead:
    """A head whose last matrix gives the target's logits by least squares on its own texts."""
    head = made_head(raw)
    assert isinstance(head, CorrectedHead)
    last = head.markov_head.markov_w2 if head.kind == "dspark" else head.embed_proj[2]  # type: ignore[union-attr,index]
    assert isinstance(last, nn.Linear)
    how: Any = {"tokens": 60, "batch": 8, "stop_at_end": False}
    made = [decode(pair, FITTED, Method("plain"), sampling=Sampling(each), **how) for each in (0.0, WARM)]
    texts = [torch.cat([prompt, text.output_ids]) for each in made for prompt, text in zip(FITTED, each, strict=True)]
    taken: list[torch.Tensor] = []
    last.weight.requires_grad_(False).zero_()
    wanted = []
    with last.register_forward_pre_hook(lambda _, read: taken.append(read[0])), torch.no_grad():
        for text in texts:
            with HiddenStates(pair.target.network, head.layers) as states:
                logits = pair.target.network(text[None], use_cache=False).logits[0]
                hidden = states.take()[0, :-1]
            reading, pairs = head.reading(), torch.arange(len(text) - 4)
            reading.read(hidden, text[1:])
            following = text[pairs[:, None] + torch.arange(2, 5)]
            for i, base in enumerate(reading.depths(pairs, following, 4)):
                wanted.append(logits[pairs + 1 + i] - base)
        last.weight.copy_(torch.linalg.lstsq(torch.cat(taken), torch.cat(wanted)).solution.T)
        if head.kind == "dspark":  # confidences on both sides of 1/2
            head.confidence_head["proj"].bias.zero_()  # type: ignore[index,union-attr]
    return head


def drafting(pair: ModelPair, head: CheckpointHead, name: str) -> ModelPair:
    """The pair's target with a head as draft."""
    described = {"outputs": head.vocabulary, "fingerprint": name, "source": "made"}
    return dataclasses.replace(pair, draft=dataclasses.replace(pair.target, name=name, network=head, **described))


@pytest.fixture(scope="module", params=CASES, ids=str)
def pair(request: pytest.FixtureRequest, tiny_pair: ModelPair) -> ModelPair:
    """The tiny target with a fitted head."""
    return drafting(tiny_pair, fitted(tiny_pair, CASES[request.param]), request.param)


def decoded(pair: ModelPair, temperature: float, path: Path, rules: tuple[str, ...]) -> dict[str, list[Run]]:
    """The runs of every rule, then stopped by the confidence where the head has one."""
    shapes = Chain(4), *([Chain(4, stop=STOP)] if pair.draft.describe()["kind"] == "dspark" else [])
    question = Validation(rules, shapes, (temperature,), dataclasses.replace(HOW, tokens=50)).with_draft(pair.draft)
    settings = question.settings(temperature)
    rounds = decoded_rounds(pair, PROMPTS[:2], settings, question.at(temperature), path)
    return {setting.name: [one[setting.name] for one in rounds] for setting in settings if setting.shape}


def test_calls_are_those_expected_by_start(pair: ModelPair, tmp_path: Path) -> None:
    """Greedy calls to the call, sampled ones by exact tails at a false alarm of 1e-9 each.

    Some drafts are accepted, and a confidence that stops drafts fewer. The control: the first draft's pmf at each
    position expects other calls of what is certain; not of a vanilla bias, whose drafts mostly follow from one token.
    """
    greedy = decoded(pair, 0.0, tmp_path / "greedy.jsonl", ("argmax",))
    warm = decoded(pair, WARM, tmp_path / "warm.jsonl", ("token", "argmax"))
    fixed = greedy["argmax, chain k=4"]
    assert sum(run.count for run in fixed) < 0.9 * sum(len(run.output) for run in fixed)
    assert all(compare_runs(of_one).z == 0 for of_one in greedy.values())
    assert all(compare_runs(of_one).p > FALSE_ALARM for of_one in warm.values())
    for runs in (each for each in (greedy, warm) if STOPPED in each):
        stopped, whole = (
            sum(run.drafted for run in runs[name]) / sum(run.count for run in runs[name])
            for name in (STOPPED, "argmax, chain k=4")
        )
        assert 0 < stopped < 0.9 * whole
    off = [compare_runs(runs["argmax, chain k=4"], "per_position").z for runs in (greedy, warm)]
    assert (math.inf in map(abs, off)) == (pair.draft.name != "vanilla")


@pytest.mark.parametrize("name", ["domino", "domino, shifted"])
def test_the_other_label_shift_is_refuted(name: str, tiny_pair: ModelPair) -> None:
    """The same weights, read with the other shift, expect other calls of greedy texts."""
    head = fitted(tiny_pair, CASES[name])
    shifted = not CASES[name].get("shift_label", False)
    other = made_head(CASES[name] | {"shift_label": shifted, "block_size": 4 if shifted else 5})
    other.load_state_dict(head.state_dict())
    how: Any = {"tokens": 50, "sampling": Sampling(temperature=0.0), "stop_at_end": False}
    right, wrong = (drafting(tiny_pair, each, name) for each in (head, other))
    texts = decode(right, FITTED[:3], Method("argmax", Chain(4)), **how)

    def expected(pair: ModelPair) -> list[float]:
        laws = (
            expected_calls(pair, prompt, text.output_ids, how["sampling"], PATH_RULES["argmax"], Chain(4))
            for prompt, text in zip(FITTED, texts, strict=False)
        )
        return [law.calls for law in laws]

    assert [len(text.calls) for text in texts] == expected(right) != expected(wrong)
