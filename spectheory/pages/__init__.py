"""A report as one page to open in a browser: charts, sortable tables, the assumptions behind them; no network."""

from spectheory.pages.chart import Chart
from spectheory.pages.coloured import Coloured
from spectheory.pages.page import write_page

__all__ = ["Chart", "Coloured", "write_page"]
