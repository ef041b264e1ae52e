"""From YAML to a program: the list of operations, each a list of primitive steps, that both models execute.

An instruction is a program of operations; an operation is one algorithm applied to a subset of k, with a seed (its c), an
output format and a register for its result; an algorithm is a list of primitive steps on registers of exact numbers.
`compile_program` resolves every parameter, so neither model ever looks at YAML again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from golden import yamlfile
from golden.errors import SpecError, UnknownNameError, nearest
from golden.formats import Format, get_format
from golden.paths import spec_folder
from golden.rounding import MODES, OVERFLOWS
from golden.yamlfile import Section

REGISTERS = ("a", "b", "c", "products", "groups", "dot", "total", "partial", "addends", "scales", "d")
MAX_K = 4096
MAX_FRACTION_BITS = 72


@dataclass(frozen=True)
class Step:
    """One primitive step with every parameter filled in. Fields that a step does not use keep their defaults."""

    op: str
    of: tuple[str, ...] = ()
    to: str = ""
    group: tuple[str, int] | None = None
    fraction_bits: tuple[tuple[str, int], ...] = ()
    rounding: str = "toward_zero"
    sticky: bool = False
    floor: int | None = None
    window: tuple[tuple[str, int], ...] = ()
    normalize: bool = False
    overflow_exponent: int | None = None
    operation: str = "product"
    format: Format | None = None
    flush: str = "none"
    exponent: int | None = None
    order: str = "exact"
    start: str = "c"
    nan: int | None = None
    nan_order: tuple[str, ...] = ()
    zero: str = "positive"
    overflow: str = "infinity"
    result_fraction_bits: int | None = None
    min_exponent: int | None = None
    # What a faulty datapath may do besides (docs/diagnosis.md); the defaults are the sound behaviour.
    zeros: str = "ignored"
    sticky_gap: int = 0
    shift_limit: int | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    width: int | None = None
    cancelled: str = "keeps_exponent"
    zero_times_infinity: str = "nan"
    opposite_infinities: str = "nan"
    subnormal_carry: str = "kept"


FAULTS = (
    "zeros",
    "sticky_gap",
    "shift_limit",
    "left_out",
    "width",
    "cancelled",
    "zero_times_infinity",
    "opposite_infinities",
    "subnormal_carry",
)
"""Fields of a step that only faulty datapaths set."""


@dataclass(frozen=True)
class Operation:
    """One algorithm applied to the elements `k_index` of the operands.

    `operand_format`: the format that a and b are converted to (exactly) before anything else, or None.
    `seed`: the register of the program that enters as c ("c", "zero" or an earlier result).
    """

    algorithm: str
    steps: tuple[Step, ...]
    k_index: tuple[int, ...]
    seed: str
    addends: tuple[str, ...]
    operand_format: Format | None
    seed_format: Format
    out_format: Format
    to: str
    parameters: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Program:
    """The operations in order. The result of the last one is d."""

    operations: tuple[Operation, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms used, in order of first use."""
        return tuple(dict.fromkeys(operation.algorithm for operation in self.operations))

    @property
    def bit_operation(self) -> str | None:
        """What two bits are combined with before they are counted ("and", "xor"); None where numbers are multiplied."""
        steps = (step for operation in self.operations for step in operation.steps if step.op == "multiply")
        return next((step.operation for step in steps if step.operation != "product"), None)


@dataclass(frozen=True)
class Algorithm:
    """One file of spec/algorithms. `steps` and `parameters` stay YAML until an instruction fills them in."""

    name: str
    title: str
    source: str
    aliases: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chain_of: str | None = None
    parameters: Section | None = None
    steps: list[Any] = field(default_factory=list)


def _load_algorithm(document: Section) -> Algorithm:
    algorithm = Algorithm(
        document.take("algorithm", str),
        document.take("title", str),
        document.take("source", str),
        tuple(document.take_names("aliases", [])),
        tuple(document.take_names("notes", [])),
        document.take("chain_of", str, None),
        document.take("parameters", Section, None),
        document.take("steps", list, []),
    )
    document.done()
    if bool(algorithm.steps) == bool(algorithm.chain_of):
        raise document.error(f"algorithm '{algorithm.name}' needs either 'steps' or 'chain_of'")
    return algorithm


@lru_cache(maxsize=1)
def algorithms() -> dict[str, Algorithm]:
    """Returns every algorithm of spec/algorithms by its paper name (aliases: see `get_algorithm`)."""
    folder = spec_folder() / "algorithms"
    loaded = [_load_algorithm(yamlfile.read(path)) for path in sorted(folder.glob("*.yaml"))]
    return {algorithm.name: algorithm for algorithm in loaded}


def get_algorithm(name: str) -> Algorithm:
    """Returns an algorithm by its paper name or its newer alias."""
    for algorithm in algorithms().values():
        if name.lower() in (algorithm.name, *algorithm.aliases):
            return algorithm
    known = [n for a in algorithms().values() for n in (a.name, *a.aliases)]
    raise UnknownNameError(f"unknown algorithm '{name}'{nearest(name, known)}")


# Parameters ----------------------------------------------------------------------------------------------------------

_CHECKS = {"int": int, "word": int, "mode": str, "overflow": str, "names": (str, list), "bool": bool}


def _resolve_parameters(algorithm: Algorithm, given: Section, out: Format) -> dict[str, Any]:
    declared = algorithm.parameters or Section(given.file, given.line)
    values: dict[str, Any] = {}
    for name in declared:
        rule = declared[name]
        value = given.take(name, (int, str, bool, list, Section), rule.get("default"))
        if isinstance(value, Section) and rule.get("by_output"):
            value = value.get(out.name)
        if value is None and not rule.get("optional") and rule["type"] != "word":
            raise given.error(f"parameter '{name}' of {algorithm.name} is missing for {out.name} results")
        if value is not None:
            _check_parameter(given, name, rule, value)
        values[name] = value
    given.done(declared)
    return values


def _check_parameter(given: Section, name: str, rule: Section, value: Any) -> None:
    kind = _CHECKS[rule["type"]]
    allowed = {"mode": MODES, "overflow": OVERFLOWS}.get(rule["type"], rule.get("choices"))
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):  # type: ignore[arg-type]
        raise given.error(f"parameter '{name}' is {value!r}, expected {rule['type']}", name)
    if allowed and value not in allowed:
        raise given.error(f"parameter '{name}' is '{value}', expected one of {', '.join(allowed)}{nearest(value, allowed)}", name)


def _substitute(value: Any, parameters: dict[str, Any], section: Section) -> Any:
    """Replaces "$name" by the parameter's value, also inside lists and mappings."""
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in parameters:
            raise section.error(f"'{value}' names no parameter{nearest(value[1:], parameters)}")
        return parameters[value[1:]]
    if isinstance(value, list):
        return [_substitute(item, parameters, section) for item in value]
    if isinstance(value, Section):
        copy = Section(value.file, value.line)
        copy.lines = value.lines
        for key in value:
            copy[key] = _substitute(value[key], parameters, section)
        return copy
    return value


# Steps ---------------------------------------------------------------------------------------------------------------

_FLUSHES = ("none", "signed", "positive")
_ZERO_TIMES_INFINITY = ("nan", "infinity", "zero")
_OPPOSITE_INFINITIES = ("nan", "first", "last", "positive", "negative")


class StepReader:
    """Reads one primitive step from its YAML mapping."""

    def __init__(self, op: str, section: Section, out: Format, local_formats: dict[str, Format]) -> None:
        self.op, self.section, self.out, self.local_formats = op, section, out, local_formats

    def registers(self, most: int = 4, never: tuple[str, ...] = ()) -> tuple[str, ...]:
        key = "of"
        names = self.section.take_names(key)
        for name in names:
            if name in never:
                raise self.section.error(f"step '{self.op}' does not work on '{name}'", key)
        if not 1 <= len(names) <= most or len(set(names)) != len(names):
            expected = "1 register" if most == 1 else f"1 to {most} different registers"
            raise self.section.error(f"key 'of' names {', '.join(names) or 'nothing'}, expected {expected}", key)
        for name in names:
            if name not in REGISTERS:
                raise self.section.error(
                    f"'{name}' is no register, expected one of {', '.join(REGISTERS)}{nearest(name, REGISTERS)}", key
                )
        return tuple(names)

    def target(self, also: tuple[str, ...] = ()) -> str:
        """The register that the step writes; the operands keep what they hold."""
        name: str = self.section.take("to", str)
        allowed = ("products", "groups", "dot", "total", "partial", *also)
        if name not in allowed:
            raise self.section.error(f"step '{self.op}' cannot write '{name}', expected one of {', '.join(allowed)}", "to")
        return name

    def checked_format(self, to: str) -> Format:
        """The step's format; what it writes to d must have d's."""
        fmt = self.format()
        if to == "d" and fmt != self.out:
            raise self.section.error(
                f"d is {self.out.name}, but the step's format is {fmt.name}; let a 'round' write d", "format"
            )
        return fmt

    def group(self, of: tuple[str, ...]) -> tuple[str, int] | None:
        section = self.section.take("group", Section, None)
        if section is None:
            return None
        if len(of) != 1:
            raise self.section.error("a grouped step works on one register", "group")
        if len(section) != 1:
            raise self.section.error("'group' holds one of contiguous, interleaved", "group")
        kind = next(iter(section))
        if kind not in ("contiguous", "interleaved"):
            raise section.error(f"unknown key '{kind}', expected contiguous or interleaved", kind)
        return kind, section.take_int(kind, 1, MAX_K)

    def per_register(self, key: str, of: tuple[str, ...], low: int, high: int, required: bool) -> tuple[tuple[str, int], ...]:
        value = self.section.take(key, (int, Section)) if required else self.section.take(key, Section, None)
        if value is None:
            return ()
        if isinstance(value, Section):
            table = tuple((name, value.take_int(name, low, high)) for name in of if name in value or required)
            value.done()
            return table
        self.section.take_int(key, low, high)
        return tuple((name, value) for name in of)

    def format(self) -> Format:
        name = self.section.take("format", str, None)
        if name is None:
            return self.out
        try:
            return self.local_formats.get(name) or get_format(name)
        except UnknownNameError as error:
            raise self.section.error(str(error), "format") from None

    def mode(self, default: Any = None) -> str:
        value: str = (
            self.section.take_choice("rounding", MODES)
            if default is None
            else self.section.take_choice("rounding", MODES, default)
        )
        return value

    def flush(self) -> str:
        value: str = self.section.take_choice("flush", _FLUSHES, "none")
        return value

    def nan(self, fmt: Format) -> int | None:
        value = self.section.take_int("nan", 0, (1 << fmt.storage) - 1, None)
        return fmt.nan if value is None else int(value)

    def nan_order(self) -> tuple[str, ...]:
        names = self.section.take_names("nan_order", [])
        if any(name not in ("a", "b", "c") for name in names) or len(set(names)) != len(names):
            raise self.section.error(f"key 'nan_order' is {names}, expected different ones of a, b, c", "nan_order")
        return tuple(names)

    def zero_times_infinity(self) -> str:
        value: str = self.section.take_choice("zero_times_infinity", _ZERO_TIMES_INFINITY, "nan")
        return value

    def left_out(self, of: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Registers that do not enter the maximum exponent, and what happens to their terms above it."""
        section = self.section.take("left_out", Section, None)
        if section is None:
            return ()
        table = tuple((name, section.take_choice(name, ("dropped", "unshifted"))) for name in of if name in section)
        section.done(of)
        if len(table) == len(of):
            raise self.section.error("key 'left_out' leaves no register to take the maximum of", "left_out")
        return table

    # One method a step; each names exactly the keys that the step knows.

    def read(self) -> Step:
        step: Step = getattr(self, f"_{self.op}")()
        self.section.done()
        return step

    def _flush(self) -> Step:
        return Step(
            "flush",
            self.registers(never=("scales", "addends")),
            flush=self.section.take_choice("sign", _FLUSHES[1:]),
        )

    def _hidden_bit(self) -> Step:
        of = self.registers(3, never=tuple(name for name in REGISTERS if name not in ("a", "b", "c")))
        zeros = self.section.take_choice("zeros", ("kept", "set"), "kept")
        return Step("hidden_bit", of, zeros="set" if zeros == "set" else "ignored")

    def _multiply(self) -> Step:
        rounds = "format" in self.section
        operation = self.section.take_choice("operation", ("product", "and", "xor"), "product")
        rule = self.zero_times_infinity()
        if rule != "nan" and operation != "product":
            raise self.section.error(f"key 'zero_times_infinity' is for products, not for '{operation}'", "zero_times_infinity")
        fmt = self.format() if rounds else None
        return Step(
            "multiply",
            ("a", "b"),
            self.target(),
            format=fmt,
            rounding=self.mode() if rounds else "toward_zero",
            flush=self.flush() if rounds else "none",
            nan=self.nan(fmt) if fmt else None,
            normalize=self.section.take("normalize", bool, False),
            overflow_exponent=self.section.take_int("overflow_exponent", -100000, 100000, None),
            operation=operation,
            zero_times_infinity=rule,
        )

    def _scale(self) -> Step:
        return Step("scale", self.registers(never=("a", "b", "c", "scales", "addends")))

    def _special_values(self) -> Step:
        rule = self.section.take_choice("opposite_infinities", _OPPOSITE_INFINITIES, "nan")
        return Step("special_values", self.registers(), nan=self.nan(self.out), opposite_infinities=rule)

    def _align(self) -> Step:
        of = self.registers(never=("a", "b", "scales"))
        sticky = self.section.take_choice("cut", ("dropped", "sticky"), "dropped") == "sticky"
        zeros = self.section.take_choice("zeros", ("ignored", "maximum", "sticky"), "ignored")
        gap = self.section.take_int("sticky_gap", 0, 64, 0)
        for key, meant in (("zeros", zeros == "sticky"), ("sticky_gap", gap > 0)):
            if meant and not sticky:
                raise self.section.error(f"key '{key}' speaks of a sticky bit, which needs 'cut: sticky'", key)
        return Step(
            "align",
            of,
            group=self.group(of),
            fraction_bits=self.per_register("fraction_bits", of, 0, MAX_FRACTION_BITS, True),
            rounding=self.mode(),
            sticky=sticky,
            zeros=zeros,
            sticky_gap=gap,
            shift_limit=self.section.take_int("shift_limit", 0, 10000, None),
            left_out=self.left_out(of),
            floor=self.section.take_int("floor", -100000, 100000, None),
            window=self.per_register("window", of, 0, 10000, False),
        )

    def _sum(self) -> Step:
        of, to, order = (
            self.registers(),
            self.target(("d",)),
            self.section.take_choice("order", ("exact", "tree", "sequential"), "exact"),
        )
        if order == "exact" and to == "d":
            raise self.section.error("an exact sum cannot be d; let a 'round' step write d", "to")
        if order == "exact":
            return Step(
                "sum",
                of,
                to,
                self.group(of),
                exponent=self.section.take_int("exponent", -100000, 100000, None),
                rounding=self.mode("toward_zero"),
                width=self.section.take_int("width", 1, 120, None),
                cancelled=self.section.take_choice("cancelled", ("keeps_exponent", "zero"), "keeps_exponent"),
            )
        fmt = self.checked_format(to)
        return Step(
            "sum",
            of,
            to,
            self.group(of),
            order=order,
            format=fmt,
            rounding=self.mode(),
            flush=self.flush(),
            nan=self.nan(fmt),
            overflow=self.sum_overflow(fmt),
        )

    def sum_overflow(self, fmt: Format) -> str:
        """IEEE 754 for floating point; integers wrap ("ieee") or clamp after every addition."""
        value: str = self.section.take_choice("overflow", ("ieee", "saturate"), "ieee")
        if value == "saturate" and fmt.is_float:
            raise self.section.error(f"overflow 'saturate' is for integers, the sum's format is {fmt.name}", "overflow")
        return value

    def _normalize(self) -> Step:
        of = self.registers(never=("a", "b", "scales"))
        return Step(
            "normalize",
            of,
            fraction_bits=self.per_register("fraction_bits", of, 0, MAX_FRACTION_BITS, True),
            rounding=self.mode(),
            min_exponent=self.section.take_int("min_exponent", -100000, 100000, None),
        )

    def _fma(self) -> Step:
        to = self.target(("d",))
        fmt = self.checked_format(to)
        return Step(
            "fma",
            ("a", "b"),
            to,
            self.group(("a",)),
            format=fmt,
            rounding=self.mode(),
            flush=self.flush(),
            start=self.section.take_choice("start", ("c", "zero", "product"), "c"),
            zero_times_infinity=self.zero_times_infinity(),
            nan=self.nan(fmt),
            nan_order=self.nan_order(),
        )

    def _round(self) -> Step:
        to = self.target(("d",)) if "to" in self.section else "d"
        fmt = self.checked_format(to)
        return Step(
            "round",
            self.registers(1),
            to,
            format=fmt,
            rounding=self.mode(),
            overflow=self.section.take_choice("overflow", OVERFLOWS),
            flush=self.flush(),
            nan=self.nan(fmt),
            zero=self.section.take_choice("zero", ("positive", "signed", "signed_underflow")),
            subnormal_carry=self.subnormal_carry(fmt),
            sticky_gap=self.rounding_gap(fmt),
            result_fraction_bits=self.section.take_int("fraction_bits", 0, fmt.fraction_bits, None),
        )

    def rounding_gap(self, fmt: Format) -> int:
        gap: int = self.section.take_int("sticky_gap", 0, 64, 0)
        if gap and not fmt.is_float:
            raise self.section.error(f"key 'sticky_gap' is for floating-point results, not {fmt.name}", "sticky_gap")
        return gap

    def subnormal_carry(self, fmt: Format) -> str:
        value: str = self.section.take_choice("subnormal_carry", ("kept", "lost"), "kept")
        if value == "lost" and not (fmt.is_float and fmt.has_zero):
            raise self.section.error(f"{fmt.name} has no subnormal numbers that could lose a carry", "subnormal_carry")
        return value


STEPS = tuple(name[1:] for name in vars(StepReader) if name.startswith("_") and not name.startswith("__"))


def _read_steps(
    items: list[Any], where: Section, parameters: dict[str, Any], out: Format, operands: Operands, addends: tuple[str, ...]
) -> tuple[Step, ...]:
    steps: list[Step] = []
    written = {"a", "b", "c"} | ({"addends"} if addends else set()) | ({"scales"} if operands.scaled else set())
    for item in items:
        if not isinstance(item, Section) or len(item) != 1:
            raise where.error("each step is one mapping, such as 'round: {...}'")
        op = next(iter(item))
        if op not in STEPS:
            raise item.error(f"unknown step '{op}', expected one of {', '.join(STEPS)}{nearest(op, STEPS)}", op)
        body = item.take(op, Section)
        step = StepReader(op, _substitute(body, parameters, body), out, operands.local_formats).read()
        for name in step.of:
            if name not in written:
                raise body.error(f"register '{name}' is read before a step has written it")
        if step.to:
            written.add(step.to)
        _check_sum(step, steps, body)
        steps.append(step)
    if not steps or steps[-1].to != "d":
        raise where.error("the last step must write d (a 'round', or a 'sum' or 'fma' with 'to: d')")
    return tuple(steps)


def _check_sum(step: Step, earlier: list[Step], body: Section) -> None:
    """An exact sum that feeds another exact sum could need more bits than the core keeps: the two are one sum."""
    if step.op != "sum" or step.order != "exact":
        return
    for name in step.of:
        last = next((s for s in reversed(earlier) if s.to == name or (name in s.of and s.op in ("align", "normalize"))), None)
        if last is not None and last.op == "sum" and last.order == "exact" and not _aligned(last, earlier):
            raise body.error(
                f"register '{name}' is an exact sum already; sum all of its terms in one step, or align or round it first", "of"
            )


def _aligned(total: Step, earlier: list[Step]) -> bool:
    """Whether all terms of a sum had been aligned, so that it has few bits."""
    before = earlier[: earlier.index(total)]
    return all(any(s.op == "align" and name in s.of for s in before) for name in total.of)


def _check_widths(steps: tuple[Step, ...], operands: Operands, frame: Operation, where: Section) -> None:
    """Refuses step lists that the models cannot run: empty or over-long registers, sums past the core's 128 bits."""
    _check_counts(steps, operands, frame, where)
    a, b = ((frame.operand_format or f) for f in (operands.a, operands.b))
    floats = a.is_float and b.is_float
    products = 2 if floats else a.bits + b.bits
    scales = 8 if any(step.op == "scale" for step in steps) else 0
    fixed = [step.exponent for step in steps if step.exponent is not None]
    reach = max(a.max_exponent + b.max_exponent - min(fixed), 0) if fixed and floats else 0
    for step in steps:
        if step.op == "align":
            growth = max(len(frame.k_index), 1).bit_length() + 2
            width = max(bits for _, bits in step.fraction_bits) + products + scales + reach + growth
            if width > 120:
                raise where.error(f"the aligned sum needs {width} bits, the core holds 120")
        if step.op == "hidden_bit":
            _check_hidden_bit(step, a, b, frame.seed_format, where)
        if step.overflow == "wrap" and step.op == "round" and (a.is_float or b.is_float or frame.seed_format.is_float):
            raise where.error("overflow 'wrap' is for integer operands; a float total has no exact low bits")
        same = {a.name, b.name, frame.seed_format.name, step.format.name if step.format else ""}
        if step.nan_order and (len(same) != 1 or a.fraction_bits == 0):
            raise where.error("'nan_order' hands NaN words on, so a, b, c and the step's format must be the same")


def _check_hidden_bit(step: Step, a: Format, b: Format, c: Format, where: Section) -> None:
    for name in step.of:
        fmt = {"a": a, "b": b, "c": c}[name]
        if not (fmt.is_float and fmt.has_zero):
            raise where.error(f"step 'hidden_bit' is for formats with subnormal numbers, {name} is {fmt.name}")


def _check_counts(steps: tuple[Step, ...], operands: Operands, frame: Operation, where: Section) -> None:
    """Follows how many terms each register holds, and refuses what reads none or writes more than one d."""
    k = len(frame.k_index)
    counts = {"a": k, "b": k, "c": 1, "scales": k if operands.scaled else 0, "addends": len(frame.addends)}
    for step in steps:
        members = sum(counts.get(name, 0) for name in step.of)
        if any(counts.get(name, 0) == 0 for name in step.of):
            raise where.error(f"step '{step.op}' reads a register without terms (operations with 'k: none' have no products)")
        if step.group is not None and step.group[1] > (k if step.op == "fma" else members):
            raise where.error(f"a group of {step.group[1]} is larger than the {members} terms that step '{step.op}' reads")
        groups = 1 if step.group is None else step.group[1] if step.group[0] == "interleaved" else 0
        terms = k if step.op == "fma" else members
        counts[step.to] = terms if step.op in ("multiply", "round") else groups or -(-terms // step.group[1])  # type: ignore[index]
        if step.op == "multiply":
            counts[step.to] = k
        if step.to == "d" and counts["d"] != 1:
            raise where.error(f"step '{step.op}' would write {counts['d']} values to d")
    scales = sum(step.op == "scale" for step in steps)
    if scales > 1 or (scales and not operands.scaled):
        raise where.error("a 'scale' step needs the formats scale_a and scale_b, and there is at most one")


# Programs ------------------------------------------------------------------------------------------------------------

_OPERATION_KEYS = ("k", "seed", "addends", "operands", "out", "to", "steps")


@dataclass(frozen=True)
class Operands:
    """The operand formats of an instruction and the number of products of one dot product (compressed K if sparse)."""

    a: Format
    b: Format
    c: Format
    d: Format
    k: int
    local_formats: dict[str, Format] = field(default_factory=dict)
    scaled: bool = False


def compile_program(items: list[Any], where: Section, operands: Operands) -> Program:
    """Compiles the YAML list `program:` for the given operands.

    Raises:
        SpecError: unknown key, algorithm, register or step; a wrong type; k elements used twice or not at all.
    """
    operations: list[Operation] = []
    for index, item in enumerate(items):
        if not isinstance(item, Section):
            raise where.error("each operation of 'program' is a mapping such as 'fda: {...}'", "program")
        operations += _compile_operation(item, operands, operations, last=index == len(items) - 1)
    if not operations:
        raise where.error("'program' is empty", "program")
    used = sorted(k for operation in operations for k in operation.k_index)
    if used != list(range(operands.k)):
        raise where.error(f"the operations use {len(used)} of k = {operands.k} products, expected each exactly once", "program")
    return Program(tuple(operations))


def _compile_operation(item: Section, operands: Operands, earlier: list[Operation], last: bool) -> list[Operation]:
    names = [key for key in item if key not in _OPERATION_KEYS]
    if len(names) + ("steps" in item) != 1:
        raise item.error(f"expected one algorithm (or 'steps') in an operation, found {', '.join(names) or 'none'}")
    results = {operation.to: operation.out_format for operation in earlier}
    out = _named_format(item, "out", operands) or operands.d
    k_index = _k_subset(item, operands.k)
    seed = item.take("seed", str, earlier[-1].to if earlier else "c")
    addends = tuple(item.take_names("addends", []))
    for name in (*addends, seed):
        if name not in ("c", "zero", *results):
            raise item.error(f"register '{name}' holds no earlier result", "seed" if name == seed else "addends")
    to = item.take("to", str, "d" if last else f"result{len(earlier)}")
    if to in ("c", "zero", *results):
        raise item.error(f"register '{to}' holds another result already", "to")
    if any({**results, "c": operands.c}.get(name, out) != out for name in addends):
        raise item.error("addends must have the operation's output format", "addends")
    if len(addends) > 4:
        raise item.error(f"key 'addends' names {len(addends)} results, expected at most 4", "addends")
    target = _named_format(item, "operands", operands)
    for source in (operands.a, operands.b) if k_index else ():
        if target is not None and not _holds(target, source):
            raise item.error(
                f"key 'operands' is {target.name}, which does not hold every {source.name} value exactly", "operands"
            )
    common: dict[str, Any] = {
        "seed_format": results.get(seed, out if seed == "zero" else operands.c),
        "operand_format": _named_format(item, "operands", operands),
    }
    if not names:
        body = item.take("steps", list)
        item.done(_OPERATION_KEYS)
        steps = _read_steps(body, item, {}, out, operands, addends)
        _check_widths(steps, operands, Operation("", (), k_index, seed, addends, out_format=out, to=to, **common), item)
        return [Operation("steps", steps, k_index, seed, addends, out_format=out, to=to, **common)]
    body = item.take(names[0], Section)
    item.done(_OPERATION_KEYS)
    return _apply_algorithm(
        names[0], body, item, operands, Operation("", (), k_index, seed, addends, out_format=out, to=to, **common)
    )


def _apply_algorithm(name: str, given: Section, item: Section, operands: Operands, frame: Operation) -> list[Operation]:
    try:
        algorithm = get_algorithm(name)
    except UnknownNameError as error:
        raise item.error(str(error), name) from None
    base = get_algorithm(algorithm.chain_of) if algorithm.chain_of else algorithm
    size = given.take_int("products", 1, MAX_K) if algorithm.chain_of else max(len(frame.k_index), 1)
    parameters = _resolve_parameters(base, given, frame.out_format)
    try:
        steps = _read_steps(base.steps, given, parameters, frame.out_format, operands, frame.addends)
    except SpecError as error:
        raise _blame_parameter(error, given) from None
    shown = tuple((key, value) for key, value in parameters.items() if value is not None)
    slices = [frame.k_index[i : i + size] for i in range(0, len(frame.k_index), size)] or [()]
    chained = []
    _check_widths(steps, operands, replace(frame, k_index=slices[0]), given)
    for index, part in enumerate(slices):
        to = frame.to if index == len(slices) - 1 else f"{frame.to}.{index}"
        seed, seed_format = (frame.seed, frame.seed_format) if index == 0 else (f"{frame.to}.{index - 1}", frame.out_format)
        chained.append(
            Operation(base.name, steps, part, seed, frame.addends, frame.operand_format, seed_format, frame.out_format, to, shown)
        )
    return chained


def _holds(target: Format, source: Format) -> bool:
    """Whether every finite value of `source` is exact in `target`."""
    return (
        target.is_float
        and source.is_float
        and (target.signed or not source.signed)
        and target.fraction_bits >= source.fraction_bits
        and target.max_exponent >= source.max_exponent
        and target.min_exponent - target.fraction_bits <= source.min_exponent - source.fraction_bits
    )


def _blame_parameter(error: SpecError, given: Section) -> SpecError:
    """A step of spec/algorithms that refuses a parameter's value: points at the line that gave the value."""
    message = str(error).split(": ", 1)[-1]
    return given.error(message, next((key for key in given if f"'{key}'" in message), None))


def _named_format(item: Section, key: str, operands: Operands) -> Format | None:
    name = item.take(key, str, None)
    if name is None:
        return None
    try:
        return operands.local_formats.get(name) or get_format(name)
    except UnknownNameError as error:
        raise item.error(str(error), key) from None


def _k_subset(item: Section, k: int) -> tuple[int, ...]:
    """`k: all | none | {from: i, to: j} | {modulo: 4, residues: [0, 1]} | {list: [3, 2, 1, 0]}`; chains follow the order."""
    choice = item.take("k", (str, Section), "all")
    if isinstance(choice, str):
        if choice not in ("all", "none"):
            raise item.error(f"key 'k' is '{choice}', expected all, none or a mapping", "k")
        return tuple(range(k)) if choice == "all" else ()
    if "list" in choice:
        picked = tuple(choice.take("list", list))
        if not all(isinstance(i, int) and 0 <= i < k for i in picked):
            raise choice.error(f"key 'list' must hold integers from 0 to {k - 1}", "list")
    elif "modulo" in choice:
        modulo, residues = choice.take_int("modulo", 1, MAX_K), choice.take("residues", list)
        picked = tuple(i for i in range(k) if i % modulo in residues)
    else:
        start, stop = choice.take_int("from", 0, k - 1), choice.take_int("to", 0, k - 1)
        picked = tuple(range(start, stop + 1))
    choice.done()
    return picked


__all__ = ["Algorithm", "Operands", "Operation", "Program", "SpecError", "Step", "algorithms", "compile_program", "get_algorithm"]
