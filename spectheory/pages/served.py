"""Chart of a plan for a server: the best length and its speed-up by concurrency, for a context to choose."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.deployment.served import ServedChoice
from spectheory.pages.chart import QUIET, Chart, altair, choice, data, numbers, rounded, specified


def served_charts(choices: Sequence[ServedChoice]) -> list[Chart]:
    """The chart of the best choices."""
    alt = altair()
    rows = [
        {end: rounded(getattr(one.speedup, end)) for end in ("low", "best", "high")}
        | {"batch": one.batch, "context": f"{one.context:.0f}", "k": one.k, "words": f"k = {one.k}"}
        for one in choices
    ]
    contexts = list(dict.fromkeys(row["context"] for row in rows))
    across = alt.Scale(type="log", base=2, padding=30)
    base = data(rows).encode(
        x=alt.X("batch:Q", title="requests decoded together", scale=across),
        tooltip=["context:N", "batch:Q", "k:Q", *numbers("best", "low", "high")],
    )
    shown, blue = base.transform_filter("datum.context == context"), "var(--blue)"
    y = alt.Y("low:Q", title="speed-up over plain decoding", scale=alt.Scale(zero=False))
    arms = shown.mark_rule(strokeWidth=3, opacity=0.35, color=blue).encode(y=y, y2="high:Q")
    lines = shown.mark_line(point={"color": blue, "size": 60}, color=blue).encode(y="best:Q")
    named = shown.mark_text(dy=-12).encode(y="high:Q", text="words:N")
    plain = data([{"y": 1}]).mark_rule(color=QUIET, strokeDash=[2, 2]).encode(y="y:Q")
    drawn = alt.layer(plain, arms, lines, named).add_params(choice("context", "context", contexts, contexts[-1]))
    return [
        Chart(
            "batches",
            "Best k by concurrency",
            "The fastest number of drafted tokens at each concurrency, and its speed-up with the 95% interval of the "
            "times; k = 0 is plain decoding, the dotted line. Choose a context below.",
            specified(drawn),
            ["Times are fitted to the server's own runs; tokens per call are those of the trace, or of the runs."],
        )
    ]
