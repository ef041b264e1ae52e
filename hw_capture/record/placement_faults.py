"""Would the recorded results have shown a wrong layout? Plants wrong placements of the operands,
without a GPU.

The recorded results equal the model's when operands lie where `ins.fragments` (and, for what wgmma reads from
shared memory, `hw_capture/kernels/buffers.py`) says. With another layout the hardware would have computed
with permuted matrices. So a wrong placement is planted by permuting a recorded matrix. It is seen if some
recorded result differs from what the model then gives. One fault swaps two sets of places:

- two bits of the address (lane, register, position in the register; in shared memory core row, chunk, row,
  position);
- two neighbouring lanes, registers, positions and so on. Metadata is placed bit by bit: neighbouring bits,
  2-bit indices and nibbles are swapped as well.

Each operand is misplaced by itself, and C and D together where their layouts are equal. C of wgmma is what
D's registers held, so it moves with D only. Lanes that supply no metadata held 0 when the results were
recorded, so a fault reads 0 there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from golden.model.instruction import Instruction
from golden.registers.layouts import Layout
from golden.vectors.captured import Captured
from hw_capture.errors import HwError
from hw_capture.kernels import kernels
from hw_capture.record.verify import replayed

Bits = npt.NDArray[Any]
Index = npt.NDArray[np.int64]
_NO_ELEMENT, _NO_PLACE = -1, -2
_BLOCK = 1 << 18
_SEEN, _NO_FAULT, _UNDEFINED = "seen", "moves nothing", "metadata without a meaning"
_SAME, _UNSEEN = "the recorded matrices are the same with it", "no recorded result changes"


@dataclass(frozen=True)
class Field:
    """Some bits of an address: `bits` from bit `low` number `count` places; `grains`: what neighbours are,
    in bits of it."""

    name: str
    count: int
    low: int
    bits: int
    grains: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Placement:
    """Where the elements of a matrix lie: `element` by address, `address` by element,
    both by a `rule` of any shape.

    Elements are numbered line by line; a line is what one dot product takes of the matrix: a row of A, a
    column of B.
    """

    rule: str
    fields: tuple[Field, ...]
    element: Index
    address: Index

    @classmethod
    def of(
        cls, rule: str, names: dict[str, int], element: Index, grains: tuple[int, ...] = (0,)
    ) -> Placement:
        """Makes one of an array of element numbers (-1: no element) with the axes `names`."""
        fields: list[Field] = []
        low = 0
        for name, count in reversed(names.items()):
            bits = (count - 1).bit_length()
            fields.append(Field(name, count, low, bits, (0,) if fields else grains))
            low += bits
        padded = np.full([1 << part.bits for part in reversed(fields)], _NO_PLACE, np.int64)
        padded[tuple(slice(count) for count in names.values())] = element
        flat = padded.ravel()
        held = np.flatnonzero(flat >= 0)
        address = np.empty(len(held), np.int64)
        address[flat[held]] = held
        return cls(rule, tuple(reversed(fields)), flat, address)


@dataclass(frozen=True)
class Faults:
    """Wrong placements: fault i swaps the addresses whose bits `mask[i]` are `one[i]` with the addresses
    where they are `other[i]`."""

    names: tuple[str, ...]
    mask: Index
    one: Index
    other: Index

    @classmethod
    def of(cls, fields: tuple[Field, ...]) -> Faults:
        """Every transposition of two address bits, and every two neighbours of every field."""
        rows: list[tuple[str, int, int, int]] = []
        bits = [(f"{part.name} bit {i}", 1 << (part.low + i)) for part in fields for i in range(part.bits)]
        for i, (name, bit) in enumerate(bits):
            rows += [
                (f"{name} and {other_name}", bit | other, bit, other) for other_name, other in bits[i + 1 :]
            ]
        for part in fields:
            for grain in part.grains:
                size = 1 << grain
                mask = ((1 << part.bits) - size) << part.low
                for first in range(0, part.count - size, size):
                    pair = [f"{n}" if size == 1 else f"{n}-{n + size - 1}" for n in (first, first + size)]
                    rows.append(
                        (
                            f"{part.name} {pair[0]} and {pair[1]}",
                            mask,
                            first << part.low,
                            (first + size) << part.low,
                        )
                    )
        names, *columns = zip(*rows, strict=True) if rows else ((), (), (), ())
        return cls(tuple(names), *(np.array(column, np.int64) for column in columns))

    def chosen(self, index: Index) -> Faults:
        """The faults of these numbers."""
        return Faults(
            tuple(self.names[i] for i in index), self.mask[index], self.one[index], self.other[index]
        )

    def partner(self, address: Index) -> Index:
        """Where each fault takes the content of an address from; address (faults, ...)."""
        mask, one, other = (
            part.reshape(-1, *(1,) * (address.ndim - 1)) for part in (self.mask, self.one, self.other)
        )
        found = address & mask
        return np.asarray(np.where((found == one) | (found == other), address ^ one ^ other, address))

    def sources(self, placement: Placement, elements: Index) -> Index:
        """The element that each fault puts in the place of another (-1: an empty place);
        elements (faults, ...)."""
        source = placement.element[self.partner(placement.address[elements])]
        return np.where(source == _NO_PLACE, elements, source)


@dataclass(frozen=True)
class Unseen:
    """A fault that no recorded result of its instruction refutes. `rule`: the layout's formulas, which
    other shapes share."""

    instruction: str
    operand: str
    fault: str
    why: str
    rule: str


@dataclass
class Report:
    """What became of the faults.

    planted: by operand, faults that move an element. seen: faults that a recorded result refutes. undefined:
    faults that only metadata without a meaning could show. unseen: the others; most are seen in other
    instructions of the same rule.
    """

    instructions: int = 0
    planted: dict[str, int] = field(default_factory=dict)
    seen: int = 0
    undefined: int = 0
    unseen: list[Unseen] = field(default_factory=list)
    rules: set[tuple[str, str, str]] = field(default_factory=set)
    """(rule, operand, fault) of every fault that was seen in some instruction."""

    @property
    def missed(self) -> list[Unseen]:
        """Faults that no recorded result of any instruction of the rule refutes."""
        return [item for item in self.unseen if (item.rule, item.operand, item.fault) not in self.rules]

    @property
    def passed(self) -> bool:
        """Whether faults were planted and none was missed."""
        return sum(self.planted.values()) > 0 and not self.missed

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        unseen = {key: [vars(item) for item in getattr(self, key)] for key in ("unseen", "missed")}
        return {**vars(self), **unseen, "rules": len(self.rules), "passed": self.passed}


def plant(
    folder: Path,
    *,
    matching: Callable[[str], bool] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Report:
    """Plants every fault in every captured instruction below a folder.

    Raises:
        FileFormatError: a manifest or a file is missing, was edited or cut short.
        HwError: recorded results differ from the model without a fault, or there is no layout to plant a
            fault in.
    """
    report = Report()
    for ins, vector in replayed(folder, matching, progress):
        plant_in(ins, vector, report)
    if not sum(report.planted.values()):
        raise HwError(
            f"{folder}: no wrong layout could be planted: no captured instruction with a layout was chosen"
        )
    return report


def plant_in(ins: Instruction, vector: Captured, report: Report) -> None:
    """Plants every fault in the vectors of one instruction and adds what was found; raises HwError as
    `plant` does."""
    recorded = _Recorded(ins, vector)
    report.instructions += 1
    for operand, placement in placements(ins).items():
        faults, found = _search(recorded, operand, placement)
        planted = [why for why in found if why != _NO_FAULT]
        report.planted[operand] = report.planted.get(operand, 0) + len(planted)
        report.seen += planted.count(_SEEN)
        report.undefined += planted.count(_UNDEFINED)
        rule = f"{ins.layout}{'.sp' * ins.sparse}: {placement.rule}"
        for fault, why in zip(faults.names, found, strict=True):
            if why == _SEEN:
                report.rules.add((rule, operand, fault))
            elif why in (_SAME, _UNSEEN):
                report.unseen.append(Unseen(f"{ins.architecture}:{ins.name}", operand, fault, why, rule))


# Placements -------------------------------------------------------------------------------------------------


def placements(ins: Instruction) -> dict[str, Placement]:
    """Where the operands lie, by operand; wgmma's A in both forms."""
    fragments = kernels.fragments(ins)
    found: dict[str, Placement] = {}
    for operand in ("a", "b", "c", "d", "metadata"):
        layout = getattr(fragments, operand, None)
        if layout is not None:
            found[operand] = _in_registers(operand, layout)
    for operand, lines, width in (("a", ins.m, ins.stored_k), ("b", ins.n, ins.k)):
        if "shared" in ins.traits.places_of(operand):
            found[f"{operand} in shared memory"] = _in_shared_memory(lines, width, ins.formats[operand].bits)
    if {"c", "d"} <= set(found) and np.array_equal(found["c"].element, found["d"].element):
        found["c and d"] = found.pop("c") if ins.traits.in_place else found["c"]
    return found


def _in_registers(operand: str, layout: Layout) -> Placement:
    places = layout.coordinates()
    row, column, rows, columns = places["row"], places["col"], layout.rows, layout.cols
    if operand == "b":
        row, column, rows, columns = column, row, columns, rows
    element = np.where(places["active"], (places["block"] * rows + row) * columns + column, _NO_ELEMENT)
    rule = (
        f"{layout.elements_per_register} a register: "
        f"{'; '.join(f'{name} = {text}' for name, text in layout.formulas)}"
    )
    if operand != "metadata":
        return Placement.of(
            rule, {"lane": layout.lanes, "register": layout.registers, "position": element.shape[2]}, element
        )
    bits = np.where(element[..., None] < 0, _NO_ELEMENT, element[..., None] * 4 + np.arange(4))
    element = bits.reshape(layout.lanes, layout.registers, 32)
    return Placement.of(
        rule, {"lane": layout.lanes, "register": layout.registers, "bit": 32}, element, grains=(0, 1, 2)
    )


@lru_cache(maxsize=64)
def _in_shared_memory(lines: int, width: int, bits: int) -> Placement:
    """Core matrices of 8 lines by 16 bytes, as buffers.py packs them."""
    shape = {"core row": lines // 8, "chunk": width * bits // 128, "line": 8, "position": 128 // bits}
    element = (
        np.arange(lines * width).reshape(lines // 8, 8, shape["chunk"], shape["position"]).swapaxes(1, 2)
    )
    return Placement.of(f"core matrices of {shape['position']} elements a line", shape, element)


@lru_cache(maxsize=64)
def _faults_by_fields(fields: tuple[Field, ...]) -> Faults:
    return Faults.of(fields)


# Search -----------------------------------------------------------------------------------------------------


def numbered(ins: Instruction, matrices: dict[str, Bits]) -> dict[str, Bits]:
    """Matrices (tiles, ...) of the matrix API as (executions, elements)
    with the element numbers of a Placement."""
    found = dict(matrices)
    if "b" in found:
        found["b"] = found["b"].swapaxes(1, 2)
    if "metadata" in found:
        found["metadata"] = (found["metadata"][..., None] >> np.arange(4, dtype=np.uint8)) & np.uint8(1)
    return {
        name: np.ascontiguousarray(codes).reshape(len(codes) // ins.blocks, -1)
        for name, codes in found.items()
    }


class _Recorded:
    """The recorded tiles of one instruction, line by line, and the model on single dot products of them.

    An execution takes `ins.blocks` tiles.
    """

    def __init__(self, ins: Instruction, vector: Captured) -> None:
        self.ins = ins
        self.flat = numbered(ins, {**vector.operands, "d": vector.d})
        self.executions = len(vector.d) // ins.blocks
        self.widths = {"a": ins.stored_k, "b": ins.k, "c": 1, "d": 1}
        if ins.pattern is not None:
            self.widths["metadata"] = 4 * ins.k // ins.pattern.chunk
        if (wrong := int((ins(**vector.operands) != vector.d).sum())) > 0:
            raise HwError(
                f"{ins.architecture}:{ins.name}: {wrong} recorded results differ from the model without a "
                "fault: run mmagold verify"
            )

    def partners(self, operand: str) -> int:
        """How many dot products of an execution read one line of an operand."""
        return {"a": self.ins.n, "metadata": self.ins.n, "b": self.ins.m}.get(operand, 1)

    def lines(self, operand: str, execution: Index, line: Index) -> Bits:
        """Lines of an operand, (..., width)."""
        width = self.widths[operand]
        return np.asarray(self.flat[operand].reshape(self.executions, -1, width)[execution, line])

    def place(self, operand: str, line: Index, partner: Index) -> dict[str, Index]:
        """The lines of every operand in the dot product that reads a line of `operand` and the partner's
        of the other."""
        m, n = self.ins.m, self.ins.n
        if operand == "b":
            block, column, row = line // n, line % n, partner
        elif operand in ("c", "d"):
            block, row, column = line // (m * n), line // n % m, line % n
        else:
            block, row, column = line // m, line % m, partner
        row, column = block * m + row, block * n + column
        return {"a": row, "metadata": row, "b": column, "c": row * n + column % n, "d": row * n + column % n}

    def nibbles(self, metadata: Bits) -> Bits:
        """The codes of lines of metadata, (..., chunks), from their bits."""
        weights = np.array([1, 2, 4, 8], np.uint8)
        bits = metadata.reshape(*metadata.shape[:-1], metadata.shape[-1] // 4, 4)
        return np.asarray((bits * weights).sum(axis=-1, dtype=np.uint8))

    def means(self, operand: str, lines: Bits) -> npt.NDArray[np.bool_]:
        """Which lines (..., width) mean something: all but metadata that the instruction does not accept.

        No one says what hardware does with two equal indices, say, so a result cannot refute them.
        """
        pattern = self.ins.pattern
        if operand != "metadata" or pattern is None:
            return np.ones(lines.shape[:-1], bool)
        return np.asarray(np.isin(self.nibbles(lines), pattern.legal(self.ins.ordered_metadata)).all(axis=-1))

    def dots(self, given: dict[str, Bits]) -> Bits:
        """Results of dot products from lines (count, width)."""
        a, b, c = given["a"], given["b"], given["c"][:, 0]
        pattern = self.ins.pattern
        if pattern is None:
            return np.asarray(self.ins.dot(a, b, c))
        nibbles = self.nibbles(given["metadata"])
        # The nibble of the first two columns (pairs of columns; of two columns the first).
        first_two = 0x4
        first = np.full_like(nibbles, first_two)
        chosen = np.zeros_like(b)
        picked = np.take_along_axis(b, pattern.columns(nibbles), axis=1)
        np.put_along_axis(chosen, pattern.columns(first), picked, axis=1)
        return np.asarray(self.ins.dot(a, chosen, c, metadata=first))

    def refuted(
        self,
        operand: str,
        placement: Placement,
        faults: Faults,
        execution: Index,
        line: Index,
        partner: Index,
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Of each fault's lines (faults, lines): whether the recorded matrix changes, has no meaning then,
        is refuted."""
        name = operand.split(" ")[0]
        width = self.widths[name]
        elements = line[..., None] * width + np.arange(width)
        source = faults.sources(placement, elements)
        data = self.flat[name]
        held = data[execution[..., None], elements]
        content = np.where(source < 0, data.dtype.type(0), data[execution[..., None], np.maximum(source, 0)])
        changed = (content != held).any(axis=-1)
        if operand == "d":
            return changed, np.zeros_like(changed), changed
        if operand == "c and d":
            changed = source[..., 0] != line
        undefined = changed & ~self.means(name, content)
        run = changed & ~undefined
        places = self.place(name, source[run][:, 0] if operand == "c and d" else line[run], partner[run])
        where = execution[run]
        given = {key: self.lines(key, where, places[key]) for key in self.widths if key != "d"}
        given[name] = held[run] if operand == "c and d" else content[run]
        recorded = self.flat["d"][where, line[run] if operand == "c and d" else places["d"]]
        refuted = np.zeros_like(changed)
        refuted[run] = self.dots(given) != recorded
        return changed, undefined, refuted


def _search(recorded: _Recorded, operand: str, placement: Placement) -> tuple[Faults, list[str]]:
    """Every fault of a placement, and what became of each: first by samples, then, where they show nothing,
    by everything there is."""
    faults = _faults_by_fields(placement.fields)
    rng = np.random.default_rng(len(faults.names))
    found = np.full(len(faults.names), _SEEN, object)
    left = np.arange(len(faults.names))
    samples = (8, 96)
    for count in samples:
        part = faults.chosen(left)
        line, usable = _moved(placement, part, count, recorded.widths[operand.split(" ")[0]], rng)
        execution = rng.integers(0, recorded.executions, line.shape)
        partner = rng.integers(0, recorded.partners(operand.split(" ")[0]), line.shape)
        refuted = recorded.refuted(operand, placement, part, execution, line, partner)[2] & usable
        left = left[~refuted.any(axis=1)]
    for i in left:
        found[i] = _exhausted(recorded, operand, placement, faults.chosen(np.array([i])))
    return faults, found.tolist()


def _moved(
    placement: Placement, faults: Faults, count: int, width: int, rng: np.random.Generator
) -> tuple[Index, npt.NDArray[np.bool_]]:
    """Random lines (faults, count) that each fault changes, and which of them are such lines."""
    mask, one, other = (part[:, None] for part in (faults.mask, faults.one, faults.other))
    side = rng.integers(0, 2, (len(mask), count), bool)
    address = rng.integers(0, len(placement.element), side.shape) & ~mask | np.where(side, one, other)
    element, source = placement.element[address], placement.element[address ^ one ^ other]
    held = np.where(element < 0, source, element)
    return np.maximum(held, 0) // width, (held >= 0) & (element != _NO_PLACE) & (source != _NO_PLACE)


def _exhausted(recorded: _Recorded, operand: str, placement: Placement, fault: Faults) -> str:
    """What became of a fault, from every line that it changes with every partner in every execution."""
    name = operand.split(" ")[0]
    everything = np.arange(len(placement.address))
    moved = everything[fault.sources(placement, everything[None])[0] != everything]
    if not len(moved):
        return _NO_FAULT
    lines, partners = np.unique(moved // recorded.widths[name]), recorded.partners(name)
    any_changed = any_undefined = False
    step = max(1, _BLOCK // (recorded.widths[name] * partners))

    def tried(execution: int, line: Index, partner: Index) -> tuple[npt.NDArray[np.bool_], ...]:
        return recorded.refuted(operand, placement, fault, np.full_like(line, execution), line, partner)

    for execution in range(recorded.executions):
        changed, undefined, refuted = tried(execution, lines[None], np.zeros_like(lines)[None])
        if refuted.any():
            return _SEEN
        any_changed, any_undefined = (
            any_changed or bool(changed.any()),
            any_undefined or bool(undefined.any()),
        )
        left = lines[(changed & ~undefined)[0]]  # with whatever partner
        for start in range(0, len(left), step):
            line, partner = (
                part.reshape(1, -1) for part in np.meshgrid(left[start : start + step], np.arange(partners))
            )
            if tried(execution, line, partner)[2].any():
                return _SEEN
    return _UNDEFINED if any_undefined else _UNSEEN if any_changed else _SAME
