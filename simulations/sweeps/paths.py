"""Path prediction against whole decodings: every rule, chains of k drafts and draft trees (§7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from simulations.counts import Mean, Tally
from simulations.models.ngram import PROMPTS_TEXT, text_parameters
from simulations.simulators.decoding import acceptance_of, calls_of
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve, dots
from simulations.verdicts.predictions import ALARM
from spectheory.plots.style import BLUE, GREY, LOOKS, ORANGE, Axes, Figure, LineEnd, Look, caption, name_ends
from spectheory.prediction.paths import calls_of_chains
from spectheory.verification.registry import BUILT_IN

TITLE = "The path theorem: predicted and simulated tokens per call of every rule"
STATEMENTS = ("§7",)
SIZE = (9.0, 7.0)

DRAFTS = (1, 2, 3, 4, 5, 6)

TEST_BED: dict[str, Any] = {"chains": "yin2024", "length": 20}
"""Seven tokens, another matrix at every position."""

REGIMES: dict[str, Any] = {
    "target": [[0.68, 0.3, 0.01, 0.01], [0.3, 0.68, 0.01, 0.01], [0.02, 0.02, 0.88, 0.08], [0.02, 0.02, 0.08, 0.88]],
    "draft": [[0.67, 0.31, 0.01, 0.01], [0.31, 0.67, 0.01, 0.01], [0.03, 0.03, 0.08, 0.86], [0.03, 0.03, 0.86, 0.08]],
    "initial": [0.35, 0.35, 0.15, 0.15],
    "length": 60,
}
"""Two regimes of two tokens each, which last 50 and 25 tokens on the mean: the draft knows one, mistakes the other."""

TEXT_LENGTH, ORDERS = 100, ((3, 2), (3, 1))
"""Tokens of a text, and of a gram of target and draft, which count the bytes of the built-in prompts."""

ALL_RULES = ("token", "block", "race", "poisson", "independent", "argmax", "greedy")
RANKED = ("race", "poisson", "recursive", "recursive-distinct", "topk")
GROWTH = ((1,), (2,), (1, 1), (2, 1), (3,), (1, 2), (1, 1, 1), (4,), (1, 1, 2), (1, 1, 1, 1))
"""A tree grows node by node in this order."""
NODES = (2, 4, 7, 10)

CERTAIN = 1e-9
"""Standard errors below this are rounding: the calls are certain."""


class Setting(NamedTuple):
    """One dot: its panel, the line it belongs to and where it stands there; what is simulated, and how many texts."""

    panel: str
    line: str
    x: int
    rule: str
    kind: str
    parameters: dict[str, Any]
    texts: int

    @property
    def label(self) -> str:
        """Its name."""
        return f"{self.panel}: {self.line}, {self.x}"


def settings(scale: Scale) -> Iterator[Setting]:
    """All dots."""
    slow, longer, fast = scale.pick(240, 4000), scale.pick(120, 1600), scale.pick(50_000, 1_000_000)
    for k in DRAFTS:
        chain = {"paths": [[1] * depth for depth in range(1, k + 1)]}
        for rule in ALL_RULES:
            yield Setting("test bed", rule, k, rule, "decode", {**TEST_BED, "rule": rule, **chain}, slow)
        for rule in ("token", "block"):
            yield Setting("regimes", rule, k, rule, rule, {**REGIMES, "k": k}, fast)
        yield Setting("regimes", "race", k, "race", "decode", {**REGIMES, "rule": "race", **chain}, longer)
        for target, draft in ORDERS:
            models = {**text_parameters(PROMPTS_TEXT), "order": target, "draft_order": draft}
            name = f"{target}-gram by {draft}-gram"
            yield Setting("text", name, k, "token", "ngram", {**models, "length": TEXT_LENGTH, "k": k}, fast // 4)
    for rule in RANKED:
        for nodes in NODES:
            given = {**TEST_BED, "rule": rule, "paths": GROWTH[:nodes]}
            yield Setting("trees", rule, nodes, rule, "decode", given, slow)


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Whole texts for every dot."""
    return tuple(ask(one.label, one.kind, one.parameters, scale, trials=one.texts) for one in settings(scale))


def data(scale: Scale, tallies: Tallies) -> Data:
    """Tokens per call, predicted and simulated, the i.i.d. reading, and all residuals in standard errors."""
    panels: dict[str, dict[str, list[dict[str, float]]]] = {}
    iid: dict[str, dict[str, list[float]]] = {}
    residuals, missed = [], 0.0
    for one in settings(scale):
        point = _point(one, tallies[one.label])
        panels.setdefault(one.panel, {}).setdefault(one.line, []).append(point)
        residuals.append({"rule": one.rule, "compiled": one.kind != "decode", "z": point["z"]})
        if one.rule == "token":
            iid.setdefault(one.panel, {}).setdefault(one.line, []).append(_iid(one))
            missed = max(missed, abs(_errors(one, tallies[one.label].trials, iid[one.panel][one.line][-1])))
    return {
        "panels": panels,
        "iid": iid,
        "residuals": residuals,
        "iid_missed": missed,
        "band": float(stats.norm.isf(ALARM / len(residuals) / 2)),
        "alarm": ALARM,
        "lengths": {"test bed": TEST_BED["length"], "regimes": REGIMES["length"], "text": TEXT_LENGTH},
    }


def _point(one: Setting, tally: Tally) -> dict[str, float]:
    """Tokens per call of one setting, length over calls per text; the interval is Student's, texts being many."""
    length = one.parameters["length"]
    calls = Mean("calls").estimate(tally)
    return {
        "x": one.x,
        "predicted": length / calls_of(one.kind, one.parameters).expected,
        "low": length / calls.high,
        "best": length / calls.best,
        "high": length / calls.low,
        "z": _errors(one, tally.trials, length / calls.best),
    }


def _errors(one: Setting, texts: int, tokens_per_call: float) -> float:
    """How far tokens per call are from the prediction: in calls, in standard errors by the exact variance."""
    predicted = calls_of(one.kind, one.parameters)
    error = math.sqrt(max(predicted.variance, 0.0) / texts)
    calls = one.parameters["length"] / tokens_per_call
    return (calls - predicted.expected) / max(error, CERTAIN)


def _iid(one: Setting) -> float:
    """Tokens per call if every draft were accepted with the mean acceptance, by §7's recursion (C1 but for the end)."""
    length, k = one.parameters["length"], one.x
    alpha = acceptance_of(one.kind, one.parameters)
    survival = np.broadcast_to(alpha ** np.arange(1.0, k + 1), (length, k))
    return length / float(calls_of_chains(survival, np.array([length]), [k])[k].expected[0])


NAMES = {rule.name: rule.title for rule in BUILT_IN if rule.title}
"""What rules are called where their own name does not do."""

PAIRS = (Look(BLUE, "o"), Look(ORANGE, "D"))
"""How pairs of models are drawn, where lines are pairs."""

ABOVE = ("race", "recursive-distinct")
"""Dashed and drawn last: they nearly coincide with another rule in some panel, which shows through the gaps."""


def draw(figure: Figure, data: Data) -> None:
    """Three panels of chains above one of trees and one of residuals."""
    grid = figure.add_gridspec(2, 3)
    places = [grid[0, 0], grid[0, 1], grid[0, 2], grid[1, 0]]
    *axes, residuals = (figure.add_subplot(place) for place in (*places, grid[1, 1:]))
    lengths, drafts = data["lengths"], "drafts per call, k"
    for ax, panel, title, across in (
        (axes[0], "test bed", f"a  7 random tokens,\n    texts of {lengths['test bed']}", drafts),
        (axes[1], "regimes", f"b  two lasting regimes,\n    texts of {lengths['regimes']}", drafts),
        (axes[2], "text", f"c  bytes of Python code,\n    texts of {lengths['text']}", drafts),
        (axes[3], "trees", "d  draft trees,\n    7 random tokens", "nodes of the draft tree"),
    ):
        ends = draw_panel(ax, data["panels"][panel], data["iid"].get(panel, {}))
        ax.set(title=title, xlabel=across, ylabel="tokens per call", ylim=(1.0, None))
        name_ends(ax, ends)
    draw_residuals(residuals, data)
    caption(
        figure,
        "Coloured lines: path theorem (§7), exact;  grey: mean acceptance as if i.i.d. (C1);  markers: decodings,\n"
        "95% intervals;  tokens per call count the recovered or bonus token;  e: the grey band holds all settings but "
        f"with probability {data['alarm']:.0e}, if normal",
        8,
    )


def draw_panel(ax: Axes, panel: Data, iid: Data) -> list[LineEnd]:
    """The line and the dots of every rule, or pair of models, of a panel."""
    ends: list[LineEnd] = []
    for i, (line, points) in enumerate(sorted(panel.items(), key=lambda line: line[0] in ABOVE)):
        xs, predicted = ([point[name] for point in points] for name in ("x", "predicted"))
        look, name, above = LOOKS.get(line, PAIRS[i % 2]), NAMES.get(line, line), line in ABOVE
        style = "--" if above else "-"
        ends.append(curve(ax, xs, predicted, look, name, seen=points, style=style, filled=not above, size=4.5))
        if line in iid:
            ends.append(curve(ax, xs, iid[line], Look(GREY, ""), "as if i.i.d.", style=":"))
        ax.set_xticks(xs)
    return ends


def draw_residuals(ax: Axes, data: Data) -> None:
    """How far each simulation is from the theorem."""
    groups: dict[tuple[str, bool], list[float]] = {}
    for row in data["residuals"]:
        groups.setdefault((row["rule"], row["compiled"]), []).append(row["z"])
    band = data["band"]
    ax.axhspan(-band, band, color=GREY, alpha=0.12, linewidth=0)
    ax.axhline(0, color=GREY, linewidth=0.8)
    for place, ((rule, _), zs) in enumerate(sorted(groups.items())):
        across = [place + 0.7 * ((i + 0.5) / len(zs) - 0.5) for i in range(len(zs))]
        dots(ax, across, [{"low": z - 1.96, "best": z, "high": z + 1.96} for z in zs], LOOKS[rule], size=3, cap=0)
    names = [NAMES.get(rule, rule) + (", kernel" if compiled else "") for rule, compiled in sorted(groups)]
    ax.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set(
        title=f"e  simulated minus predicted calls, {len(data['residuals'])} settings;\n"
        f"    (predicted as if i.i.d. they are up to {data['iid_missed']:.0f} away)",
        ylabel="standard errors",
        ylim=(-band - 1, band + 1),
    )
