"""What theory says of texts decoded with over-acceptance (Y5, Y6): at every position, so in the mean along any text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulations.counts.quantities import Mean
from simulations.verdicts.predictions import Predicted, predicts


@predicts("biased-texts")
def biased_texts(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Rejections and loss add up to the distance with OPT, to no less with UNO; OPT at 0 is plain sampling."""
    yield Predicted("rejections + loss - TV with OPT", "Y6", Mean("opt: excess"), 0.0)
    yield Predicted("rejections + loss - TV with UNO", "Y5", Mean("uno: excess"), 0.0, "lower bound")
    for decoder in ("opt", "uno"):
        says = f"mean surprisal less entropy of the output law with {decoder.upper()}"
        yield Predicted(says, "many-to-one", Mean(f"{decoder}: own shift"), 0.0)
    if parameters["amount"] == 0:
        yield Predicted("mean surprisal less entropy of the target with OPT", "Y5", Mean("opt: shift"), 0.0)
        for score in ("target", "judge", "typical"):
            says = f"share of texts that OPT wins over plain sampling, scored by {score}"
            yield Predicted(says, "Y5", Mean(f"{score}: opt over plain", 0.0, 1.0), 0.5)
