"""mmagold: a bit-accurate, spec-driven golden model of GPU matrix units.

    import golden
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    D = ins(A, B, C)                  # raw bits in, raw bits out
    print(ins.trace(a, b, c))         # one dot product explained

Everything is driven by the YAML files in spec/. See docs/ and README.md.
"""

from importlib import import_module

from golden.catalog.architectures import architectures
from golden.catalog.lookup import instruction, instructions
from golden.catalog.source_modifiers import Modifiers, modified
from golden.catalog.unit_files import load_instruction
from golden.errors import (
    CoreError,
    DTypeError,
    FileFormatError,
    MetadataError,
    MmagoldError,
    OperandError,
    ShapeError,
    SpecError,
    UnknownNameError,
)
from golden.instruction import Evidence, Instruction
from golden.kernels.finding import find_plan
from golden.kernels.masks import sum_tree
from golden.kernels.plan import Plan, plan
from golden.kernels.plan_files import load_plan, plans
from golden.kernels.product import gemm
from golden.number.formats import Format, formats, from_float, get_format, to_float

__version__ = "0.4.0"
__all__ = [
    "CoreError",
    "DTypeError",
    "Evidence",
    "FileFormatError",
    "Format",
    "Instruction",
    "MetadataError",
    "MmagoldError",
    "Modifiers",
    "OperandError",
    "Plan",
    "ShapeError",
    "SpecError",
    "UnknownNameError",
    "architectures",
    "find_plan",
    "formats",
    "from_float",
    "gemm",
    "get_format",
    "instruction",
    "instructions",
    "invariance",
    "load_instruction",
    "load_plan",
    "modified",
    "plan",
    "plans",
    "sum_tree",
    "tensor_parallel",
    "to_float",
]


_LATER = {
    "dissect": "golden.identify.blackbox.dissecting",
    "invariance": "golden.kernels.invariance",
    "tensor_parallel": "golden.kernels.invariance",
}
"""Modules that are imported when one of these functions is first used: they import many others."""


def __getattr__(name: str) -> object:
    """`golden.dissect(f, ...)` and others, imported at their first use."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'golden' has no attribute '{name}'")
