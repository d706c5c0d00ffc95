"""Other tools' logs read as traces: a file per format, and a line in :data:`FORMATS`."""

from spectheory.trace.importers.base import Format
from spectheory.trace.importers.logprobs import LOG_PROBABILITIES

FORMATS: dict[str, Format] = {each.name: each for each in (LOG_PROBABILITIES,)}
"""Every format by its name, tried in this order."""
