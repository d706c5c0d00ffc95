"""The results of a validation as one JSON-ready object, from what was decoded and measured at each temperature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from spectheory.cost import LatencyTable
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.judging.comparison import CERTAIN
from spectheory.measure.validation.runs import CONTROLS, Round, Run, compare_runs
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.measure.validation.times import (
    Floats,
    RunSums,
    TraceExpectation,
    budget,
    by_table,
    in_loop,
    made_by_table,
    speedup,
    sum_over_runs,
)
from spectheory.prediction import predict
from spectheory.prediction.over_prompts import NO_LIMITS, interval, left_out
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import calls_by_drafted, drafted, survival_of
from spectheory.reports.validation_terms import FALSE_ALARMS, SCHEMA, WITHIN, median_miss
from spectheory.trace import Trace

COARSE = ("bfloat16", "float16")
"""Precisions in which a cached and a teacher-forced pass often differ by more than the gap of a near-tie."""


@dataclass(frozen=True)
class Evidence:
    """What was decoded and measured at one temperature.

    `rounds` has one round per prompt; `trace` is of other texts of the same prompts, known before decoding; `table` has
    the seconds of passes.
    """

    settings: tuple[Setting, ...]
    prompts: tuple[str, ...]
    rounds: Sequence[Round]
    trace: Trace
    table: LatencyTable

    def runs(self, setting: Setting) -> list[Run]:
        """The runs of a setting, one per prompt."""
        return [one[setting.name] for one in self.rounds]

    def decides(self, setting: Setting) -> bool:
        """Whether a difference of counted and expected calls refutes the theorem or the decoder.

        Where nothing is random given the text the two must be equal, but in coarse precision a near-tie may round
        differently in the two passes. Prompt lookup always decides: what it copies depends only on the tokens.
        """
        known = self.trace.provenance
        coarse = any(known.get(who, {}).get("dtype") in COARSE for who in ("target", "draft"))
        greedy = known.get("settings", {}).get("sampling", {}).get("temperature") == 0
        return (
            not coarse or not setting.path_rule.uses_draft or not (greedy or compare_runs(self.runs(setting)).certain)
        )

    def timed(self, setting: Setting) -> RunSums:
        """The sums over a setting's runs."""
        return sum_over_runs(self.runs(setting))

    def predicted(self, setting: Setting, cost: LatencyTable) -> Interval:
        """The speed-up predicted from trace and costs, as in ``spectheory predict``."""
        found = predict(self.trace, setting.path_rule, setting.drafts, cost).speedup
        assert found is not None
        return found

    def of_trace(self, setting: Setting) -> TraceExpectation:
        """What the trace predicts of the setting's calls."""
        rule, shape = setting.path_rule, setting.drafts
        survival = survival_of(rule, setting.shape or shape, self.trace.columns)
        calls = calls_of_tree(*survival, self.trace.lengths, variance=True)
        counts = calls_by_drafted(self.trace, rule, shape)
        expected = self._of_texts(calls.expected)
        return TraceExpectation(
            drafted(rule, shape, counts),
            self._of_texts(self.trace.lengths) / expected,
            self._of_texts(calls.full) / expected,
            {shape.nodes + 1: np.ones_like(expected)}
            if counts is None
            else {copied + 1: self._of_texts(column) / expected for copied, column in enumerate(counts.T)},
        )

    def _of_texts(self, values: NDArray[Any]) -> Floats:
        """Sums over all prompts, and without each, of a value per text of the trace."""
        place = {name: number for number, name in enumerate(self.prompts)}
        rows = [place[text.prompt] for text in self.trace.texts]
        return left_out(np.bincount(rows, values, len(place)))

    def interval(
        self, values: Floats, *, limits: tuple[float, float] = NO_LIMITS, logarithmic: bool = True
    ) -> Interval:
        """The 95% interval over prompts of values computed on all of them and without each."""
        return interval(values, self._of_texts(self.trace.lengths), limits=limits, logarithmic=logarithmic)


_ROUNDING = 1e-6
"""Of sums of some hundred calls."""


_VERDICTS = {"control": "per_position", "control_of_stopping": "fixed"}
"""Verdicts on wrong readings."""


def answer_at(evidence: Evidence) -> list[dict[str, Any]]:
    """A record for each setting: tokens per call counted, expected and predicted, and the speed-up."""
    return [_record(evidence, setting) for setting in evidence.settings]


def _record(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    here, shape, runs = evidence.timed(setting), setting.drafts, evidence.runs(setting)
    return {
        "name": setting.name,
        "rule": setting.rule,
        "shape": str(setting.shape),
        "nodes": shape.nodes,
        "judged": setting.judged,
        "tokens": int(here.tokens[0]),
        "calls": int(here.calls[0]),
        "tokens_per_call": evidence.interval(here.tokens / here.calls, limits=(1.0, shape.depth + 1.0)).as_dict(),
        "expected": {"decides": evidence.decides(setting)} | _compared(runs),
        # Wrong readings of the same texts: of draft heads that per position, of stopped chains that always k.
        **{control: _compared(runs, control) for control in CONTROLS if getattr(runs[0].expected, control, None)},
        **({"drafted": _drafted_tokens(runs)} if setting.stop else {}),
        "trace": _from_trace(evidence, setting),
        "speedup": _without_budget(evidence, setting)
        if setting.judged or setting.stop
        else _speedup(evidence, setting),
    }


def _compared(runs: Sequence[Run], control: str = "") -> dict[str, Any]:
    """Counted against expected calls, or against those that a wrong reading expects."""
    found = compare_runs(runs, control)
    return {
        "calls": found.low,
        "off": found.off,
        "tokens_per_call": sum(len(run.output) for run in runs) / found.low,
        "deviation": found.deviation,
        "of_estimates": found.of_estimates,
        # Infinite if nothing is random and the calls differ; JSON has no infinity.
        "z": found.z if math.isfinite(found.z) else None,
        "p": found.p,
    }


def _drafted_tokens(runs: Sequence[Run]) -> dict[str, Any]:
    """Drafts per call of a setting, counted and expected of the same texts; `inside` says whether the two agree.

    Counted minus estimated drafts of a prompt have mean 0. The interval is that of Student's law over prompts, 95%,
    around the two estimates, which differ most where the draft may leave what the target can output; it is cut to the
    certain bounds. Ratios have heavy tails, so the coverage is approximate, and nothing is decided by it.
    """
    known = [(run.drafted, run.expected.drafted) for run in runs if run.expected and run.expected.drafted]
    counted, bounds = np.array([n for n, _ in known], dtype=float), np.array([of for _, of in known])
    calls = sum(run.count for run in runs)
    low, going, stopping, high = bounds.sum(axis=0)
    off = counted - bounds[:, 1:3].mean(axis=1)
    room = stdtrit(len(off) - 1, (1 + CONFIDENCE) / 2) * math.sqrt(len(off)) * float(off.std(ddof=1))
    ends = max(low, min(going, stopping) - room), min(high, max(going, stopping) + room)
    best = min(max((going + stopping) / 2, ends[0]), ends[1])
    found = Interval(ends[0] / calls, best / calls, ends[1] / calls, "statistical")
    total = float(counted.sum())
    return {
        "counted": total / calls,
        "expected": found.as_dict(),
        "certain": [low / calls, high / calls],
        "inside": bool(ends[0] - _ROUNDING <= total <= ends[1] + _ROUNDING),
    }


def _from_trace(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """What other texts of the same prompts predict; leaving out a prompt leaves it out on both sides."""
    here, interval = evidence.timed(setting), evidence.interval
    known = evidence.of_trace(setting).tokens_per_call
    return {
        "tokens_per_call": interval(known, limits=(1.0, setting.drafts.depth + 1.0)).as_dict(),
        "counted_over_predicted": interval(here.tokens / here.calls / known).as_dict(),
    }


def _speedup(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """The speed-up measured, of the passes alone, and predicted, with the error budget."""
    here, plain, interval = evidence.timed(setting), evidence.timed(PLAINLY), evidence.interval
    step = plain.verifying / plain.calls
    counted = here.tokens / here.calls
    measured = replace(here.per_call(step), plain=plain.seconds / plain.verifying - 1)
    passes = counted / (measured.drafting + measured.verifying)
    of_trace = evidence.of_trace(setting)
    known, shape = of_trace.tokens_per_call, of_trace.shape
    expected = np.array([run.expected.calls for run in evidence.runs(setting) if run.expected is not None])
    by_passes = by_table(evidence.table, of_trace)
    made = made_by_table(evidence.table, setting.drafts, evidence.runs(setting))
    predicted = in_loop(evidence.table, shape, by_passes)
    miss = speedup(counted, measured) / speedup(known, predicted)
    shares = budget(known, here.tokens / left_out(expected), counted, predicted, made, measured)
    return {
        "measured": interval(speedup(counted, measured)).as_dict(),
        "passes_alone": interval(passes).as_dict(),
        "machine": float(step[0] / evidence.table.target_step().best),
        "remarks": sorted({remark for run in evidence.runs(setting) for remark in run.remarks}),
        "predicted": evidence.predicted(setting, evidence.table.looped).as_dict(),
        "miss": _percent(evidence, miss),
        "miss_of_passes": _percent(evidence, passes * by_passes.total / known),
        "budget": {name: _percent(evidence, np.exp(share)) for name, share in shares.items()},
        "largest": max(shares, key=lambda name: abs(float(shares[name][0]))),
    }


def _without_budget(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """Of transformers relative to its own plain generation, prompts included, since its passes are not timed one by
    one; of stopped chains because what is drafted after a mismatch is estimated.
    """
    here, plain, interval = evidence.timed(setting), evidence.timed(setting.baseline), evidence.interval
    return {
        "measured": interval(here.tokens / here.seconds / (plain.tokens / plain.seconds)).as_dict(),
        "predicted": evidence.predicted(setting, evidence.table).as_dict(),
    }


def _percent(evidence: Evidence, factor: Floats) -> dict[str, Any]:
    """100 times the logarithm of a factor: per cent, and the parts add up."""
    return evidence.interval(100 * np.log(factor), logarithmic=False).as_dict()


def answer(
    temperatures: Mapping[float, list[dict[str, Any]]], provenance: Mapping[str, Any], left_out: Sequence[str] = ()
) -> dict[str, Any]:
    """All records, with the verdict over the deciding comparisons of all temperatures; of a head also the control's."""
    records = [record for of_one in temperatures.values() for record in of_one]
    compared = [record["expected"] for record in records if record["expected"]["decides"]]
    limit = FALSE_ALARMS / max(len(compared), 1)
    sizes = [math.inf if one["z"] is None else abs(one["z"]) for one in compared]
    misses = [record["speedup"] for record in records if "miss" in record["speedup"]]
    return {
        "schema": SCHEMA,
        "comparisons": len(compared),
        "false_alarms": FALSE_ALARMS,
        "disagreements": sum(one["p"] < limit for one in compared),
        "beyond_3": sum(size > WITHIN for size in sizes),
        **{key: verdict for key, name in _VERDICTS.items() if (verdict := _verdict(temperatures, name)) is not None},
        **({"left_out": list(left_out)} if left_out else {}),
        "median_miss": median_miss([one["miss"] for one in misses]),
        "median_miss_of_passes": median_miss([one["miss_of_passes"] for one in misses]),
        "temperatures": [{"temperature": at, "settings": of_one} for at, of_one in temperatures.items()],
        "provenance": dict(provenance),
    }


def _verdict(temperatures: Mapping[float, list[dict[str, Any]]], name: str) -> dict[str, Any] | None:
    """Whether one wrong reading is refuted, at the false-alarm rate of the validation, and where most clearly; None
    where nothing is held against it.

    Where nothing is random given the text the two readings are compared for equality; the largest |z| is that of the
    others.
    """
    rows = [
        (record[name], {"temperature": at, "name": record["name"]})
        for at, of_one in temperatures.items()
        for record in of_one
        if name in record and record["expected"]["decides"]
    ]
    if not rows:
        return None
    limit = FALSE_ALARMS / len(rows)
    refuted = sum(one["p"] < limit for one, _ in rows)
    random = [(one, where) for one, where in rows if one["deviation"] > CERTAIN] or rows
    most, where = max(random, key=lambda row: math.inf if row[0]["z"] is None else abs(row[0]["z"]))
    found = {"comparisons": len(rows), "refuted": refuted > 0, "refuted_in": refuted}
    return found | {"z": most["z"], "p": most["p"], **where}
