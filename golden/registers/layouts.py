"""Register layouts: which matrix element lies in which bits of which register of which lane.

A `Layout` is one operand of one instruction. Its rules are formulas in `spec/layouts/*.yaml`; this module
evaluates them once per layout on NumPy index arrays and then packs and unpacks whole batches by indexing.

Inside a register the elements lie low to high: element e occupies `container_bits` bits from bit
`e * container_bits`, and its own `element_bits` bits start `element_shift` bits into that container.
Registers are 32 bits wide, except for 64-bit elements, where one uint64 stands for a 64-bit register (NVIDIA)
or for an aligned pair of 32-bit VGPRs, low word first (AMD).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.errors import DTypeError, OperandError, ShapeError, SpecError, nearest
from golden.number.arrays import plain
from golden.paths import spec_folder
from golden.yamlfile import Section, read

Array = npt.NDArray[Any]
Formulas = tuple[tuple[str, str], ...]
Integers = tuple[tuple[str, int], ...]

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_COORDINATES = ("block", "row", "col", "active")


def evaluate(formula: str, names: Mapping[str, Any]) -> Any:
    """Evaluates an integer formula over `names`, whose values are ints or integer arrays that broadcast.

    Allowed: integers, names, `+ - * // % << >> & |`, comparisons (chained ones too), `and`, `or`, `x if c
    else y`. Truth values count as 0 and 1.

    Raises:
        SpecError: the formula is no such expression, names something unknown, or divides by zero.
    """
    try:
        return _value(_parse(formula), names)
    except KeyError as error:
        raise SpecError(
            f"formula '{formula}': unknown name {error}, expected one of {', '.join(names)}"
        ) from None
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise SpecError(f"formula '{formula}': {error}") from None


@cache
def _parse(formula: str) -> ast.expr:
    try:
        return ast.parse(formula, mode="eval").body
    except (SyntaxError, RecursionError):
        raise ValueError("not an expression") from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _apply(node.op, _value(node.left, names), _value(node.right, names))
    if isinstance(node, ast.Compare) and all(type(op) in _BINARY for op in node.ops):
        terms = [_value(term, names) for term in (node.left, *node.comparators)]
        return _fold(
            operator.and_, [_apply(*case) + 0 for case in zip(node.ops, terms, terms[1:], strict=False)]
        )
    if isinstance(node, ast.BoolOp):
        join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
        return _fold(join, [_number(_value(term, names) != 0) for term in node.values])
    if isinstance(node, ast.IfExp):
        chosen = np.where(_value(node.test, names), _value(node.body, names), _value(node.orelse, names))
        return chosen if chosen.ndim else int(chosen)
    raise ValueError(f"'{ast.unparse(node)}' is not allowed")


def _apply(op: ast.AST, left: Any, right: Any) -> Any:
    if isinstance(op, (ast.FloorDiv, ast.Mod)) and np.any(np.equal(right, 0)):
        raise ZeroDivisionError("division by zero")
    return _number(_BINARY[type(op)](left, right))


def _number(value: Any) -> Any:
    """Turns truth values, of a scalar or an array, into 0 and 1."""
    if isinstance(value, np.ndarray):
        return value.astype(np.int64)
    return int(value)


def _fold(join: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


def storage_dtype(element_bits: int) -> np.dtype[Any]:
    """Returns the dtype of a raw-bit matrix: uint8 for up to 8 bits, then uint16, uint32, uint64."""
    return np.dtype(
        next(
            dtype
            for dtype in (np.uint8, np.uint16, np.uint32, np.uint64)
            if element_bits <= 8 * np.dtype(dtype).itemsize
        )
    )


@dataclass(frozen=True, repr=False)
class Layout:
    """Where the elements of one operand lie in the registers of a warp, warpgroup or wave.

    The matrix has shape (..., rows, cols), or (..., blocks, rows, cols) when `blocks` > 1; the registers have
    shape (..., lanes, registers). `selectors` are the run-time choices of the instruction, such as the
    sparsity selector; all 0 unless `select` changes them. `copies`: how many places hold each element, all of
    them the same. `evidence` and `source` say where the rule comes from.
    """

    name: str
    operand: str
    lanes: int
    registers: int
    register_bits: int
    container_bits: int
    element_bits: int
    element_shift: int
    rows: int
    cols: int
    blocks: int
    formulas: Formulas
    parameters: Integers
    copies: int = 1
    selectors: Integers = ()
    selector_rules: Formulas = ()
    address_lane: str | None = None
    evidence: str = ""
    source: str = ""

    def __repr__(self) -> str:
        size = "x".join(map(str, self.matrix_shape))
        return f"<Layout of {self.name}: {size} in {self.registers} registers of {self.lanes} lanes>"

    @property
    def elements_per_register(self) -> int:
        """How many elements, or slots for elements, one register has."""
        return self.register_bits // self.container_bits

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one matrix: (rows, cols), or (blocks, rows, cols)."""
        return (self.rows, self.cols) if self.blocks == 1 else (self.blocks, self.rows, self.cols)

    @property
    def matrix_dtype(self) -> np.dtype[Any]:
        """dtype of a raw-bit matrix, one element per array item."""
        return storage_dtype(self.element_bits)

    @property
    def register_dtype(self) -> np.dtype[Any]:
        """uint32, or uint64 for 64-bit elements."""
        return storage_dtype(self.register_bits)

    def select(self, **selectors: int) -> Layout:
        """Returns the layout with other selector values, e.g. `select(selector=1)` or `select(byte_id=2)`.

        Raises:
            OperandError: no such selector, or a value that the instruction does not take.
        """
        for name in selectors:
            if name not in dict(self.selectors):
                known = ", ".join(dict(self.selectors)) or "none"
                raise OperandError(f"{self.name}: no selector '{name}', the layout has: {known}")
        chosen = {**dict(self.selectors), **selectors}
        for name, rule in self.selector_rules:
            if chosen[name] < 0 or not evaluate(rule, {**dict(self.parameters), **chosen}):
                raise OperandError(f"{self.name}: {name} = {chosen[name]}, expected {rule}")
        return replace(self, selectors=tuple(chosen.items()))

    def coordinates(self) -> dict[str, Array]:
        """Returns the place of every register element: int64 arrays (lanes, registers,
        elements_per_register).

        Keys: `row`, `col`, `block`, and `active`, a bool that is False for bits that hold no element (their
        row, col and block are -1).

        Raises:
            SpecError: the formulas do not place every matrix element exactly once (`copies` times).
        """
        return {key: value.copy() for key, value in self._places.items()}

    def pack(self, matrix: npt.ArrayLike) -> Array:
        """Packs raw-bit matrices (..., [blocks,] rows, cols) into registers (..., lanes, registers).

        Register bits that hold no element are 0.

        Raises:
            ShapeError: the last dimensions are not `matrix_shape`.
            DTypeError: the dtype is not `matrix_dtype`.
            OperandError: an element has bits above its format's width.
        """
        values = self._checked(matrix, self.matrix_shape, self.matrix_dtype, "matrix")
        if self.element_bits < 8 * values.itemsize and np.any(values >> self.element_bits):
            raise OperandError(f"{self.name}: an element is wider than {self.element_bits} bits")
        batch = values.shape[: values.ndim - len(self.matrix_shape)]
        flat = values.reshape(*batch, self.blocks * self.rows * self.cols)
        spread = flat[..., self._element_of_slot].astype(self.register_dtype) << self._shifts
        spread *= self._places["active"].astype(self.register_dtype)
        packed: Array = np.bitwise_or.reduce(spread, axis=-1)
        return packed

    def unpack(self, registers: npt.ArrayLike) -> Array:
        """Unpacks registers (..., lanes, registers) into raw-bit matrices (..., [blocks,] rows, cols).

        Register bits that hold no element are ignored.

        Raises:
            ShapeError: the last dimensions are not (lanes, registers).
            DTypeError: the dtype is not `register_dtype`.
            OperandError: the copies of an element differ.
        """
        values = self._checked(registers, (self.lanes, self.registers), self.register_dtype, "registers")
        batch = values.shape[:-2]
        mask = self.register_dtype.type((1 << self.element_bits) - 1)
        spread = (values[..., None] >> self._shifts) & mask
        flat = spread.reshape(*batch, self.lanes * self.registers * self.elements_per_register)
        found: Array = flat[..., self._slots_of_elements].astype(self.matrix_dtype)
        if np.any(found != found[..., :1]):
            raise OperandError(
                f"{self.name}: registers hold {self.copies} copies of an element that differ, expected all "
                "alike"
            )
        return found[..., 0].reshape(*batch, *self.matrix_shape)

    def address_lanes(self) -> Array | None:
        """Returns the lane that supplies the address of each row, (blocks, rows), or None where the rule
        is unknown."""
        if self.address_lane is None:
            return None
        block, row = np.indices((self.blocks, self.rows))
        lanes: Array = evaluate(self.address_lane, {**dict(self.parameters), "block": block, "row": row})
        return lanes

    def _checked(self, data: npt.ArrayLike, shape: tuple[int, ...], dtype: np.dtype[Any], what: str) -> Array:
        values = plain(data, what)
        if values.dtype != dtype:
            raise DTypeError(f"{self.name}: {what} of dtype {values.dtype}, expected {dtype}")
        if values.shape[-len(shape) :] != shape:
            expected = ", ".join(map(str, shape))
            raise ShapeError(f"{self.name}: {what} of shape {values.shape}, expected (..., {expected})")
        return values

    @cached_property
    def _shifts(self) -> Array:
        """Lowest bit of each element in its register, (elements_per_register,)."""
        shifts = np.arange(self.elements_per_register) * self.container_bits + self.element_shift
        return shifts.astype(self.register_dtype)

    @cached_property
    def _places(self) -> dict[str, Array]:
        shape = (self.lanes, self.registers, self.elements_per_register)
        lane, register, element = np.indices(shape)
        width = self.elements_per_register
        names: dict[str, Any] = {
            **dict(self.parameters),
            **dict(self.selectors),
            "W": width,
            "L": lane,
            "r": register,
            "e": element,
            "i": width * register + element,
        }
        for name, formula in self.formulas:
            names[name] = evaluate(formula, names)
        active = np.broadcast_to(names["active"], shape).astype(bool)
        places = {key: np.where(active, names[key], -1) for key in _COORDINATES[:3]}
        self._check_places(places, active)
        return {**places, "active": active}

    def _check_places(self, places: dict[str, Array], active: Array) -> None:
        """Raises SpecError unless the active places are a permutation of the matrix elements."""
        sizes = {"block": self.blocks, "row": self.rows, "col": self.cols}
        for key, size in sizes.items():
            if np.any(active & ((places[key] < 0) | (places[key] >= size))):
                raise SpecError(f"{self.name}: a {key} outside 0..{size - 1}")
        found, count = np.unique(self._flat(places)[active], return_counts=True)
        if found.size != self.blocks * self.rows * self.cols or np.any(count != self.copies):
            times = "once" if self.copies == 1 else f"{self.copies} times"
            raise SpecError(f"{self.name}: the formulas do not place every element exactly {times}")

    def _flat(self, places: dict[str, Array]) -> Array:
        flat: Array = (places["block"] * self.rows + places["row"]) * self.cols + places["col"]
        return flat

    @cached_property
    def _element_of_slot(self) -> Array:
        """Flat matrix index of each register element (0 where there is none)."""
        return np.where(self._places["active"], self._flat(self._places), 0)

    @cached_property
    def _slots_of_elements(self) -> Array:
        """Flat register-element indices of each matrix element, (elements, copies)."""
        slots = np.flatnonzero(self._places["active"])
        order = np.argsort(self._element_of_slot.reshape(-1)[slots], kind="stable")
        found: Array = slots[order].reshape(-1, self.copies)
        return found


@dataclass(frozen=True)
class _Case:
    """One rule of an operand as the YAML states it: formulas, not yet tied to a shape."""

    place: str
    lanes: tuple[int, ...]
    when: str
    rows: str
    cols: str
    blocks: str
    copies: str
    registers: str
    coordinates: Formulas
    selector_rules: Formulas
    address_lane: str | None
    evidence: str
    source: str


@dataclass(frozen=True)
class Family:
    """One file of `spec/layouts`: the rules of every operand, tried in order.

    `elsewhere` names, for operands that several families share, the family and the operand that have the
    rules. `lanes`: the numbers of lanes that it is for.
    """

    name: str
    lanes: tuple[int, ...]
    constants: Formulas
    names: Formulas
    operands: Mapping[str, tuple[_Case, ...]]
    elsewhere: Mapping[str, tuple[str, str]]

    def has(self, operand: str) -> bool:
        """Whether there are rules for an operand."""
        return operand in self.operands or operand in self.elsewhere

    def build(
        self,
        operand: str,
        *,
        container_bits: int,
        element_bits: int | None = None,
        element_shift: int = 0,
        name: str | None = None,
        lanes: int | None = None,
        **parameters: int,
    ) -> Layout | None:
        """Returns the layout of `operand` at a shape, or None where the family has no rule for it.

        `parameters` are the integers the formulas name, such as m, n and k. `bits` (the container width),
        `lanes` and W (containers per register) come from the arguments.

        Raises:
            SpecError: the family has no such operand, or a formula cannot be evaluated.
        """
        if operand in self.elsewhere:
            other, named = self.elsewhere[operand]
            return family(other).build(
                named,
                container_bits=container_bits,
                element_bits=element_bits,
                element_shift=element_shift,
                name=name,
                lanes=lanes,
                **parameters,
            )
        if operand not in self.operands:
            raise SpecError(
                f"{self.name}: no operand '{operand}', expected one of {', '.join(self.operands)}"
            )
        register_bits = max(32, container_bits)
        known = {**parameters, "bits": container_bits, "W": register_bits // container_bits}
        known["lanes"] = self.lanes[0] if lanes is None else lanes
        for constant, formula in self.constants:
            known[constant] = evaluate(formula, known)
        for case in self.operands[operand]:
            if evaluate(case.when, known):
                break
        else:
            return None
        layout = Layout(
            name=name or f"{self.name} {operand}",
            operand=operand,
            lanes=known["lanes"] if known["lanes"] in case.lanes else case.lanes[0],
            registers=evaluate(case.registers, known),
            register_bits=register_bits,
            container_bits=container_bits,
            element_bits=container_bits if element_bits is None else element_bits,
            element_shift=element_shift,
            rows=evaluate(case.rows, known),
            cols=evaluate(case.cols, known),
            blocks=evaluate(case.blocks, known),
            formulas=self.names + case.coordinates,
            parameters=tuple(known.items()),
            copies=evaluate(case.copies, known),
            selectors=tuple((selector, 0) for selector, _ in case.selector_rules),
            selector_rules=case.selector_rules,
            address_lane=case.address_lane,
            evidence=case.evidence,
            source=case.source,
        )
        return layout


def family(name: str) -> Family:
    """Returns the layout family `spec/layouts/<name>.yaml`.

    Raises:
        SpecError: there is none of the name, or the file is wrong; the message gives file, line and key.
    """
    if name not in names():
        known = names()
        raise SpecError(f"unknown layout '{name}', expected one of {', '.join(known)}{nearest(name, known)}")
    return _read_family(spec_folder() / "layouts" / f"{name}.yaml")


@cache
def names() -> tuple[str, ...]:
    """The names of the layout families."""
    return tuple(sorted(path.stem for path in (spec_folder() / "layouts").glob("*.yaml")))


@cache
def _read_family(path: Path) -> Family:
    return parse_family(read(path))


def parse_family(top: Section) -> Family:
    """Builds a family from the YAML mapping `top`; raises SpecError with file, line and key."""
    name = top.take("layout", str)
    top.take("title", str)
    inherited = {
        "source": top.take("source", str),
        "evidence": _evidence(top),
        "lanes": _lanes(top),
    }
    constants = _formulas(top.take("constants", Section, Section(top.file, top.line)))
    names = _formulas(top.take("names", Section, Section(top.file, top.line)))
    operands = top.take("operands", Section)
    top.done()
    rules = {operand: operands.take(operand, (list, Section)) for operand in operands}
    cases = {
        operand: tuple(_case(item, operands, inherited) for item in found)
        for operand, found in rules.items()
        if isinstance(found, list)
    }
    elsewhere = {
        operand: _reference(operand, found) for operand, found in rules.items() if isinstance(found, Section)
    }
    return Family(name, inherited["lanes"], constants, names, cases, elsewhere)


def _reference(operand: str, item: Section) -> tuple[str, str]:
    """The family and the operand there that have the rules of an operand."""
    found = item.take_choice("layout", names()), item.take("operand", str, operand)
    item.done()
    return found


def _evidence(section: Section) -> str:
    evidence = section.take("evidence", Section)
    kind: str = evidence.take_choice("kind", ("captured", "published", "derived"))
    note = evidence.take("note", str, None)
    evidence.done()
    return f"{kind}: {note}" if note else kind


def _lanes(section: Section) -> tuple[int, ...]:
    """One number of lanes, or a list for which the formulas hold."""
    if not isinstance(section.get("lanes"), list):
        return (section.take_int("lanes", 1, 1024),)
    found = section.take_ints("lanes", 1, 1024)
    if not found:
        raise section.error("key 'lanes' is empty, expected numbers of lanes", "lanes")
    return found


def _formulas(section: Section) -> Formulas:
    return tuple((key, _formula(section, key)) for key in section)


def _formula(section: Section, key: str, default: str | None = None) -> str:
    """Takes a formula; a formula that cannot be parsed is reported at its line."""
    text: str = section.take(key, str) if default is None else section.take(key, str, default)
    try:
        _parse(text)
    except ValueError as error:
        raise section.error(f"key '{key}' is '{text}': {error}", key) from None
    return text


def _case(item: Any, owner: Section, inherited: dict[str, Any]) -> _Case:
    if not isinstance(item, Section):
        raise owner.error("an operand's rule must be a mapping")
    shape = item.take_names("shape")
    if len(shape) != 2:
        raise item.error("key 'shape' must be two formulas: rows, columns", "shape")
    item.take("note", str, None)
    coordinates = tuple(
        (key, _formula(item, key, default))
        for key, default in (("block", "0"), ("row", None), ("col", None), ("active", "1"))
    )
    case = _Case(
        place=f"{item.file}:{item.line}",
        lanes=_lanes(item) if "lanes" in item else inherited["lanes"],
        when=_formula(item, "when"),
        rows=shape[0],
        cols=shape[1],
        blocks=_formula(item, "blocks", "1"),
        copies=_formula(item, "copies", "1"),
        registers=_formula(item, "registers"),
        coordinates=coordinates,
        selector_rules=_formulas(item.take("selectors", Section, Section(item.file, item.line))),
        address_lane=_formula(item, "address_lane") if "address_lane" in item else None,
        evidence=_evidence(item) if "evidence" in item else inherited["evidence"],
        source=item.take("source", str, inherited["source"]),
    )
    item.done()
    return case
