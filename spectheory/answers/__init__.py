"""What commands print and write as JSON: a type for each answer, and its schema (:func:`json_schema`)."""

from spectheory.answers.base import Part, plain
from spectheory.answers.schema import json_schema, schema_names

__all__ = ["Part", "json_schema", "plain", "schema_names"]
