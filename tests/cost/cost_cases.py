"""What the tests of C1 and C2 share."""

from __future__ import annotations

ROUNDING = 1e-12
"""Horner's rule on at most a hundred terms."""
