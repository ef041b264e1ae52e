"""The special-function unit of the GPU in this machine for every code, against the model in golden/functions.

with device.open() as gpu:
    for name in names("hopper"):
        outcome = sweep(gpu, "hopper", name)      # outcome.codes == 2**32, outcome.differences == 0
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.files.output import write_all
from golden.functions.c_text import c_name, c_text
from golden.functions.functions import functions
from golden.functions.recorded import GROUPS, operands
from hw_capture.errors import DeviceError
from hw_capture.gpu.device import Device
from hw_capture.kernels import toolchain

_TEMPLATE = Path(__file__).with_name("functions.cu")
_MOST = 16
"""Differing codes that an outcome holds."""
_FORMS = {
    "f32": "{{.reg .f32 a, b; mov.b32 a, %1; {name} b, a; mov.b32 %0, b;}}",
    "16": "{{.reg .b16 a, b; cvt.u16.u32 a, %1; {name} b, a; cvt.u32.u16 %0, b;}}",
    "x2": "{name} %0, %1;",
}
"""PTX around an instruction by the end of its name; operand and result are 32-bit registers."""


@dataclass(frozen=True)
class Outcome:
    """What one function gave: how many codes were compared, how many results differed, the first such codes,
    the digests of all results by group (golden.functions.recorded), and the results of the recorded codes."""

    name: str
    codes: int
    differences: int
    first: tuple[int, ...]
    digests: npt.NDArray[np.uint64]
    words: npt.NDArray[Any]


def names(architecture: str) -> list[str]:
    """The functions that PTX has; operations of SASS alone cannot be written."""
    return [name for name in functions(architecture) if not name.startswith("MUFU.")]


def source(architecture: str, chosen: Iterable[str]) -> str:
    """The CUDA source: the model, and the kernels of each function."""
    parts = ["#define MG_FUNCTION static __device__", c_text(architecture)]
    for name in chosen:
        form = next(body for end, body in _FORMS.items() if name.endswith(end))
        text = _TEMPLATE.read_text(encoding="utf-8").replace("@NAME@", c_name(name).removeprefix("mg_"))
        last = (1 << functions(architecture)[name].width) - 1
        text = text.replace("@PTX@", f'"{form.format(name=name)}"')
        parts.append(text.replace("@LAST@", str(last)).replace("@MOST@", str(_MOST)))
    return "\n".join(parts)


def sweep(gpu: Device, architecture: str, name: str, target: str) -> Outcome:
    """Runs one function for every code.

    target: the GPU's, such as "sm_90a".

    Raises:
        DeviceError: the GPU failed, or did not count every code. CompileError, ToolMissing: see toolchain.
    """
    width = functions(architecture)[name].width
    module = gpu.load(toolchain.compile(source(architecture, [name]), target))
    own = c_name(name).removeprefix("mg_")
    found = gpu.empty(8 * (2 + _MOST), fill=0)
    digests = gpu.empty(8 * GROUPS, fill=0)
    # Blocks for 2^32 codes, 2^18 each.
    blocks = 1 << 14
    module.get(f"compare_{own}")(found, digests, grid=blocks if width == 32 else 1, block=256)
    counts = gpu.download(found, (2 + _MOST,), np.uint64)
    if int(counts[0]) != 1 << width:
        raise DeviceError(f"{name}: the GPU compared {counts[0]} codes, expected {1 << width}")
    codes = operands(width).astype(np.uint32)
    results = gpu.empty(codes.nbytes)
    module.get(f"answer_{own}")(gpu.upload(codes), results, codes.size, grid=64, block=256)
    words = gpu.download(results, codes.shape, np.uint32).astype(np.uint16 if width == 16 else np.uint32)
    differences = int(counts[1])
    return Outcome(
        name,
        int(counts[0]),
        differences,
        tuple(int(code) for code in counts[2 : 2 + min(differences, _MOST)]),
        gpu.download(digests, (GROUPS,), np.uint64),
        words,
    )


def manifest(
    architecture: str, facts: AnyMapping[str, Any], compiler: str, outcomes: Iterable[Outcome]
) -> dict[str, Any]:
    """The manifest of an archive: which GPU gave it, and how many results differ from the model."""
    return {
        "architecture": architecture,
        "device": dict(facts),
        "compiler": compiler,
        "functions": {
            one.name: {"codes": one.codes, "differences": one.differences, "first": list(one.first)}
            for one in outcomes
        },
    }


def write(path: Path, about: AnyMapping[str, Any], outcomes: Iterable[Outcome]) -> None:
    """Writes the archive (golden.functions.recorded) and its manifest, both or none.

    Raises:
        FileFormatError: they cannot be written.
    """
    arrays: dict[str, Any] = {"codes": operands(32)}
    for one in outcomes:
        arrays[f"words {one.name}"] = one.words
        if one.words.itemsize == 4:
            arrays[f"digests {one.name}"] = one.digests
    text = json.dumps(about, indent=1) + "\n"
    write_all(
        {
            path: lambda file: np.savez_compressed(file, **arrays),
            path.with_suffix(".json"): lambda file: file.write(text.encode("utf-8")),
        }
    )
