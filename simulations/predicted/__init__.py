"""The closed forms that simulations are compared with. Importing this registers all of them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
