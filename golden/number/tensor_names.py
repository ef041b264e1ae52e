"""How PyTorch calls the formats: one table for all who hand raw codes to it."""

TORCH_NAMES = {
    "f64": "float64",
    "f32": "float32",
    "tf32": "float32",
    "bf16": "bfloat16",
    "f16": "float16",
    "e5m2": "float8_e5m2",
    "e4m3": "float8_e4m3fn",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3fnuz": "float8_e4m3fnuz",
    "s32": "int32",
    "s8": "int8",
    "u8": "uint8",
}
"""The attribute of torch by format; each holds one code an element."""
