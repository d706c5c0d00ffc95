"""The validation that the tests of this room share."""

from tests.validation.validation_cases import folder, found

__all__ = ["folder", "found"]
