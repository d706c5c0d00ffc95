"""OPT against UNO along whole texts of the built-in pair: rejections, bias, win rates by a third model (yin2024)."""

from __future__ import annotations

from typing import Any

from simulations.counts.quantities import Mean
from simulations.simulators.biased_texts import PAIRS
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from spectheory.plots.opt_uno import draw

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
