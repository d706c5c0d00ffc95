"""Why counts are not as expected: a file per cause, and a line in :data:`CAUSES`."""

from spectheory.judging.causes.argmax import ARGMAX
from spectheory.judging.causes.base import Cause, Context, Finding
from spectheory.judging.causes.bonus import BONUS
from spectheory.judging.causes.changed_logits import DRAFT_CUT, DRAFT_SETTINGS, PAIR_SETTINGS, TARGET_SETTINGS
from spectheory.judging.causes.decay import DECAY
from spectheory.judging.causes.depth import DEPTH
from spectheory.judging.causes.early import EARLY
from spectheory.judging.causes.past_end import PAST_END
from spectheory.judging.causes.prompt_token import PROMPT_TOKEN
from spectheory.judging.causes.residual import RESIDUAL
from spectheory.judging.causes.undrafted import UNDRAFTED

__all__ = ["CAUSES", "Cause", "Context", "Finding"]

CAUSES: tuple[Cause, ...] = (
    *(ARGMAX, PROMPT_TOKEN, PAST_END, UNDRAFTED, DEPTH, DECAY, EARLY),
    *(BONUS, RESIDUAL),
    *(DRAFT_CUT, DRAFT_SETTINGS, TARGET_SETTINGS, PAIR_SETTINGS),
)
"""Every cause, in the order in which they are tried and reported."""
