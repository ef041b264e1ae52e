"""A program's arithmetic as C functions, the same text for a C compiler and for CUDA.

    ins = golden.instruction("hopper", "HMMA.16816.F32")
    text = device_text.source(ins.program, ins)

The text has one of two forms. The quick form holds golden/core/mg_device.h with the program's parameters as
constants; fused dot-adds, GDFS, FDRDA, chains of f64 FMAs, integers and conversions have it. For every other
program the text holds the whole general interpreter (golden/core/mg_general.c), and the program as the
structs that the C core takes. Both define

    unit_element                                     an operand: decoded, or (interpreter) its code
    unit_element unit_decode_a(uint64_t code)        (and _b)
    unit_number unit_number_a(unit_element x)        (and _b) the number that it stands for
    uint64_t unit_dot(const unit_element *a, const unit_element *b, uint64_t c)

where a and b hold the elements that are multiplied (stored_k of them) and c and the result are raw codes.
Units with block scales have two more parameters, `const uint64_t *scale_a, const uint64_t *scale_b`, and
units with status flags `uint32_t *raised`, with a bit for each word of enum mg_status_word.

A campaign on a GPU (hw_capture/campaign) runs it with the tensor core. The tests compile it with a C compiler
and compare it with `ins.dot`.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

from golden.errors import CoreError
from golden.model.kernels import OF_HARDWARE, Kernel, is_step, select_kernels
from golden.model.layout import lower_format, number
from golden.model.program_text import INTERPRETER, core_source, program_source
from golden.number.formats import Format, Kind, get_format
from golden.program.bounds import groups_of
from golden.program.keys import OPERATION, REGISTER, ROUNDING, Choice, Integer, Widths, declared
from golden.program.program import Operation, Program
from golden.program.signature import Signature
from golden.program.steps import Fma, Multiply, Round, SpecialValues, Step, Sum

_WORDS = {"combine": OPERATION, "rounding": ROUNDING}
"""Parameters whose values are words; all others are integers."""
_SCALES = ("scale_a", "scale_b")
_QUICK = ("mg_steps.h", "mmagold.h", "mg_internal.h", "mg_device.h")
_SCALE_ELEMENTS = ", const mg_element *scale_a, const mg_element *scale_b"
_SCALE_CODES = ", const uint64_t *scale_a, const uint64_t *scale_b"
WHOLE = (*INTERPRETER[:-1], "mg_device.h", INTERPRETER[-1])
"""The sources of both forms."""
CONSTANT = """#ifdef __CUDACC__
#define MG_CONSTANT static __device__ const
#define MG_UNIT static __device__
#else
#define MG_CONSTANT static const
#define MG_UNIT static
#endif"""
"""What stands before constants and functions of a unit."""


def source(
    program: Program, unit: Signature, faults: Mapping[str, Any] | None = None, quick: bool = True
) -> str:
    """Returns the C text of a program on these operands.

    Args:
        program, unit: what `supported` takes.
        faults: parameters to replace in every operation that has them (`fraction_bits`, `floor`, `rounding`,
            `result_fraction_bits`, `saturate`, ...; for the interpreter keys of steps): a wrong unit, to
            prove that a check sees it.
        quick: whether the quick form is taken where there is one.

    Raises:
        CoreError: the unit is none of one program, or a fault names no parameter of it.
    """
    kernels = _kernels(program, unit) if quick else None
    if kernels is None:
        return _general(_planted(program, unit, faults or {}), unit)
    most = max(len(operation.k_index) for operation in program.operations)
    head = [f"#define MG_DEVICE_K {most}", core_source(_QUICK)]
    return "\n".join([*head, _quick(program, unit, kernels, faults or {}), ""])


def functions(program: Program, unit: Signature, most: int, suffix: str) -> str:
    """What `source` gives behind the core's sources, for a text that has them, MG_CONSTANT and MG_UNIT.

    It computes in integers alone: the quick form stands only where it needs no floating-point arithmetic of
    the machine, which a caller may have set to another rounding or to flush subnormals.

    Args:
        most: MG_DEVICE_K of the text.
        suffix: stands behind the names of constants, where one text holds several programs.
    """
    kernels = _kernels(program, unit)
    if (
        kernels is not None
        and all(map(_in_integers, program.operations, kernels))
        and all(len(operation.k_index) <= most for operation in program.operations)
    ):
        return _quick(program, unit, kernels, {})
    slots = f"({len(REGISTER.words)} + 4) * ({unit.stored_k} + 8)"  # as mg_general.c says by itself
    return _interpreted(program, unit, slots, f"(4 * ({unit.stored_k} + 8))", suffix)


def _in_integers(operation: Operation, kernel: Kernel) -> bool:
    """Whether mg_device.h computes it without floating-point arithmetic of the machine."""
    return kernel["fast"] != "fma" and not (kernel["fast"] == "add" and operation.out_format.storage == 32)


def _quick(program: Program, unit: Signature, kernels: list[Kernel], faults: Mapping[str, Any]) -> str:
    """The quick form: decoders, a function of each operation, unit_dot."""
    known = {key for kernel in kernels for key in kernel} - {"fast"}
    for name, value in faults.items():
        words = _WORDS[name].words if name in _WORDS else None
        _check_fault(unit, known, name, value, words)
    kernels = [kernel | {key: value for key, value in faults.items() if key in kernel} for kernel in kernels]
    bodies = [
        _operation(unit, i, operation, kernel)
        for i, (operation, kernel) in enumerate(zip(program.operations, kernels, strict=True))
    ]
    return "\n".join([*_decoders(program, unit, True), *bodies, _dot(program, unit)])


def supported(unit: Signature) -> bool:
    """Whether `source` takes a unit: one of one program, that keeps nothing."""
    return unit.modes is None and not unit.state


def is_quick(program: Program, unit: Signature) -> bool:
    """Whether the program has the quick form."""
    return _kernels(program, unit) is not None


def element_kind(unit: Signature) -> str:
    """What the number of an operand is: "float" (significand and exponent), "integer" or "double" (the code
    itself)."""
    a = unit.formats["a"]
    return "double" if a.storage == 64 else "float" if a.is_float else "integer"


def element_bytes(program: Program, unit: Signature) -> int:
    """Bytes of a unit_element."""
    return 2 if is_quick(program, unit) and element_kind(unit) == "integer" else 8


def _check_fault(
    unit: Signature, known: set[str], name: str, value: Any, words: tuple[str, ...] | None
) -> None:
    """Raises CoreError where a fault is none of these parameters, or has another value than a word, or
    (None) an integer."""
    if name not in known:
        raise CoreError(f"{unit.name}: no parameter '{name}', expected one of {', '.join(sorted(known))}")
    if value not in words if words is not None else not isinstance(value, int):
        expected = " or ".join(["an integer"] if words is None else words)
        raise CoreError(f"{unit.name}: {name} is '{value}', expected {expected}")


# The interpreter --------------------------------------------------------------------------------------------


def _general(program: Program, unit: Signature) -> str:
    """The program as constants, the interpreter, and room for one thread's numbers."""
    registers, terms, sums = _room(program, unit)
    slots = "".join(f"(i) == {i} ? {count} : " for i, count in enumerate(registers) if count)
    head = [
        "#define MG_DEVICE_K 1 /* of the quick form, which is not called */",
        f"#define MG_REGISTER_SLOTS(i, p) ((void)(p), {slots}0)",
        f"#define MG_SUM_SLOTS(p) {sums}",
        f"#define MG_TERM_SLOTS(p) {terms}",
        CONSTANT,
        core_source(WHOLE),
    ]
    return "\n".join([*head, _interpreted(program, unit, str(sum(registers) + sums), str(terms)), ""])


def _interpreted(program: Program, unit: Signature, numbers: str, terms: str, suffix: str = "") -> str:
    """The interpreter's form: the program, decoders, and unit_dot with room for this many numbers and
    terms."""
    scaled, flags = unit.scale_block is not None, bool(unit.status)
    more = _SCALE_CODES if scaled else ""
    given = "scale_a, scale_b" if scaled else "NULL, NULL"
    return "\n".join(
        [
            program_source(program, unit, "MG_CONSTANT", suffix),
            *_decoders(program, unit, False),
            f"MG_UNIT uint64_t unit_dot(const unit_element *a, const unit_element *b, uint64_t c{more}"
            f"{', uint32_t *raised' if flags else ''}) {{",
            "    struct { /* as mg_dot_in divides it */",
            f"        mg_number numbers[{numbers}], *terms[2 * {terms}];",
            f"        uint64_t results[{len(program.operations) + 2}];",
            f"        int32_t owner[{terms}];",
            "    } workspace;",
            f"    return mg_dot_in(&workspace, &mg_the_program{suffix}, a, b, c, {given}, NULL, "
            f"{'raised' if flags else 'NULL'});",
            "}",
        ]
    )


def _room(program: Program, unit: Signature) -> tuple[list[int], int, int]:
    """The most numbers that each register of the interpreter holds, terms that a step reads, and numbers
    that it makes."""
    most: Counter[str] = Counter()
    terms = sums = 1
    for operation in program.operations:
        k = len(operation.k_index)
        held = Counter(a=k, b=k, c=1, addends=len(operation.addends), scales=k if unit.scale_block else 0)
        most |= held
        for step in operation.steps:
            taken = sum(held[name] for name in step.of)
            groups = len(groups_of(step, k if isinstance(step, Fma) else taken))
            terms, sums = max(terms, taken), max(sums, groups)
            if step.to:
                held[step.to] = (
                    k if isinstance(step, Multiply) else taken if isinstance(step, Round) else groups
                )
                most |= held
    return [most[name] for name in REGISTER.words], terms, sums


def _planted(program: Program, unit: Signature, faults: Mapping[str, Any]) -> Program:
    """The program with keys of its steps replaced, wherever a step has them."""
    steps = [step for operation in program.operations for step in operation.steps]
    keys = {name: key for step in steps for name, key, _ in declared(step)}
    known = {name for name, key in keys.items() if isinstance(key, Choice | Integer | Widths)}
    for name, value in faults.items():
        key = keys.get(name)
        _check_fault(unit, known, name, value, key.words if isinstance(key, Choice) else None)
    operations = (
        operation.with_steps(_faulty(step, faults) for step in operation.steps)
        for operation in program.operations
    )
    return Program(tuple(operations)) if faults else program


def _faulty(step: Step, faults: Mapping[str, Any]) -> Step:
    given = {name: faults[name] for name, _, _ in declared(step) if name in faults}
    tables = {
        name: tuple((register, value) for register, _ in getattr(step, name))
        for name, value in given.items()
        if isinstance(getattr(step, name), tuple)
    }
    return dataclasses.replace(step, **given | tables)


# The quick form ---------------------------------------------------------------------------------------------


def _kernels(program: Program, unit: Signature) -> list[Kernel] | None:
    """The parameters of every operation: those of the fast form, conversions, and FMA chains in any
    rounding."""
    if unit.status or not all(unit.formats[name].has_subnormals for name in "ab"):
        return None
    converts = [_convert(operation) for operation in program.operations]
    sums = [o for o, convert in zip(program.operations, converts, strict=True) if convert is None]
    kernels = select_kernels(sums, unit)
    if kernels is None or kernels[0]["fast"] in ("ieee", "exact"):  # the machine's own arithmetic
        if unit.scale_block is not None:
            return None
        kernels = [
            kernel for operation in program.operations if (kernel := _fma(unit, operation)) is not None
        ]
        return kernels if len(kernels) == len(program.operations) else None
    if "fma" not in {kernel["fast"] for kernel in kernels}:
        others = iter(kernels)
        found = [convert or next(others) for convert in converts]
        pairs = zip(program.operations, found, strict=True)
        return found if all(_fits_word(unit, operation, kernel) for operation, kernel in pairs) else None
    fma = [_fma(unit, operation) for operation in program.operations]
    return None if None in fma else fma  # type: ignore[return-value]


def _fits_word(unit: Signature, operation: Operation, kernel: Kernel) -> bool:
    """Whether mg_device_round can hold the exponent of the largest total above the result's fraction, in
    32 bits."""
    if kernel["fast"] in ("add", "integer"):
        return True
    factors = [operation.operand_format or unit.formats[name] for name in "ab"]
    factors += [unit.formats[name] for name in _SCALES if unit.scale_block is not None]
    floor = max(kernel.get("floor", 0), 0)
    largest = max(sum(f.max_exponent for f in factors) + 1, operation.seed_format.max_exponent, floor)
    span = largest + len(operation.k_index).bit_length() + 1 - operation.out_format.min_exponent
    kept = kernel.get("result_fraction_bits", operation.out_format.fraction_bits)
    return bool(span + 2 <= 1 << (32 - kept))


def _convert(operation: Operation) -> Kernel | None:
    """A conversion of one number, rounded once to nearest even."""
    if operation.k_index or operation.addends:
        return None
    match operation.steps:
        case (SpecialValues() as special, Sum() as total, Round() as final):
            pass
        case _:
            return None
    formats = operation.seed_format, operation.out_format
    plain = all(
        f.is_float
        and f.signed
        and f.has_subnormals
        and f.specials == "ieee"
        and f.storage <= 32
        and f.ignored_low == 0
        for f in formats
    )
    own = is_step(special, SpecialValues, "nan", of=("c",)) and is_step(
        total, Sum, "rounding", of=("c",), to="total"
    )
    last = {"format": operation.out_format, "rounding": "nearest_even", "overflow": "ieee", "zero": "signed"}
    once = is_step(final, Round, "nan", of=("total",), to="d", **last)
    return (
        {"fast": "convert", "nan": special.nan}
        if plain and own and once and special.nan is not None
        else None
    )


def _fma(unit: Signature, operation: Operation) -> Kernel | None:
    """A chain of fused multiply-adds in f64, seeded by c; a word for NaN that is a number would be taken
    as one."""
    step, f64 = operation.steps[0], get_format("f64")
    same = {*(unit.formats[name] for name in "abcd"), operation.seed_format, operation.out_format} == {f64}
    if (
        not is_step(step, Fma, "rounding", "nan", "nan_order", to="d", format=f64)
        or len(operation.steps) != 1
        or not same
        or operation.addends
        or operation.operand_format is not None
    ):
        return None
    if step.rounding not in OF_HARDWARE or step.nan is None or f64.decode(step.nan).kind != Kind.NAN:
        return None
    return {"fast": "fma", "rounding": step.rounding, "nan": step.nan, "nan_order": step.nan_order}


# C text -----------------------------------------------------------------------------------------------------


def _values(struct: Any) -> str:
    """A positional initialiser, which C and C++ read alike."""
    fields = ((getattr(struct, name), kind) for name, kind in struct._fields_)
    return (
        "{" + ", ".join(f"{value}{'ull' if kind is ctypes.c_uint64 else ''}" for value, kind in fields) + "}"
    )


def _format_function(name: str, fmt: Format) -> str:
    return (
        f"MG_HD mg_format {name}(void) {{\n    const mg_format f = {_values(lower_format(fmt))};\n    "
        f"return f;\n}}"
    )


def _decoders(program: Program, unit: Signature, quick: bool) -> list[str]:
    """The formats of the operands, and their elements and numbers; the interpreter's are codes."""
    kind = element_kind(unit)
    number = {"float": "mg_element", "integer": "int16_t" if quick else "int32_t", "double": "uint64_t"}[kind]
    lines = [
        f"typedef {number} unit_number;",
        f"typedef {'unit_number' if quick else 'uint64_t'} unit_element;",
    ]
    targets = {operation.operand_format for operation in program.operations if operation.k_index}
    target = targets.pop() if len(targets) == 1 else None
    for name in "ab":
        own = f"unit_{name}"
        lines.append(_format_function(own, unit.formats[name]))
        decoded = {
            "float": f"mg_device_decode({own}(), (uint32_t)code)",
            "integer": f"({number})mg_device_integer({own}(), (uint32_t)code)",
            "double": "code",
        }[kind]
        if target is not None and kind == "float":
            lines.append(_format_function(f"unit_{name}_as", target))
            decoded = f"mg_device_convert({own}(), unit_{name}_as(), {decoded})"
        made, seen = (decoded, "code") if quick else ("code", decoded)
        lines += [
            f"MG_HD unit_element unit_decode_{name}(uint64_t code) {{ return {made}; }}",
            f"MG_HD unit_number unit_number_{name}(unit_element code) {{ return {seen}; }}",
        ]
    scales = _SCALES if unit.scale_block is not None else ()
    return lines + [_format_function(f"unit_{name}", unit.formats[name]) for name in ("c", "d", *scales)]


def _operation(unit: Signature, index: int, operation: Operation, kernel: Kernel) -> str:
    """One operation as a function of all elements and of its seed (and addend) codes."""
    texts = {
        "fda": _fused_text,
        "gdfs": _fused_text,
        "fdrda": _fused_text,
        "add": _add_text,
        "integer": _integer_text,
        "fma": _fma_text,
        "convert": _convert_text,
    }
    formats = [
        _format_function(f"unit_{name}_{index}", getattr(operation, f"{name}_format"))
        for name in ("seed", "out")
    ]
    return "\n".join([*formats, texts[kernel["fast"]](unit, index, operation, kernel)])


def _picked(unit: Signature, operation: Operation) -> tuple[str, str, str]:
    """Declarations, and names of the arrays that hold the operation's own elements."""
    if operation.k_index == tuple(range(unit.stored_k)):
        return "", "a", "b"
    count = len(operation.k_index)
    moves = "".join(f"    x[{i}] = a[{k}], y[{i}] = b[{k}];\n" for i, k in enumerate(operation.k_index))
    return f"    unit_element x[{count}], y[{count}];\n{moves}", "x", "y"


_FUSED = ("floor", "chunk", "group", "scale_block", "dot_fraction_bits", "sum_fraction_bits", "window")
"""Parameters at the end of mg_fused that not every kernel has, before the overflow of products."""


def _fused_text(unit: Signature, index: int, operation: Operation, kernel: Kernel) -> str:
    """A sum of products by one of the three functions of mg_device.h that take mg_fused."""
    scaled = kernel["fast"] == "gdfs"
    moves, a, b = _picked(unit, operation)
    if unit.scale_block is not None and not scaled:
        moves, a, b = _scaled_elements(unit, operation)
    values = [kernel[name] for name in ("fraction_bits", "product_fraction", "result_fraction_bits")]
    values += [int(kernel["rounding"] == "nearest_even"), int(kernel["zero_rule"] == "signed_underflow")]
    own = [kernel.get(name, 0) for name in (*_FUSED, "product_overflow")]
    given = f"{a}, {b}, scale_a, scale_b" if scaled else f"{a}, {b}"
    return (
        f"MG_HD uint64_t unit_operation_{index}(const unit_element *a, const unit_element *b"
        f"{_SCALE_ELEMENTS if unit.scale_block is not None else ''}, uint64_t seed) {{\n{moves}"
        f"    const mg_fused u = {{{len(operation.k_index)}, {', '.join(map(str, values))},"
        f" unit_seed_{index}(), unit_out_{index}(), {kernel['nan']}u, {', '.join(map(str, own))}}};\n"
        f"    return mg_device_{kernel['fast']}(u, {given}, (uint32_t)seed);\n}}"
    )


def _scaled_elements(unit: Signature, operation: Operation) -> tuple[str, str, str]:
    """`_picked`, with the scales, which are powers of two, in the exponents."""
    count, block = len(operation.k_index), (unit.scale_block or 1) * unit.stored_k // unit.k
    moves = "".join(
        f"    x[{i}] = a[{k}], y[{i}] = b[{k}];\n"
        f"    x[{i}].exponent += scale_a[{k // block}].exponent + scale_b[{k // block}].exponent;\n"
        for i, k in enumerate(operation.k_index)
    )
    return f"    unit_element x[{count}], y[{count}];\n{moves}", "x", "y"


def _add_text(unit: Signature, index: int, operation: Operation, kernel: Kernel) -> str:
    nan = f"{kernel['nan']}u"
    wide = operation.out_format.storage == 32
    add = f"mg_device_add_f32(x, y, {nan})" if wide else f"mg_device_add_f16(unit_out_{index}(), x, y, {nan})"
    return f"MG_HD uint64_t unit_operation_{index}(uint32_t x, uint32_t y) {{ return {add}; }}"


def _convert_text(unit: Signature, index: int, operation: Operation, kernel: Kernel) -> str:
    return (
        f"MG_HD uint64_t unit_operation_{index}(uint32_t x) {{"
        f" return mg_device_convert_code(unit_seed_{index}(), unit_out_{index}(), x, {kernel['nan']}u); }}"
    )


def _integer_text(unit: Signature, index: int, operation: Operation, kernel: Kernel) -> str:
    moves, a, b = _picked(unit, operation)
    return (
        f"MG_HD uint64_t unit_operation_{index}(const unit_element *a, const unit_element *b, uint64_t "
        f"seed) {{\n{moves}"
        f"    return mg_device_sum({len(operation.k_index)}, {a}, {b}, (uint32_t)seed, "
        f"{number(OPERATION, kernel['combine'])},"
        f" {kernel['saturate']});\n}}"
    )


def _fma_text(unit: Signature, index: int, operation: Operation, kernel: Kernel) -> str:
    moves, a, b = _picked(unit, operation)
    found = ["abc".index(name) for name in kernel["nan_order"]]
    order = ", ".join(map(str, found + [-1] * (3 - len(found))))
    return (
        f"MG_HD uint64_t unit_operation_{index}(const unit_element *a, const unit_element *b, uint64_t "
        f"seed) {{\n{moves}"
        f"    const int32_t order[3] = {{{order}}};\n"
        f"    MG_UNROLL for (int i = 0; i < {len(operation.k_index)}; i++)\n"
        f"        seed = mg_device_fma({a}[i], {b}[i], seed, {number(ROUNDING, kernel['rounding'])}, order, "
        f"{kernel['nan']}ull);\n"
        f"    return seed;\n}}"
    )


def _dot(program: Program, unit: Signature) -> str:
    """The whole program: the operations in order, each fed by earlier results."""
    names = {"c": "c", "zero": "0"}
    scaled = unit.scale_block is not None
    head = "MG_HD uint64_t unit_dot(const unit_element *a, const unit_element *b, uint64_t c"
    lines = [f"{head}{_SCALE_CODES if scaled else ''}) {{"]
    if scaled:
        count = unit.k // (unit.scale_block or 1)
        lines += [
            f"    mg_element of_a[{count}], of_b[{count}];",
            f"    MG_UNROLL for (int i = 0; i < {count}; i++) {{",
            *(
                f"        of_{x}[i] = mg_device_decode(unit_scale_{x}(), (uint32_t)scale_{x}[i]);"
                for x in "ab"
            ),
            "    }",
        ]
    for i, operation in enumerate(program.operations):
        names[operation.to] = f"r{i}"
        seed, addends = names[operation.seed], [names[name] for name in operation.addends]
        arguments = (
            f"a, b, {'of_a, of_b, ' if scaled else ''}{seed}"
            if operation.k_index
            else ", ".join(f"(uint32_t){name}" for name in (seed, *addends))
        )
        lines.append(f"    const uint64_t r{i} = unit_operation_{i}({arguments});")
    unused = [] if any("c" in (o.seed, *o.addends) for o in program.operations) else ["    (void)c;"]
    return "\n".join([*lines, *unused, f"    return r{len(program.operations) - 1};", "}"])
