"""Block verification and its rivals."""
