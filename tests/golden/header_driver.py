"""Exported C headers compiled, and called through ctypes."""

from __future__ import annotations

import ctypes
import math
import subprocess
from typing import Any

import numpy as np

from golden.program.signature import SCALES
from golden.vectors import c_header

LANGUAGES = {
    "c": ("gcc", "-std=c99", ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]),
    "cc": ("g++", "-std=c++11", []),
}
"""By suffix: compiler, standard, more options; what is undefined traps in C."""


class Header:
    """Headers of units, in one compilation unit; `dot`, `matrices`, `lanes` run one by its name of C."""

    def __init__(
        self, texts: dict[str, str], units: dict[str, Any], folder: Any, language: str, level: str = "-O0"
    ):
        self.units = units
        for name, text in texts.items():
            (folder / f"{name}.h").write_text(text)
        source = folder / f"calls.{language}"
        calls = "\n".join(
            text
            for name, unit in units.items()
            for text in _calls(name, unit, any(f" {name}_lanes(" in text for text in texts.values()))
        )
        linked = f'extern "C" {{\n{calls}\n}}' if language == "cc" else calls
        source.write_text("".join(f'#include "{name}.h"\n' for name in texts) + linked)
        compiler, standard, more = LANGUAGES[language]
        strict = [standard, level, "-Wall", "-Wextra", "-Werror", *more]
        library = folder / f"calls_{language}.so"
        subprocess.run([compiler, *strict, "-shared", "-fPIC", "-o", library, source], check=True)
        self.library = ctypes.CDLL(str(library))

    def dot(self, name: str, operands: dict[str, Any]) -> Any:
        """Dot products (count, ...), as the unit's `dot`; with status flags (d, flags)."""
        return self._run(name, "dots", operands, ())

    def matrices(self, name: str, operands: dict[str, Any]) -> Any:
        """Products of matrices (count, ...), as the unit itself; blocks are entries in a row."""
        ins = self.units[name]
        return self._run(name, "tiles", operands, (ins.m, ins.n), ins.blocks)

    def lanes(self, name: str, operands: dict[str, Any], d: Any, selectors: tuple[int, ...] = ()) -> Any:
        """Registers (count, lanes, registers) of every operand, and what is in those of d before."""
        return self._call(name, "lanes", operands, d.copy(), len(d), selectors)

    def _run(
        self, name: str, kind: str, operands: dict[str, Any], shape: tuple[int, ...], blocks: int = 1
    ) -> Any:
        ins = self.units[name]
        count = len(operands["a"])
        d = np.zeros((count, *shape), ins.formats["d"].dtype)
        flags = np.zeros((count, *shape), np.uint8)
        self._call(name, kind, operands, d, count // blocks, (), flags)
        return (d, flags) if ins.status else d

    def _call(
        self,
        name: str,
        kind: str,
        operands: dict[str, Any],
        d: Any,
        count: int,
        selectors: tuple[int, ...],
        flags: Any = None,
    ) -> Any:
        arrays = [np.ascontiguousarray(operands[x]) for x in _inputs(self.units[name])]
        given = [ctypes.c_void_p(array.ctypes.data) for array in (d, *arrays)]
        if flags is not None:
            given.append(ctypes.c_void_p(flags.ctypes.data))
        getattr(self.library, f"{kind}_{name}")(
            ctypes.c_int64(count), *given, *map(ctypes.c_int32, selectors)
        )
        return d


def of_units(units: dict[str, Any], folder: Any, language: str, level: str = "-O0") -> Header:
    """A header each, side by side; the name is the prefix."""
    return Header(
        {name: c_header.text([ins], name, name) for name, ins in units.items()},
        units,
        folder,
        language,
        level,
    )


def of_architecture(name: str, instructions: list[Any], folder: Any, language: str, level: str) -> Header:
    """One header of many instructions."""
    units = {f"{name}_{c_header.identifier(ins.name)}": ins for ins in instructions}
    return Header({name: c_header.text(instructions, name, name)}, units, folder, language, level)


def _inputs(ins: Any) -> list[str]:
    shapes = ins.operand_shapes(True)
    return [name for name in ("a", "b", "c", "metadata", *SCALES) if name in shapes]


def _type(ins: Any, name: str) -> str:
    return "uint8_t" if name in ("metadata", "flags") else f"uint{ins.formats[name].storage}_t"


def _calls(name: str, ins: Any, lanes: bool) -> list[str]:
    found = [
        _call(
            name, "dots", ins, {x: _type(ins, x) for x in ("d", *_inputs(ins))}, ins.operand_shapes(False), 1
        )
    ]
    if ins.m * ins.n * ins.blocks > 1:
        shapes = ins.operand_shapes(True) | {"d": (ins.m, ins.n)}
        found.append(
            _call(name, "tiles", ins, {x: _type(ins, x) for x in ("d", *_inputs(ins))}, shapes, ins.blocks)
        )
    if lanes:
        layouts = {x: getattr(ins.fragments, x) for x in ("d", *_inputs(ins))}
        shapes = {x: (layout.lanes, layout.registers) for x, layout in layouts.items()}
        chosen = [f"{x}_{s}" for x in (*_inputs(ins), "d") for s, _ in layouts[x].selectors]
        types = {x: f"uint{layout.register_bits}_t" for x, layout in layouts.items()}
        found.append(_call(name, "lanes", ins, types, shapes, 1, chosen))
    return found


def _call(
    name: str,
    kind: str,
    ins: Any,
    types: dict[str, str],
    shapes: Any,
    blocks: int,
    selectors: list[str] | None = None,
) -> str:
    takes = ["int64_t count", *(f"{'const ' * (x != 'd')}{kind_of} *{x}" for x, kind_of in types.items())]
    flags = bool(ins.status) and kind != "lanes"
    takes += ["uint8_t *flags"] * (kind != "lanes") + [f"int32_t {x}" for x in selectors or ()]
    steps = {x: blocks * math.prod(shapes.get(x, ())) for x in (*types, "flags")}
    given = [
        f"c[i * {steps['c']}]" if x == "c" and kind == "dots" else f"{x} + i * {steps[x]}"
        for x in types
        if x != "d"
    ]
    size = blocks * ins.m * ins.n if kind == "tiles" else 1
    given += [f"flags + i * {size}"] * flags + list(selectors or ())
    if kind == "dots":
        call = f"d[i] = {name}_dot({', '.join(given)});"
    else:
        given.insert(0, f"d + i * {steps['d']}")
        call = f"{name}{'_lanes' * (kind == 'lanes')}({', '.join(given)});"
    unused = "(void)flags; " * (kind != "lanes" and not flags)
    head = f"void {kind}_{name}({', '.join(takes)})"
    return f"{head};\n{head} {{ {unused}for (int64_t i = 0; i < count; i++) {call} }}"
