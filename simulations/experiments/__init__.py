"""Tasks, their batches on any executor, and the append-only file of finished batches."""
