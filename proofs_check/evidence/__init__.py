"""How a claim is decided: exactly on a case, by search, solver, steps or simulation; and the ledger's entries."""
