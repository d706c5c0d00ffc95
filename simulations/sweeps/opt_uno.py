"""OPT against UNO along whole texts of the built-in pair: rejections, bias, win rates by a third model (yin2024)."""

from __future__ import annotations

from typing import Any

from simulations.counts.quantities import Mean
from simulations.simulators.biased_texts import PAIRS
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from spectheory.plots.line_ends import name_ends
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, PINK, Axes, Figure, caption, plain_axes, titled

TOKENS = 40
THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.4)
SHARES = (0.4,)
SCORES = ("judge", "target", "typical")


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Every over-acceptance."""
    settings = [*(("threshold", amount) for amount in THRESHOLDS), *(("share", amount) for amount in SHARES)]
    return tuple(_ask(form, amount, scale) for form, amount in settings)


def _ask(form: str, amount: float, scale: Scale) -> Ask:
    parameters = {"form": form, "amount": amount, "tokens": TOKENS}
    return ask(
        f"{form} {amount:g}", "biased-texts", parameters, scale, trials=scale.pick(64, 480), batch=scale.pick(64, 160)
    )


def data(scale: Scale, tallies: Tallies) -> Data:
    """Rejections, loss, calls and win rates, each with its interval, by over-acceptance."""
    rows = [_row(one, tallies) for one in asks(scale)]
    return {"tokens": TOKENS, "trials": tallies[asks(scale)[0].label].trials, "settings": rows}


def _row(one: Ask, tallies: Tallies) -> dict[str, Any]:
    names = [f"{decoder}: {what}" for decoder in ("opt", "uno") for what in ("rejections", "loss", "calls", "shift")]
    wins = [f"{score}: {a} over {b}" for score in SCORES for a, b in PAIRS]
    tally = tallies[one.label]
    seen = {name: vars(Mean(name).estimate(tally)) for name in ("opt: distance", *names, *wins)}
    return {"form": one.task.parameters["form"], "amount": one.task.parameters["amount"], **seen}


def table(made: Data) -> str:
    """The table of ``docs/figures/tables.md``."""
    lines = [
        "| over-acceptance | rejections per token, OPT / UNO | calls per text | bias per token | judge: OPT over UNO "
        "| target: OPT over UNO | typical: OPT over UNO | judge: OPT over plain | judge: UNO over plain |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in made["settings"]:
        both = [" / ".join(f"{row[f'{d}: {what}']['best']:.{n}f}" for d in ("opt", "uno")) for what, n in _SHOWN]
        wins = [_rate(row[f"{score}: opt over uno"]) for score in ("judge", "target", "typical")]
        plain = [_rate(row[f"judge: {decoder} over plain"]) for decoder in ("opt", "uno")]
        lines.append("| " + " | ".join([f"{row['form']} {row['amount']:g}", *both, *wins, *plain]) + " |")
    return "\n".join(lines)


_SHOWN = (("rejections", 3), ("calls", 1), ("loss", 3))


def _rate(seen: dict[str, float]) -> str:
    return f"{seen['best']:.3f} ± {(seen['high'] - seen['low']) / 2:.3f}"


Rows = list[dict[str, Any]]

SCORE_LOOKS = (("judge", "third model", GREEN, "s"), ("target", "target", GREY, "^"), ("typical", "typical", PINK, "v"))
DECODERS = (("opt", "OPT", BLUE, "o"), ("uno", "UNO", ORANGE, "D"))


def draw(figure: Figure, data: Data) -> None:
    """Left: the front. Middle: OPT against UNO. Right: both against plain sampling."""
    axes = figure.subplots(1, 3)
    draw_front(axes[0], data["settings"])
    ladder = [row for row in data["settings"] if row["form"] == "threshold"]
    draw_against_uno(axes[1], ladder)
    draw_against_plain(axes[2], ladder)
    caption(
        figure,
        f"built-in pair, {data['trials']:,} prompts a setting, {data['tokens']} tokens a text, 95% intervals;\n"
        "filled: thresholds e, b = min(1, (p + e)/q);  open: share t = 0.4",
    )


def draw_front(ax: Axes, rows: Rows) -> None:
    """Bias against rejections of both decoders, and the front."""
    distance = rows[0]["opt: distance"]["best"]
    ax.plot([distance, 0], [0, distance], color=GREY, linewidth=1.2)
    for key, _, colour, marker in DECODERS:
        for form in ("threshold", "share"):
            part = [row for row in rows if row["form"] == form]
            x, y = ([row[f"{key}: {what}"] for row in part] for what in ("rejections", "loss"))
            dots(ax, x, y, colour, marker=marker, filled=form == "threshold", size=5, clip=False)
    ax.set_xlim(0, 1.12 * distance)
    ax.set_ylim(0, 1.12 * distance)
    ax.set_xlabel("rejections per token")
    ax.set_ylabel("bias per token (total variation)")
    titled(ax, "a  Rejections and bias,\n    along texts")
    ax.annotate("OPT", (0.55 * distance, 0.36 * distance), color=BLUE, fontsize=9, ha="right")
    ax.annotate("UNO", (0.7 * distance, 0.52 * distance), color=ORANGE, fontsize=9)
    ax.annotate("front: rejections\n+ bias = TV", (0.03 * distance, 0.03 * distance), color=GREY, fontsize=8)
    plain_axes(ax)


def _frame(ax: Axes, rows: Rows, title: str) -> range:
    """Win rates over the thresholds, evenly spaced; one half is marked."""
    places = range(len(rows))
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xticks(list(places), [f"{row['amount']:g}" for row in rows])
    ax.set_xlim(-0.3, len(rows) - 0.7)
    ax.set_ylim(0.25, 0.7)
    ax.set_xlabel("over-acceptance e")
    ax.set_ylabel("win rate (ties count half)")
    titled(ax, title)
    return places


def draw_against_uno(ax: Axes, rows: Rows) -> None:
    """Win rates of OPT over UNO by three scores."""
    places = _frame(ax, rows, "b  Texts that OPT\n    wins over UNO")
    ends = []
    for (key, name, colour, marker), beside in zip(SCORE_LOOKS, (-0.1, 0.0, 0.1), strict=True):
        seen = [row[f"{key}: opt over uno"] for row in rows]
        at = [place + beside for place in places]
        ax.plot(at, [each["best"] for each in seen], color=colour, linewidth=1.2)
        dots(ax, at, seen, colour, marker=marker, clip=False)
        ends.append((at[-1], seen[-1]["best"], name, colour))
    name_ends(ax, ends)


def draw_against_plain(ax: Axes, rows: Rows) -> None:
    """Win rates of both decoders over plain sampling."""
    places = _frame(ax, rows, "c  Texts that win over plain\n    (third model's score)")
    ends = []
    for key, name, colour, marker in DECODERS:
        seen = [row[f"judge: {key} over plain"] for row in rows]
        ax.plot(places, [each["best"] for each in seen], color=colour, linewidth=1.2)
        dots(ax, list(places), seen, colour, marker=marker, size=5, clip=False)
        ends.append((float(places[-1]), seen[-1]["best"], name, colour))
    name_ends(ax, ends)


SWEEP = Sweep(
    "opt_uno",
    "Biased decoding of whole texts: OPT against UNO recovery on the built-in pair",
    ("Y5", "Y6"),
    asks,
    data,
    draw,
    (9.0, 4.0),
    extras=("models:torch", "models:transformers"),
)
