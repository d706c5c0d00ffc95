"""A report as one page to open in a browser: charts, sortable tables, the assumptions behind them; no network."""

from spectheory.reports.html.chart import Chart
from spectheory.reports.html.coloured import Coloured
from spectheory.reports.html.page import write_page

__all__ = ["Chart", "Coloured", "write_page"]
