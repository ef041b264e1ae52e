"""mmagold: a bit-accurate, spec-driven golden model of matrix units.

    import golden
    ins = golden.instruction("hopper", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    D = ins(A, B, C)                  # raw bits in, raw bits out
    print(ins.trace(a, b, c))         # one dot product explained

Everything is driven by the YAML files in spec/. See docs/ and README.md.
"""

from importlib import import_module

__version__ = "0.4.0"

# Which module a public name comes from. A name is imported at its first use: the command's help, its
# completion and `import golden` wait neither for NumPy nor for the catalogue. __init__.pyi says the same to
# type checkers.
_MODULES = {
    "golden.catalog.architectures": ("architectures",),
    "golden.catalog.lookup": ("instruction", "instructions"),
    "golden.catalog.source_modifiers": ("Modifiers", "modified"),
    "golden.catalog.unit_files": ("load_instruction",),
    "golden.errors": (
        "CoreError",
        "DTypeError",
        "FileFormatError",
        "MetadataError",
        "MmagoldError",
        "OperandError",
        "ShapeError",
        "SpecError",
        "UnknownNameError",
    ),
    "golden.functions.functions": ("mufu",),
    "golden.identify.blackbox.dissecting": ("dissect",),
    "golden.kernels.finding": ("find_plan",),
    "golden.kernels.invariance": ("invariance", "tensor_parallel"),
    "golden.kernels.masks": ("sum_tree",),
    "golden.kernels.plan": ("Plan",),
    "golden.kernels.plan_files": ("load_plan", "plan", "plans"),
    "golden.kernels.product": ("gemm",),
    "golden.model.instruction": ("Evidence", "Instruction"),
    "golden.number.formats": ("Format", "formats", "from_float", "get_format", "to_float"),
}
_SOURCES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_SOURCES)


_LATER = {
    "dissect": "golden.identify.blackbox.dissecting",
    "invariance": "golden.kernels.invariance",
    "tensor_parallel": "golden.kernels.invariance",
}
"""Modules that are imported when one of these functions is first used: they import many others."""


def __getattr__(name: str) -> object:
    """A public name, imported at its first use."""
    if name not in _SOURCES:
        raise AttributeError(f"module 'golden' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(_SOURCES[name]), name)
    return found


def __dir__() -> list[str]:
    """The public names, for completion at a prompt."""
    return sorted({*globals(), *__all__})
