"""What a measurement does."""

from __future__ import annotations

from dataclasses import dataclass, field

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.drafting import Grown
from spectheory.errors import SettingError
from spectheory.verification import SuffixDrafts


@dataclass(frozen=True)
class MeasureSettings:
    """What is measured; equal settings, prompts and models give the same trace.

    `count` texts are sampled per prompt. With `given_text` the `output` of each prompt is measured instead. `race` says
    whether to compute the expensive columns: the race's, those of distinct candidates and of biased rules. Each prompt
    has its own random stream, and each text its own key for estimated columns. `depth` is that of a draft head, which
    is measured at every start (§10); None: as many drafts as it was trained for. `grown` is the size of the trees that
    the draft grows at every start, as 16x4x5; None: none. `suffix` says what suffix decoding drafts, for its columns;
    texts are served in the order of the file.

    Examples
    --------
    >>> MeasureSettings(tokens=64, count=2).sampling.temperature
    1.0
    """

    sampling: Sampling = field(default_factory=Sampling)
    tokens: int = 128
    count: int = 1
    seed: int = 0
    given_text: bool = False
    stop_at_end: bool = True
    chat_template: bool = False
    chunk: int = 256
    race: bool = True
    depth: int | None = None
    grown: str | None = None
    suffix: SuffixDrafts | None = None

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("count", 1), ("seed", 0), ("chunk", 1)):
            whole(name, getattr(self, name), least=least, remedy=f"use {least} or more")
        if self.grown is not None:
            Grown.sized_as(self.grown)
        if self.given_text and self.count != 1:
            raise SettingError(
                f"count is {self.count}", limit="a prompt has one given text", remedy="leave out the count"
            )
