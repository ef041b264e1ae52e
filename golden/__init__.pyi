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
from golden.functions.functions import mufu
from golden.identify.blackbox.dissecting import dissect
from golden.kernels.finding import find_plan
from golden.kernels.invariance import invariance, tensor_parallel
from golden.kernels.masks import sum_tree
from golden.kernels.plan import Plan
from golden.kernels.plan_files import load_plan, plan, plans
from golden.kernels.product import gemm
from golden.model.instruction import Evidence, Instruction
from golden.number.formats import Format, formats, from_float, get_format, to_float

__version__: str
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
    "dissect",
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
    "mufu",
    "plan",
    "plans",
    "sum_tree",
    "tensor_parallel",
    "to_float",
]
