"""Write a model in the toy engine's form: its name, or a failure after half of the work."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    saved, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True)
    (out / "half").touch()
    if "--fail" in (saved / "config.json").read_text():
        sys.exit("a model of this kind cannot be written")
    (out / "model").write_text(saved.name)
