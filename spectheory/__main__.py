"""``python -m spectheory``."""

import sys

from spectheory.cli import main

sys.exit(main())
