"""From YAML to a program: operations with their algorithms, every parameter resolved and every step
checked."""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from golden.errors import SpecError, UnknownNameError, nearest
from golden.number.formats import Format, get_format
from golden.program.algorithms import get_algorithm, resolve_parameters, substitute
from golden.program.checks import StepChecks
from golden.program.keys import FORMAT_NAME
from golden.program.program import NO_SEED, NOTHING, OWN_STEPS, OperandFormats, Operation, Program
from golden.program.reading import StepReader
from golden.program.steps import MAX_K, STEPS, Part, Step
from golden.values import WORD, Anything, Choice, Either, Integer, Key, Many, Mapping, Text
from golden.yamlfile import Section

STEP_LIST = Anything(
    "a list of steps", (list,), {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 1}
)
OPERATION_LIST = Anything(
    "a list of operations", (list,), {"type": "array", "items": {"$ref": "#/$defs/operation"}, "minItems": 1}
)
_PLACE_IN_K = Integer(0, MAX_K - 1)
K_SUBSET = Mapping(
    (
        Key("from", _PLACE_IN_K, "the first k, below the unit's k", None, needs=("to",)),
        Key(
            "to",
            _PLACE_IN_K,
            "the last k, below the unit's k",
            None,
            excludes=("modulo", "list"),
            needs=("from",),
        ),
        Key(
            "modulo",
            Integer(1, MAX_K),
            "the divisor of k",
            None,
            excludes=("list",),
            needs=("residues",),
        ),
        Key(
            "residues",
            Many(_PLACE_IN_K, different=True),
            "takes every k with one of these remainders, each below `modulo`",
            None,
            needs=("modulo",),
        ),
        Key("list", Many(_PLACE_IN_K, different=True), "these k, in this order", None),
    ),
    one_of=(("from", "modulo", "list"),),
)
"""Part of the products."""
OPERATION = Mapping(
    (
        Key(
            "k",
            Either(Choice(("all", "none")), K_SUBSET),
            "its products: `all`, `none`, or [a mapping](#k)",
            "all",
        ),
        Key(
            "seed",
            Text(),
            "the register that enters as c: `c`, `zero` or an earlier result; default: the previous "
            "result, and `c` for the first operation",
            None,
            instead="see right",
        ),
        Key(
            "seed_format",
            FORMAT_NAME,
            "the format in which the seed's code is read, of the same width; default: the format in which it "
            "was written",
            None,
        ),
        Key(
            "addends",
            Many(Text(), 0, 4, alone=True),
            "earlier results that enter as the register `addends`",
            (),
        ),
        Key(
            "operands",
            FORMAT_NAME,
            "a format to which a and b are converted first; it must hold them exactly",
            None,
        ),
        Key("out", FORMAT_NAME, "the format of the result; default: d's", None),
        Key(
            "to",
            WORD,
            "the name of the result; default: `d` for the last operation, `result0`, `result1`, ... for "
            "the others",
            None,
            instead="`d`",
        ),
        Key(
            "steps",
            STEP_LIST,
            "the [steps](#every-step), if no algorithm is named",
            None,
            instead="needed without an algorithm",
        ),
    )
)
"""One operation of `program:`, without the algorithm that it may name."""
OPERATION_KEYS = OPERATION.names


def compile_program(items: list[Any], where: Section, operands: OperandFormats) -> Program:
    """Compiles the YAML list `program:` for the given operands.

    Raises:
        SpecError: unknown key, algorithm, register or step; a wrong type; k elements used twice or not at
            all.
    """
    operations: list[Operation] = []
    for index, item in enumerate(items):
        if not isinstance(item, Section):
            raise where.error("each operation of 'program' is a mapping such as 'fda: {...}'", "program")
        operations += _compile_operation(item, operands, operations, last=index == len(items) - 1)
    if not operations:
        raise where.error("'program' is empty", "program")
    _check_products(operations, where, operands.k)
    return Program(tuple(operations))


def _check_products(operations: Sequence[Operation], where: Section, k: int) -> None:
    """Every k is used, and by one operation; by several where each takes a part of a or b."""
    used = [k for operation in operations for k in operation.k_index]
    whole = [k for operation in operations if not _in_parts(operation) for k in operation.k_index]
    twice = len(set(whole)) < len(whole) or any(k in whole and used.count(k) > 1 for k in set(used))
    if len(set(used)) < k or twice:
        raise where.error(
            f"the operations use {len(used)} of k = {k} products, expected each exactly once (several times "
            "where every operation has a step 'part')"
            if twice
            else f"the operations use {len(set(used))} of k = {k} products, expected each exactly once",
            "program",
        )


def _in_parts(operation: Operation) -> bool:
    """Whether an operation multiplies parts of a or b alone."""
    return any({"a", "b"} & {*step.of} for step in operation.steps_of(Part))


def _compile_operation(
    item: Section, operands: OperandFormats, earlier: list[Operation], last: bool
) -> list[Operation]:
    names = [key for key in item if key not in OPERATION_KEYS]
    if len(names) + ("steps" in item) != 1:
        raise item.error(
            f"expected one algorithm (or 'steps') in an operation, found {', '.join(names) or 'none'}"
        )
    results = {operation.to: operation.out_format for operation in earlier}
    out = _named_format(item, "out", operands) or operands.d
    k_index = _k_subset(item, operands.k)
    first = NO_SEED if operands.c == NOTHING else "c"
    seed = item.take_value("seed", OPERATION["seed"].value, earlier[-1].to if earlier else first)
    addends = item.take_value("addends", OPERATION["addends"].value, ())
    if operands.c == NOTHING and "c" in (*addends, seed):
        raise item.error("the unit has no operand c", "seed" if seed == "c" else "addends")
    for name in (*addends, seed):
        if name not in ("c", "zero", *results) and (name, NO_SEED) != (seed, seed):
            raise item.error(
                f"register '{name}' holds no earlier result", "seed" if name == seed else "addends"
            )
    to = item.take_value("to", OPERATION["to"].value, "d" if last else f"result{len(earlier)}")
    if to in ("c", "zero", NO_SEED, *results):
        raise item.error(f"register '{to}' holds another result already", "to")
    if any({**results, "c": operands.c}.get(name, out) != out for name in addends):
        raise item.error("addends must have the operation's output format", "addends")
    written = results.get(seed, out if seed in ("zero", NO_SEED) else operands.c)
    seed_format = _named_format(item, "seed_format", operands) or written
    if (seed_format.bits, seed_format.storage) != (written.bits, written.storage):
        raise item.error(
            f"key 'seed_format' is {seed_format.name} of {seed_format.bits} bits, expected a format of "
            f"{written.bits} bits, as {written.name} has",
            "seed_format",
        )
    target = _named_format(item, "operands", operands)
    for source in (operands.a, operands.b) if k_index else ():
        if target is not None and not holds(target, source):
            raise item.error(
                f"key 'operands' is {target.name}, which does not hold every {source.name} value exactly",
                "operands",
            )
    common: dict[str, Any] = {
        "seed_format": seed_format,
        "operand_format": _named_format(item, "operands", operands),
    }
    frame = Operation(OWN_STEPS, (), k_index, seed, addends, out_format=out, to=to, **common)
    if not names:
        body = item.take_value("steps", STEP_LIST)
        item.done(OPERATION_KEYS)
        return [replace(frame, steps=_read_steps(body, item, {}, operands, frame))]
    body = item.take(names[0], Section)
    item.done(OPERATION_KEYS)
    return _apply_algorithm(names[0], body, item, operands, frame)


def _apply_algorithm(
    name: str, given: Section, item: Section, operands: OperandFormats, frame: Operation
) -> list[Operation]:
    try:
        algorithm = get_algorithm(name)
    except UnknownNameError as error:
        raise item.error(str(error), name) from None
    base = get_algorithm(algorithm.chain_of) if algorithm.chain_of else algorithm
    size = given.take_int("products", 1, MAX_K) if algorithm.chain_of else max(len(frame.k_index), 1)
    parameters = resolve_parameters(base, given, frame.out_format)
    slices = [frame.k_index[i : i + size] for i in range(0, len(frame.k_index), size)] or [()]
    seeds = dict.fromkeys([frame.seed_format] + [frame.out_format] * (len(slices) > 1))
    try:
        for seed_format in seeds:  # the first slice of a chain takes c, the others results
            first = replace(frame, k_index=slices[0], seed_format=seed_format)
            steps = _read_steps(base.steps, given, parameters, operands, first)
    except SpecError as error:
        raise _blame_parameter(error, given) from None
    shown = tuple((key, value) for key, value in parameters.items() if value is not None)
    chained = []
    for index, part in enumerate(slices):
        to = frame.to if index == len(slices) - 1 else f"{frame.to}.{index}"
        seed, seed_format = (
            (frame.seed, frame.seed_format) if index == 0 else (f"{frame.to}.{index - 1}", frame.out_format)
        )
        chained.append(
            Operation(
                base.name,
                steps,
                part,
                seed,
                frame.addends,
                frame.operand_format,
                seed_format,
                frame.out_format,
                to,
                shown,
            )
        )
    return chained


def steps_of_algorithm(
    name: str, parameters: AnyMapping[str, Any], like: Operation, operands: OperandFormats
) -> tuple[Step, ...]:
    """The steps that an algorithm with these parameters has in the place of an operation.

    Raises:
        SpecError: a parameter is wrong or missing, or a step refuses it.
    """
    given = Section(name, 1)
    given.update(parameters)
    algorithm = get_algorithm(name)
    resolved = resolve_parameters(algorithm, given, like.out_format)
    return _read_steps(algorithm.steps, given, resolved, operands, replace(like, steps=()))


def _read_steps(
    items: list[Any], where: Section, parameters: dict[str, Any], operands: OperandFormats, frame: Operation
) -> tuple[Step, ...]:
    """The steps of an operation that is given without any."""
    steps: list[Step] = []
    checks = StepChecks(frame, operands)
    for item in items:
        if not isinstance(item, Section) or len(item) != 1:
            raise where.error("each step is one mapping, such as 'round: {...}'")
        op = next(iter(item))
        if op not in STEPS:
            raise item.error(
                f"unknown step '{op}', expected one of {', '.join(STEPS)}{nearest(op, STEPS)}", op
            )
        body = item.take(op, Section)
        keys = substitute(body, parameters, body)
        step = StepReader(op, keys, frame.out_format, operands.local_formats, operands.flags).read()
        checks.add(step, keys)
        steps.append(step)
    if not steps or steps[-1].to != "d":
        raise where.error("the last step must write d (a 'round', or a 'sum' or 'fma' with 'to: d')")
    return tuple(steps)


def holds(target: Format, source: Format) -> bool:
    """Whether every finite value of `source` is exact in `target`."""
    return (
        target.is_float
        and source.is_float
        and (target.signed or not source.signed)
        and target.fraction_bits >= source.fraction_bits
        and target.max_exponent >= source.max_exponent
        and target.min_exponent - target.fraction_bits <= source.min_exponent - source.fraction_bits
        and (not target.lone_zero or target.min_exponent < source.min_exponent - source.fraction_bits)
    )


def _blame_parameter(error: SpecError, given: Section) -> SpecError:
    """A step of spec/algorithms that refuses a parameter's value: points at the line that gave the value."""
    message = str(error).split(": ", 1)[-1]
    return given.error(message, next((key for key in given if f"'{key}'" in message), None))


def _named_format(item: Section, key: str, operands: OperandFormats) -> Format | None:
    name = item.take(key, str, None)
    if name is None:
        return None
    try:
        return operands.local_formats.get(name) or get_format(name)
    except UnknownNameError as error:
        raise item.error(str(error), key) from None


def _k_subset(item: Section, k: int) -> tuple[int, ...]:
    """`k: all | none | {from: i, to: j} | {modulo: 4, residues: [0, 1]} | {list: [3, 2, 1, 0]}`; chains
    follow the order."""
    choice = item.take_value("k", OPERATION["k"].value, "all")
    if isinstance(choice, str):
        return tuple(range(k)) if choice == "all" else ()
    section: Section = item["k"]
    if choice["list"] is not None:
        return section.take_ints("list", 0, k - 1)
    if choice["modulo"] is not None:
        residues = section.take_ints("residues", 0, choice["modulo"] - 1)
        return tuple(i for i in range(k) if i % choice["modulo"] in residues)
    return tuple(range(section.take_int("from", 0, k - 1), section.take_int("to", 0, k - 1) + 1))
