"""All kinds of heads. A new kind is one file and one line here."""

from __future__ import annotations

from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.eagle3 import Eagle3
from spectheory.measure.heads.mtp import Mtp
from spectheory.measure.heads.peagle import PEagle

HEADS: dict[str, type[CheckpointHead]] = {
    head.kind: head
    for head in (
        Eagle3,
        PEagle,
        DFlash,
        Mtp,
    )
}
"""The classes of heads by their kind."""
