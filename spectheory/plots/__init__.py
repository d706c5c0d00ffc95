"""Every figure: a function that takes data and draws, a file for each group. No global style is touched."""

from __future__ import annotations

from spectheory.plots.prediction import speedup, tokens_per_call, trees, write_figures

__all__ = ["speedup", "tokens_per_call", "trees", "write_figures"]
