"""Check the wheel in dist/: what it holds, and what it does in a bare environment of each Python named."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HELD = (
    *(f"spectheory/pages/page.{kind}" for kind in ("html", "css", "js")),
    *(f"spectheory/pages/captions/{name}.md" for name in ("paths", "race")),
    *(f"spectheory/engines/openvino/{part}.py" for part in ("logs", "settings", "running", "drivers/openvino_engine")),
    *(f"spectheory/pairs/stdlib/{name}/model.safetensors" for name in ("target", "draft", "distilled")),
    *(f"spectheory/pairs/stdlib/{name}/model.safetensors" for name in ("eagle3", "dflash", "mtp", "dspark")),
    *("spectheory/samples/pair/trace.parquet", "spectheory/samples/vllm_metrics.txt"),
    *("spectheory/pairs/stdlib/question.jsonl", "spectheory/py.typed", "simulations/py.typed", "proofs_check/py.typed"),
)
PACKAGES = ("spectheory", "simulations", "proofs_check")
COMMANDS = (
    ("python", "-c", "import spectheory; spectheory.kl_divergence([0.5, 0.5], [0.25, 0.75])"),
    ("spectheory", "rules", "--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5"),
    ("spectheory", "predict", "builtin:"),
    ("spectheory", "doctor"),
)


def faults(names: list[str]) -> list[str]:
    """What is missing, and what does not belong."""
    foreign = [name for name in names if not name.startswith((*(f"{each}/" for each in PACKAGES), "spectheory-"))]
    return [*(f"lacks {name}" for name in HELD if name not in names), *(f"holds {name}" for name in foreign)]


def main() -> None:
    """Look into the wheel, then install and run it."""
    (wheel,) = Path("dist").glob("*.whl")
    if problems := faults(zipfile.ZipFile(wheel).namelist()):
        sys.exit(f"{wheel}: {', '.join(problems)}")
    for python in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, "-m", "venv", folder], check=True)
            programs = Path(folder, "bin")
            subprocess.run([programs / "python", "-m", "pip", "install", "-q", wheel], check=True)
            for name, *arguments in COMMANDS:
                subprocess.run([programs / name, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        print(f"{wheel.name} runs on {python}")


if __name__ == "__main__":
    main()
