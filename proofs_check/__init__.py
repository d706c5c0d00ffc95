"""The evidence for every statement: exact enumeration of whole algorithms."""
