"""The statements: a folder for each topic, with the cases, twins and proofs that it alone uses.

A file imports from no other topic, and from no file that has entries of the ledger.
"""
