"""The kernels as registered simulators: JSON parameters in, tallies out. Importing this registers all of them.

Like kernels and twins, a simulator calls no closed form; what theory says of its tallies is in
:mod:`simulations.predicted`.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

for _file in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")
