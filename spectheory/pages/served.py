"""Chart of a plan for a server: the best length's speed-up by concurrency and context."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.deployment.served import ServedChoice
from spectheory.pages.chart import QUIET, Chart, altair, data, numbers, rounded, specified


def served_charts(choices: Sequence[ServedChoice]) -> list[Chart]:
    """The chart of the best choices."""
    alt = altair()
    rows = [
        {end: rounded(getattr(one.speedup, end)) for end in ("low", "best", "high")}
        | {"batch": one.batch, "context": f"{one.context:.0f}", "k": one.k, "words": f"k = {one.k}"}
        for one in choices
    ]
    base = data(rows).encode(
        x=alt.X("batch:Q", title="requests decoded together", scale=alt.Scale(type="log", base=2)),
        color=alt.Color("context:N", title="context"),
        tooltip=["context:N", "batch:Q", "k:Q", *numbers("best", "low", "high")],
    )
    y = alt.Y("low:Q", title="speed-up over plain decoding", scale=alt.Scale(zero=False))
    arms = base.mark_rule(strokeWidth=3, opacity=0.35).encode(y=y, y2="high:Q")
    lines = base.mark_line(point={"size": 60}).encode(y="best:Q", shape=alt.Shape("context:N", title="context"))
    named = base.mark_text(dy=-12, fontSize=12).encode(y="high:Q", text="words:N")
    plain = data([{"y": 1}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(y="y:Q")
    return [
        Chart(
            "batches",
            "Best k by concurrency",
            "The fastest number of drafted tokens at each concurrency and context, and its speed-up with the 95% "
            "interval of the times; k = 0 is plain decoding, the dotted line.",
            specified(alt.layer(plain, arms, lines, named)),
            ["Times are fitted to the server's own runs; tokens per call are those of the trace, or of the runs."],
        )
    ]
