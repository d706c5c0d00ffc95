"""Best trees of a language model: kernel against a twin that reads every prefix anew, and exact bounds.

Kernel and twin read the same tokens in other orders, so that float32 rounds their pmfs otherwise: weights agree to
`ROUNDING`. Three sets of comparisons have a rate of false alarms of `ALARM` each (means by Student's approximation).
With `TRIALS` trials the mean surprisal of the tiny model is known to about a tenth of a nat.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import simulations.simulators  # noqa: F401  registers them
from simulations.counts import Mean, Tally
from simulations.draws import Stream, uniform, words
from simulations.experiments.tasks import registered
from simulations.models.families import FAMILIES
from simulations.models.model_growth import Reader, grow, sample
from simulations.reference.trees import PmfAfter, heaviest_prefixes, model_trial
from simulations.simulators.model_trees import Target, trees_of
from simulations.sweeps import branching, imperfect
from simulations.verdicts.predictions import Predicted, compare, predictions

torch = pytest.importorskip("torch")

Floats = NDArray[np.float64]

DOCS = Path(__file__).parents[2] / "docs"

ROUNDING = 2e-5
CAPACITIES, THRESHOLDS, STARTS = [1, 2, 5, 9], [0.8, 1.2, 1.9, 2.4], 4
PARAMETERS = {"capacities": CAPACITIES, "thresholds": THRESHOLDS, "starts": STARTS}
TRIALS = 600
ALARM = 1e-9

PROMPTS = ((3, 1, 4), (1, 5, 9, 2, 6), (5,), (3, 5, 8, 9, 7, 9, 3))


@pytest.fixture(scope="module")
def target(tiny_pair: Any) -> Target:
    return Target(tiny_pair.target.network, tiny_pair.vocabulary, tiny_pair.window, PROMPTS)


@pytest.fixture(scope="module")
def pmf_after(target: Target) -> PmfAfter:
    def after(tokens: Sequence[int]) -> Floats:
        with torch.inference_mode():
            logits = target.network(input_ids=torch.tensor([list(tokens)])).logits[0, -1]
        return torch.softmax(logits.double(), dim=-1).numpy()

    return after


@pytest.fixture(scope="module")
def tally(target: Target) -> Tally:
    return trees_of(target, PARAMETERS, TRIALS, words(3))


def grown(target: Target, starts: Sequence[int], capacity: int, length: int = 6) -> tuple[NDArray[np.int64], Floats]:
    """Texts after all prompts, and the weights of their trees."""
    state = words(17)
    reader = Reader(target.network, target.vocabulary, target.prompts)
    texts = sample(reader, np.array([[uniform(state) for _ in range(length)] for _ in target.prompts]))
    roots = texts.pmfs[np.arange(len(starts)), starts]
    return texts.tokens, grow([reader], [roots], np.array(starts), capacity).weights[0]


def test_trees_are_those_of_the_twin(target: Target, pmf_after: PmfAfter) -> None:
    starts = [0, 3, 5, 1]
    texts, weights = grown(target, starts, 25)
    for prompt, text, start, row in zip(PROMPTS, texts, starts, weights, strict=True):
        prefixes = heaviest_prefixes(pmf_after, [*prompt, *text[:start]], 25)
        np.testing.assert_allclose(row, [weight for weight, _ in prefixes], rtol=ROUNDING)
        assert len({len(prefix) for _, prefix in prefixes}) > 2, "trees that branch and go deep"


def test_trials_are_those_of_the_twin(target: Target, pmf_after: PmfAfter) -> None:
    """Prompt, start, every token of the text, and what is made of them."""
    state = words(29)
    stream, trials = Stream(state), 19  # more than are read together
    tally = trees_of(target, PARAMETERS, trials, state)
    expected: dict[str, list[float]] = {name: [] for name in tally.moments}
    for _ in range(trials):
        prompt, start, text = model_trial(pmf_after, PROMPTS, STARTS, CAPACITIES[-1], stream)
        pmfs = [pmf_after([*prompt, *text[:n]]) for n in range(len(text))]
        surprisals = np.array([-np.log(pmf[token]) for pmf, token in zip(pmfs, text, strict=True)])
        entropies = np.array([-(pmf @ np.log(pmf)) for pmf in pmfs])
        weights = [weight for weight, _ in heaviest_prefixes(pmf_after, [*prompt, *text[:start]], CAPACITIES[-1])]
        expected["entropy"].append(entropies[:STARTS].mean())
        expected["second moment"].append(np.mean([pmf @ np.log(pmf) ** 2 for pmf in pmfs[:STARTS]]))
        expected["surprisal less entropy"].append(surprisals.mean() - entropies.mean())
        for capacity, threshold in zip(CAPACITIES, THRESHOLDS, strict=True):
            walks = [np.cumsum(surprisals[place : place + capacity]) for place in range(STARTS)]
            terms = [1 - np.exp(s - threshold) for walk in walks for s in walk if s < threshold]
            expected[f"P={capacity}"].append(sum(weights[:capacity]))
            expected[f"text P={capacity}"].append(sum(terms) / STARTS)
            expected[f"P={capacity} less text"].append(
                expected[f"P={capacity}"][-1] - expected[f"text P={capacity}"][-1]
            )
    assert state.tolist() == stream.state.tolist(), "as many draws"
    for name, values in expected.items():
        assert tally.moments[name].mean == pytest.approx(np.mean(values), abs=ROUNDING), name
        assert tally.moments[name].variance == pytest.approx(np.var(values, ddof=1), abs=30 * ROUNDING), name


def test_the_bound_of_the_text_holds(tally: Tally) -> None:
    """B6 on real conditional pmfs, and the mean of the surprisal."""
    stated = predictions("model-trees", PARAMETERS)
    assert len(stated) == len(CAPACITIES) + 1
    for comparison in compare(tally, stated, ALARM):
        assert comparison, comparison


def test_wrong_statements_are_caught(tally: Tally) -> None:
    """Negative control: the text's part alone is no bound, and thresholds of other capacities are no statement."""
    wrong = [
        Predicted(f"P = {c}", "none", Mean(f"P={c} less text"), 0.2 * c * np.exp(-t), "upper bound")
        for c, t in zip(CAPACITIES, THRESHOLDS, strict=True)
    ]
    wrong.append(Predicted("surprisal", "none", Mean("entropy"), tally.moments["entropy"].mean * 0.8))
    assert not any(compare(tally, wrong, ALARM))


def test_random_trees_know_their_families() -> None:
    """The registered kind: bounds hold, P = 1 is exact, and half of B3' or another mean is caught."""
    for name in list(FAMILIES)[1:3]:
        parameters = {"family": name, "pmfs": 64, "tokens": 16, "capacities": [1, 8, 64]}
        tally = registered("random-trees").run(parameters, 4000, words(11))
        stated = predictions("random-trees", parameters)
        assert len(stated) == 13
        assert all(compare(tally, stated, ALARM))
        wrong = [
            Predicted(one.says, "none", one.quantity, float(one.value) / 2, one.side)  # type: ignore[arg-type]
            for one in stated
            if one.statement in ("B3'", "best tree")
        ]
        assert not any(compare(tally, wrong, ALARM))


@pytest.mark.parametrize("sweep", [branching, imperfect])
def test_the_tables_of_the_docs_are_the_figures(sweep: Any) -> None:
    made = json.loads((DOCS / "figures" / f"{sweep.__name__.split('.')[-1]}.json").read_text(encoding="utf-8"))
    assert f"\n{sweep.table(made['data'])}\n" in (DOCS / "figures" / "tables.md").read_text(encoding="utf-8")
