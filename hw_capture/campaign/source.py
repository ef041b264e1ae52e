"""The CUDA source of a campaign: operands made on the GPU, the instruction,
and the golden arithmetic next to it.

`device_source` is what nvcc compiles; `host_source` is the part without the instruction for a C compiler, so
that operands and results of any tile can be made again without a GPU, as the tests do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from golden.model import device_text
from golden.model.instruction import Instruction
from golden.number.formats import Format
from golden.program.steps import Align, Normalize, Round
from golden.registers.layout_text import expression
from golden.registers.layouts import Layout
from golden.registers.sparsity import PATTERNS
from golden.stimuli import KINDS, highest_exponent, lowest_exponent, tiniest_exponent
from hw_capture.errors import NoKernelError
from hw_capture.kernels import kernels

RECORDS = 100
"""Mismatches that a campaign keeps."""
COUNTS = ("dots", "mismatches", "nan", "infinity", "zero", "subnormal", "other")
"""What a campaign counts: dot products, mismatches, and results by class."""
DRAWN = KINDS[: KINDS.index("corner_pairs") + 1]
"""The kinds that a GPU draws itself, as kinds.h has them; the later ones only programs of the host make."""
EXHAUSTIVE = len(KINDS)
"""The kind that takes all pairs of codes in turn."""
CPU_TILE = 16
"""Rows and columns of the tile in which a campaign on a CPU brings operands together."""
_FOLDER = Path(__file__).resolve().parent
THREADS = 128  # of a block: four warps, one warpgroup
_MOST_SHARED = 227 << 10
"""Bytes of shared memory that a block can have on sm_90."""


@dataclass(frozen=True)
class Compilation:
    """A compiled campaign's shape: its source, bytes of shared memory a block, tiles a block works on,
    words of a record."""

    source: str
    shared_bytes: int
    groups: int
    record_words: int


def supported(ins: Instruction) -> bool:
    """Whether a campaign can run the instruction: one with a kernel and layouts."""
    fragments = ins.fragments if kernels.supported(ins) else None
    if fragments is None or not device_text.supported(ins):
        return False
    held = [getattr(fragments, name) for name in "abcd" if not _from_shared(ins, name)]
    whole = all(layout is not None and bool(layout.coordinates()["active"].all()) for layout in held)
    whole = whole and (not ins.scale_block or fragments.scale_a is not None)
    return whole and _areas(ins)[0] * (THREADS // kernels.lanes(ins)) <= _MOST_SHARED


def _from_shared(ins: Instruction, operand: str) -> bool:
    """Whether a campaign gives the operand to the instruction in shared memory: wherever it can."""
    return "shared" in ins.traits.places_of(operand)


def tile_shape(ins: Instruction) -> tuple[int, int]:
    """Rows of A and columns of B of a tile. The blocks of an instruction that has several stand one below the
    other in A, side by side in B; a result is that of a row and a column of one block."""
    return ins.m * ins.blocks, ins.n * ins.blocks


def dots_of_tile(ins: Instruction) -> int:
    """Results of a tile; that of a CPU is the tile of AMX, which the 16 lanes of a vector fill row by row."""
    if ins.traits.kernel in kernels.CPU_GENERATORS:
        return CPU_TILE * CPU_TILE
    return ins.m * ins.n * (ins.blocks if ins.traits.kernel in kernels.GENERATORS else 1)


def exhaustive_tiles(ins: Instruction) -> int | None:
    """Tiles that take all pairs of an A code and a B code once, at one k with one c; None where that cannot
    be done.

    Tile number t has pair block t % (this), k = t / (this) % K, and c number t / (this * K).
    """
    if ins.blocks > 1:  # a row meets the columns of its own block alone
        return None
    bits = [ins.formats[name].bits - ins.formats[name].ignored_low for name in "ab"]
    blocks = [(1 << width) // size for width, size in zip(bits, (ins.m, ins.n), strict=True)]
    return blocks[0] * blocks[1] if not ins.sparse and max(bits) <= 19 and min(blocks) else None


def device_source(ins: Instruction, faults: Mapping[str, Any] | None = None) -> Compilation:
    """The compilation unit with the kernel `campaign`. `faults`: see golden.model.device_text.source.

    Raises:
        NoKernelError: see `supported`.
    """
    if not supported(ins):
        raise NoKernelError(
            f"{ins.name}: no campaign: its kernel or register layout is missing, or it is too large"
        )
    area, places = _areas(ins)
    macros = {
        **places,
        "AREA": area,
        "LANES": kernels.lanes(ins),
        "RECORDS": RECORDS,
        "OWN_RESULTS": int(_own_results(ins)),
        "C_ELSEWHERE": int(_c_elsewhere(ins)),
    }
    form = "shared" if _from_shared(ins, "a") else "registers"
    parts = [
        _common(ins, faults),
        kernels.prelude(),
        kernels.inline(ins, form),
        _defines(macros | _register_macros(ins)),
        _layout_macros(ins),
        (_FOLDER / "kernel.cu").read_text(),
    ]
    # Groups of lanes in a block, and the words of the record of one mismatch.
    groups = THREADS // kernels.lanes(ins)
    words = 7 + 2 * ins.stored_k + 2 * _scales(ins)
    return Compilation("\n".join(parts), area * groups, groups, words)


def host_source(ins: Instruction, faults: Mapping[str, Any] | None = None) -> str:
    """The same operands and arithmetic as a C library with the function `campaign_tile`
    (hw_capture/campaign/host.c)."""
    return "\n".join([_common(ins, faults), (_FOLDER / "host.c").read_text()])


def _common(ins: Instruction, faults: Mapping[str, Any] | None) -> str:
    operands = (
        (_FOLDER / "operands.h").read_text().replace('#include "kinds.h"', (_FOLDER / "kinds.h").read_text())
    )
    wide = ins.formats["a"].storage == 64
    kinds = "enum campaign_kind { " + ", ".join(f"KIND_{kind}" for kind in DRAWN) + " };"
    code = f"typedef uint{64 if wide else 32}_t campaign_code;"
    return "\n".join(
        [device_text.source(ins.program, ins, faults), _defines(_constants(ins)), kinds, code, operands]
    )


# Constants --------------------------------------------------------------------------------------------------


def _defines(values: Mapping[str, object]) -> str:
    return "".join(f"#define CAMPAIGN_{name} {value}\n" for name, value in values.items())


def _constants(ins: Instruction) -> dict[str, object]:
    a, b, d = (ins.formats[name] for name in "abd")
    program = ins.program
    aligned = program.steps_of(Align)
    widths = [step.fraction_bits for step in aligned]
    widths += [step.fraction_bits for step in program.steps_of(Normalize)]
    # The widest alignment of the program: operands lie on both sides of its last bit.
    window = max(
        (bits for table in widths for _, bits in table),
        default=d.fraction_bits + 1 if d.is_float else 8,
    )
    kept = next(
        (s.result_fraction_bits for s in program.steps_of(Round) if s.result_fraction_bits is not None),
        d.fraction_bits,
    )
    # The least exponent that an alignment keeps; without one the least of the result.
    floor = next((step.floor for step in aligned if step.floor is not None), lowest_exponent(d))
    # Products have the fractions of the formats in which they are multiplied.
    target = next((o.operand_format for o in ins.program.operations if o.operand_format), None)
    fractions = (target or a).fraction_bits + (target or b).fraction_bits
    reaches = {
        f"{name.upper()}_{key}": value for name in "abcd" for key, value in _reach(ins.formats[name]).items()
    }
    return {
        "M": tile_shape(ins)[0],
        "N": tile_shape(ins)[1],
        "K": ins.stored_k,
        "LOGICAL_K": ins.k,
        "IS_FLOAT": int(a.is_float),
        "WIDE": int(a.storage == 64),
        "KINDS": len(DRAWN),
        "EXHAUSTIVE": EXHAUSTIVE,
        "F": window,
        "KEPT": max(kept, 1),
        "FLOOR": f"({floor})",
        "PRODUCT_FRACTION": fractions,
        "CAN_EXHAUST": int(exhaustive_tiles(ins) is not None),
        "BITS_A": a.bits - a.ignored_low,
        "BITS_B": b.bits - b.ignored_low,
        **reaches,
        "REACH_A": "{CAMPAIGN_A_LOWEST, CAMPAIGN_A_TINIEST, CAMPAIGN_A_HIGHEST}",
        "REACH_B": "{CAMPAIGN_B_LOWEST, CAMPAIGN_B_TINIEST, CAMPAIGN_B_HIGHEST}",
        "REACH_C_TINIEST": "CAMPAIGN_C_TINIEST",
        **_sparsity(ins),
        "SCALES": _scales(ins),
    }


def _scales(ins: Instruction) -> int:
    """Scales of a row of A, and of a column of B."""
    return ins.k // ins.scale_block if ins.scale_block else 0


def _reach(fmt: Format) -> dict[str, str]:
    values = {
        "LOWEST": lowest_exponent(fmt),
        "TINIEST": tiniest_exponent(fmt),
        "HIGHEST": highest_exponent(fmt),
    }
    return {key: f"({value})" for key, value in values.items()}


def _sparsity(ins: Instruction) -> dict[str, object]:
    if ins.pattern is None:
        return {"PATTERN": 0, "CHUNKS": 0}
    legal = ins.pattern.legal(ins.ordered_metadata)
    word = sum(nibble << 4 * i for i, nibble in enumerate(legal))
    index = list(PATTERNS).index(ins.pattern.name) + 1
    return {
        "PATTERN": index,
        "CHUNKS": ins.k // ins.pattern.chunk,
        "LEGAL": f"{word}ull",
        "LEGAL_COUNT": len(legal),
    }


def _register_macros(ins: Instruction) -> dict[str, object]:
    values: dict[str, object] = dict(_strides(ins))
    for name, layout in _results(ins).items():
        values |= {
            f"{name}_REGISTERS": layout.registers,
            f"{name}_PER_REGISTER": layout.elements_per_register,
        }
        values |= {f"{name}_BITS": layout.container_bits, "REGISTER": f"uint{layout.register_bits}_t"}
    return values


def _c_elsewhere(ins: Instruction) -> bool:
    """Whether element i of a lane is another place in C than in D: m8n8k4 with c in f16 and d in f32."""
    c, d = (layout.coordinates() for layout in _results(ins).values())
    return any(
        not np.array_equal(c[key].reshape(len(c[key]), -1), d[key].reshape(len(d[key]), -1))
        for key in ("row", "col")
    )


def _results(ins: Instruction) -> dict[str, Layout]:
    """The layouts of C and D."""
    c, d = ins.fragments.c, ins.fragments.d  # type: ignore[union-attr]
    assert c is not None and d is not None
    return {"C": c, "D": d}


# Shared memory ----------------------------------------------------------------------------------------------


def _strides(ins: Instruction) -> dict[str, int]:
    """Elements from one row of decoded operands to the next: 16 bytes more than a row, so that rows use
    other banks."""
    extra = 16 // device_text.element_bytes(ins.program, ins)
    return {"A_STRIDE": ins.stored_k + extra, "B_STRIDE": ins.k + extra}


def _staged_bytes(ins: Instruction) -> dict[str, int]:
    """Bytes of C and of D of a tile."""
    return {
        name: words.registers * kernels.lanes(ins) * words.register_bits // 8
        for name, words in _results(ins).items()
    }


def _own_results(ins: Instruction) -> bool:
    """Whether every lane keeps its words of C and D to itself:
    the widest wgmma leave no shared memory for them."""
    return _places(ins, _staged_bytes(ins))[0] * (THREADS // kernels.lanes(ins)) > _MOST_SHARED


def _areas(ins: Instruction) -> tuple[int, dict[str, int]]:
    """Bytes of shared memory that a tile needs, and where in them each part begins."""
    return _places(ins, {"C": 0, "D": 0} if _own_results(ins) else _staged_bytes(ins))


def _places(ins: Instruction, staged: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    element, strides = device_text.element_bytes(ins.program, ins), _strides(ins)
    rows, columns = tile_shape(ins)
    sizes = {
        "RAW_A": _raw_bytes(ins, "a", rows * ins.stored_k),
        "RAW_B": _raw_bytes(ins, "b", columns * ins.k),
        "A": rows * strides["A_STRIDE"] * element,
        "B": columns * strides["B_STRIDE"] * element,
        **staged,
        "SLOTS": 28 * ins.stored_k,
        "NIBBLES": ins.m * ins.k // ins.pattern.chunk if ins.pattern else 0,
        "SCALE_A": 8 * ins.m * _scales(ins),
        "SCALE_B": 8 * ins.n * _scales(ins),
    }
    places, end = {}, 0
    for name, size in sizes.items():
        places[f"AT_{name}"] = end
        end += -(-size // 128) * 128
    return end, places


def _raw_bytes(ins: Instruction, operand: str, elements: int) -> int:
    """Bytes of A or B of a tile as the instruction takes it; in registers the containers can be wider."""
    if _from_shared(ins, "a"):
        return elements * ins.formats[operand].bits // 8
    layout = getattr(ins.fragments, operand)
    return int(kernels.lanes(ins) * layout.registers * layout.register_bits // 8)


# Layouts as C -----------------------------------------------------------------------------------------------


def _layout_macros(ins: Instruction) -> str:
    fragments = ins.fragments
    assert fragments is not None
    lines = _shared_words(ins) if _from_shared(ins, "a") else _register_words(ins)
    for name, layout in _results(ins).items():
        lines += [
            f"#define CAMPAIGN_{name}_{macro}(L, r, e) ({_in_tile(ins, layout, name, key)})"
            for macro, key in (("ROW", "row"), ("COLUMN", "col"))
        ]
    if fragments.metadata is not None:
        for name, key in (("ACTIVE", "active"), ("ROW", "row"), ("CHUNK", "col")):
            text = re.sub(r"\br\b", "0", formula(fragments.metadata, key))
            lines.append(f"#define CAMPAIGN_METADATA_{name}(L, e) ({text})")
    for operand in ("scale_a", "scale_b") if ins.scale_block else ():
        for name, key in (("ACTIVE", "active"), ("ROW", "row"), ("COLUMN", "col")):
            text = re.sub(r"\br\b", "0", formula(getattr(fragments, operand), key))
            lines.append(f"#define CAMPAIGN_{operand.upper()}_{name}(L, e) ({text})")
    return "\n".join(lines)


def _register_words(ins: Instruction) -> list[str]:
    """Word i of A or B is register i / lanes of lane i % lanes."""
    lines, lanes = [], kernels.lanes(ins)
    for name, layout in (("A", ins.fragments.a), ("B", ins.fragments.b)):  # type: ignore[union-attr]
        assert layout is not None
        lines += [
            f"#define CAMPAIGN_{name}_WORDS {lanes * layout.registers}",
            f"#define CAMPAIGN_{name}_PER_WORD {layout.elements_per_register}",
            f"#define CAMPAIGN_{name}_BITS {layout.container_bits}",
            f"#define CAMPAIGN_{name}_SHIFT {layout.element_shift}",
            f"#define CAMPAIGN_{name}_PLACE(i) (i)",
        ]
        for macro, key in (("ROW", "row"), ("COLUMN", "col")):
            text = re.sub(r"\br\b", f"((i) / {lanes})", _in_tile(ins, layout, name, key))
            text = re.sub(r"\bL\b", f"((i) % {lanes})", text)
            lines.append(f"#define CAMPAIGN_{name}_{macro}(i, e) ({text})")
    return lines


def _shared_words(ins: Instruction) -> list[str]:
    """Words of A by rows and of B by columns, placed as the descriptors say:
    K-major, no swizzle (PTX ISA 9.7.15.5.1)."""
    lines = []
    for name, lines_of, k in (("A", ins.m, ins.stored_k), ("B", ins.n, ins.k)):
        bits = ins.formats[name.lower()].bits
        per_word, words = 32 // bits, k * bits // 32
        line, word = f"((i) / {words})", f"((i) % {words})"
        place = f"({word} / 4 * 32 + {line} / 8 * {8 * words} + {line} % 8 * 4 + {word} % 4)"
        along = f"({word} * {per_word} + (e))"
        lines += [
            f"#define CAMPAIGN_{name}_WORDS {lines_of * words}",
            f"#define CAMPAIGN_{name}_PER_WORD {per_word}",
            f"#define CAMPAIGN_{name}_BITS {bits % 32}",
            f"#define CAMPAIGN_{name}_SHIFT 0",
            f"#define CAMPAIGN_{name}_PLACE(i) {place}",
            f"#define CAMPAIGN_{name}_ROW(i, e) {line if name == 'A' else along}",
            f"#define CAMPAIGN_{name}_COLUMN(i, e) {along if name == 'A' else line}",
        ]
    return lines


def _in_tile(ins: Instruction, layout: Layout, operand: str, key: str) -> str:
    """Row or column of an operand in the tile, as C; `tile_shape` says where blocks stand."""
    text, along_k = formula(layout, key), (operand, key) in (("A", "col"), ("B", "row"))
    if ins.blocks == 1 or along_k:
        return text
    return f"({formula(layout, 'block')} * {ins.m if key == 'row' else ins.n} + {text})"


def formula(layout: Layout, key: str) -> str:
    """A coordinate of the layout as a C expression of L, r and e."""
    names: dict[str, str] = {name: str(value) for name, value in (*layout.parameters, *layout.selectors)}
    names |= {"W": str(layout.elements_per_register), "L": "(L)", "r": "(r)", "e": "(e)"}
    names["i"] = f"({names['W']} * (r) + (e))"
    for name, text in layout.formulas:
        names[name] = expression(text, names)
    return names[key]
