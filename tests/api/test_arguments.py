"""Contract of arguments: whatever is passed, a public function answers or raises an error of this project, in one line.

The calls are those of the docstrings, with one argument damaged at a time; a new function is covered by its example.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import spectheory
from spectheory.distributions import as_floats, as_integers, as_numpy
from spectheory.errors import ShapeError, SpectheoryError
from spectheory.trace import Trace
from tests.api.right_calls import WRONG, Call, shown_calls
from tests.api.test_public import RESULTS, members
from tests.made_up import each

MODULES = (
    *("spectheory", "spectheory.cost", "spectheory.deployment", "spectheory.distributions", "spectheory.drafting"),
    *("spectheory.intervals", "spectheory.limits", "spectheory.prediction", "spectheory.prompts", "spectheory.trace"),
    *("spectheory.truncated", "spectheory.verification"),
)
MADE = {"Label", "ImperfectTree", "RaceInequalities"}
"""What functions return: fields are not checked."""
ANY = {"validate_pmf, name"}
"""Arguments that take any object."""
NEVER = ("an object", "a complex number", "a complex array", "an array of objects", "a masked array")
"""What no other argument takes: a complex number has no size, a masked entry no value."""
TAKEN = {
    "bytes": {"KAry, argument 1"},
    "a list with a masked entry": ANY,
    "a mapping": {
        *("Accelerator, argument 2", "LatencyTable, provenance", "LatencyTable.of, provenance"),
        "Trace.from_log_probabilities, provenance",
    },
    "texts": {"Trace.blocks, names"},
    "a text": {
        *("Accelerator, argument 1", "Accelerator, source", "noise, name"),
        "RecordedMatch, argument 1",
    },
}
"""The arguments that take each of these."""


def calls_of(module: str) -> Iterator[Call]:
    """The right calls of a module, one of each form."""
    seen = set()
    for _, member in members(importlib.import_module(module)):
        for call in shown_calls(member) if member.__name__ not in MADE else ():
            form = (call.name, len(call.given), *call.named)
            if form not in seen:
                seen.add(form)
                yield call


def breaches(call: Call) -> list[str]:
    """What is wrong with the answers to damaged calls."""
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that sparse tensors are in beta
        damaged = [(kind, *each) for kind, wrong in WRONG.items() for each in call.damaged(wrong)]
    for kind, place, one in damaged:
        outcome = one.outcome()
        taken = place in ANY or (kind not in NEVER and place in TAKEN.get(kind, {place}))
        if outcome not in (("refused", "accepted") if taken else ("refused",)):
            lines.append(f"{place} <- {kind}: {outcome}")
    return lines


@pytest.mark.parametrize("module", MODULES)
def test_whatever_is_passed_the_answer_or_the_error_is_ours(module: str) -> None:
    calls = list(calls_of(module))
    assert {call.outcome() for call in calls} <= {"accepted"}
    assert [breach for call in calls for breach in breaches(call)] == []


def test_every_name_of_the_package_has_a_right_call() -> None:
    """So that the contract is tested of all of them, a new one included."""
    named = {call.name.split(".")[0] for call in calls_of("spectheory")}
    assert {name for name, _ in members(spectheory)} - named == RESULTS & set(spectheory.__all__)


def test_breaches_are_seen() -> None:
    """Negative control: a foreign error, a warning, and an argument that nobody looks at."""

    def adds(a: Any, b: float = 1.0) -> Any:
        return a + b

    def divides(a: float) -> Any:
        return np.float64(a) / 0

    def ignores(a: Any) -> None: ...

    assert any("TypeError" in breach for breach in breaches(Call("adds", adds, (1.0,), {})))
    assert any("adds, b <- a text" in breach for breach in breaches(Call("adds", adds, (1.0,), {})))
    assert any("RuntimeWarning" in breach for breach in breaches(Call("divides", divides, (1.0,), {})))
    ignored = [f"ignores, argument 1 <- {kind}: accepted" for kind in (*NEVER, *TAKEN)]
    assert sorted(breaches(Call("ignores", ignores, (1.0,), {}))) == sorted(ignored)


# The door of arrays

NO_NUMBERS = [
    (np.ma.masked_array([0.5, 0.5, 7.0], mask=[0, 0, 1]), "is a masked array: every entry must be a number"),
    ([[0.5, 0.5], np.ma.masked_array([0.5, 0.5], mask=[0, 1])], "has masked rows or entries"),
    ([0.5, np.ma.masked], "has masked rows or entries"),
    (torch.empty(2, device="meta"), "is a meta tensor"),
    (torch.eye(2).to_sparse(), "is a sparse tensor"),
    (np.array(["0.5", 0.5], dtype=object), "holds object"),
    (np.array([None, 0.5], dtype=object), "holds object"),
    ([0.5, "0.5"], "holds <U"),
]


@each("values, fragment", NO_NUMBERS)
def test_arrays_without_numbers_are_refused(values: Any, fragment: str) -> None:
    for door in (as_floats, as_numpy, as_integers):
        with pytest.raises(SpectheoryError, match=f"^x {fragment}"):
            door(values, "x")


def test_arrays_of_every_kind_become_numpy() -> None:
    """On other devices' types too: half precision, gradients, matrices."""
    for values in (
        torch.tensor([0.5, 0.25], dtype=torch.bfloat16),
        torch.tensor([0.5, 0.25], requires_grad=True),
        np.array([0.5, 0.25], np.float16),
        [0.5, 0.25],
    ):
        array = as_numpy(values)
        assert (type(array), array.dtype, array.tolist()) == (np.ndarray, np.float64, [0.5, 0.25])
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix([[0.5, 0.5]])
    assert type(as_floats(matrix)) is np.ndarray
    assert as_integers([3.0, 4], "ids").tolist() == [3, 4]
    with pytest.raises(ShapeError, match=r"^ids are not all integers"):
        as_integers([3.5], "ids")


def test_masked_columns_are_refused() -> None:
    logs = np.array([-1.0, -0.5])
    info = Trace.from_log_probabilities([(logs, logs)]).texts
    columns = {"log_target": logs, "log_draft": np.ma.masked_array(logs, mask=[0, 1])}
    with pytest.raises(SpectheoryError, match=r"^log_draft is a MaskedArray"):
        Trace(columns, info)
