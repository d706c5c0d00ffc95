"""OPT against UNO along whole texts of the built-in pair: rejections, bias, win rates by a third model (yin2024)."""

from __future__ import annotations

from typing import Any

from simulations.counts import Mean
from simulations.simulators.biased_texts import PAIRS
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import best, curve, dots
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, PINK, Axes, Figure, Look, caption, name_ends

TITLE = "Biased decoding of whole texts: OPT against UNO recovery on the built-in pair"
STATEMENTS = ("Y5", "Y6")
SIZE = (9.0, 4.0)
EXTRAS = ("models:torch", "models:transformers")

TOKENS = 40
THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.4)
SHARES = (0.4,)
SCORES = ("judge", "target", "typical")


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Every over-acceptance."""
    size = {"trials": scale.pick(64, 480), "batch": scale.pick(64, 160)}
    settings = [*(("threshold", amount) for amount in THRESHOLDS), *(("share", amount) for amount in SHARES)]
    return tuple(
        ask(f"{form} {amount:g}", "biased-texts", {"form": form, "amount": amount, "tokens": TOKENS}, scale, **size)
        for form, amount in settings
    )


def data(scale: Scale, tallies: Tallies) -> Data:
    """Rejections, loss, calls and win rates, each with its interval, by over-acceptance."""
    names = [f"{decoder}: {what}" for decoder in ("opt", "uno") for what in ("rejections", "loss", "calls", "shift")]
    names += [f"{score}: {a} over {b}" for score in SCORES for a, b in PAIRS]
    rows = []
    for one in asks(scale):
        seen = {name: vars(Mean(name).estimate(tallies[one.label])) for name in ("opt: distance", *names)}
        rows.append({**{name: one.task.parameters[name] for name in ("form", "amount")}, **seen})
    return {"tokens": TOKENS, "trials": tallies[asks(scale)[0].label].trials, "settings": rows}


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


SCORE_LOOKS = (
    ("judge", "third model", Look(GREEN, "s"), -0.1),
    ("target", "target", Look(GREY, "^"), 0.0),
    ("typical", "typical", Look(PINK, "v"), 0.1),
)
"""What texts are scored by; how it is called and drawn, and how far beside a tick."""
DECODERS = (("opt", "OPT", Look(BLUE, "o")), ("uno", "UNO", Look(ORANGE, "D")))


def draw(figure: Figure, data: Data) -> None:
    """Left: the front. Middle: OPT against UNO. Right: both against plain sampling."""
    front, uno, plain = figure.subplots(1, 3)
    draw_front(front, data["settings"])
    ladder = [row for row in data["settings"] if row["form"] == "threshold"]
    against_uno = [(f"{key}: opt over uno", *look) for key, *look in SCORE_LOOKS]
    against_plain = [(f"judge: {key} over plain", *look, 0.0) for key, *look in DECODERS]
    draw_wins(uno, ladder, "b  Texts that OPT\n    wins over UNO", against_uno, 4)
    draw_wins(plain, ladder, "c  Texts that win over plain\n    (third model's score)", against_plain, 5)
    caption(
        figure,
        f"built-in pair, {data['trials']:,} prompts a setting, {data['tokens']} tokens a text, 95% intervals;\n"
        "filled: thresholds e, b = min(1, (p + e)/q);  open: share t = 0.4\n"
        "after a rejection OPT recovers from the law of least bias, UNO from the target itself\n"
        "b: a text wins by its probability under the target or a third model, or by a surprisal typical of the target",
    )


def draw_front(ax: Axes, rows: list[Data]) -> None:
    """Bias against rejections of both decoders, and the front."""
    distance = rows[0]["opt: distance"]["best"]
    ax.plot([distance, 0], [0, distance], color=GREY, linewidth=1.2)
    for key, _, look in DECODERS:
        for form in ("threshold", "share"):
            part = [row for row in rows if row["form"] == form]
            x, y = ([row[f"{key}: {what}"] for row in part] for what in ("rejections", "loss"))
            dots(ax, x, y, look, filled=form == "threshold", size=5, clip=False)
    ends = (0, 1.12 * distance)
    ax.set(xlim=ends, ylim=ends, xlabel="rejections per token", ylabel="bias per token (total variation)")
    ax.set_title("a  Rejections and bias,\n    along texts")
    ax.annotate("OPT", (0.55 * distance, 0.36 * distance), color=BLUE, fontsize=9, ha="right")
    ax.annotate("UNO", (0.7 * distance, 0.52 * distance), color=ORANGE, fontsize=9)
    ax.annotate("front: rejections\n+ bias = TV", (0.03 * distance, 0.03 * distance), color=GREY, fontsize=8)


def draw_wins(ax: Axes, rows: list[Data], title: str, lines: list[Any], size: float) -> None:
    """Win rates over the thresholds, evenly spaced; one half is marked."""
    places = range(len(rows))
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xticks(places, [f"{row['amount']:g}" for row in rows])
    ax.set(title=title, xlabel="over-acceptance e", ylabel="win rate (ties count half)")
    ax.set(xlim=(-0.3, len(rows) - 0.7), ylim=(0.25, 0.7))
    ends = []
    for key, name, look, beside in lines:
        seen, at = [row[key] for row in rows], [place + beside for place in places]
        ends.append(curve(ax, at, best(seen), look, name, seen=seen, width=1.2, size=size, clip=False))
    name_ends(ax, ends)
