"""Figures, a file each: data in, drawing out.

Functions that write make PNG and SVG files and return their paths. They raise MissingExtraError without matplotlib and
OutputError where the folder cannot be written.
"""

from __future__ import annotations

from spectheory.plots.prediction import speedup, tokens_per_call, trees, write_figures

__all__ = ["speedup", "tokens_per_call", "trees", "write_figures"]
