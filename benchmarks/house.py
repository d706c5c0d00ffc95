"""How large the house is: lines of each room, files, public names, helpers used once, import lines.

Counted in the tracked Python files of the checkout that this script stands in; ``--before FOLDER`` is another checkout
to compare with. A public name is a function or class at the top of a file of `spectheory` without an underscore. A
helper used once is a function or method with an underscore whose name is read once in its file.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOMS = ("spectheory", "simulations", "proofs_check", "tests", "benchmarks")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NAMED = (*FUNCTIONS, ast.ClassDef)


def counts(root: Path) -> dict[str, str]:
    """Every count by its name, as text."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.py"], capture_output=True, text=True, check=True)
    lines, public, functions, once, imports = Counter[str](), 0, 0, 0, 0
    names = listed.stdout.split()
    for name in names:
        text = (root / name).read_text(encoding="utf-8")
        room = name.split("/")[0]
        lines[room] += len(text.splitlines())
        if room == "spectheory":
            tree = ast.parse(text)
            public += sum(isinstance(n, NAMED) and not n.name.startswith("_") for n in tree.body)
            functions += sum(isinstance(node, FUNCTIONS) for node in ast.walk(tree))
            once += len(list(_used_once(tree)))
            imports += sum(_height(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {
        **{f"{room}, lines": f"{lines[room]:,}" for room in ROOMS},
        "Python lines in all": f"{lines.total():,}",
        "Python files in all": f"{len(names):,}",
        "public names of spectheory": f"{public:,}",
        "helpers used once, of all functions of spectheory": f"{once / functions:.1%}",
        "import lines of spectheory": f"{imports / lines['spectheory']:.1%}",
    }


def _used_once(tree: ast.Module) -> Iterator[str]:
    """Functions and methods with one underscore that are read once in their file."""
    read = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    read.update(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and not node.name.startswith("__") and node.name.startswith("_"):
            yield from [node.name] * (read[node.name] == 1)


def _height(node: ast.Import | ast.ImportFrom) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout, to compare with")
    options = parser.parse_args()
    here = counts(Path(__file__).resolve().parents[1])
    there = counts(options.before.resolve()) if options.before else {}
    for name, value in here.items():
        print(f"{name:50} {there.get(name, ''):>10} {value:>10}")


if __name__ == "__main__":
    main()
