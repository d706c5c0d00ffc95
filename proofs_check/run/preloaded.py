"""What workers of the ledger are forked with: every statement, and what simulations need."""

import gc

import simulations.preloaded  # noqa: F401
from proofs_check.run.ledger import ledger

ledger()

gc.freeze()  # workers share it all, and nobody looks through it at the end
