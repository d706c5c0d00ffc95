"""Registered simulators: JSON parameters in, tallies out, and beside each what theory says of its tallies.

Importing this registers all of them. Like the kernels, a simulator calls no closed form: what predicts does.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
