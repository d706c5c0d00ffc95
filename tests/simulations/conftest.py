"""The pool of processes that the tests of runs share."""

from tests.simulations.collect_cases import pool

__all__ = ["pool"]
