"""What M drafts save over one at a single position, where it has a formula: uniform and Bernoulli pairs (Y3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulations.counts import Tally, exact
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, Figure, Look, caption, name_ends, note

TITLE = "What M drafts save at one position, for uniform and Bernoulli pairs"
STATEMENTS = ("Y3", "R3")
SIZE = (9.0, 4.4)

MOST = 16
TARGET_TOKENS = 4
RATIOS = (1.25, 2.0, 4.0)
"""How many times as many tokens the uniform draft has; whole numbers of tokens."""
TARGET_SHARE = 0.3
DRAFT_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
DRAFTS = (2, 4, 16)


def uniform_gain(ratio: float, drafts: ArrayLike) -> NDArray[np.float64]:
    """Rejections saved by M drafts, uniform on r V' tokens against V': (1 - 1/r) - (1 - 1/r)^M (Y3, exact; yin2024)."""
    miss = 1 - 1 / ratio
    return np.asarray(miss - miss ** np.asarray(drafts, dtype=np.float64))


def bernoulli_gain(draft_share: ArrayLike, target_share: float, drafts: float) -> NDArray[np.float64]:
    """The same for a draft Bernoulli(u) and a target Bernoulli(v), u >= v: (u - v)(1 - u^(M - 1))."""
    u = np.asarray(draft_share, dtype=np.float64)
    return np.asarray((u - target_share) * (1 - u ** (drafts - 1)))


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Recursive rejection of up to 16 i.i.d. drafts, which is Algorithm 4 at one position."""
    settings = {}
    for r in RATIOS:
        tokens = round(r * TARGET_TOKENS)
        target = [1 / TARGET_TOKENS] * TARGET_TOKENS + [0.0] * (tokens - TARGET_TOKENS)
        settings[f"r = {r}"] = (target, [1 / tokens] * tokens)
    for u in DRAFT_SHARES:
        settings[f"u = {u}"] = ([1 - TARGET_SHARE, TARGET_SHARE], [1 - u, u])
    trials = scale.pick(1_600_000, 16_000_000)
    return tuple(
        ask(label, "recursive", {"target": target, "draft": draft, "max_rank": MOST}, scale, trials=trials)
        for label, (target, draft) in settings.items()
    )


def gained(tally: Tally, drafts: int) -> Data:
    """The share of trials whose first draft is rejected and one of the next, up to M, is not; exact 95% interval."""
    return vars(exact(int(tally.counts["rank"][1:drafts].sum()), tally.trials))


def data(scale: Scale, tallies: Tallies) -> Data:
    """Observed gains and the formulas."""
    numbers = list(range(1, MOST + 1))
    shares = np.linspace(TARGET_SHARE, 1.0, 141)
    return {
        "trials": scale.pick(1_600_000, 16_000_000),
        "drafts": numbers,
        "uniform": [
            {
                "ratio": r,
                "limit": 1 - 1 / r,
                "exact": uniform_gain(r, numbers).tolist(),
                "observed": [gained(tallies[f"r = {r}"], m) for m in numbers],
            }
            for r in RATIOS
        ],
        "bernoulli": {
            "target_share": TARGET_SHARE,
            "draft_shares": DRAFT_SHARES,
            "shares": shares.tolist(),
            "lines": [
                {
                    "drafts": m,
                    "exact": bernoulli_gain(shares, TARGET_SHARE, m).tolist(),
                    "observed": [gained(tallies[f"u = {u}"], m) for u in DRAFT_SHARES],
                }
                for m in DRAFTS
            ],
        },
    }


_LOOKS = (Look(BLUE, "o"), Look(GREEN, "s"), Look(ORANGE, "D"))


def draw(figure: Figure, data: Data) -> None:
    """Uniform pairs on the left, Bernoulli pairs on the right."""
    uniform, bernoulli = figure.subplots(1, 2)
    drafts, pairs, ends = data["drafts"], data["bernoulli"], []
    for row, look in zip(data["uniform"], _LOOKS, strict=True):
        uniform.axhline(row["limit"], color=GREY, linewidth=0.8, linestyle="--")
        name = f"r = {row['ratio']:g}"
        ends.append(curve(uniform, drafts, row["exact"], look, name, seen=row["observed"], width=1.2))
    title = "Target uniform, draft uniform on r times as many:\n(1 - 1/r) - (1 - 1/r)$^M$; dashed: TV = 1 - 1/r"
    uniform.set(title=title, xlabel="drafts, M", xticks=drafts[::3])
    name_ends(uniform, ends)
    v, shares, at = pairs["target_share"], pairs["shares"], pairs["draft_shares"]
    limit = curve(bernoulli, shares, [u - v for u in shares], Look(GREY, ""), "u - v", style="--", width=0.8)
    for line, look in zip(pairs["lines"], _LOOKS, strict=True):
        curve(bernoulli, shares, line["exact"], look, seen=line["observed"], at=at, width=1.2)
    title = "Draft Bernoulli(u), target Bernoulli(v), u ≥ v:\n(u - v)(1 - u$^{M-1}$); dashed: TV = u - v"
    bernoulli.set(title=title, xlabel=f"the draft's share u of a token; the target's: v = {v:g}")
    for line, look in zip(pairs["lines"], _LOOKS, strict=True):
        top, u = max(zip(line["exact"], shares, strict=True), key=lambda point: point[0])
        note(bernoulli, f"M = {line['drafts']}", (u, top), (2, 5), look.colour, 8.5)
    name_ends(bernoulli, [limit])
    for ax in (uniform, bernoulli):
        ax.set_ylabel("rejections saved over one draft, per position")
    caption(
        figure,
        f"Lines: exact; markers: simulated, {data['trials']:,} positions a curve, 95% intervals; dashed: many drafts.",
    )
