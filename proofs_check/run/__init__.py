"""Running the ledger, keeping and showing what was found, and a trial of a claim of the user's own."""

PRELOADED = "proofs_check.run.preloaded"
"""What its workers are forked with."""
