"""Tasks, their batches on any executor, and the append-only file of finished batches."""

PRELOADED = "simulations.preloaded"
"""What its workers are forked with."""
