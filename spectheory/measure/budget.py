"""How precisely latencies are measured, and for how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spectheory.checks import real


@dataclass(frozen=True)
class Budget:
    """Passes are measured until they are precise enough, or until the time is spent.

    `width` is that of a 95% interval, relative to its value. `seconds` are for passes and decoding loop together; what
    must be measured in any case may exceed them.

    Examples
    --------
    >>> Budget(seconds=10).width
    0.1
    >>> Budget(width=0)
    Traceback (most recent call last):
    spectheory.errors.SettingError: the width of latencies is 0: must be > 0; 0.1 is the default
    """

    width: float = 0.1
    seconds: float = 60.0

    def __post_init__(self) -> None:
        for name, value, usual in (("width", self.width, 0.1), ("seconds", self.seconds, 60)):
            real(
                f"the {name} of latencies" if name == "width" else "the time for latencies in seconds",
                value,
                lambda number: 0 < number < math.inf,
                limit="must be > 0",
                remedy=f"{usual:g} is the default",
            )
