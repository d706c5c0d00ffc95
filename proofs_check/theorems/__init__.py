"""The statements: one file per group of entries of the ledger. A theorem file imports no other theorem file."""
