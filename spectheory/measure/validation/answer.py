r"""The results of a validation as one JSON-ready object, from what was decoded and measured at each temperature.

Times are in plain steps. With N tokens per call, drafting d, verifying v, all other time o per call, and p the time of
plain decoding outside its passes, measured and predicted speed-ups are

.. math:: S = \frac{N (1 + p)}{d + v + o}, \qquad \hat S = \frac{\hat N (1 + \hat p)}{\hat d + \hat v + \hat o},

so :math:`\log(S / \hat S)` is :math:`\log(N / \hat N)` plus :math:`\log(1 + p) - \log(1 + \hat p)` minus :math:`\log(t
/ \hat t)` for the time t of a call. That is :math:`(t - \hat t) / L` with the logarithmic mean L, and splits over the
terms of :math:`t - \hat t` without a remainder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from spectheory.cost import LatencyTable
from spectheory.cost.model import reads_besides
from spectheory.distributions import Floats
from spectheory.drafting import Shape
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.judging.comparison import CERTAIN
from spectheory.measure.decoders.decode import Call
from spectheory.measure.validation.runs import CONTROLS, Round, Run, compare_runs
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.prediction import predict
from spectheory.prediction.bias_tradeoff import bias_tradeoff, calls_beside
from spectheory.prediction.ngrams import in_trace
from spectheory.prediction.over_prompts import NO_LIMITS, interval, left_out
from spectheory.prediction.paths import calls_of_tree
from spectheory.prediction.shape_calls import calls_by_drafted, drafted, survival_of
from spectheory.reports.validation import FALSE_ALARMS, SCHEMA, WITHIN, median_miss
from spectheory.trace import Trace
from spectheory.verification import LossyRule

# Times of calls, measured and by a latency table


_EQUAL = 1e-9
"""For numbers closer than this, logarithmic and arithmetic mean agree up to rounding."""


@dataclass(frozen=True)
class RunSums:
    """Sums over the runs of one setting, over all prompts, then without each: ``[1 + prompts]``."""

    tokens: Floats
    calls: Floats
    drafting: Floats
    verifying: Floats
    seconds: Floats

    def per_call(self, step: Floats) -> _CallTime:
        """Time per call in units of `step` seconds."""
        unit = self.calls * step
        return _CallTime(
            self.drafting / unit, self.verifying / unit, (self.seconds - self.drafting - self.verifying) / unit
        )


@dataclass(frozen=True)
class _TraceExpectation:
    """What a trace predicts of a setting's calls, ``[1 + prompts]`` each; `verified`: shares by the tokens of a target
    pass.
    """

    shape: Shape
    tokens_per_call: Floats
    full_share: Floats
    verified: Mapping[int, Floats]


def _by_table(table: LatencyTable, known: _TraceExpectation) -> _CallTime:
    """The mean call by the trace, in the table's own plain steps (C2)."""
    step, verify = table.target_step().best, table.verification(known.shape).best
    # The time of a call is taken as linear in what its first pass reads.
    most = reads_besides(table, known.shape.depth, 1)
    late = reads_besides(table, known.tokens_per_call - 1, known.full_share) / most
    without, with_ = (table.call(known.shape, more).best - verify for more in (0, most))
    verifying = sum(share * table.target_pass(tokens).best for tokens, share in known.verified.items())
    return _CallTime((without + late * (with_ - without)) / step, np.asarray(verifying) / step)


def _made_by_table(table: LatencyTable, shape: Shape, runs: Sequence[Run]) -> _CallTime:
    """The calls as they were made, in the table's own plain steps: actual numbers of drafts, full calls as counted."""
    step = table.target_step().best
    rows = [_pass_seconds(table, shape, run) for run in runs]
    drafting, verifying = (left_out(np.array(column)) for column in zip(*rows, strict=True))
    calls = left_out(np.array([float(run.count) for run in runs])) * step
    return _CallTime(drafting / calls, verifying / calls)


def _pass_seconds(table: LatencyTable, shape: Shape, run: Run) -> tuple[float, float]:
    """Seconds in the draft's and the target's passes of one text's calls."""
    drafting = verifying = 0.0
    late = 0
    for call in run.calls:
        verifying += table.target_pass(call.drafted + 1).best
        drafting += table.draft_passes(_passes(shape, call), late).best
        late = reads_besides(table, call.accepted, int(call.last == "bonus"))
    return drafting, verifying


def _passes(shape: Shape, call: Call) -> tuple[int, ...]:
    """The draft passes that a call made, by their tokens; a grown tree and one pass for all depths are made in full."""
    if not call.drafted:
        return ()
    if len(shape.passes) < 2 or not shape.fixed:
        return shape.passes
    passes = shape.passes[: call.depth]
    # One node per level makes a chain, for example if the draft has a single token.
    return (1,) * len(passes) if call.drafted == len(passes) else passes


@dataclass(frozen=True)
class _CallTime:
    """Time per call in plain steps, any shape: passes of the draft, passes of the target, and everything else; and the
    time of `plain` decoding outside its passes, per token.
    """

    drafting: Floats
    verifying: Floats
    overhead: Floats | float = 0.0
    plain: Floats | float = 0.0

    @property
    def total(self) -> Floats:
        """The whole call."""
        return self.drafting + self.verifying + self.overhead


def _speedup_of_calls(tokens: Floats, time: _CallTime) -> Floats:
    """Tokens per second relative to plain decoding (C2)."""
    return tokens * (1 + time.plain) / time.total


def _budget(
    of_trace: Floats, of_texts: Floats, counted: Floats, predicted: _CallTime, made: _CallTime, measured: _CallTime
) -> dict[str, Floats]:
    """log(measured / predicted speed-up) in parts, which add up to it (exact); ``PARTS`` says what each is.

    Tokens per call are predicted by the trace, expected of the decoded texts, and counted. `predicted` is the whole
    shape by the table, `made` the passes of the calls as they were made by the table, `measured` as timed.

    Examples
    --------
    >>> one = np.ones(1)
    >>> table, timed = _CallTime(0.5 * one, 1.1 * one, 0.1, 0.05), _CallTime(0.6 * one, 1.0 * one, 0.2 * one, 0.1)
    >>> parts = _budget(2.0 * one, 2.2 * one, 2.1 * one, table, table, timed)
    >>> miss = np.log(_speedup_of_calls(2.1 * one, timed) / _speedup_of_calls(2.0 * one, table))
    >>> bool(np.isclose(sum(parts.values()), miss, rtol=1e-12))
    True
    """
    mean = _logarithmic_mean(measured.total, predicted.total)
    return {
        "texts": np.log(of_texts / of_trace),
        "acceptance": np.log(counted / of_texts),
        "cut": -(made.drafting + made.verifying - predicted.drafting - predicted.verifying) / mean,
        "drafting": -(measured.drafting - made.drafting) / mean,
        "verifying": -(measured.verifying - made.verifying) / mean,
        "overhead": -(measured.overhead - predicted.overhead) / mean,
        "plain": np.log1p(measured.plain) - np.log1p(predicted.plain) + 0 * mean,
    }


def _logarithmic_mean(a: Floats, b: Floats) -> Floats:
    """(a - b) / log(a / b), and its limit a where both are equal.

    Examples
    --------
    >>> _logarithmic_mean(np.array([1.0, np.e]), np.array([1.0, 1.0])).round(6)
    array([1.      , 1.718282])
    """
    relative = a / b - 1
    near = np.abs(relative) < _EQUAL
    return np.where(near, (a + b) / 2, b * relative / np.log1p(np.where(near, 1.0, relative)))


# The answer


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
        if setting.strings:
            return False  # what is expected is of another method
        known = self.trace.provenance
        coarse = any(known.get(who, {}).get("dtype") in COARSE for who in ("target", "draft"))
        greedy = known.get("settings", {}).get("sampling", {}).get("temperature") == 0
        return (
            not coarse or not setting.path_rule.uses_draft or not (greedy or compare_runs(self.runs(setting)).certain)
        )

    def timed(self, setting: Setting) -> RunSums:
        """The sums over a setting's runs."""
        rows = [
            (
                len(run.output),
                run.count,
                sum(call.draft_seconds for call in run.calls),
                sum(call.target_seconds for call in run.calls),
                run.seconds,
            )
            for run in self.runs(setting)
        ]
        return RunSums(*(left_out(np.array(column, dtype=float)) for column in zip(*rows, strict=True)))

    def predicted(self, setting: Setting, cost: LatencyTable) -> Interval:
        """The speed-up predicted from trace and costs, as in ``spectheory predict``."""
        rule = setting.path_rule
        if isinstance(rule, LossyRule):
            (point,) = bias_tradeoff(self.trace, setting.drafts.depth, [rule], cost)
            predicted = point.speedup
        else:
            predicted = predict(self.trace, rule, setting.drafts, cost).speedup
        assert predicted is not None
        return predicted

    def tokens_per_call(self, setting: Setting) -> Floats:
        """What the trace predicts, ``[1 + prompts]``; of a rule that changes the text a lower estimate (Y7)."""
        rule, k = setting.path_rule, setting.drafts.depth
        if not isinstance(rule, LossyRule):
            return self.of_trace(setting).tokens_per_call
        begins = np.cumsum([0, *self.trace.lengths[:-1]])
        of_positions = calls_beside(self.trace, k, rule, rule.weighted_survival(self.trace.columns, k))
        tokens, calls, _ = (self._of_texts(np.add.reduceat(values, begins)) for values in of_positions)
        return tokens / calls

    def of_trace(self, setting: Setting) -> _TraceExpectation:
        """What the trace predicts of the setting's calls."""
        rule, shape = in_trace(setting.path_rule, self.trace), setting.drafts
        survival = survival_of(rule, setting.shape or shape, self.trace.columns)
        calls = calls_of_tree(*survival, self.trace.lengths, variance=True)
        counts = calls_by_drafted(self.trace, rule, shape)
        expected = self._of_texts(calls.expected)
        return _TraceExpectation(
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


def _answer_at(evidence: Evidence) -> list[dict[str, Any]]:
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
        **({} if setting.path_rule.lossless else {"lossless": False}),
        "tokens": int(here.tokens[0]),
        "calls": int(here.calls[0]),
        "tokens_per_call": evidence.interval(
            here.tokens / here.calls, limits=(1.0, math.inf if setting.strings else shape.depth + 1.0)
        ).as_dict(),
        "expected": {"decides": evidence.decides(setting)} | _compared(runs),
        # Wrong readings of the same texts: of draft heads that per position, of stopped chains that always k.
        **{control: _compared(runs, control) for control in CONTROLS if getattr(runs[0].expected, control, None)},
        **({"drafted": _drafted_tokens(runs)} if setting.stop else {}),
        "trace": _from_trace(evidence, setting),
        "speedup": _without_budget(evidence, setting)
        if setting.judged or setting.stop or not setting.path_rule.lossless
        else _speedup(evidence, setting),
    }


def _compared(runs: Sequence[Run], control: str = "") -> dict[str, Any]:
    """Counted against expected calls, or against those that a wrong reading expects."""
    comparison = compare_runs(runs, control)
    return {
        "calls": comparison.low,
        "off": comparison.off,
        "tokens_per_call": sum(len(run.output) for run in runs) / comparison.low,
        "deviation": comparison.deviation,
        "of_estimates": comparison.of_estimates,
        # Infinite if nothing is random and the calls differ; JSON has no infinity.
        "z": comparison.z if math.isfinite(comparison.z) else None,
        "p": comparison.p,
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
    expected = Interval(ends[0] / calls, best / calls, ends[1] / calls, "statistical")
    total = float(counted.sum())
    return {
        "counted": total / calls,
        "expected": expected.as_dict(),
        "certain": [low / calls, high / calls],
        "inside": bool(ends[0] - _ROUNDING <= total <= ends[1] + _ROUNDING),
    }


def _from_trace(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """What other texts of the same prompts predict; leaving out a prompt leaves it out on both sides."""
    here, interval = evidence.timed(setting), evidence.interval
    known = evidence.tokens_per_call(setting)
    return {
        "tokens_per_call": interval(known, limits=(1.0, setting.drafts.depth + 1.0)).as_dict(),
        "counted_over_predicted": interval(here.tokens / here.calls / known).as_dict(),
    }


def _speedup(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """The speed-up measured, of the passes alone, and predicted, with the error budget."""
    here, plain, interval = evidence.timed(setting), evidence.timed(PLAINLY), evidence.interval
    table = evidence.table
    step = plain.verifying / plain.calls
    counted = here.tokens / here.calls
    measured = replace(here.per_call(step), plain=plain.seconds / plain.verifying - 1)
    passes = counted / (measured.drafting + measured.verifying)
    of_trace = evidence.of_trace(setting)
    known, shape = of_trace.tokens_per_call, of_trace.shape
    expected = np.array([run.expected.calls for run in evidence.runs(setting) if run.expected is not None])
    predicted = by_passes = _by_table(table, of_trace)
    if table.loop is not None:  # the time around passes and plain steps
        target_pass = table.target_step().best
        predicted = replace(
            by_passes, overhead=table.loop.of(shape) / target_pass, plain=table.loop.plain / target_pass
        )
    made = _made_by_table(table, setting.drafts, evidence.runs(setting))
    miss = _speedup_of_calls(counted, measured) / _speedup_of_calls(known, predicted)
    shares = _budget(known, here.tokens / left_out(expected), counted, predicted, made, measured)
    return {
        "measured": interval(_speedup_of_calls(counted, measured)).as_dict(),
        "passes_alone": interval(passes).as_dict(),
        "machine": float(step[0] / table.target_step().best),
        "remarks": sorted({remark for run in evidence.runs(setting) for remark in run.remarks}),
        "predicted": evidence.predicted(setting, table.looped).as_dict(),
        "miss": _percent(evidence, miss),
        "miss_of_passes": _percent(evidence, passes * by_passes.total / known),
        "budget": {name: _percent(evidence, np.exp(share)) for name, share in shares.items()},
        "largest": max(shares, key=lambda name: abs(float(shares[name][0]))),
    }


def _without_budget(evidence: Evidence, setting: Setting) -> dict[str, Any]:
    """Of transformers relative to its own plain generation, prompts included, since its passes are not timed one by
    one; of stopped chains because what is drafted after a mismatch is estimated; of rules that change the text because
    their tokens per call are.
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
    verdict = {"comparisons": len(rows), "refuted": refuted > 0, "refuted_in": refuted}
    return verdict | {"z": most["z"], "p": most["p"], **where}
