"""C2: measured seconds of a pass, their error, and their file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from reprlib import repr as brief
from typing import Any, Self

import numpy as np

from spectheory.checks import BEYOND, amount, choice, instance, instances, whole
from spectheory.cost.model import CostModel, Ends, PassCost
from spectheory.drafting import Shape
from spectheory.drafting.tree import a_shape
from spectheory.errors import FOREIGN, SettingError, TraceError, reason_of
from spectheory.files import read_text, write_whole
from spectheory.intervals import CONFIDENCE, Interval, weakest


@dataclass(frozen=True)
class LoopTime:
    r"""Seconds of a decoding loop outside the models' passes: drawing, verifying, moving caches.

    A plain step takes :math:`o_0` (`plain`); a call with d > 0 draft passes and n nodes

    .. math:: o = o_\text{call} + d\, o_\text{pass} + n\, o_\text{node} + [\text{siblings}]\, o_\text{tree}

    and one that copies n tokens from the text (the mean, where they vary) :math:`o_0 + n\,o_\text{node}`, since no
    second model is read. The times depend on the loop and the machine; every engine has its own.

    Examples
    --------
    >>> from spectheory.drafting import Chain, KAry
    >>> loop = LoopTime(plain=0.1, call=0.3, draft_pass=0.1, node=0.01, tree=0.5)
    >>> round(loop.of(Chain(2)), 6), round(loop.of(KAry((2, 1))), 6)
    (0.52, 1.04)
    """

    plain: float
    call: float
    draft_pass: float
    node: float
    tree: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            seconds = amount(f"the loop's {name}", value, below=BEYOND, remedy="measure the loop again, in seconds")
            object.__setattr__(self, name, seconds)

    def of(self, shape: Shape) -> float:
        """Seconds outside the passes of one call."""
        drafted = sum(share * (tokens - 1) for tokens, share in a_shape(shape).verified.items())
        if not shape.passes:
            return self.plain + drafted * self.node
        siblings = shape.nodes > shape.depth
        return self.call + len(shape.passes) * self.draft_pass + drafted * self.node + siblings * self.tree


PASSES = ("target", "draft", "first")
"""What a table has times of: passes of the target, of the draft, and a head's first pass of a call."""


@dataclass(frozen=True)
class TimedGroup:
    """Seconds of every pass, and of the loop, from one group of `rounds` that follow each other.

    The whole group took `seconds`, in which other processes used `others` cores on average (None where unknown).
    `stopped` says why its rounds ended: their noise is small enough (``width``), the time was over (``budget``), or
    there were as many as may be (``rounds``). `with_hidden_states` is the target's pass on one token when a head's
    hidden states are taken from it, `first` a head's first pass of a call by the pairs that it reads.

    Examples
    --------
    >>> TimedGroup({1: 0.010, 2: 0.011}, {1: 0.002, 2: 0.002}, others=0.1).target[1]
    0.01
    """

    target: Mapping[int, float]
    draft: Mapping[int, float]
    loop: LoopTime | None = None
    rounds: int = 1
    seconds: float = 0.0
    others: float | None = None
    stopped: str = "rounds"
    with_hidden_states: float | None = None
    first: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        again = "measure again"
        for who in PASSES:
            entries = instance(f"the times of the {who}", getattr(self, who), Mapping, remedy=again)
            times = {whole("tokens", m, remedy=again): _seconds(one) for m, one in entries.items()}
            object.__setattr__(self, who, times)
        if 1 not in self.target:
            raise SettingError("a group of rounds has no plain step", limit="needs the target on 1", remedy=again)
        whole("rounds of a group", self.rounds, remedy=again)
        amount("seconds of a group", self.seconds, below=BEYOND, remedy=again)
        choice("stopped", self.stopped, ("width", "budget", "rounds"), remedy=again)
        if self.loop is not None:
            instance("loop", self.loop, LoopTime, remedy=again)
        if self.others is not None:
            amount("others of a group", self.others, below=BEYOND, remedy=again)
        if self.with_hidden_states is not None:
            _seconds(self.with_hidden_states)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def of_dict(cls, content: Mapping[str, Any]) -> TimedGroup:
        """The group that :meth:`as_dict` wrote."""
        passes = {who: {int(m): seconds for m, seconds in content.get(who, {}).items()} for who in PASSES}
        loop = content["loop"]
        return cls(**{**content, **passes, "loop": None if loop is None else LoopTime(**loop)})


LATENCY_SCHEMA = 3
"""Tables of schema 1 and 2 are also read, unless their passes are wrong (:func:`_copied_outputs`)."""
ROUNDS = "rounds"
"""Key of a table's provenance: how the rounds ended."""
DISTURBED = 0.5
"""Cores that other processes use, the mean over a table's groups, from which its timing counts as disturbed.

The machine's own background work stays far below it (0.0005 cores beside the recorded tables of the built-in pair), and
one busy process of somebody else is 1. Such a load is there in every group, so that the error between groups alone does
not show what it does.
"""


@dataclass(frozen=True)
class LatencyTable(PassCost):
    """C2: measured seconds of one pass on m tokens with a filled cache; linear between measured m.

    `target` and `draft` map m to seconds with a 95% interval. The target needs m = 1 and the shapes'
    nodes + 1; the draft needs m = 1, m = 2 and the shapes' widest pass. An empty draft means free drafts (prompt
    lookup). Of a head, `first` maps the pairs that its first pass of a call reads to seconds, 1 among them; where it
    is empty the passes of `draft` stand for these. `context` is the number of tokens in the cache while measured;
    `provenance` holds machine and versions.
    `loop` is the time of our decoding loop outside the passes; only :attr:`looped` counts it.

    `groups` are the groups of rounds that the times are means of (:meth:`of`). They decide how errors of times belong
    together (:meth:`errors`). Tables that were written by hand or by earlier versions have none.

    Examples
    --------
    >>> from spectheory.drafting import Chain, KAry
    >>> second = Interval.exact
    >>> table = LatencyTable({1: second(1.0), 4: second(1.3)}, {1: second(0.1), 2: second(0.2)}, context=64)
    >>> round(table.call(Chain(2)).best, 6)
    1.4
    >>> round(table.call(KAry((1, 2))).best, 6)
    1.5
    >>> round(table.ratio, 6)
    0.1
    """

    target: Mapping[int, Interval]
    draft: Mapping[int, Interval]
    context: int
    provenance: Mapping[str, Any] = field(default_factory=dict)
    loop: LoopTime | None = None
    groups: tuple[TimedGroup, ...] = ()
    first: Mapping[int, Interval] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Sequence[TimedGroup], context: int, provenance: Mapping[str, Any] | None = None) -> Self:
        r"""The table of these groups of rounds (statistical).

        In units of the group's own plain step, a pass takes :math:`r_b` in group b of B. Its entry is
        :math:`\exp(\text{mean} \log r_b)` times the plain step, :math:`\exp` of the mean of its logarithms. The 95%
        interval is :math:`\pm t_{B-1}\, s / \sqrt B` in the logarithm, with s the standard deviation between groups and
        Student's t; where other processes disturbed the timing (:attr:`disturbed`), :math:`\sqrt{1 + 1/B}` replaces
        :math:`\sqrt{1/B}`: the load that all groups share is taken to move times as much as times differ from group to
        group. The plain step is the unit and has no interval. A mean of logarithms, not a median over groups: its error
        is linear in the groups, so that one group's deviation moves all times together. Outliers within a group do not
        reach it, since a group's times are medians over rounds. The loop's times are means in units of the plain step.

        Examples
        --------
        >>> groups = [TimedGroup({1: 1.0}, {1: c, 2: c}) for c in (0.1, 0.11, 0.12)]
        >>> print(LatencyTable.of(groups, context=64).draft[1])
        0.110 [0.087, 0.138]
        """
        groups = tuple(instances("groups", groups, TimedGroup, remedy="measure again"))
        if not groups:
            raise SettingError("there is no group of rounds", limit="needs one or more", remedy="measure again")
        _require_same_passes(groups[0], groups)
        plain = math.exp(np.mean([math.log(group.target[1]) for group in groups]))
        reach = _reach(len(groups), disturbed=_others(groups) > DISTURBED)

        def entry(who: str, tokens: int) -> Interval:
            logs = np.log([getattr(group, who)[tokens] / group.target[1] for group in groups])
            if len(groups) == 1:
                return Interval.estimate(plain * math.exp(logs[0]))
            half = reach * float(np.std(logs, ddof=1))
            low, best, high = (plain * math.exp(float(np.mean(logs)) + way * half) for way in (-1, 0, 1))
            return Interval(low, best, high, "statistical")

        target, draft, first = ({m: entry(who, m) for m in getattr(groups[0], who)} for who in PASSES)
        loops = [np.array(astuple(group.loop)) / group.target[1] for group in groups if group.loop is not None]
        loop = LoopTime(*(plain * np.mean(loops, axis=0)).tolist()) if len(loops) == len(groups) else None
        return cls(target, draft, context, {} if provenance is None else provenance, loop, groups, first)

    def __post_init__(self) -> None:
        times = [(who, getattr(self, who)) for who in PASSES]
        for who, entries in times:
            instance(f"the latencies of the {who}", entries, Mapping, remedy="measure again")
            for tokens, entry in entries.items():
                whole(f"tokens of the {who}", tokens, remedy="measure again")
                instance(f"the latency on {tokens} tokens", entry, Interval, remedy="measure again")
        if self.loop is not None:
            instance("loop", self.loop, LoopTime, remedy="measure again")
        if 1 not in self.target or (self.draft and not {1, 2} <= set(self.draft)):
            raise SettingError(
                f"latencies cover target {sorted(self.target)} and draft {sorted(self.draft)} tokens",
                limit="needs the target on 1 token and the draft on 1 and 2",
                remedy="measure again",
            )
        if self.first and 1 not in self.first:
            raise SettingError(
                f"first passes cover {sorted(self.first)} pairs", limit="needs the one on 1", remedy="measure again"
            )
        for tokens, entry in (each for _, entries in times for each in entries.items()):
            if not 1 / BEYOND < entry.low <= entry.high < BEYOND:
                raise SettingError(
                    f"the latency on {tokens} tokens is {entry.low:g} to {entry.high:g}",
                    limit="needs seconds > 0 on one token or more",
                    remedy="measure again",
                )
        if not isinstance(self.context, int) or self.context < 0:
            raise SettingError(
                f"context is {brief(self.context)}", limit="must be a number >= 0", remedy="measure again"
            )
        if not isinstance(self.provenance, Mapping):
            raise SettingError(
                f"provenance is {brief(self.provenance)}", limit="needs an object", remedy="measure again"
            )
        _require_same_passes(self, instances("groups", self.groups, TimedGroup, remedy="measure again"))

    @property
    def ratio(self) -> float:
        """Measured c: time of a draft step over time of a target step."""
        return self.draft_pass(1).best / self.target[1].best

    @property
    def reads_accepted(self) -> bool:
        """Whether the draft is a head."""
        draft = self.provenance.get("draft")
        return isinstance(draft, Mapping) and "kind" in draft

    @property
    def looped(self) -> LatencyTable:
        """The table with the loop's time in plain steps and calls; itself if the loop was not measured."""
        return self if self.loop is None else LoopedTable(**vars(self))

    @property
    def others(self) -> float | None:
        """Cores that other processes used on average while the groups were measured; None where that is unknown."""
        return _others(self.groups) if any(group.others is not None for group in self.groups) else None

    @property
    def disturbed(self) -> bool:
        """Whether other processes used more than :data:`DISTURBED` cores."""
        return _others(self.groups) > DISTURBED

    def errors(self) -> Iterator[Ends]:
        r"""The table at both ends of each independent error of its times.

        Groups of rounds are independent, the times of one group are not: a slow phase, or where in memory caches lie,
        moves many of them. So each group b is one error. All times move together by

        .. math:: \pm \frac{t}{\sqrt{B - 1}}\, (\log r_b - \text{mean} \log r)

        with t the half width of a 95% interval in standard deviations between groups (:meth:`of`). The squared
        deviations of any function of the times then add up to the variance of its mean over groups, by the delta method
        with all covariances. Without groups each measured time is one error, independent of the others.
        """
        if len(self.groups) > 1:
            by = _reach(len(self.groups), disturbed=self.disturbed) / math.sqrt(len(self.groups) - 1)
            yield from ((self._towards(group, -by), self._towards(group, by)) for group in self.groups)
            return
        for who in PASSES:
            entries: Mapping[int, Interval] = getattr(self, who)
            for tokens, entry in entries.items():
                if entry.low < entry.high:
                    low, high = ({**entries, tokens: Interval.exact(end)} for end in (entry.low, entry.high))
                    yield replace(self, **{who: low}), replace(self, **{who: high})  # type: ignore[arg-type]

    def when_disturbed(self) -> Sequence[CostModel]:
        """The table of each group of rounds alone, where other processes disturbed the timing; else none."""
        return [self._towards(group, 1.0) for group in self.groups] if self.disturbed else []

    def _towards(self, group: TimedGroup, by: float) -> LatencyTable:
        """The table moved to a group's times (1), or by a part of the way, there or back; in plain steps of each."""
        unit = self.target[1].best / group.target[1]

        def moved(entries: Mapping[int, Interval], there: Mapping[int, float]) -> dict[int, Interval]:
            return {m: Interval.exact(one.best * (unit * there[m] / one.best) ** by) for m, one in entries.items()}

        loop = self.loop
        if loop is not None and group.loop is not None:
            here, there = np.array(astuple(loop)), unit * np.array(astuple(group.loop))
            loop = LoopTime(*np.maximum(here + by * (there - here), 0.0).tolist())
        target, draft, first = (moved(getattr(self, who), getattr(group, who)) for who in PASSES)
        return replace(self, target=target, draft=draft, first=first, loop=loop, groups=())

    @property
    def slower_on_fewer(self) -> tuple[tuple[str, int], ...]:
        """Passes (model, m) that took longer than the model's pass on 2 m tokens; their 95% intervals do not overlap.

        For two independent passes of equal time, measured equally often, the chance of this is below 0.002, and 0.025
        for the target's pass on one token, which is the unit and has no interval.
        """
        return tuple(
            (model, m)
            for model, entries in (("target", self.target), ("draft", self.draft))
            for m in sorted(entries)
            if 2 * m in entries and entries[m].low > entries[2 * m].high
        )

    def target_pass(self, tokens: int) -> Interval:
        """Seconds of the target on that many tokens."""
        return _between(self.target, tokens, "call verifies", "lower k or measure longer calls")

    def draft_pass(self, tokens: int) -> Interval:
        """Seconds of the draft on that many tokens; 0 without a draft."""
        if not self.draft:
            return Interval.exact(0.0)
        return _between(self.draft, tokens, "draft pass is on", "use a narrower tree or measure longer draft passes")

    def first_passes(self, tokens: int, extra: int) -> tuple[Interval, Interval]:
        """Seconds of a call's first draft pass, on that many tokens and on `extra` besides, which a head reads."""
        if not self.first:
            return super().first_passes(tokens, extra)
        longer = _between(self.first, 1 + extra, "first draft pass reads", "lower k or measure longer calls")
        return self.first[1], longer

    def write(self, path: str | Path) -> None:
        """Write as JSON, atomically."""
        content = {
            "schema": LATENCY_SCHEMA,
            "unit": "seconds",
            "context": self.context,
            "target": {str(m): interval.as_dict() for m, interval in self.target.items()},
            "draft": {str(m): interval.as_dict() for m, interval in self.draft.items()},
            "first": {str(m): interval.as_dict() for m, interval in self.first.items()},
            "loop": None if self.loop is None else asdict(self.loop),
            "groups": [group.as_dict() for group in self.groups],
            "provenance": dict(self.provenance),
        }
        write_whole(Path(path), lambda partial: partial.write_text(json.dumps(content, indent=2) + "\n"))

    @classmethod
    def read(cls, path: str | Path) -> LatencyTable:
        """Read a latency table; those of an earlier version with 16-bit weights on a CPU are refused as wrong."""
        try:
            content = json.loads(read_text(Path(path)))
            schema = content["schema"]
            if schema not in range(1, LATENCY_SCHEMA + 1):
                raise ValueError(f"schema {brief(schema)}")
            if (unit := content.get("unit", "seconds")) != "seconds":
                raise ValueError(f"unit {brief(unit)}")
            given = {"first": {}, **content}
            target, draft, first = ({int(m): Interval(**v) for m, v in given[who].items()} for who in PASSES)
            loop = content.get("loop")
            loop_time = None if loop is None else LoopTime(**loop)
            groups = tuple(map(TimedGroup.of_dict, content.get("groups", [])))
            table = cls(target, draft, content["context"], content["provenance"], loop_time, groups, first)
        except (OSError, *FOREIGN) as error:
            raise TraceError(
                f"{path} is not a latency table ({reason_of(error)})",
                limit=f"needs JSON of schema 1 to {LATENCY_SCHEMA} with times in seconds, as from spectheory measure",
                remedy="correct the file, or name another one",
            ) from error
        if schema == 1 and _copied_outputs(table.provenance):
            raise TraceError(
                f"{path} was measured by an earlier version with 16-bit weights on a CPU",
                limit="its passes copied the output matrix and are many times too slow",
                remedy="remove the file and run the command that made it again (spectheory measure or validate)",
            )
        return table


@dataclass(frozen=True)
class LoopedTable(LatencyTable):
    """A latency table whose plain steps and calls include the loop outside the passes (C2; the loop is an estimate).

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> second = Interval.exact
    >>> loop = LoopTime(plain=0.1, call=0.2, draft_pass=0.1, node=0.0, tree=0.0)
    >>> passes = LatencyTable({1: second(1.0), 4: second(1.3)}, {1: second(0.1), 2: second(0.2)}, 64, loop=loop)
    >>> round(passes.call(Chain(2)).best, 6), round(passes.looped.call(Chain(2)).best, 6)
    (1.4, 1.8)
    >>> passes.target_step().best, passes.looped.target_step().best
    (1.0, 1.1)
    """

    def target_step(self) -> Interval:
        """Seconds of a plain step, loop included."""
        return super().target_step() + (self.loop.plain if self.loop else 0.0)

    def verification(self, shape: Shape) -> Interval:
        """Seconds of the target's pass of a call, with the loop's time for the whole call."""
        return super().verification(shape) + (self.loop.of(shape) if self.loop else 0.0)


def _seconds(value: float) -> float:
    """The time of a pass, checked."""
    seconds = amount("the seconds of a pass", value, below=BEYOND, remedy="measure again")
    if not seconds > 0:
        raise SettingError(f"the seconds of a pass is {seconds:g}", limit="must be > 0", remedy="measure again")
    return seconds


def _others(groups: Sequence[TimedGroup]) -> float:
    """Mean number of cores that other processes used; 0 where that is unknown."""
    return float(np.mean([group.others or 0.0 for group in groups])) if groups else 0.0


def _reach(groups: int, *, disturbed: bool) -> float:
    """Half a 95% interval in standard deviations between groups (:meth:`LatencyTable.of`)."""
    from scipy.special import stdtrit

    return float(stdtrit(groups - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(1 / groups + disturbed)


def _require_same_passes(first: LatencyTable | TimedGroup, groups: Sequence[TimedGroup]) -> None:
    """Every group has timed the same passes."""
    if any(getattr(group, who).keys() != getattr(first, who).keys() for group in groups for who in PASSES):
        raise SettingError(
            "groups of rounds differ in what they timed", limit="needs the same passes in all", remedy="measure again"
        )


def _copied_outputs(provenance: Mapping[str, Any]) -> bool:
    """Whether passes under schema 1 copied the output matrix, as 16-bit weights on a CPU did."""
    described = (provenance.get(model) for model in ("target", "draft"))
    return any(
        isinstance(model, Mapping)
        and model.get("dtype") in ("bfloat16", "float16")
        and str(model.get("device")).startswith("cpu")
        for model in described
    )


def _between(entries: Mapping[int, Interval], tokens: int, what: str, remedy: str) -> Interval:
    """Linear interpolation between the measured numbers of tokens, without extrapolation."""
    measured = sorted(entries)
    if tokens > measured[-1]:
        raise SettingError(
            f"a {what} {tokens} tokens", limit=f"latencies were measured up to {measured[-1]}", remedy=remedy
        )
    low, best, high = (
        float(np.interp(tokens, measured, [getattr(entries[m], end) for m in measured]))
        for end in ("low", "best", "high")
    )
    return Interval(low, best, high, weakest(*(entries[m].kind for m in measured)))
