"""Causes in a model's settings: engines that sample otherwise than stated are found out, right ones are not blamed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from simulations.reference.decoding import Pair
from spectheory.distributions import Sampling
from spectheory.errors import TextError
from spectheory.judging.changes import (
    FILTERS_FIRST,
    NO_FILTERS,
    NO_TEMPERATURE,
    SETTINGS_CHANGES,
    TEMPERATURE_TWICE,
    LogitChange,
    _cut_to,
)
from spectheory.judging.judgement import Judgement, judge
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog
from spectheory.verification import PathRule, TokenVerification
from spectheory.verification.matching import ArgmaxDraft
from tests.judging.toy_engines import ToyEngine
from tests.judging.toy_texts import columns_of
from tests.made_up import each

Floats = NDArray[np.float64]
TOKENS = 40
TOKEN = TokenVerification()


@dataclass(frozen=True)
class Stated:
    """Raw logits of a pair, and the settings that an engine is said to apply."""

    sampling: Sampling
    seed: int = 3

    def raw(self) -> tuple[Floats, Floats]:
        """Of target and draft, ``[V, V]`` by the last token."""
        rng = np.random.default_rng(self.seed)
        target = rng.normal(0, 2, (TOKENS, TOKENS))
        return target, target + rng.normal(0, 1, (TOKENS, TOKENS))

    def pair(self, target: LogitChange | None = None, draft: LogitChange | None = None) -> Pair:
        """The pmfs under the settings, or under changes of them."""
        pmfs = []
        for logits, change in zip(self.raw(), (target, draft), strict=True):
            for sampling in change.steps(self.sampling) if change else (self.sampling,):
                logits = sampling.log_pmf(logits)
            pmfs.append(np.exp(logits))
        return Pair(*pmfs)

    def log(self, engine: Pair, seed: int) -> CallLog:
        """What an engine of these pmfs decodes, under the stated settings."""
        return replace(ToyEngine(engine).log(40, 40, seed=seed), **asdict(self.sampling))

    def judged(self, log: CallLog, *, models: bool = True, rule: PathRule = TOKEN) -> Judgement:
        """The judgement of a rule."""

        def reread(draft_change: LogitChange | None = None, target_change: LogitChange | None = None) -> Trace:
            pair = self.pair(target_change, draft_change)
            last = np.concatenate([(*r.prompt, *r.output[:-1]) for r in log.requests])
            token = np.concatenate([r.output for r in log.requests])
            texts = tuple(TextInfo(r.id, len(r.output)) for r in log.requests)
            columns = columns_of(pair.target[last], pair.draft[last], token)
            return Trace(columns, texts, {"settings": {"sampling": asdict(self.sampling)}})

        return judge(log, reread(), rules=(rule,), reread=reread if models else None)


def blamed(judgement: Judgement) -> dict[str, Any]:
    """Changes that were found, by cause."""
    return {one.cause: one.evidence["change"] for one in judgement.causes if "change" in one.evidence}


FAULTS = [
    (Sampling(), None, _cut_to(10), "draft cut"),
    (Sampling(0.6), None, NO_TEMPERATURE, "draft settings"),
    (Sampling(0.6), None, TEMPERATURE_TWICE, "draft settings"),
    (Sampling(1.0, top_k=5), None, NO_FILTERS, "draft settings"),
    (Sampling(0.6), NO_TEMPERATURE, NO_TEMPERATURE, "settings of both"),
]


def test_a_cut_lets_in_no_token_that_is_cut_already() -> None:
    """Where five tokens are kept, a cut to ten changes nothing; one to three does."""
    stated = Sampling(1.0, top_k=5)
    assert not _cut_to(10).differs(stated)
    assert _cut_to(3).steps(stated) == (replace(stated, top_k=3),)


@each("sampling, target, draft, cause", FAULTS)
def test_an_engine_that_samples_otherwise_is_found_out(
    sampling: Sampling, target: LogitChange | None, draft: LogitChange, cause: str
) -> None:
    stated = Stated(sampling)
    judgement = stated.judged(stated.log(stated.pair(target, draft), seed=1))
    assert judgement.refuted
    assert blamed(judgement)[cause] == draft.name
    finding = next(one for one in judgement.causes if one.cause == cause)
    assert finding.rule == "token"
    assert draft.says in finding.sentence
    assert "\n" not in finding.sentence


def test_an_output_of_other_settings_is_found() -> None:
    """Only the target ignores the temperature: the rule is refuted as stated, and right with the target read anew."""
    stated = Stated(Sampling(0.6))
    judgement = stated.judged(stated.log(stated.pair(NO_TEMPERATURE, None), seed=2))
    assert blamed(judgement)["target settings"] == NO_TEMPERATURE.name


def test_an_output_of_other_settings_is_found_where_counts_fit_any_target() -> None:
    """Drafts that are first choices are counted right whatever the target samples: the output alone is refuted."""
    stated = Stated(Sampling(0.6))
    engine = ToyEngine(stated.pair(NO_TEMPERATURE, None), rule="argmax")
    log = replace(engine.log(40, 40, seed=3), **asdict(stated.sampling))
    judgement = stated.judged(log, rule=ArgmaxDraft())
    assert not judgement.refuted
    assert judgement.output_refuted
    # Such drafts do not tell at which temperature the draft is: both causes explain.
    assert set(blamed(judgement)) == {"target settings", "settings of both"}
    assert set(blamed(judgement).values()) == {NO_TEMPERATURE.name}


@each("sampling, seed", [(Sampling(0.6, top_k=20), 5), (Sampling(), 6)])
def test_a_right_engine_is_not_blamed(sampling: Sampling, seed: int) -> None:
    """Negative control: the same engines without the fault."""
    stated = Stated(sampling)
    judgement = stated.judged(stated.log(stated.pair(), seed=seed))
    assert not judgement.refuted
    assert judgement.causes == ()


def test_nothing_is_read_again_without_models_or_where_no_change_matters() -> None:
    stated = Stated(Sampling(0.6))
    log = stated.log(stated.pair(None, NO_TEMPERATURE), seed=7)
    assert blamed(stated.judged(log, models=False)) == {}
    assert not any(change.differs(Sampling()) for change in SETTINGS_CHANGES)
    assert FILTERS_FIRST.differs(Sampling(0.5, min_p=0.1))


def test_a_reading_under_which_the_text_is_impossible_is_left_out() -> None:
    """Drafts that ignore top-p: the changes that sharpen the target's own filters too cannot output the text."""
    stated = Stated(Sampling(0.6, top_p=0.95))
    log = stated.log(stated.pair(None, NO_FILTERS), seed=8)
    with pytest.raises(TextError):
        Stated(Sampling(0.36, top_p=0.8)).judged(log)
    assert blamed(stated.judged(log))["draft settings"] == NO_FILTERS.name
