"""Trees grown from the draft (B8): batches of the simulator against a twin that reads every prefix anew.

Both round float32 otherwise; weights agree to `ROUNDING`. Two sets of comparisons have a false-alarm rate of `ALARM`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulations.counts import Mean
from simulations.draws import Stream, words
from simulations.reference.trees import PmfAfter, heaviest_prefixes, model_trial
from simulations.simulators.model_trees import Target, drafted_trees
from simulations.verdicts.predictions import Predicted, compare, predictions
from spectheory.errors import SettingError
from tests.simulations.model_cases import PROMPTS, pmf_of

ROUNDING, ALARM = 2e-5, 1e-9
CAPACITIES, THRESHOLDS, STARTS = [1, 3, 7], [0.8, 1.5, 2.2], 3
PARAMETERS = {"draft": "any", "capacities": CAPACITIES, "thresholds": THRESHOLDS, "starts": STARTS}


@pytest.fixture(scope="module")
def target(tiny_pair: Any) -> Target:
    return Target(tiny_pair.target.network, tiny_pair.vocabulary, tiny_pair.window, PROMPTS)


def weight(pmf_after: PmfAfter, before: list[int], prefix: tuple[int, ...]) -> float:
    return float(np.prod([pmf_after([*before, *prefix[:i]])[token] for i, token in enumerate(prefix)]))


def test_trials_are_those_of_the_twin(target: Target, tiny_pair: Any) -> None:
    p_after, q_after = pmf_of(target.network), pmf_of(tiny_pair.draft.network)
    state = words(31)
    stream, trials = Stream(state), 4
    tally = drafted_trees(target, tiny_pair.draft.network, PARAMETERS, trials, state)
    sums = dict.fromkeys(tally.moments, 0.0)
    for _ in range(trials):
        prompt, start, text = model_trial(p_after, PROMPTS, STARTS, CAPACITIES[-1], stream)
        before = [*prompt, *text[:start]]
        of_target, of_draft = (heaviest_prefixes(after, before, CAPACITIES[-1]) for after in (p_after, q_after))
        for capacity in CAPACITIES:
            best, tree = ({prefix for _, prefix in heaviest[:capacity]} for heaviest in (of_target, of_draft))
            p = {prefix: weight(p_after, before, prefix) for prefix in best | tree}
            q = {prefix: weight(q_after, before, prefix) for prefix in best | tree}
            bound = sum(max(p[v] - q[v], 0) for v in best - tree) + sum(max(q[v] - p[v], 0) for v in tree - best)
            after = tuple(text[start:])
            depth = next(n for n in range(len(after) + 1) if n == len(after) or after[: n + 1] not in tree)
            sums[f"best P={capacity}"] += sum(p[v] for v in best)
            sums[f"drafted P={capacity}"] += sum(p[v] for v in tree)
            sums[f"claimed P={capacity}"] += sum(q[v] for v in tree)
            sums[f"bound P={capacity}"] += bound
            sums[f"depth P={capacity}"] += depth
    assert state.tolist() == stream.state.tolist(), "as many draws"
    for capacity in CAPACITIES:
        for name in ("best", "drafted", "claimed", "bound", "depth"):
            key = f"{name} P={capacity}"
            assert float(tally.moments[key].mean) == pytest.approx(sums[key] / trials, abs=10 * ROUNDING), key


def test_the_statement_holds_and_wrong_ones_are_caught(target: Target, tiny_pair: Any) -> None:
    tally = drafted_trees(target, tiny_pair.draft.network, PARAMETERS, 400, words(5))
    assert all(compare(tally, predictions("draft-trees", PARAMETERS), ALARM))
    assert tally.moments["loss P=7"].mean > 0, "the draft is not the target"
    wrong = [
        Predicted("the depth is the best tree's", "none", Mean("depth P=7"), 2 * float(tally.moments["best P=7"].mean)),
        Predicted("nothing is lost", "none", Mean("loss P=7"), 0.0),
    ]
    assert not any(compare(tally, wrong, ALARM))


def test_bad_settings_are_one_clear_line(target: Target, tiny_pair: Any) -> None:
    with pytest.raises(SettingError, match="must ascend"):
        drafted_trees(target, tiny_pair.draft.network, {**PARAMETERS, "capacities": [3, 1]}, 2, words(1))
