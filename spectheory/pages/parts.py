"""What a page shows above its tables, in the order given; the template knows each by its `kind`."""

from __future__ import annotations

from typing import TypeAlias

from spectheory.pages.chart import Chart
from spectheory.pages.coloured import Coloured
from spectheory.pages.lines import Lines
from spectheory.pages.picture import Picture

Part: TypeAlias = Chart | Coloured | Lines | Picture
