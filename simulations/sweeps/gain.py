"""What M drafts save over one at a single position, where it has a formula: uniform and Bernoulli pairs (Y3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulations.counts.estimates import exact
from simulations.counts.tally import Tally
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from spectheory.plots.line_ends import name_ends
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, Axes, Figure, Look, caption, note, titled

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
    return tuple(
        ask(
            label,
            "recursive",
            {"target": target, "draft": draft, "max_rank": MOST},
            scale,
            trials=scale.pick(1_600_000, 16_000_000),
        )
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


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Uniform pairs on the left, Bernoulli pairs on the right."""
    uniform, bernoulli = figure.subplots(1, 2)
    draw_uniform(uniform, data)
    draw_bernoulli(bernoulli, data["bernoulli"])
    for ax in (uniform, bernoulli):
        ax.set_ylabel("rejections saved over one draft, per position")
    caption(
        figure,
        f"Lines: exact; markers: simulated, {data['trials']:,} positions a curve, 95% intervals; dashed: many drafts.",
    )


def draw_uniform(ax: Axes, data: dict[str, Any]) -> None:
    """Savings against M where target and draft are uniform."""
    labels = []
    for row, (colour, marker) in zip(data["uniform"], _LOOKS, strict=True):
        ax.axhline(row["limit"], color=GREY, linewidth=0.8, linestyle="--")
        ax.plot(data["drafts"], row["exact"], color=colour, linewidth=1.2)
        dots(ax, data["drafts"], row["observed"], colour, marker=marker)
        labels.append((data["drafts"][-1], row["exact"][-1], f"r = {row['ratio']:g}", colour))
    ax.set_xlabel("drafts, M")
    ax.set_xticks(data["drafts"][::3])
    titled(
        ax,
        "Target uniform, draft uniform on r times as many:\n(1 - 1/r) - (1 - 1/r)$^M$; dashed: TV = 1 - 1/r",
    )
    name_ends(ax, labels)


def draw_bernoulli(ax: Axes, data: dict[str, Any]) -> None:
    """Savings against the draft's share where both have two tokens."""
    labels = []
    v, shares = data["target_share"], data["shares"]
    ax.plot(shares, [u - v for u in shares], color=GREY, linewidth=0.8, linestyle="--")
    for line, (colour, marker) in zip(data["lines"], _LOOKS, strict=True):
        ax.plot(shares, line["exact"], color=colour, linewidth=1.2)
        dots(ax, data["draft_shares"], line["observed"], colour, marker=marker)
        top = max(range(len(shares)), key=lambda i, of=line["exact"]: of[i])  # type: ignore[misc]
        labels.append((shares[top], line["exact"][top], f"M = {line['drafts']}", colour))
    labels.append((shares[-1], shares[-1] - v, "u - v", GREY))
    ax.set_xlabel(f"the draft's share u of a token; the target's: v = {v:g}")
    titled(
        ax,
        "Draft Bernoulli(u), target Bernoulli(v), u ≥ v:\n(u - v)(1 - u$^{M-1}$); dashed: TV = u - v",
    )
    for x, y, text, colour in labels[:-1]:
        note(ax, text, (x, y), (2, 5), colour, 8.5)
    name_ends(ax, labels[-1:])


SWEEP = Sweep(
    "gain",
    "What M drafts save at one position, for uniform and Bernoulli pairs",
    ("Y3", "R3"),
    asks,
    data,
    draw,
    (9.0, 4.4),
)
