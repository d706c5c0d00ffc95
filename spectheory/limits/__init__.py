"""Limits: the channel limit (T1) and the speed of light of deterministic drafts (B1, B2, B2', B6)."""

from spectheory.limits.branching import branching_bound, branching_bound_from_text
from spectheory.limits.channel import tunstall_bound

__all__ = ["branching_bound", "branching_bound_from_text", "tunstall_bound"]
