"""Why counts are not as expected: a file per cause, and a line in :data:`CAUSES`."""

from spectheory.judging.causes.base import Cause, Context, Finding

__all__ = ["CAUSES", "Cause", "Context", "Finding"]

CAUSES: tuple[Cause, ...] = ()
"""Every cause, in the order in which they are tried and reported."""
