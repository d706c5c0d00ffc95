"""Charts, described once for pictures and pages, and their drawing as pictures: data in, drawing out.

What draws one panel takes the axes to draw into; nothing changes matplotlib's settings, and :func:`style_sheet` has
those of this project's own figures. Functions that write make PNG and SVG files and return their paths; they raise
OutputError where the folder cannot be written.
"""

from __future__ import annotations

from spectheory.plots.prediction import speedup, tokens_per_call, trees, write_figures
from spectheory.plots.style import Look, looks_of, style_sheet

__all__ = ["Look", "looks_of", "speedup", "style_sheet", "tokens_per_call", "trees", "write_figures"]
