"""Repairs one function of vLLM 0.32.0's CPU build while Python runs: put this folder on that Python's PYTHONPATH.

`_expand_kernel_impl` of `vllm/utils/cpu_triton_utils.py` repeats a request's setting for each of its draft tokens. It
hands int64 copies of its input and output to a C++ kernel and does not copy the output back, as its neighbours do. So
with speculation above temperature 0 the logits are divided by uninitialised memory in place of the temperature.
"""

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec

CHANGES = "expand_kernel repaired"
"""What `spectheory validate --engine` records behind the version."""
MODULE = "vllm.utils.cpu_triton_utils"


def expand(output, input_val, cu_num_tokens, replace_from, replace_to, MAX_NUM_TOKENS=None):
    """Entry i of the input, `replace_to` where it is `replace_from`, for every token of request i."""
    import torch

    last = cu_num_tokens.to(torch.int64)
    counts = torch.diff(last, prepend=last.new_zeros(1))
    kept = input_val.masked_fill(input_val == replace_from, replace_to)
    output.copy_(kept.repeat_interleave(counts))


class _Repairing(Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        module._expand_kernel_impl = expand


class _Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        spec.loader = _Repairing(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
