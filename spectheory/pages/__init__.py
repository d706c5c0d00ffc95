"""A report as one page to open in a browser: charts, sortable tables, the assumptions behind them; no network."""

from spectheory.pages.page import Coloured, Commands, Lines, Part, Picture, write_page
from spectheory.pages.vega import VegaChart

__all__ = ["Coloured", "Commands", "Lines", "Part", "Picture", "VegaChart", "write_page"]
