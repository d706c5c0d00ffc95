"""Several candidates: the law of the rank."""
