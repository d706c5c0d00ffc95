"""What nearly every file of statements reads: ``from proofs_check.prelude import *``.

It has the language of claims, the kinds of evidence, the commonest cases and Python's own tools; calculators of the
library, closed forms and twins are imported by name, so that a file shows what it compares.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, combinations, combinations_with_replacement, islice, pairwise, permutations, product
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from proofs_check.algorithms.enumeration import (
    CallLaw,
    Decoding,
    Model,
    Pmf,
    Prefix,
    Rule,
    Table,
    block_verification,
    draft_paths,
    given_text,
    normalised,
    probability,
    text_law,
    token_verification,
)
from proofs_check.evidence.entries import (
    Entry,
    Evidence,
    agreement,
    certified,
    counterexample,
    exact,
    proof,
    public,
    searched,
    solved,
)
from proofs_check.evidence.formal import proved_in_coq, refuted_in_coq
from proofs_check.evidence.search import Space, pair_space, rational, softmax
from proofs_check.evidence.simulated import (
    LACKING,
    NEAR,
    RARE,
    TURNED,
    Parameters,
    Setting,
    against_kl,
    at,
    instead,
    simulated,
    stated,
)
from proofs_check.evidence.symbolic import Step, cited, in_words, same, valid
from proofs_check.library import cases
from proofs_check.library.cases import all_of, every_pair, pmf_of, prefixes, random_model, random_pmf, with_each
from proofs_check.library.strategies import exact_pairs, exact_pmfs
from proofs_check.statement.arithmetic import *
from proofs_check.statement.calculus import integral, limit, slope
from proofs_check.statement.claims import (
    POSITIVE,
    Assumption,
    Case,
    Claim,
    Compared,
    at_least,
    at_most,
    computed,
    equal,
)
from proofs_check.statement.findings import Effort, Finding
from proofs_check.statement.fractions import Fraction, end_of, law, law_of, total
