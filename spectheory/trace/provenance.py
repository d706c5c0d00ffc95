"""What the provenance of a trace says under which name."""

from __future__ import annotations

GIVEN_TEXT, SAMPLED_TEXT = "given", "sampled from the target"
"""Origins of the text of a trace; limits over target samples hold for the second alone."""
PROVISIONAL = "provisional"
"""Where the provenance of a trace of the first stages says of how many ``prompts`` it is, ``of`` how many."""
SOURCES = "sources"
"""Where the provenance keeps the folders or hub ids of the models, for settings to paste; answers leave them out."""
RECORDED, LEFT_OUT = "recorded", "requests_left_out"
"""Where the provenance of recorded lengths names their drafts, and counts requests of the log that were left out."""
READ, LAYERS, IMPOSSIBLE = "read", "target_layers", "impossible"
"""Where the provenance of an engine's output says that texts of temperature 0 were read at another temperature, how
many layers the target has, and which tokens the target cannot output under the settings."""
