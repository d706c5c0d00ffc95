"""A report as one page to open in a browser: charts, sortable tables, the assumptions behind them; no network."""

from spectheory.pages.chart import Chart
from spectheory.pages.coloured import Coloured
from spectheory.pages.lines import Lines
from spectheory.pages.page import write_page
from spectheory.pages.parts import Part
from spectheory.pages.picture import Picture

__all__ = ["Chart", "Coloured", "Lines", "Part", "Picture", "write_page"]
