"""``spectheory tree``: the best draft tree for i.i.d. ranks, or for the texts of a trace."""

from __future__ import annotations

from spectheory.cli.answer import show
from spectheory.cli.inputs import asked
from spectheory.cli.options import TreeOptions
from spectheory.cli.progress import working
from spectheory.prediction.tree_answer import tree
from spectheory.reports import tree_report


def run_tree(question: TreeOptions) -> None:
    """Answer the question and show the answer."""
    with working("searching trees"):
        answer = tree(**asked(question))
    show(tree_report(answer), as_json=question.json)
