"""The optional libraries this package needs; without them, importing it names the extra that installs them."""

from spectheory.errors import load_extra

load_extra("torch", extra="models")
load_extra("transformers", extra="models")
